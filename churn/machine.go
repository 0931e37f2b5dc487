package churn

import (
	"time"

	"github.com/steadyprobe/steadyprobe/probe"
)

// machine says which churn phase a workload is in. It is driven by the calls
// that are about to be made and by what is observed, and by nothing else: it
// follows a change of the desired count that it was not told of as well.
type machine struct {
	settle time.Duration
	state
	before state // the latest call of scale
}

// state is what a machine may have to go back to.
type state struct {
	phase   probe.ChurnPhase
	want    int       // the replicas that it waits for, or has
	called  time.Time // when they were asked for
	matched time.Time // since when everything matches, zero where it does not; only while scaling
}

// newMachine returns a machine for a workload at rest.
func newMachine(settle time.Duration, replicas int) machine {
	return machine{settle: settle, state: state{phase: probe.Settled, want: replicas}}
}

// scale says that the replicas are about to be asked for.
func (m *machine) scale(now time.Time, replicas int) {
	m.before = m.state
	m.head(now, replicas)
}

// undo says that the call which scale has announced was not done.
func (m *machine) undo() { m.state = m.before }

func (m *machine) head(now time.Time, replicas int) {
	switch {
	case replicas > m.want:
		m.phase = probe.ScalingUp
	case replicas < m.want:
		m.phase = probe.ScalingDown
	default:
		return
	}
	m.want, m.called, m.matched = replicas, now, time.Time{}
}

// observe takes what there is. A scaling phase ends, and settled is true, when
// desired, ready and endpoints match and have matched for the settle time;
// converged is then the time from the scale call to the begin of that match.
func (m *machine) observe(now time.Time, o Observation) (converged time.Duration, settled bool) {
	m.head(now, o.Desired)
	if m.phase == probe.Settled {
		return 0, false
	}
	if !o.matches(m.want) {
		m.matched = time.Time{}
		return 0, false
	}
	if m.matched.IsZero() {
		m.matched = now
	}
	if now.Sub(m.matched) < m.settle {
		return 0, false
	}
	m.phase = probe.Settled
	return m.matched.Sub(m.called), true
}

// matching reports whether the latest observation matched, or needed not to.
func (m *machine) matching() bool { return m.phase == probe.Settled || !m.matched.IsZero() }

// wake returns when the next observation may end the phase, zero where that
// depends on the workload.
func (m *machine) wake() time.Time {
	if m.phase == probe.Settled || m.matched.IsZero() {
		return time.Time{}
	}
	return m.matched.Add(m.settle)
}
