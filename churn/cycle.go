package churn

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"
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
)

const (
	// scaleGrace is how much longer a call of Scale may take when the cycle is
	// told to end. To cut it at once would leave open whether it was done.
	scaleGrace = time.Second
	// longestBackOff is the most time between two attempts to scale.
	longestBackOff = 30 * time.Second
)

// Options is what a [Cycle] is made of.
type Options struct {
	Name     string // of the churn, required
	Plan     Plan   // required
	Workload Workload
	// Settle is how long everything must have matched before a scaling phase
	// ends. 0: the phase ends with the first observation that matches.
	Settle time.Duration
	// DryRun says what would be scaled and scales nothing.
	DryRun bool
	// Phase is told every change of the churn phase, the first being to
	// [probe.Settled] when Run begins, by the goroutine of Run. A scaling phase
	// is told before Scale is called, so that no later tick is counted as
	// settled. It must not block. May be nil.
	Phase func(probe.ChurnPhase)

	Poll          time.Duration // between two observations; 0: DefaultPoll
	CallTimeout   time.Duration // of one call of the workload; 0: DefaultCallTimeout
	StuckAfter    time.Duration // how long a step may take to converge; 0: DefaultStuckAfter
	RestoreWithin time.Duration // how long Run may take to restore at its end; 0: DefaultRestoreWithin

	Convergence *record.Boundaries // nil: those of record.DefaultBounds
	Logger      *slog.Logger       // nil: nothing is logged
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
	check(o.Settle < 0, "settle %v: want 0s or more", o.Settle)
	if err := o.Plan.validate(); err != nil {
		all = append(all, err)
	}
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
	if len(all) > 0 {
		return fmt.Errorf("checking churn %q: %w", o.Name, errors.Join(all...))
	}
	if o.Phase == nil {
		o.Phase = func(probe.ChurnPhase) {}
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

// mode is what a Cycle is about.
type mode uint8

const (
	beginning mode = iota // the baseline is not known
	cycling
	restoring // the baseline
	resting   // nothing is to be done
)

// Cycle scales a workload along a plan and puts back what there was before.
// Snapshot may be called at any time.
type Cycle struct {
	o       Options
	running atomic.Bool
	account *account

	// All that follows belongs to Run. It outlives it: what one Run could not
	// restore, the next one restores, with the same baseline.

	mode     mode
	then     mode // after restoring
	machine  machine
	told     probe.ChurnPhase
	course   course
	baseline int
	changed  bool // by our doing the count is, or may be, another than the baseline

	set       int       // the count that was ours when last seen; in a dry run the one we would have set
	attempted time.Time // when Scale was called last
	unsure    bool      // it failed, and nothing was observed since
	unclear   []int     // counts whose Scale failed, and may have taken effect or still may
	failures  int       // of Scale, in a row
	retry     time.Time // no attempt to scale before

	stepSince time.Time       // when the step under way was first attempted, zero: none is
	stepTaken bool            // its Scale was accepted
	direction Direction       // of it
	errs      [numCalls]error // of the latest call of each, nil if it succeeded
}

// New returns a Cycle that does nothing until Run is called. Its error names
// everything that is wrong with the options.
func New(o Options) (*Cycle, error) {
	if err := o.complete(); err != nil {
		return nil, err
	}
	return &Cycle{o: o, account: newAccount(o.Name, o.Convergence), machine: newMachine(o.Settle, 0)}, nil
}

// Snapshot copies what is known at present into s, whose slices are used again.
// It never waits for the workload.
func (c *Cycle) Snapshot(s *Snapshot) { c.account.snapshot(s, time.Now()) }

// Run observes the baseline and cycles until ctx ends. Then it restores the
// baseline where it has changed anything, also when the workload panics, with
// up to RestoreWithin of its own time, and returns. Errors of the workload are
// counted, shown and tried again; Run returns one where it never got as far as
// knowing the baseline, or where restoring failed.
//
// It may be called again, but not before it has returned. After a restore that
// failed it begins with that.
func (c *Cycle) Run(ctx context.Context) (err error) {
	if !c.running.CompareAndSwap(false, true) {
		return fmt.Errorf("running churn %q: it runs already", c.o.Name)
	}
	defer c.running.Store(false)
	c.course = course{steps: c.o.Plan.Steps}
	c.forgetStep()
	c.errs = [numCalls]error{}
	c.mode = beginning
	if c.changed {
		c.account.become(Paused, trouble{})
		c.restoreThen(cycling)
	}
	c.tell(time.Now())
	defer func() {
		if restoreErr := c.end(ctx); restoreErr != nil {
			err = restoreErr
		}
	}()
	for ctx.Err() == nil {
		c.beat(ctx)
		c.wait(ctx)
	}
	if err := c.errs[observing]; err != nil && c.mode == beginning {
		return fmt.Errorf("beginning churn %q: %w", c.o.Name, err)
	}
	return nil
}

// wait returns when it is time for the next beat, or when ctx ends.
func (c *Cycle) wait(ctx context.Context) {
	now := time.Now()
	d := c.o.Poll
	for _, at := range [...]time.Time{c.machine.wake(), c.course.due} {
		if at.After(now) {
			d = min(d, at.Sub(now))
		}
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
	case <-t.C:
	}
}

// end restores the baseline at the end of Run.
func (c *Cycle) end(ctx context.Context) error {
	defer c.account.become(Stopped, trouble{})
	if !c.changed {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), c.o.RestoreWithin)
	defer cancel()
	c.restoreThen(resting)
	for ctx.Err() == nil {
		c.beat(ctx)
		if !c.changed {
			return nil
		}
		c.wait(ctx)
	}
	err := errors.Join(c.errs[:]...)
	if err == nil {
		err = ctx.Err()
	}
	return fmt.Errorf("restoring churn %q to %d replicas within %v: %w", c.o.Name, c.baseline, c.o.RestoreWithin, err)
}
