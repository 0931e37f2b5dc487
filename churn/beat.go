package churn

import (
	"context"
	"fmt"
	"slices"
	"time"
)

// beat looks at the workload and does what is due.
func (c *Cycle) beat(ctx context.Context) {
	o, err := c.observe(ctx)
	if err != nil {
		return
	}
	now := time.Now()
	if c.mode == beginning {
		c.begin(o)
	}
	if c.o.DryRun {
		c.rehearse(now)
		return
	}
	c.recognise(o)
	converged, settled := c.machine.observe(now, o)
	if settled && c.stepTaken {
		c.account.converged(c.direction, converged)
		c.o.Logger.Debug("a step has settled", "replicas", o.Desired, "converged_after", converged)
		c.forgetStep()
		c.unclear = nil // so late, nothing of ours is on its way any more
	}
	c.tell(now)
	if c.mode == cycling {
		c.cycle(ctx, now, o)
	}
	if c.mode == restoring {
		c.restore(ctx, o)
	}
}

// begin takes the baseline.
func (c *Cycle) begin(o Observation) {
	c.baseline, c.set = o.Desired, o.Desired
	c.failures, c.retry = 0, time.Time{}
	if c.machine.want != o.Desired { // else it may still be scaling to that, since the Run before
		c.machine = newMachine(c.o.Settle, o.Desired)
	}
	c.mode = cycling
	c.account.began(c.baseline, c.cyclingState())
	c.o.Logger.Info("churn begins", "baseline_replicas", c.baseline, "dry_run", c.o.DryRun)
}

func (c *Cycle) cyclingState() State {
	if c.o.DryRun {
		return DryRun
	}
	return Running
}

// rehearse says which step would be taken.
func (c *Cycle) rehearse(now time.Time) {
	if now.Before(c.course.due) {
		return
	}
	if next := c.course.next().Replicas; next != c.set {
		c.o.Logger.Info("would scale", "from", c.set, "to", next)
		c.set = next
	}
	c.course.take(now)
}

// recognise finds out whose count it is that the workload has.
func (c *Cycle) recognise(o Observation) {
	if c.unsure && o.Desired != c.machine.want {
		c.machine.undo()
	}
	c.unsure = false
	switch {
	case c.mode == resting: // not ours any more, whatever it is
	case o.Desired == c.set:
	case slices.Contains(c.unclear, o.Desired):
		c.accepted(o.Desired)
	case c.mode == restoring && o.Desired == c.baseline: // what was wanted
	default:
		c.leaveAlone(o)
	}
}

// leaveAlone gives up a workload that somebody else has scaled.
func (c *Cycle) leaveAlone(o Observation) {
	detail := fmt.Sprintf("somebody else changed the desired replicas from %d to %d", c.set, o.Desired)
	c.o.Logger.Warn("churn stops and leaves the workload alone", "reason", ExternalChange.String(), "detail", detail, "baseline_replicas", c.baseline)
	c.account.become(Stopped, trouble{ExternalChange, detail})
	c.rest()
}

// rest is what follows when there is nothing to restore, or not any more.
func (c *Cycle) rest() {
	c.mode = resting
	c.changed, c.unclear, c.unsure = false, nil, false
	c.forgetStep()
	c.course.due = time.Time{}
	c.account.accepted()
	c.account.setRestorePending(false)
}

func (c *Cycle) forgetStep() { c.stepSince, c.stepTaken = time.Time{}, false }

// cycle takes the next step when it is due.
func (c *Cycle) cycle(ctx context.Context, now time.Time, o Observation) {
	late := !c.stepSince.IsZero() && now.Sub(c.stepSince) >= c.o.StuckAfter
	if late && (!c.stepTaken || !c.machine.matching()) {
		c.giveUp(o)
		return
	}
	if c.stepTaken || now.Before(c.course.due) {
		return
	}
	next := c.course.next().Replicas
	if next == o.Desired {
		c.course.take(now)
		return
	}
	if c.stepSince.IsZero() {
		c.stepSince = now
	}
	c.scale(ctx, next)
}

// giveUp goes back to the baseline for good when a step does not converge.
func (c *Cycle) giveUp(o Observation) {
	detail := fmt.Sprintf("a step did not converge within %v: %d replicas desired, %d ready, %d endpoints",
		c.o.StuckAfter, o.Desired, o.Ready, o.Endpoints)
	c.o.Logger.Warn("churn pauses", "reason", Stuck.String(), "detail", detail)
	c.account.become(Paused, trouble{Stuck, detail})
	c.restoreThen(resting)
}

// restoreThen makes the next beats restore the baseline.
func (c *Cycle) restoreThen(then mode) {
	c.mode, c.then = restoring, then
	c.forgetStep()
	c.failures, c.retry = 0, time.Time{}
	c.course.due = time.Time{}
	c.account.setRestorePending(true)
}

// restore scales to the baseline, or sees that it is there.
func (c *Cycle) restore(ctx context.Context, o Observation) {
	if o.Desired != c.baseline {
		c.scale(ctx, c.baseline)
		return
	}
	then := c.then
	c.o.Logger.Info("baseline restored", "baseline_replicas", c.baseline)
	c.rest()
	if then == cycling {
		c.begin(o)
	}
}
