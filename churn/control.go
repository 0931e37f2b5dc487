package churn

import (
	"context"
	"fmt"
)

// NotLeadingError says that a churn is controlled elsewhere.
type NotLeadingError struct {
	Churn  string
	Leader string // identity of the instance that leads; empty: none is known
}

// Error says which instance to ask.
func (e *NotLeadingError) Error() string {
	if e.Leader == "" {
		return fmt.Sprintf("churn %q: no instance is elected at present; try again", e.Churn)
	}
	return fmt.Sprintf("churn %q: it is %q that leads; ask that instance", e.Churn, e.Leader)
}

// Pause restores the baseline and changes nothing more until Resume.
func (c *Cycle) Pause(ctx context.Context) error { return ctx.Err() }

// Resume ends a pause.
func (c *Cycle) Resume(ctx context.Context) error { return ctx.Err() }

// Restore restores the baseline.
func (c *Cycle) Restore(ctx context.Context) error { return ctx.Err() }
