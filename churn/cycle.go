package churn

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/steadyprobe/steadyprobe/probe"
)

const (
	// scaleGrace is how much longer a call of Scale may take when the cycle is
	// told to end. To cut it at once would leave open whether it was done.
	scaleGrace = time.Second
	// longestBackOff is the most time between two attempts to scale.
	longestBackOff = 30 * time.Second
)

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
