package churn

import (
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/steadyprobe/steadyprobe/probe"
	"github.com/steadyprobe/steadyprobe/probe/record"
)

// The defaults of [Options].
const (
	DefaultPoll          = 50 * time.Millisecond
	DefaultCallTimeout   = 10 * time.Second
	DefaultStuckAfter    = 5 * time.Minute
	DefaultRestoreWithin = 30 * time.Second
	DefaultAbortWindow   = 30 * time.Second
	// DefaultCooldown is what a configuration should take where it says nothing;
	// a zero Guard.Cooldown is none.
	DefaultCooldown = 10 * time.Minute
)

// Options is what a [Cycle] is made of.
type Options struct {
	Name     string // of the churn, required
	Plan     Plan   // required
	Workload Workload
	// Notebook keeps the baseline where it outlives the process. nil: what a
	// crash leaves behind is not put back.
	Notebook Notebook
	// Election decides whether this instance churns. It wants a Notebook. nil: it
	// does, there is no other.
	Election Election
	Guard    Guard
	// Settle is how long everything must have matched before a scaling phase
	// ends. 0: the phase ends with the first observation that matches.
	Settle time.Duration
	// DryRun says what would be scaled, and scales nothing, saves no note and
	// stands for no election. Only where there is a Notebook and no Election it
	// first puts back what an earlier process left.
	DryRun bool
	// Phase is told every change of the churn phase, the first being to
	// [probe.Settled] when Run begins, by the goroutine of Run. A scaling phase
	// is told before Scale is called, so that no later tick is counted as
	// settled. It must not block. May be nil.
	Phase func(probe.ChurnPhase)
	// Traffic returns what the tied targets have done so far. It is called by the
	// goroutine of Run, and must not block. nil: nothing is aborted.
	Traffic func() Traffic
	// Announce is told everything that is done, by the goroutine of Run. It must
	// not block. May be nil.
	Announce func(Announcement)
	// Backends returns who has answered the tied targets, in any order. With mark
	// it begins to count anew, after what it returns. It is called by the
	// goroutine of Run, and must not block. nil: no backend is known.
	Backends func(mark bool) []Sighting
	// LastFailure returns the end of the latest request of the tied targets that
	// failed, zero where none has; failures that are the probe's own are left out.
	// It is called by the goroutine of Run, and must not block. nil: not known.
	LastFailure func() time.Time

	Poll          time.Duration // between two observations; 0: DefaultPoll
	CallTimeout   time.Duration // of one call of the workload; 0: DefaultCallTimeout
	StuckAfter    time.Duration // how long a step may take to converge; 0: DefaultStuckAfter
	RestoreWithin time.Duration // how long Run may take to restore at its end; 0: DefaultRestoreWithin

	// Convergence is the boundaries of all distributions of a churn. nil: those of
	// record.DefaultBounds.
	Convergence *record.Boundaries
	Logger      *slog.Logger // nil: nothing is logged
}

// complete sets defaults and names everything that is wrong.
func (o *Options) complete() error {
	var all []error
	check := func(bad bool, format string, args ...any) {
		if bad {
			all = append(all, fmt.Errorf(format, args...))
		}
	}
	check(o.Name == "", "name: want one")
	check(o.Workload == nil, "workload: want one")
	check(o.Election != nil && o.Notebook == nil, "election: wants a notebook")
	check(o.Settle < 0, "settle %v: want 0s or more", o.Settle)
	check(o.Guard.AbortShare > 0 && o.Traffic == nil, "abort share %v: wants the traffic", o.Guard.AbortShare)
	all = append(all, o.Plan.validate(), o.kills(), o.Guard.validate())
	for _, d := range []struct {
		name     string
		value    *time.Duration
		standard time.Duration
	}{
		{"poll", &o.Poll, DefaultPoll},
		{"call timeout", &o.CallTimeout, DefaultCallTimeout},
		{"stuck after", &o.StuckAfter, DefaultStuckAfter},
		{"restore within", &o.RestoreWithin, DefaultRestoreWithin},
	} {
		check(*d.value < 0, "%s %v: want more than 0s, or 0s for %v", d.name, *d.value, d.standard)
		if *d.value == 0 {
			*d.value = d.standard
		}
	}
	if err := errors.Join(all...); err != nil {
		return fmt.Errorf("checking churn %q: %w", o.Name, err)
	}
	if o.Guard.AbortWindow == 0 {
		o.Guard.AbortWindow = DefaultAbortWindow
	}
	if o.Phase == nil {
		o.Phase = func(probe.ChurnPhase) {}
	}
	if o.Announce == nil {
		o.Announce = func(Announcement) {}
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	o.Logger = o.Logger.With("churn", o.Name)
	if o.Convergence == nil {
		o.Convergence = record.DefaultBounds().Convergence
	}
	return nil
}

// kills names the steps that stop backends where the workload cannot.
func (o *Options) kills() error {
	if _, ok := o.Workload.(Killer); ok || o.Workload == nil {
		return nil
	}
	var all []error
	for i, s := range o.Plan.Steps {
		if s.Kill > 0 {
			all = append(all, fmt.Errorf("step %d: kill %d: this workload cannot stop backends", i+1, s.Kill))
		}
	}
	return errors.Join(all...)
}
