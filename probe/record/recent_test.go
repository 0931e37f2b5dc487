package record

import (
	"testing"
	"time"

	"github.com/steadyprobe/steadyprobe/probe"
)

// recordLate records ticks that were so late and took so long.
func recordLate(r *Recorder, n int, late, service time.Duration) {
	for range n {
		intended := probe.Instant(time.Hour)
		begun := intended.Add(late)
		r.Record(&probe.Sample{Tick: probe.Tick{Intended: intended}, Begun: begun, Sent: begun, End: begun.Add(service)})
	}
}

func TestRecent(t *testing.T) {
	clock := probe.NewClock()
	a, b := New(Options{Clock: clock}), New(Options{Clock: clock})
	both := []*Recorder{a, b}
	var lateness, service Recent
	check := func(what string, got, want time.Duration) {
		t.Helper()
		// A native bucket is 2.2 % wide, and its upper boundary is told.
		if got < want || float64(got) > 1.022*float64(want) {
			t.Errorf("%s is %v, want %v or 2.2 %% more", what, got, want)
		}
	}
	if got := lateness.Lateness(0.99, both); got != 0 {
		t.Errorf("the p99 of nothing is %v", got)
	}
	recordLate(a, 90, 100*time.Microsecond, time.Millisecond)
	recordLate(b, 10, 5*time.Millisecond, 20*time.Millisecond)
	check("p50 lateness", lateness.Lateness(0.5, both), 100*time.Microsecond)
	check("p50 service time", service.ServiceTime(0.5, both), time.Millisecond)
	if got := lateness.Lateness(0.5, both); got != 0 {
		t.Errorf("the same ticks were told again: %v", got)
	}
	// Only what came since counts: two of two hundred are late.
	recordLate(a, 197, 200*time.Microsecond, 2*time.Millisecond)
	recordLate(b, 3, 7*time.Millisecond, 2*time.Millisecond)
	check("p99 lateness", lateness.Lateness(0.99, both), 7*time.Millisecond)
	check("p50 service time", service.ServiceTime(0.5, both), 2*time.Millisecond)
	recordLate(a, 1, 0, 0)
	if got := lateness.Lateness(0.99, both); got != 0 {
		t.Errorf("the p99 of one that was not late is %v", got)
	}
	if n := testing.AllocsPerRun(100, func() { lateness.Lateness(0.5, both) }); n != 0 {
		t.Errorf("%v allocations, want none", n)
	}
}

// What a recorder that is gone had counted hides as much, and makes nothing up.
func TestRecentOfFewerRecorders(t *testing.T) {
	clock := probe.NewClock()
	a, b := New(Options{Clock: clock}), New(Options{Clock: clock})
	var lateness Recent
	recordLate(a, 50, time.Millisecond, 0)
	recordLate(b, 70, time.Millisecond, 0)
	lateness.Lateness(0.5, []*Recorder{a, b})
	recordLate(a, 20, time.Millisecond, 0)
	if got := lateness.Lateness(0.99, []*Recorder{a}); got != 0 {
		t.Errorf("the p99 is %v, want nothing: 70 are hidden by those of before", got)
	}
	recordLate(a, 10, 5*time.Millisecond, 0)
	if got := lateness.Lateness(0.5, []*Recorder{a}); got < 5*time.Millisecond {
		t.Errorf("the median is %v, want 5 ms", got)
	}
}
