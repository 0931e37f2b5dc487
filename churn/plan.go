package churn

import (
	"errors"
	"fmt"
	"time"
)

// Step is what a plan does, and holds for a while: scale to a count, or stop
// some backends without drain.
type Step struct {
	Replicas int // to scale to, 0 or more; 0 where Kill is not
	// Kill is how many backends are stopped, so that there are fewer by as many
	// afterwards. It wants a [Killer]. 0: Replicas says what is done.
	Kill int
	// Hold is how long the step lasts, counted from the scale call. A step also
	// lasts at least until it has settled. It must be positive.
	Hold time.Duration
}

// Plan is what a churn does to its workload: the steps in their order, again
// and again from the first.
type Plan struct {
	Steps []Step // at least one
	// Jitter is the most that is added to each hold, by chance. 0: nothing is.
	Jitter time.Duration
	// MaxCycles is after how many times through the steps the baseline is
	// restored and the churn has stopped. 0: never. Each Run, Resume and new
	// leader counts from none; a pause that ends by itself counts on.
	MaxCycles int
	Hours     *Hours // when anything is changed; nil: at any time
}

// validate names every step that cannot be taken.
func (p Plan) validate() error {
	if len(p.Steps) == 0 {
		return errors.New("steps: want at least one")
	}
	var all []error
	for i, s := range p.Steps {
		if s.Replicas < 0 {
			all = append(all, fmt.Errorf("step %d: %d replicas: want 0 or more", i+1, s.Replicas))
		}
		if s.Kill < 0 {
			all = append(all, fmt.Errorf("step %d: kill %d: want 0 or more", i+1, s.Kill))
		}
		if s.Kill > 0 && s.Replicas != 0 {
			all = append(all, fmt.Errorf("step %d: %d replicas and kill %d: want only one of them", i+1, s.Replicas, s.Kill))
		}
		if s.Hold <= 0 {
			all = append(all, fmt.Errorf("step %d: hold %v: want more than 0s", i+1, s.Hold))
		}
	}
	if p.Jitter < 0 {
		all = append(all, fmt.Errorf("jitter %v: want 0s or more", p.Jitter))
	}
	if p.MaxCycles < 0 {
		all = append(all, fmt.Errorf("max cycles %d: want 0 or more", p.MaxCycles))
	}
	return errors.Join(append(all, p.Hours.validate())...)
}

// from returns how many replicas a step leads to from as many.
func (s Step) from(replicas int) int {
	if s.Kill > 0 {
		return replicas - s.Kill
	}
	return s.Replicas
}

// course is the way through a plan. It knows which step comes next and when
// the hold of the one before it is over; whether that one has settled is the
// machine's to say.
type course struct {
	plan   Plan
	random func(time.Duration) time.Duration // a time below another
	index  int                               // of the next step
	due    time.Time                         // when the hold before it is over; zero: at once
	last   bool                              // that hold is the last one of a cycle
	cycles int                               // that are done
}

// restart goes back to the first step.
func (c *course) restart() { c.index, c.due, c.last = 0, time.Time{}, false }

// next returns the step that comes next.
func (c *course) next() Step { return c.plan.Steps[c.index] }

// take goes on to the step after next, whose hold counts from at.
func (c *course) take(at time.Time) {
	c.due = at.Add(c.next().Hold)
	if c.plan.Jitter > 0 {
		c.due = c.due.Add(c.random(c.plan.Jitter + 1))
	}
	c.index = (c.index + 1) % len(c.plan.Steps)
	c.last = c.index == 0
}

// turn is to be called when the hold is over, any number of times. It reports
// whether a cycle has ended with it that was not counted yet.
func (c *course) turn() bool {
	if !c.last {
		return false
	}
	c.last = false
	c.cycles++
	return true
}
