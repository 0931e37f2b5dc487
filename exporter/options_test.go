package exporter

import (
	"strings"
	"testing"

	"github.com/steadyprobe/steadyprobe/probe"
)

// TestBareTargetMeets lists what a target below HTTP cannot meet.
func TestBareTargetMeets(t *testing.T) {
	http, bare := Target{Loop: "open"}, Target{Loop: "open", Bare: true}
	var never []string
	for i := range probe.NumOutcomes {
		if o := probe.Outcome(i); http.meets(o) && !bare.meets(o) {
			never = append(never, o.String())
		} else if bare.meets(o) && !http.meets(o) {
			t.Errorf("a bare target meets %v, another does not", o)
		}
	}
	const want = "write/stale read/stale read/truncated response/status response/size response/header response/protocol"
	if got := strings.Join(never, " "); got != want {
		t.Errorf("a bare target never meets %s, want %s", got, want)
	}
}
