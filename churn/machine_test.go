package churn

import (
	"testing"
	"time"

	"github.com/steadyprobe/steadyprobe/probe"
)

// event is what happens to a machine at a time in seconds.
type event struct {
	at    int
	scale int // a call to this many is about to be made; 0: none
	undo  bool
	see   Observation // is observed where neither of the others is
	want  probe.ChurnPhase
	after time.Duration // converged, where the event settles it
}

// all is an observation in which everything is n.
func all(n int) Observation { return Observation{n, n, n} }

func TestMachine(t *testing.T) {
	const up, down, settled = probe.ScalingUp, probe.ScalingDown, probe.Settled
	s := time.Second
	for _, tc := range []struct {
		name   string
		settle time.Duration
		events []event
	}{
		{"nothing happens", 5 * s, []event{{at: 0, see: all(2), want: settled}, {at: 9, see: all(2), want: settled}}},
		{"up", 5 * s, []event{
			{at: 0, scale: 4, want: up},
			{at: 1, see: Observation{4, 2, 2}, want: up},
			{at: 2, see: Observation{4, 4, 2}, want: up},
			{at: 3, see: Observation{4, 4, 3}, want: up},
			{at: 4, see: all(4), want: up},
			{at: 8, see: all(4), want: up},                    // 4 s matched
			{at: 9, see: all(4), want: settled, after: 4 * s}, // 5 s matched
			{at: 10, see: all(4), want: settled},
		}},
		{"down", 5 * s, []event{
			{at: 1, scale: 1, want: down},
			{at: 2, see: Observation{1, 2, 1}, want: down},
			{at: 3, see: all(1), want: down},
			{at: 8, see: all(1), want: settled, after: 2 * s},
		}},
		{"to none", 5 * s, []event{
			{at: 1, see: Observation{0, 2, 2}, want: down},
			{at: 2, see: all(0), want: down},
			{at: 7, see: all(0), want: settled, after: s},
		}},
		{"no settle time", 0, []event{
			{at: 0, scale: 4, want: up},
			{at: 1, see: Observation{4, 3, 3}, want: up},
			{at: 2, see: all(4), want: settled, after: 2 * s},
		}},
		{"the match is lost", 5 * s, []event{
			{at: 0, scale: 4, want: up},
			{at: 1, see: all(4), want: up},
			{at: 5, see: Observation{4, 3, 3}, want: up},
			{at: 6, see: all(4), want: up}, // 5 s after the first match
			{at: 10, see: all(4), want: up},
			{at: 11, see: all(4), want: settled, after: 6 * s}, // the match that lasted began at 6
		}},
		{"a replica fails while settled", 5 * s, []event{
			{at: 0, see: Observation{2, 1, 1}, want: settled},
			{at: 1, see: all(2), want: settled},
		}},
		{"to what there is", 5 * s, []event{{at: 0, scale: 2, want: settled}, {at: 1, see: all(2), want: settled}}},
		{"turned round on the way", 5 * s, []event{
			{at: 0, scale: 4, want: up},
			{at: 1, see: Observation{4, 3, 3}, want: up},
			{at: 2, scale: 2, want: down},
			{at: 3, see: Observation{2, 3, 3}, want: down},
			{at: 4, see: all(2), want: down},
			{at: 9, see: all(2), want: settled, after: 2 * s}, // 4 - 2
		}},
		{"further on the way", 5 * s, []event{
			{at: 0, scale: 4, want: up},
			{at: 1, see: all(4), want: up},
			{at: 2, scale: 6, want: up}, // and the match is over
			{at: 6, see: all(6), want: up},
			{at: 11, see: all(6), want: settled, after: 4 * s},
		}},
		{"a call that was not done", 5 * s, []event{
			{at: 0, scale: 4, want: up},
			{at: 1, undo: true, want: settled},
			{at: 1, see: all(2), want: settled},
			{at: 2, scale: 4, want: up},
			{at: 3, see: all(4), want: up},
			{at: 8, see: all(4), want: settled, after: s},
		}},
		{"a call on the way that was not done", 5 * s, []event{
			{at: 0, scale: 4, want: up},
			{at: 1, see: all(4), want: up},
			{at: 2, scale: 2, want: down},
			{at: 3, undo: true, want: up},
			{at: 6, see: all(4), want: settled, after: s}, // matched since 1
		}},
		{"scaled by somebody else", 5 * s, []event{
			{at: 3, see: Observation{3, 2, 2}, want: up},
			{at: 4, see: all(3), want: up},
			{at: 5, see: Observation{1, 3, 3}, want: down},
			{at: 6, see: all(1), want: down},
			{at: 11, see: all(1), want: settled, after: s},
		}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			start := time.Now()
			m := newMachine(tc.settle, 2)
			for _, e := range tc.events {
				now := start.Add(time.Duration(e.at) * time.Second)
				var converged time.Duration
				var ended bool
				switch {
				case e.scale != 0:
					m.scale(now, e.scale)
				case e.undo:
					m.undo()
				default:
					converged, ended = m.observe(now, e.see)
				}
				if m.phase != e.want || converged != e.after || ended != (e.after != 0) {
					t.Errorf("at %d s: %v, converged after %v (%v); want %v, %v", e.at, m.phase, converged, ended, e.want, e.after)
				}
			}
		})
	}
}
