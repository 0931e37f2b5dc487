package probe

import "time"

// Target is what the loop must know of one door and its traffic profile.
// Everything about the wire belongs to the [Opener].
type Target struct {
	Name        string
	Closed      bool          // a closed loop: a tick is due whenever a connection is free
	Rate        float64       // requests per second; of no meaning in a closed loop
	Connections int           // most at once
	Timeout     time.Duration // from begun time to the last byte
	Backlog     time.Duration // a tick that has waited this long fails as expired
	CatchUp     float64       // × Rate, caps what leaves the backlog; 0: no limit
	Reuse       bool          // a connection serves more than one request
	Warm        bool          // keep Connections open
	MaxAge      time.Duration // 0: none
	MaxRequests uint64        // per connection; 0: no limit
	Objective   time.Duration // latency objective; 0: none
}

// ramp is how many connections are opened by ticks although others are idle.
func (t *Target) ramp() int {
	if t.Warm || !t.Reuse || t.Closed {
		return 0
	}
	if t.Rate >= float64(t.Connections) {
		return t.Connections
	}
	n := int(t.Rate)
	if float64(n) < t.Rate {
		n++
	}
	return n
}
