package churn

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// order is what somebody wants of a Cycle.
type order uint8

const (
	toPause order = iota
	toResume
	toRestore
)

func (o order) String() string { return [...]string{"pausing", "resuming", "restoring"}[o] }

// request is an order on its way to Run.
type request struct {
	order  order
	answer chan error // has room for one
}

// NotLeadingError says that a churn is controlled elsewhere.
type NotLeadingError struct {
	Churn  string
	Leader string // identity of the instance that leads; empty: none is known
}

// Error says which instance to ask.
func (e *NotLeadingError) Error() string {
	if e.Leader == "" {
		return fmt.Sprintf("churn %q: no instance is elected at present; try again", e.Churn)
	}
	return fmt.Sprintf("churn %q: it is %q that leads; ask that instance", e.Churn, e.Leader)
}

// Pause restores the baseline and changes nothing more until Resume. It returns
// when that is accepted and saved in the note, so that it outlives the process,
// and does not wait for the baseline. It returns a [*NotLeadingError] where
// another instance churns, and an error where Run does not run, ctx ends, or
// the note cannot be saved; after the last one it pauses nevertheless.
func (c *Cycle) Pause(ctx context.Context) error { return c.order(ctx, toPause) }

// Resume ends whatever pauses or has stopped the churn, somebody else's change
// and the last of all cycles included, and begins with a fresh baseline. A
// pause that has its cause outside, in the hours, the plan or the workload,
// comes back at once. Otherwise it is as Pause.
func (c *Cycle) Resume(ctx context.Context) error { return c.order(ctx, toResume) }

// Restore pauses as Pause does. Where somebody else has changed the count it
// puts the baseline back all the same, as long as this instance, or the note,
// knows it.
func (c *Cycle) Restore(ctx context.Context) error { return c.order(ctx, toRestore) }

func (c *Cycle) order(ctx context.Context, o order) error {
	run := c.run.Load()
	if run == nil {
		return fmt.Errorf("%v churn %q: it does not run", o, c.o.Name)
	}
	r := request{o, make(chan error, 1)}
	select {
	case c.requests <- r:
	case <-run.ending:
		return fmt.Errorf("%v churn %q: it is about to end", o, c.o.Name)
	case <-ctx.Done():
		return fmt.Errorf("%v churn %q: %w", o, c.o.Name, ctx.Err())
	}
	// From here on it is done, whoever waits for it.
	select {
	case err := <-r.answer:
		return err
	case <-ctx.Done():
		return fmt.Errorf("%v churn %q: it was asked to, and has not said that it does: %w", o, c.o.Name, ctx.Err())
	}
}

// obey does what was asked for, as far as it is done at once; the next beat
// does the rest.
func (c *Cycle) obey(ctx context.Context, o order) error {
	if !c.o.DryRun && !c.leads() {
		return &NotLeadingError{Churn: c.o.Name, Leader: c.o.Election.Leader()}
	}
	if c.mode == taking {
		c.retry = time.Time{}
		if c.takeOver(ctx); c.mode == taking {
			return fmt.Errorf("%v churn %q: %w", o, c.o.Name, errors.Join(c.errs[noting], ctx.Err()))
		}
	}
	c.o.Logger.Info("somebody asks for it", "order", o.String())
	c.note.Paused = o != toResume
	c.account.setByHand(c.note.Paused)
	if c.then == resting {
		c.then = beginning
	}
	if c.note.Paused {
		if o == toRestore && c.left {
			c.changed, c.forced = true, true
			c.restoreThen(beginning)
		}
		c.shut(byHand(), AnnouncePaused)
	} else {
		c.cooldown, c.refused, c.course.cycles = pause{}, -1, 0
		c.flow.forget()
	}
	if c.mode == resting {
		c.mode = beginning
	}
	return c.savePause(ctx, o)
}

// savePause makes a pause, or its end, outlive the process.
func (c *Cycle) savePause(ctx context.Context, o order) error {
	if c.o.Notebook == nil || c.o.DryRun {
		return nil
	}
	n := c.note
	if !c.changed {
		n = Note{Paused: n.Paused} // nothing is to be put back
	}
	c.unsaved = true
	if err := c.write(ctx, n); err != nil {
		c.failed(ctx, noting, err)
		return fmt.Errorf("%v churn %q: it does, but not after a crash: %w", o, c.o.Name, err)
	}
	return nil
}

// saveLater saves a pause that could not be saved at once.
func (c *Cycle) saveLater(ctx context.Context) {
	if c.unsaved && c.mayChange(ctx) && !time.Now().Before(c.retry) {
		o := toResume
		if c.note.Paused {
			o = toPause
		}
		_ = c.savePause(ctx, o) // it is counted and shown
	}
}
