package schedule

import (
	"time"

	"github.com/steadyprobe/steadyprobe/probe"
)

// Clock is the time that a pacer lives in. Its methods may be called
// concurrently.
type Clock interface {
	// Now returns the present instant.
	Now() probe.Instant
	// SleepUntil returns at the instant or later, never earlier. It returns at
	// once when the instant has passed.
	SleepUntil(probe.Instant)
}

// Portable returns a clock that sleeps by [time.Sleep]: up to 1 ms late on an
// otherwise idle Linux process, exact in the virtual time of testing/synctest.
func Portable(c probe.Clock) Clock { return portableClock{c} }

type portableClock struct{ probe.Clock }

func (c portableClock) SleepUntil(i probe.Instant) {
	for {
		left := i.Sub(c.Now())
		if left <= 0 {
			return
		}
		time.Sleep(left)
	}
}
