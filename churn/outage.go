package churn

import "time"

// outage finds out how long a door failed after backends were stopped without
// drain: until the last request that failed before the next call. It says
// nothing where failures may have another cause:
//
//   - They must be alone: for as long as they lasted there must have been none
//     before the call, and none after the last one.
//   - That there was none at all means something only where there were enough
//     requests to meet the gap, 20 for each backend.
type outage struct {
	latest  func() time.Time // nil: nothing is known
	traffic func() Traffic   // nil: no failure means nothing

	before    time.Time // the last failure before the call
	completed uint64    // requests before it
	backends  int       // there were before it
	kill      time.Time // when it was made; zero: none is watched
}

// mark is to be called just before the first call of a step or of a restore. It
// returns the fail-over time of the step before, below 0 where there is none or
// it is not known.
func (o *outage) mark(now time.Time, backends int) time.Duration {
	if o.latest == nil {
		return -1
	}
	last, completed := o.latest(), uint64(0)
	if o.traffic != nil {
		completed = o.traffic().Completed
	}
	d := o.lasted(now, last, completed)
	o.before, o.completed, o.backends, o.kill = last, completed, backends, time.Time{}
	return d
}

// watch is to be called when the call of a step, made at a time, was accepted.
func (o *outage) watch(called time.Time, kill bool) {
	if kill && o.latest != nil {
		o.kill = called
	}
}

func (o *outage) lasted(now, last time.Time, completed uint64) time.Duration {
	switch {
	case o.kill.IsZero():
		return -1
	case !last.After(o.kill):
		if completed < o.completed+uint64(silence*o.backends) || o.backends <= 0 {
			return -1
		}
		return 0
	}
	d := last.Sub(o.kill)
	if now.Sub(last) < d || !o.before.IsZero() && o.kill.Sub(o.before) < d {
		return -1
	}
	return d
}
