package churn

import (
	"testing"
	"time"

	"github.com/steadyprobe/steadyprobe/probe"
	"github.com/steadyprobe/steadyprobe/probe/record"
)

func newTestAccount() *account { return newAccount("shop", record.DefaultBounds().Convergence) }

// phaseOf alternates.
func phaseOf(i int) probe.ChurnPhase { return probe.Settled + probe.ChurnPhase(i%2) }

func TestHistoryIsOfTheLastHour(t *testing.T) {
	a := newTestAccount()
	start := time.Now()
	minute := func(n int) time.Time { return start.Add(time.Duration(n) * time.Minute) }
	var s Snapshot
	for i := range 100 {
		a.enter(phaseOf(i), minute(i))
		// The phase that was there an hour ago began at that minute or earlier.
		a.snapshot(&s, minute(i))
		first := max(0, i-60)
		if len(s.History) != i-first+1 || !s.History[0].From.Equal(minute(first)) || s.History[0].Phase != phaseOf(first) {
			t.Fatalf("at minute %d: %d phases from %v", i, len(s.History), s.History[0].From.Sub(start))
		}
		if last := s.History[len(s.History)-1]; last.Phase != s.Phase || !last.From.Equal(s.Since) {
			t.Fatalf("at minute %d: the last phase is %v", i, last)
		}
	}
	a.snapshot(&s, minute(1000)) // much later the present phase is all there is
	if len(s.History) != 1 || !s.History[0].From.Equal(minute(99)) {
		t.Errorf("at minute 1,000: %v", s.History)
	}
}

func TestHistoryIsBounded(t *testing.T) {
	a := newTestAccount()
	start := time.Now()
	for i := range mostHistory + 10 {
		a.enter(phaseOf(i), start.Add(time.Duration(i)*time.Millisecond))
	}
	var s Snapshot
	a.snapshot(&s, start.Add(time.Minute))
	if len(s.History) != mostHistory || !s.History[0].From.Equal(start.Add(10*time.Millisecond)) {
		t.Errorf("%d phases from %v, want %d from 10ms", len(s.History), s.History[0].From.Sub(start), mostHistory)
	}
	if c := cap(a.history); c > 2*mostHistory {
		t.Errorf("room for %d phases", c)
	}
}

func TestSnapshotUsesSlicesAgain(t *testing.T) {
	a := newTestAccount()
	for i := range 100 {
		a.enter(phaseOf(i), time.Now())
		a.converged(Up, time.Second)
		a.converged(Down, time.Millisecond)
		a.felt(felt{time.Second, -1})
		a.felt(felt{-1, time.Millisecond})
		a.failedOver(time.Minute)
	}
	var s Snapshot
	a.snapshot(&s, time.Now())
	if n := testing.AllocsPerRun(100, func() { a.snapshot(&s, time.Now()) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
	if s.FirstResponse.Count != 100 || s.LastResponse.Count != 100 || s.Failover.Sum != 6000 {
		t.Errorf("%d, %d, %v", s.FirstResponse.Count, s.LastResponse.Count, s.Failover.Sum)
	}
	if s.Convergence[Up].Count != 100 || s.Convergence[Down].Count != 100 || len(s.History) != 100 {
		t.Errorf("%d, %d, %d", s.Convergence[Up].Count, s.Convergence[Down].Count, len(s.History))
	}
}

// TestSnapshotReason: what the state is for outlasts what fails at present, and
// that there is no look at the workload at all is worse than a failing Scale.
func TestSnapshotReason(t *testing.T) {
	a := newTestAccount()
	var s Snapshot
	for _, step := range []struct {
		name   string
		do     func()
		state  State
		reason Reason
		detail string
	}{
		{"new", func() {}, Stopped, NoReason, ""},
		{"cannot begin", func() { a.failed(observing, trouble{Unreachable, "o"}); a.become(Paused, trouble{}) }, Paused, Unreachable, "o"},
		{"still not", func() { a.failed(observing, trouble{Unreachable, "p"}) }, Paused, Unreachable, "p"},
		{"observed", func() { a.succeeded(observing) }, Paused, NoReason, ""},
		{"paused without a reason", func() { a.become(Paused, trouble{detail: "night"}) }, Paused, NoReason, "night"},
		{"begins", func() { a.become(Running, trouble{}) }, Running, NoReason, ""},
		{"scaling fails", func() { a.failed(scaling, trouble{Conflict, "s"}) }, Running, Conflict, "s"},
		{"observing too", func() { a.failed(observing, trouble{Unreachable, "o"}) }, Running, Unreachable, "o"},
		{"observed again", func() { a.succeeded(observing) }, Running, Conflict, "s"},
		{"accepted", func() { a.succeeded(scaling) }, Running, NoReason, ""},
		{"the note cannot be saved", func() { a.failed(noting, trouble{Other, "n"}) }, Running, Other, "n"},
		{"saved", func() { a.succeeded(noting) }, Running, NoReason, ""},
		{"stuck", func() { a.count(Stuck); a.become(Paused, trouble{Stuck, "5 min"}) }, Paused, Stuck, "5 min"},
		{"restoring fails", func() { a.failed(scaling, trouble{Forbidden, "s"}) }, Paused, Stuck, "5 min"},
		{"ended", func() { a.ended() }, Stopped, Stuck, "5 min"},
		{"begins again", func() { a.succeeded(scaling); a.become(Running, trouble{}) }, Running, NoReason, ""},
	} {
		step.do()
		a.snapshot(&s, time.Now())
		if s.State != step.state || s.Reason != step.reason || s.Detail != step.detail {
			t.Errorf("%s: %v, %v, %q; want %v, %v, %q", step.name, s.State, s.Reason, s.Detail, step.state, step.reason, step.detail)
		}
	}
	want := [NumReasons]uint64{Conflict: 1, Forbidden: 1, Other: 1, Stuck: 1, Unreachable: 2} // "still not" is no news
	if s.Errors != want {
		t.Errorf("errors %v, want %v", s.Errors, want)
	}
}
