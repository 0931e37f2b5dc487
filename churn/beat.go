package churn

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/steadyprobe/steadyprobe/probe"
)

// beat looks at the workload and does what is due.
func (c *Cycle) beat(ctx context.Context) {
	if c.o.Traffic != nil {
		c.flow.add(time.Now(), c.o.Traffic())
	}
	if c.mode == taking {
		c.takeOver(ctx)
	}
	o, err := c.observe(ctx)
	if errors.Is(err, errLate) {
		return
	}
	if err != nil && reasonOf(err) != Refused {
		c.outOfSight(ctx, err)
		return
	}
	now := time.Now()
	if !c.seen {
		c.seen = true
		if !c.unsure && c.machine.want != o.Desired { // else it may still be scaling to that, since the Run before
			c.machine = newMachine(c.o.Settle, o.Desired)
			c.tell(now)
		}
	}
	c.look(now, o)
	if err != nil && (c.mode == cycling || c.mode == beginning) {
		if c.cooldown.reason == Refused { // by a call; now it can be seen when that is over
			c.cooldown = pause{}
		}
		c.yield(trouble{Refused, err.Error()})
	} else if c.mode == beginning {
		c.begin(ctx, now, o)
	}
	switch {
	case c.mode == cycling && c.o.DryRun:
		c.rehearse(now)
	case c.mode == cycling:
		c.cycle(ctx, now, o)
	case c.mode == resting:
		c.release(ctx)
	case c.mode == standby:
		c.relieve(o)
	}
	if c.mode == resting || c.mode == beginning {
		c.saveLater(ctx)
	}
	if c.mode == restoring && !c.unsure { // else something was asked for since
		c.restore(ctx, now, o)
	}
}

// look takes what there is.
func (c *Cycle) look(now time.Time, o Observation) {
	c.desired = o.Desired
	if c.o.DryRun && c.mode != restoring {
		// What others do is none of its phases; only its own restore is followed.
		if c.machine.phase == probe.Settled {
			return
		}
	} else {
		c.recognise(o)
		c.ours = c.mode == cycling || c.mode == restoring
	}
	converged, settled := c.machine.observe(now, o)
	if settled && c.stepTaken {
		c.account.converged(c.direction, converged)
		c.o.Logger.Debug("a step has settled", "replicas", o.Desired, "converged_after", converged)
		c.account.felt(c.answers.settled())
		c.forgetStep()
		c.unclear, c.open = nil, false // so late, nothing of ours is on its way any more
	}
	c.tell(now)
}

// recognise finds out whose count it is that the workload has.
func (c *Cycle) recognise(o Observation) {
	unsure := c.unsure
	if unsure && o.Desired != c.machine.want {
		c.machine.undo()
	}
	c.unsure = false
	switch {
	case c.mode != cycling && c.mode != restoring: // not ours, whatever it is
	case c.forced:
		c.set = o.Desired
	case o.Desired == c.set:
		if unsure && c.open && c.asked.kill > 0 && c.mode == cycling {
			// To kill once more would be one too many, should it still take effect.
			c.turnBack(trouble{reasonOf(c.errs[scaling]), fmt.Sprint(c.errs[scaling])}, AnnouncePaused)
		}
	case c.mode == restoring && (o.Desired == c.baseline || c.changed && c.original != ""): // what was wanted, or a Keeper's to judge
	case slices.Contains(c.unclear, o.Desired):
		c.open = false
		c.accepted(o.Desired)
	case c.open && c.between(o.Desired):
		c.set = o.Desired
	default:
		c.leaveAlone(o)
	}
}

// between reports whether a count may be of a call that was done in part.
func (c *Cycle) between(replicas int) bool {
	_, gradual := c.o.Workload.(Gradual)
	if _, keeper := c.o.Workload.(Keeper); !gradual && !keeper {
		return false
	}
	return min(c.set, c.asked.to) < replicas && replicas < max(c.set, c.asked.to)
}

// cycle takes the next step when it is due.
func (c *Cycle) cycle(ctx context.Context, now time.Time, o Observation) {
	late := !c.stepSince.IsZero() && now.Sub(c.stepSince) >= c.o.StuckAfter
	switch {
	case late && (!c.stepTaken || !c.machine.matching()):
		c.giveUp(o)
		return
	case c.against(now):
		return
	case c.stepTaken || now.Before(c.course.due):
		c.keepNote(ctx, now)
		return
	case c.course.turn():
		c.account.cycled()
		if most := c.o.Plan.MaxCycles; most > 0 && c.course.cycles >= most {
			c.finish()
			return
		}
	}
	c.step(ctx, now)
}

// step begins the next step.
func (c *Cycle) step(ctx context.Context, now time.Time) {
	next := c.course.next()
	to := next.from(c.set)
	if to == c.set {
		c.takeStep(now)
		return
	}
	if c.stepSince.IsZero() {
		c.stepSince = now
	}
	if to < c.set && !c.mayGoDown(ctx, to) {
		return
	}
	c.attempt(ctx, change{to: to, kill: next.Kill})
}

// takeStep goes on to the step after next, whose hold counts from at.
func (c *Cycle) takeStep(at time.Time) {
	c.course.take(at)
	c.account.setNext(c.course.due, c.course.next())
}

func (c *Cycle) forgetStep() { c.stepSince, c.stepTaken, c.marked = time.Time{}, false, false }

// mark ends what is known of the step before, once for each step and restore.
func (c *Cycle) mark(now time.Time, ch change) {
	if c.marked {
		return
	}
	c.marked = true
	c.account.felt(c.answers.mark(now, c.set, ch.to))
	if d := c.outage.mark(now, c.set); d >= 0 {
		c.account.failedOver(d)
	}
}

// rehearse says which step would be taken.
func (c *Cycle) rehearse(now time.Time) {
	if c.against(now) || now.Before(c.course.due) {
		return
	}
	if c.course.turn() && c.o.Plan.MaxCycles > 0 && c.course.cycles >= c.o.Plan.MaxCycles {
		c.finish()
		return
	}
	next := c.course.next()
	switch to := next.from(c.set); {
	case next.Kill > 0:
		c.o.Logger.Info("would kill", "backends", next.Kill, "from", c.set, "to", to)
		c.set = to
	case to != c.set:
		c.o.Logger.Info("would scale", "from", c.set, "to", to)
		c.set = to
	}
	c.takeStep(now)
}
