package churn

import (
	"context"
	"slices"
	"time"
)

// observe calls Observe. It has counted and shown an error that it returns.
func (c *Cycle) observe(ctx context.Context) (Observation, error) {
	call, cancel := context.WithTimeout(ctx, c.o.CallTimeout)
	defer cancel()
	o, err := c.o.Workload.Observe(call)
	if err != nil {
		c.failed(ctx, observing, err)
		return Observation{}, err
	}
	c.errs[observing] = nil
	if before := c.account.observed(o, time.Now()); before != NoReason {
		c.o.Logger.Info("workload observed again", "reason_before", before.String())
	}
	return o, nil
}

// scale calls Scale, unless the latest attempt has failed too short a time ago.
func (c *Cycle) scale(ctx context.Context, replicas int) {
	now := time.Now()
	if now.Before(c.retry) || ctx.Err() != nil {
		return
	}
	if c.failures == 0 {
		c.o.Logger.Info("scaling", "from", c.set, "to", replicas)
	}
	c.machine.scale(now, replicas)
	c.tell(now)
	// What is known if the call panics: that it may have taken effect.
	c.changed, c.unsure, c.attempted = true, true, now
	known := c.unclear
	if !slices.Contains(known, replicas) {
		c.unclear = append(slices.Clip(known), replicas)
	}
	err := c.callScale(ctx, replicas)
	if err == nil || !reasonOf(err).unclear() {
		c.unclear = known
	}
	if err == nil {
		c.unsure = false
		c.accepted(replicas)
		return
	}
	c.failures++
	c.retry = time.Now().Add(c.backOff())
	c.failed(ctx, scaling, err)
}

// callScale gives a call that is under way when ctx ends a little more time.
func (c *Cycle) callScale(ctx context.Context, replicas int) error {
	call, cancel := context.WithTimeout(context.WithoutCancel(ctx), c.o.CallTimeout)
	defer cancel()
	stop := context.AfterFunc(ctx, func() { time.AfterFunc(scaleGrace, cancel) })
	defer stop()
	return c.o.Workload.Scale(call, replicas)
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
	if c.mode == cycling && !c.stepTaken {
		c.direction = Up
		if replicas < c.set {
			c.direction = Down
		}
		c.stepTaken = true
		c.course.take(c.attempted)
		c.account.stepped(c.direction)
	}
	c.set = replicas
	c.failures, c.retry, c.errs[scaling] = 0, time.Time{}, nil
	c.account.accepted()
}

// failed counts a failed call and says it where that is news. A call that was
// cut by the end of ctx is no failure.
func (c *Cycle) failed(ctx context.Context, which call, err error) {
	if ctx.Err() != nil {
		return
	}
	c.errs[which] = err
	reason := reasonOf(err)
	if before := c.account.failed(which, trouble{reason, err.Error()}); before != reason {
		c.o.Logger.Warn([numCalls]string{"observing fails", "scaling fails"}[which], "reason", reason.String(), "err", err)
	}
	if c.mode == beginning {
		c.account.become(Paused, trouble{})
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
