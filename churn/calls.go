package churn

import (
	"context"
	"fmt"
	"slices"
	"time"
)

// change is what a workload is asked for.
type change struct {
	to      int // replicas that it has then
	kill    int // backends that are stopped for it; 0: it is scaled
	restore bool
}

// observe calls Observe. It has counted and shown an error that it returns, but
// for errLate.
func (c *Cycle) observe(ctx context.Context) (Observation, error) {
	begun := time.Now()
	call, cancel := context.WithTimeout(ctx, c.o.CallTimeout)
	defer cancel()
	if c.term != nil { // a server that hangs is not to hide that the lead is lost
		defer context.AfterFunc(c.term.lease, cancel)()
	}
	o, err := c.o.Workload.Observe(call)
	if err != nil && c.term != nil && c.term.lease.Err() != nil {
		return Observation{}, errLate // it may have been cut for that
	}
	if reason := reasonOf(err); err != nil {
		if c.unseen.IsZero() && reason != Refused {
			c.unseen = begun
		}
		c.failed(ctx, observing, err)
		if reason != Refused {
			return Observation{}, err
		}
	}
	c.unseen = time.Time{}
	c.account.observed(o, time.Now())
	if err == nil {
		c.succeeded(observing)
	}
	return o, err
}

// mayChange reports whether anything may be changed, or saved, now.
func (c *Cycle) mayChange(ctx context.Context) bool { return c.leads() && ctx.Err() == nil }

// calling returns the context of a call that changes or saves something. It
// ends at once with the lead, and a little after ctx.
func (c *Cycle) calling(ctx context.Context) (context.Context, context.CancelFunc) {
	call, cancel := context.WithTimeout(c.term.lease, c.o.CallTimeout)
	stop := context.AfterFunc(ctx, func() { time.AfterFunc(scaleGrace, cancel) })
	return call, func() { stop(); cancel() }
}

// attempt asks the workload to change, unless the latest attempt has failed too
// short a time ago.
func (c *Cycle) attempt(ctx context.Context, ch change) {
	if time.Now().Before(c.retry) || !c.mayChange(ctx) {
		return
	}
	if c.failures == 0 {
		c.o.Logger.Info("scaling", "from", c.set, "to", ch.to)
	}
	if which, err := c.prepare(ctx, ch); err != nil {
		c.failed(ctx, which, err)
		return
	}
	if !c.mayChange(ctx) || ch.restore != (c.mode == restoring) {
		return
	}
	c.ask(ctx, ch)
}

// prepare does all that comes before the call.
func (c *Cycle) prepare(ctx context.Context, ch change) (call, error) {
	if k, ok := c.o.Workload.(Keeper); ok && !ch.restore && !c.changed && c.original == "" {
		call, cancel := c.calling(ctx)
		defer cancel()
		original, err := k.Keep(call)
		if err != nil {
			return scaling, fmt.Errorf("reading the original state: %w", err)
		}
		c.original = original
	}
	return noting, c.fence(ctx, ch)
}

// ask makes the call.
func (c *Cycle) ask(ctx context.Context, ch change) {
	now := time.Now()
	c.mark(now, ch)
	c.machine.scale(now, ch.to)
	c.tell(now)
	known, open, changed := c.unclear, c.open, c.changed
	// What is known if the call panics: that it may have taken effect.
	c.changed, c.unsure, c.attempted, c.asked = true, true, now, ch
	if !slices.Contains(known, ch.to) {
		c.unclear = append(slices.Clip(known), ch.to)
	}
	c.open = true
	err := c.callWorkload(ctx, ch)
	reason := reasonOf(err)
	switch {
	case err == nil: // which keeps an earlier one from taking effect, unless it may have changed nothing
		c.unclear, c.open = known, open && (!c.unseen.IsZero() || ch.to == c.desired)
	case !reason.unclear():
		c.unclear, c.open, c.changed = known, open, changed
	}
	if err != nil {
		c.failed(ctx, scaling, err)
		if c.mode == cycling && c.leads() && (reason == Refused || reason == Forbidden) {
			c.turnBack(trouble{reason, err.Error()}, AnnounceRefused)
		}
		return
	}
	c.unsure = false
	c.putBack, c.forced = ch.restore, false
	c.accepted(ch.to)
}

func (c *Cycle) callWorkload(ctx context.Context, ch change) error {
	call, cancel := c.calling(ctx)
	defer cancel()
	switch {
	case ch.kill > 0:
		return c.o.Workload.(Killer).Kill(call, ch.kill)
	case ch.restore && c.original != "":
		return c.o.Workload.(Keeper).Restore(call, c.original)
	default:
		return c.o.Workload.Scale(call, ch.to)
	}
}

// backOff returns the time until the next attempt: the next beat at first, then
// twice the time before.
func (c *Cycle) backOff() time.Duration {
	d := c.o.Poll
	for range c.failures - 1 {
		if d *= 2; d >= longestBackOff {
			return longestBackOff
		}
	}
	return d
}

// accepted says that the workload is asked to have the replicas, by us.
func (c *Cycle) accepted(replicas int) {
	from := c.set
	c.set = replicas
	c.failures, c.retry = 0, time.Time{}
	c.succeeded(scaling)
	if c.mode != cycling || c.stepTaken {
		return
	}
	c.direction = Up
	if replicas < from {
		c.direction = Down
	}
	c.stepTaken = true
	c.answers.watch(c.attempted)
	c.outage.watch(c.attempted, c.asked.kill > 0)
	c.account.stepped(c.direction, c.asked.kill > 0)
	c.announceStep(from, replicas, c.asked.kill)
	c.takeStep(c.attempted)
}

// failed counts a failed call where that is news, and says it. A call that was
// cut by the end of the Run or of the lead is no failure.
func (c *Cycle) failed(ctx context.Context, which call, err error) {
	if which != observing {
		c.failures++
		c.retry = time.Now().Add(c.backOff())
	}
	if ctx.Err() != nil || which != observing && !c.leads() {
		return
	}
	c.errs[which] = err
	t := trouble{reasonOf(err), err.Error()}
	if c.account.failed(which, t) != t.reason {
		c.o.Logger.Warn(which.String()+" fails", "reason", t.reason.String(), "err", err)
	}
	if c.mode == beginning && c.shown == (pause{}) || c.mode == taking {
		c.account.become(Paused, trouble{})
	}
}

// succeeded says that a call has no trouble any more.
func (c *Cycle) succeeded(which call) {
	c.errs[which] = nil
	if before := c.account.succeeded(which); before != NoReason && which == observing {
		c.o.Logger.Info("workload observed again", "reason_before", before.String())
	}
}

// tell says the phase where it is another one.
func (c *Cycle) tell(now time.Time) {
	if c.machine.phase == c.told {
		return
	}
	c.told = c.machine.phase
	c.account.enter(c.told, now)
	c.o.Phase(c.told)
}
