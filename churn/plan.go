package churn

import (
	"errors"
	"fmt"
	"time"
)

// Step is a replica count that a plan holds for a while.
type Step struct {
	Replicas int // 0 or more
	// Hold is how long the step lasts, counted from the scale call. A step also
	// lasts at least until it has settled. It must be positive.
	Hold time.Duration
}

// Plan is what a churn does to its workload: the steps in their order, again
// and again from the first.
type Plan struct {
	Steps []Step // at least one
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
		if s.Hold <= 0 {
			all = append(all, fmt.Errorf("step %d: hold %v: want more than 0s", i+1, s.Hold))
		}
	}
	return errors.Join(all...)
}

// course is the way through a plan. It knows which step comes next and when
// the hold of the one before it is over; whether that one has settled is the
// machine's to say.
type course struct {
	steps []Step
	index int       // of the next step
	due   time.Time // when the hold before it is over; zero: at once
}

// next returns the step that comes next.
func (c *course) next() Step { return c.steps[c.index] }

// take goes on to the step after next, whose hold counts from at.
func (c *course) take(at time.Time) {
	c.due = at.Add(c.steps[c.index].Hold)
	c.index = (c.index + 1) % len(c.steps)
}
