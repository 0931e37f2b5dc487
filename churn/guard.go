package churn

import (
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
