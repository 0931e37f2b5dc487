package churn

import (
	"slices"
	"sync"
	"time"

	"github.com/steadyprobe/steadyprobe/probe"
	"github.com/steadyprobe/steadyprobe/probe/record"
)

const (
	historySpan = time.Hour
	mostHistory = 2048
)

// call is one of the two methods of a Workload.
type call uint8

const (
	observing call = iota
	scaling
	numCalls = int(iota)
)

// trouble is the error that a call meets at present.
type trouble struct {
	reason Reason
	detail string
}

// account is what a Cycle lets others see. Its methods may be called
// concurrently and call nothing else, so that a Snapshot never waits.
type account struct {
	mu          sync.Mutex
	s           Snapshot // without what is kept below
	cause       trouble  // of the state
	troubles    [numCalls]trouble
	convergence [NumDirections]*record.Histogram
	history     []PhaseChange
}

func newAccount(name string, convergence *record.Boundaries) *account {
	a := &account{s: Snapshot{Name: name}}
	for i := range a.convergence {
		a.convergence[i] = record.NewHistogram(convergence)
	}
	return a
}

// snapshot copies everything into s, whose slices are used again.
func (a *account) snapshot(s *Snapshot, now time.Time) {
	a.mu.Lock()
	defer a.mu.Unlock()
	convergence, history := s.Convergence, s.History[:0]
	*s = a.s
	for i, h := range a.convergence {
		h.Snapshot(&convergence[i])
	}
	s.Convergence = convergence
	s.History = append(history, a.history[a.forgotten(now):]...)
	for _, t := range [...]trouble{a.troubles[scaling], a.troubles[observing], a.cause} {
		if t.reason != NoReason {
			s.Reason, s.Detail = t.reason, t.detail
		}
	}
}

// forgotten returns how many of the phases had ended an hour ago.
func (a *account) forgotten(now time.Time) int {
	from := now.Add(-historySpan)
	n := 0
	for n+1 < len(a.history) && !a.history[n+1].From.After(from) {
		n++
	}
	return n
}

// enter says that a phase begins.
func (a *account) enter(phase probe.ChurnPhase, now time.Time) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.s.Phase, a.s.Since = phase, now
	n := a.forgotten(now)
	if len(a.history) == mostHistory {
		n = max(n, 1)
	}
	a.history = append(slices.Delete(a.history, 0, n), PhaseChange{Phase: phase, From: now})
}

// observed takes an observation: observing has no trouble any more. It returns
// the reason of the trouble there was.
func (a *account) observed(o Observation, now time.Time) (before Reason) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.s.Observation, a.s.LastBeat = o, now
	before = a.troubles[observing].reason
	a.troubles[observing] = trouble{}
	return before
}

// began says what the replicas were before the first change.
func (a *account) began(baseline int, state State) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.s.Baseline, a.s.State, a.cause = baseline, state, trouble{}
}

// become changes the state for good, for a reason that is counted where there
// is one.
func (a *account) become(state State, t trouble) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.s.State = state
	if t.reason != NoReason {
		a.cause = t
		a.s.Errors[t.reason]++
	}
}

// failed counts the failure of a call and returns the reason of its failure
// before, if it failed.
func (a *account) failed(c call, t trouble) (before Reason) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.s.Errors[t.reason]++
	before = a.troubles[c].reason
	a.troubles[c] = t
	return before
}

// accepted says that scaling has no trouble any more.
func (a *account) accepted() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.troubles[scaling] = trouble{}
}

func (a *account) stepped(d Direction) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.s.Steps[d]++
}

func (a *account) converged(d Direction, after time.Duration) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.convergence[d].Observe(after)
}

func (a *account) setRestorePending(pending bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.s.RestorePending = pending
}
