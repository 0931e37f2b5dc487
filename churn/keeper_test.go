package churn

import (
	"context"
	"fmt"
)

// fakeKeeper keeps its count as its original state.
type fakeKeeper struct {
	*fakeWorkload
	calls *[]string
}

func (k fakeKeeper) Keep(context.Context) (string, error) {
	*k.calls = append(*k.calls, "keep")
	return fmt.Sprintf("%d servers", k.count()), nil
}

func (k fakeKeeper) Restore(_ context.Context, original string) error {
	*k.calls = append(*k.calls, "restore "+original)
	n := 0
	if _, err := fmt.Sscanf(original, "%d", &n); err == nil {
		k.set(n)
	}
	return nil
}
