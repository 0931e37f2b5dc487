package schedule

import (
	"bytes"
	"log/slog"
	"runtime"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/steadyprobe/steadyprobe/probe"
)

func newPrecise(t testing.TB, log *bytes.Buffer) *preciseClock {
	t.Helper()
	c, ok := Precise(probe.NewClock(), slog.New(slog.NewTextHandler(log, nil))).(*preciseClock)
	if !ok {
		t.Fatal("Precise returned another clock")
	}
	return c
}

func TestPreciseClockNeverReturnsEarly(t *testing.T) {
	var log bytes.Buffer
	c := newPrecise(t, &log)
	for _, tt := range []struct {
		name  string
		error int64         // of the offset, ns
		sleep time.Duration // from now
	}{
		{"past", 0, -time.Second},
		{"now", 0, 0},
		{"a nanosecond", 0, 1},
		{"a microsecond", 0, time.Microsecond},
		{"some", 0, 137 * time.Microsecond},
		{"a millisecond", 0, time.Millisecond},
		{"several", 0, 5 * time.Millisecond},
		{"offset too small", -20_000, 300 * time.Microsecond},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c.offset += tt.error
			defer func() { c.offset -= tt.error }()
			until := c.Now().Add(tt.sleep)
			c.SleepUntil(until)
			if now := c.Now(); now < until {
				t.Errorf("woke %v early", until.Sub(now))
			}
		})
	}
	if log.Len() != 0 {
		t.Errorf("logged %s", &log)
	}
}

// The kernel refuses instants before 0: the clock sleeps portably then.
func TestPreciseClockFallsBack(t *testing.T) {
	var log bytes.Buffer
	c := newPrecise(t, &log)
	c.offset = -int64(time.Hour)
	for range 2 {
		until := c.Now().Add(time.Millisecond)
		c.SleepUntil(until)
		if now := c.Now(); now < until {
			t.Errorf("woke %v early", until.Sub(now))
		}
	}
	if n := strings.Count(log.String(), "precise sleep refused"); n != 1 {
		t.Errorf("said %d times that it was refused, want once:\n%s", n, &log)
	}
}

func TestPreciseClockGoesOnWithoutTimerSlack(t *testing.T) {
	var log bytes.Buffer
	c := newPrecise(t, &log)
	c.setSlack = func(uintptr) error { return unix.EPERM }
	for range 2 {
		c.SleepUntil(c.Now().Add(time.Microsecond))
	}
	if n := strings.Count(log.String(), "timer slack refused"); n != 1 {
		t.Errorf("said %d times that it was refused, want once:\n%s", n, &log)
	}
}

func TestPreciseClockTakesTimerSlack(t *testing.T) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	c := newPrecise(t, new(bytes.Buffer))
	c.SleepUntil(c.Now().Add(time.Microsecond))
	ns, err := unix.PrctlRetInt(unix.PR_GET_TIMERSLACK, 0, 0, 0, 0)
	if err != nil || ns != 1 {
		t.Errorf("timer slack %d ns (%v) after a sleep, want 1", ns, err)
	}
	_ = c.setSlack(0) // what the thread began with
}

func TestPreciseClockAllocatesNothing(t *testing.T) {
	c := newPrecise(t, new(bytes.Buffer))
	if allocs := testing.AllocsPerRun(100, func() { c.SleepUntil(c.Now().Add(time.Microsecond)) }); allocs != 0 {
		t.Errorf("%v allocations a sleep, want 0", allocs)
	}
}
