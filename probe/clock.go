package probe

import "time"

// Instant is a point of monotonic time: what a [Clock] reads, in nanoseconds,
// which is 1 s when the clock is made. The zero Instant means "never".
type Instant int64

// Sub returns the time from j to i.
func (i Instant) Sub(j Instant) time.Duration { return time.Duration(i - j) }

// Add returns the instant d after i.
func (i Instant) Add(d time.Duration) Instant { return i + Instant(d) }

// clockStart is what a new clock reads, so that no reading is ever 0.
const clockStart = Instant(time.Second)

// Clock reads monotonic time. Steps of the wall clock do not change it. It is
// a value, made once per process by [NewClock], and may be used concurrently.
type Clock struct{ origin time.Time }

// NewClock returns a clock whose first reading is one second.
func NewClock() Clock { return Clock{origin: time.Now().Add(-time.Duration(clockStart))} }

// Now returns the present instant.
func (c Clock) Now() Instant { return Instant(time.Since(c.origin)) }

// Time returns i as a time with a monotonic reading, fit for deadlines.
func (c Clock) Time(i Instant) time.Time { return c.origin.Add(time.Duration(i)) }
