package report

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/steadyprobe/steadyprobe/probe"
	"github.com/steadyprobe/steadyprobe/probe/record"
)

func TestResponses(t *testing.T) {
	got := responses([]record.ResponseCount{
		{Code: 200, Protocol: probe.HTTP10, Count: 1}, {Code: 200, Protocol: probe.HTTP11, Count: 2},
		{Protocol: probe.HTTP11, Count: 3}, {Protocol: probe.TCP, Count: 4}, {Protocol: probe.TLS, Count: 5}, {Code: 404},
	})
	if diff := cmp.Diff(map[string]uint64{"200": 3, "other": 3, "tcp": 4, "tls": 5}, got); diff != "" {
		t.Errorf("responses (-want +got):\n%s", diff)
	}
}
