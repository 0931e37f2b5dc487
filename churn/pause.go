package churn

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/steadyprobe/steadyprobe/probe"
)

// pause is why nothing is churned.
type pause struct {
	trouble
	until time.Time // when it ends by itself at the earliest; zero: not known
}

// byHand is the pause that somebody has asked for.
func byHand() pause { return pause{trouble: trouble{detail: "paused by hand"}} }

// begin takes the baseline, unless something is against it.
func (c *Cycle) begin(ctx context.Context, now time.Time, o Observation) {
	if now.Before(c.quiet) || c.restored && c.machine.phase != probe.Settled {
		return
	}
	if why, shut := c.gate(now); shut {
		c.shut(why, AnnouncePaused)
		return
	}
	if c.stillRefused(now, o.Desired) || !c.release(ctx) || !c.checkPlan(ctx, o.Desired) {
		return
	}
	c.baseline, c.set, c.original, c.left = o.Desired, o.Desired, "", false
	c.failures, c.retry = 0, time.Time{}
	c.course.restart()
	c.mode, c.begun, c.ours = cycling, true, true
	c.account.setBaseline(c.baseline)
	if c.shown != (pause{}) {
		c.announce(AnnounceResumed, "Begins again, from a baseline of %d replicas.", c.baseline)
	}
	c.shown, c.cooldown, c.refused = pause{}, pause{}, -1
	c.account.setPausedUntil(time.Time{})
	state := Running
	if c.o.DryRun {
		state = DryRun
		c.sayDryRun()
	} else {
		c.o.Logger.Info("churn begins", "baseline_replicas", c.baseline)
	}
	c.account.become(state, trouble{})
}

// sayDryRun says loudly that nothing is done.
func (c *Cycle) sayDryRun() {
	c.o.Logger.Warn("this is a dry run: what would be scaled is said and not done; dry_run: false ends that", "baseline_replicas", c.baseline)
	if !c.rehearsed {
		c.rehearsed = true
		c.announce(AnnounceDryRun, "A dry run: what would be scaled from %d replicas is said and not done.", c.baseline)
	}
}

// gate returns what is against churning at present.
func (c *Cycle) gate(now time.Time) (why pause, shut bool) {
	switch hours := c.o.Plan.Hours; {
	case c.note.Paused:
		return byHand(), true
	case !hours.active(now):
		begin := hours.begin(now)
		return pause{trouble{detail: "outside of its active hours, which begin " + begin.Format("Monday 15:04 MST")}, begin}, true
	case now.Before(c.cooldown.until):
		return c.cooldown, true
	case c.tooManyFail(now) != "":
		return pause{trouble: trouble{c.cooldown.reason, "waits until fewer requests fail"}}, true
	}
	return pause{}, false
}

// against ends the cycling for what gate and guard say, and reports whether it
// has.
func (c *Cycle) against(now time.Time) bool {
	if fail := c.tooManyFail(now); fail != "" {
		c.account.count(Aborted)
		c.turnBack(trouble{Aborted, fail}, AnnounceAborted)
		return true
	}
	why, shut := c.gate(now)
	if shut {
		c.shut(why, AnnouncePaused)
		c.restoreThen(beginning)
		return true
	}
	return false
}

// shut shows why nothing is churned, and announces it where that is news.
func (c *Cycle) shut(why pause, reason string) {
	if why == c.shown {
		return
	}
	c.shown = why
	c.account.become(Paused, why.trouble)
	c.account.setPausedUntil(why.until)
	level := slog.LevelWarn
	if why.reason == NoReason {
		level = slog.LevelInfo
	}
	c.o.Logger.Log(context.Background(), level, "churn pauses", "reason", why.reason.String(), "detail", why.detail)
	if reason != "" {
		c.announce(reason, "Paused: %s.", why.detail)
	}
}

// yield pauses for what the workload, or the lack of one, says when it is
// observed. It begins again when that says nothing any more.
func (c *Cycle) yield(t trouble) {
	reason := AnnouncePaused
	if t.reason == Refused {
		reason = AnnounceRefused
	}
	c.shut(pause{trouble: t}, reason)
	if c.mode == cycling {
		c.restoreThen(beginning)
	}
}

// outOfSight is what is done when the workload cannot be observed.
func (c *Cycle) outOfSight(ctx context.Context, err error) {
	t := trouble{reasonOf(err), err.Error()}
	if c.mode == cycling && (t.reason == Forbidden || time.Since(c.unseen) >= patience) {
		c.yield(t)
	}
	if c.mode == restoring && t.reason == Forbidden && c.ours && c.changed && !c.putBack {
		c.attempt(ctx, change{to: c.baseline, restore: true})
	}
}

// giveUp goes back to the baseline when a step does not converge.
func (c *Cycle) giveUp(o Observation) {
	c.account.count(Stuck)
	c.turnBack(trouble{Stuck, fmt.Sprintf("a step did not converge within %v: %d replicas desired, %d ready, %d endpoints",
		c.o.StuckAfter, o.Desired, o.Ready, o.Endpoints)}, AnnounceStuck)
}

// turnBack restores the baseline, and begins again when the cooldown is over.
func (c *Cycle) turnBack(t trouble, reason string) {
	then := resting
	c.cooldown = pause{trouble: t}
	if d := c.o.Guard.Cooldown; d > 0 {
		c.cooldown.until, then = time.Now().Add(d), beginning
	}
	c.shut(c.cooldown, reason)
	c.restoreThen(then)
}

// finish restores the baseline when all cycles are done.
func (c *Cycle) finish() {
	detail := fmt.Sprintf("all %d cycles are done", c.o.Plan.MaxCycles)
	c.o.Logger.Info("churn stops", "detail", detail)
	c.announce(AnnounceStopped, "Stopped: %s.", detail)
	c.shown = pause{trouble: trouble{detail: detail}}
	c.account.become(Stopped, c.shown.trouble)
	c.restoreThen(resting)
}

// leaveAlone gives up a workload that somebody else has scaled.
func (c *Cycle) leaveAlone(o Observation) {
	detail := fmt.Sprintf("somebody else changed the desired replicas from %d to %d", c.set, o.Desired)
	c.o.Logger.Warn("churn stops and leaves the workload alone", "reason", ExternalChange.String(), "detail", detail, "baseline_replicas", c.baseline)
	c.account.count(ExternalChange)
	c.shown = pause{trouble: trouble{ExternalChange, detail}}
	c.account.become(Stopped, c.shown.trouble)
	c.announce(AnnounceExternalChange, "Stopped, and left alone: %s. The baseline was %d.", detail, c.baseline)
	c.left = true
	c.rest()
}

// rest is what follows when there is nothing to restore, or not any more.
func (c *Cycle) rest() {
	c.mode = resting
	c.changed, c.forced, c.putBack = false, false, false
	c.unclear, c.open = nil, false
	c.failures, c.retry = 0, time.Time{}
	c.forgetStep()
	c.answers.called, c.outage.kill = time.Time{}, time.Time{}
	c.course.due = time.Time{}
	c.account.setNext(time.Time{}, Step{})
	c.succeeded(scaling)
	c.account.setRestorePending(false)
}

// restoreThen makes the next beats restore the baseline.
func (c *Cycle) restoreThen(then mode) {
	if !c.owes() {
		c.rest()
		c.mode = then
		return
	}
	c.mode, c.then = restoring, then
	c.putBack, c.back = false, time.Time{}
	c.forgetStep()
	c.failures, c.retry = 0, time.Time{}
	c.course.due = time.Time{}
	c.account.setNext(time.Time{}, Step{})
	c.account.setRestorePending(true)
}

// isBack reports whether what was ours is put back. Of a Keeper the count does
// not say that.
func (c *Cycle) isBack(o Observation) bool {
	if c.original != "" {
		return c.putBack || !c.changed
	}
	return o.Desired == c.baseline || !c.changed
}

// restore asks for the baseline, or sees that it is there.
func (c *Cycle) restore(ctx context.Context, now time.Time, o Observation) {
	if !c.isBack(o) {
		c.back = time.Time{}
		c.attempt(ctx, change{to: c.baseline, restore: true})
		return
	}
	if c.back.IsZero() {
		c.back = now
	}
	if c.open && now.Sub(c.back) < lateness || !c.release(ctx) {
		return
	}
	if c.changed {
		c.o.Logger.Info("baseline restored", "baseline_replicas", c.baseline, "desired_replicas", o.Desired)
		if o.Desired == c.baseline {
			c.announce(AnnounceRestored, "The baseline of %d replicas is there again.", c.baseline)
		} else {
			c.announce(AnnounceRestored, "What was changed is put back; with what others have changed there are %d replicas, where the baseline was %d.", o.Desired, c.baseline)
		}
	}
	then := c.then
	c.left, c.restored = false, true
	c.rest()
	c.mode = then
}
