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

// call is what a Cycle may have trouble with.
type call uint8

const (
	scaling call = iota // all that changes the workload, and what it is asked before
	noting
	electing
	observing // the worst, as nothing is known then
	numCalls  = int(iota)
)

// String returns what is done.
func (c call) String() string {
	return [numCalls]string{"scaling", "keeping the note", "standing for election", "observing"}[c]
}

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
	first, last *record.Histogram // answers
	failover    *record.Histogram
	history     []PhaseChange
}

func newAccount(name string, bounds *record.Boundaries) *account {
	a := &account{
		s:        Snapshot{Name: name},
		first:    record.NewHistogram(bounds),
		last:     record.NewHistogram(bounds),
		failover: record.NewHistogram(bounds),
	}
	for i := range a.convergence {
		a.convergence[i] = record.NewHistogram(bounds)
	}
	return a
}

// snapshot copies everything into s, whose slices are used again.
func (a *account) snapshot(s *Snapshot, now time.Time) {
	a.mu.Lock()
	defer a.mu.Unlock()
	before := *s
	*s = a.s
	s.Convergence, s.FirstResponse, s.LastResponse, s.Failover = before.Convergence, before.FirstResponse, before.LastResponse, before.Failover
	for i, h := range a.convergence {
		h.Snapshot(&s.Convergence[i])
	}
	a.first.Snapshot(&s.FirstResponse)
	a.last.Snapshot(&s.LastResponse)
	a.failover.Snapshot(&s.Failover)
	s.History = append(before.History[:0], a.history[a.forgotten(now):]...)
	s.Detail = a.cause.detail
	for _, t := range a.troubles {
		if t.reason != NoReason {
			s.Reason, s.Detail = t.reason, t.detail
		}
	}
	if a.cause.reason != NoReason {
		s.Reason, s.Detail = a.cause.reason, a.cause.detail
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

// observed takes an observation.
func (a *account) observed(o Observation, now time.Time) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.s.Observation, a.s.LastBeat = o, now
}

// become changes the state, for a cause.
func (a *account) become(state State, cause trouble) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.s.State, a.cause = state, cause
}

// ended says that Run is over. What the state was for is still to be seen.
func (a *account) ended() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.s.State, a.s.Leader = Stopped, false
	a.s.NextStep, a.s.Next, a.s.PausedUntil = time.Time{}, Step{}, time.Time{}
}

// count counts what a churn was paused or stopped for.
func (a *account) count(r Reason) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.s.Errors[r]++
}

// failed counts the failure of a call where it is another one than before, and
// returns the reason of that, if there was one.
func (a *account) failed(c call, t trouble) (before Reason) {
	a.mu.Lock()
	defer a.mu.Unlock()
	before = a.troubles[c].reason
	if before != t.reason {
		a.s.Errors[t.reason]++
	}
	a.troubles[c] = t
	return before
}

// succeeded says that a call has no trouble any more, and returns the reason of
// that which it had.
func (a *account) succeeded(c call) (before Reason) {
	a.mu.Lock()
	defer a.mu.Unlock()
	before = a.troubles[c].reason
	a.troubles[c] = trouble{}
	return before
}

func (a *account) stepped(d Direction, kill bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.s.Steps[d]++
	if kill {
		a.s.Kills++
	}
}

func (a *account) cycled() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.s.Cycles++
}

func (a *account) converged(d Direction, after time.Duration) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.convergence[d].Observe(after)
}

func (a *account) felt(f felt) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if f.first >= 0 {
		a.first.Observe(f.first)
	}
	if f.last >= 0 {
		a.last.Observe(f.last)
	}
}

func (a *account) failedOver(after time.Duration) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.failover.Observe(after)
}

func (a *account) lead(leader bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.s.Leader = leader
	if leader {
		a.troubles[electing] = trouble{}
	}
}

func (a *account) setBaseline(replicas int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.s.Baseline = replicas
}

func (a *account) setLimits(l limits) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.s.Floor, a.s.Ceiling = l.floor, l.ceiling
}

func (a *account) setNext(at time.Time, next Step) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.s.NextStep, a.s.Next = at, next
}

func (a *account) setPausedUntil(at time.Time) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.s.PausedUntil = at
}

func (a *account) setByHand(paused bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.s.PausedByHand = paused
}

func (a *account) setRestorePending(pending bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.s.RestorePending = pending
}
