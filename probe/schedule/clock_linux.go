package schedule

import (
	"errors"
	"log/slog"
	"math"
	"sync"
	"sync/atomic"

	"golang.org/x/sys/unix"

	"github.com/steadyprobe/steadyprobe/probe"
)

// Precise returns a clock that sleeps by clock_nanosleep(2) to an absolute
// instant of CLOCK_MONOTONIC, which is good to some 50 us where [time.Sleep]
// is good to 1 ms. The thread that sleeps has its timer slack set to 1 ns, see
// PR_SET_TIMERSLACK in prctl(2). Where the system refuses either the clock goes
// on less precisely and says so to logger, once.
//
// It blocks a thread while it sleeps, and does not know the virtual time of
// testing/synctest.
func Precise(c probe.Clock, logger *slog.Logger) Clock {
	return &preciseClock{
		portableClock: portableClock{c},
		offset:        monotonicOffset(c),
		setSlack: func(ns uintptr) error {
			return unix.Prctl(unix.PR_SET_TIMERSLACK, ns, 0, 0, 0)
		},
		logger: logger,
	}
}

type preciseClock struct {
	portableClock
	offset   int64 // CLOCK_MONOTONIC - Now, in nanoseconds
	setSlack func(ns uintptr) error
	logger   *slog.Logger

	slackRefused atomic.Bool
	sleepRefused sync.Once
}

// monotonicOffset measures what CLOCK_MONOTONIC is ahead of c, in nanoseconds.
// Both run from the same counter, so that it is constant. Of many readings
// between two of c, the one with the least time around it is the most exact.
func monotonicOffset(c probe.Clock) (offset int64) {
	const readings = 64
	narrowest := int64(math.MaxInt64)
	for range readings {
		var ts unix.Timespec
		before := c.Now()
		if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &ts); err != nil {
			continue // SleepUntil falls back
		}
		after := c.Now()
		if width := int64(after - before); width < narrowest {
			narrowest = width
			offset = ts.Nano() - int64(before) - width/2
		}
	}
	return offset
}

func (c *preciseClock) SleepUntil(i probe.Instant) {
	ts := unix.NsecToTimespec(int64(i) + c.offset)
	// A signal ends the sleep early, and the offset may be some 100 ns off.
	for c.Now() < i {
		c.takeSlack()
		err := unix.ClockNanosleep(unix.CLOCK_MONOTONIC, unix.TIMER_ABSTIME, &ts, nil)
		if err == nil || errors.Is(err, unix.EINTR) {
			continue
		}
		c.sleepRefused.Do(func() {
			c.logger.Warn("precise sleep refused, expect lateness up to 1 ms more: allow clock_nanosleep", "err", err)
		})
		c.portableClock.SleepUntil(i)
	}
}

// takeSlack takes the timer slack, 50 us by default, from the calling thread. A
// goroutine may wake up on another one each time, so that this comes before
// each sleep; a thread that keeps the small slack is as right, only dearer.
func (c *preciseClock) takeSlack() {
	if c.slackRefused.Load() {
		return
	}
	if err := c.setSlack(1); err != nil && !c.slackRefused.Swap(true) {
		c.logger.Warn("timer slack refused, expect lateness up to 50 us more: allow prctl PR_SET_TIMERSLACK", "err", err)
	}
}
