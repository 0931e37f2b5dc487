package churn

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// Guard is the limits within which a churn stays.
type Guard struct {
	// Floor is the fewest replicas that a step may lead to, and Ceiling the most.
	// nil: half the baseline rounded up, and twice the baseline. A [Floorer] may
	// raise the floor. A plan with a step outside is refused before it begins.
	Floor, Ceiling *int
	// AbortShare is the share of the requests completed within AbortWindow that
	// may fail, 0 to less than 1. When more do, the baseline is restored. 0: there
	// is no such limit. It wants Options.Traffic.
	AbortShare float64
	// AbortWindow is what the share is of. 0: DefaultAbortWindow. As long as
	// fewer than AbortWindow have been seen, nothing is aborted.
	AbortWindow time.Duration
	// Cooldown is when a churn begins again, with a fresh baseline, after it was
	// stuck, aborted, or refused by the workload in a step. 0: not before Resume.
	Cooldown time.Duration
}

func (g *Guard) validate() error {
	var all []error
	if g.Floor != nil && *g.Floor < 0 {
		all = append(all, fmt.Errorf("floor %d: want 0 or more", *g.Floor))
	}
	if g.Ceiling != nil && *g.Ceiling < 0 {
		all = append(all, fmt.Errorf("ceiling %d: want 0 or more", *g.Ceiling))
	}
	if g.Floor != nil && g.Ceiling != nil && *g.Floor > *g.Ceiling {
		all = append(all, fmt.Errorf("floor %d: want at most the ceiling %d", *g.Floor, *g.Ceiling))
	}
	if !(g.AbortShare >= 0 && g.AbortShare < 1) { // NaN neither
		all = append(all, fmt.Errorf("abort share %v: want 0 to less than 1", g.AbortShare))
	}
	if g.AbortWindow < 0 {
		all = append(all, fmt.Errorf("abort window %v: want more than 0s, or 0s for %v", g.AbortWindow, DefaultAbortWindow))
	}
	if g.Cooldown < 0 {
		all = append(all, fmt.Errorf("cooldown %v: want 0s or more", g.Cooldown))
	}
	return errors.Join(all...)
}

// limits are a guard's for one baseline.
type limits struct{ floor, ceiling int }

func (g *Guard) limits(baseline int) limits {
	l := limits{floor: (baseline + 1) / 2, ceiling: 2 * baseline}
	if g.Floor != nil {
		l.floor = *g.Floor
	}
	if g.Ceiling != nil {
		l.ceiling = *g.Ceiling
	}
	return l
}

// check says why a count is not allowed, empty where it is.
func (l limits) check(to int) string {
	switch {
	case to < l.floor:
		return fmt.Sprintf("to %d replicas is below the floor of %d", to, l.floor)
	case to > l.ceiling:
		return fmt.Sprintf("to %d replicas is above the ceiling of %d", to, l.ceiling)
	}
	return ""
}

// checkPlan says which step of a plan leads outside of the limits, empty where
// none does. To go back to the baseline is always allowed. Without a step of
// replicas each kill adds to those before.
func (l limits) checkPlan(p Plan, baseline int) string {
	replicas := baseline
	for cycle := 0; p.MaxCycles == 0 || cycle < p.MaxCycles; cycle++ {
		begun := replicas
		for i, s := range p.Steps {
			to := s.from(replicas)
			if why := l.check(to); why != "" && to != baseline {
				return fmt.Sprintf("step %d %s", i+1, why)
			}
			replicas = to
		}
		if cycle > 0 && replicas >= begun { // it goes on like this
			break
		}
	}
	return ""
}

// checkPlan refuses a plan that leads outside of the limits, before anything is
// changed. It reports whether it may begin.
func (c *Cycle) checkPlan(ctx context.Context, baseline int) bool {
	l := c.o.Guard.limits(baseline)
	floor, err := c.floor(ctx, baseline)
	if err != nil {
		return false
	}
	l.floor = max(l.floor, floor)
	c.limits = l
	c.account.setLimits(l)
	if why := l.checkPlan(c.o.Plan, baseline); why != "" {
		refusal := pause{trouble: trouble{Refused, fmt.Sprintf("%s, with a baseline of %d", why, baseline)}}
		if refusal != c.shown { // else it is the floor of the workload that was looked at again
			c.account.count(Refused)
		}
		c.refused, c.refusedAt = baseline, time.Now()
		c.shut(refusal, AnnounceRefused)
		return false
	}
	return true
}

// mayGoDown reports whether a step may lead to fewer replicas. What it refuses
// it has turned back.
func (c *Cycle) mayGoDown(ctx context.Context, to int) bool {
	if to == c.baseline {
		return true
	}
	floor, err := c.floor(ctx, c.baseline)
	if err != nil {
		return false
	}
	if why := (limits{max(c.limits.floor, floor), c.limits.ceiling}).check(to); why != "" {
		c.account.count(Refused)
		c.turnBack(trouble{Refused, "a step " + why}, AnnounceRefused)
		return false
	}
	return true
}

// floor asks the workload for its floor. It has counted and shown an error that
// it returns.
func (c *Cycle) floor(ctx context.Context, baseline int) (int, error) {
	f, ok := c.o.Workload.(Floorer)
	if !ok {
		return 0, nil
	}
	if time.Now().Before(c.retry) {
		return 0, errLate
	}
	call, cancel := context.WithTimeout(ctx, c.o.CallTimeout)
	defer cancel()
	floor, err := f.Floor(call, baseline)
	if err != nil {
		err = fmt.Errorf("asking for the floor: %w", err)
		c.failed(ctx, scaling, err)
	}
	return floor, err
}

// tooManyFail says how many requests have failed of late where those are too
// many, empty where they are not or nobody knows yet.
func (c *Cycle) tooManyFail(now time.Time) string {
	share := c.o.Guard.AbortShare
	if share == 0 || c.o.DryRun {
		return ""
	}
	t, whole := c.flow.latest(now)
	if !whole || float64(t.Failed) <= share*float64(t.Completed) {
		return ""
	}
	return fmt.Sprintf("%d of %d requests failed within %v, more than %v %%", t.Failed, t.Completed, c.flow.window, 100*share)
}

// stillRefused reports whether the plan was refused for this baseline. It is
// looked at again after the cooldown, as the workload may have another floor.
func (c *Cycle) stillRefused(now time.Time, baseline int) bool {
	again := c.o.Guard.Cooldown
	return baseline == c.refused && (again == 0 || now.Sub(c.refusedAt) < again)
}
