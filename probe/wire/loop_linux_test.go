package wire

import (
	"bytes"
	"sync"
	"testing"
	"time"

	door "github.com/steadyprobe/steadyprobe/internal/faultdoor"
	"github.com/steadyprobe/steadyprobe/probe"
	"github.com/steadyprobe/steadyprobe/probe/schedule"
)

func newLoop(tb testing.TB) *Loop {
	tb.Helper()
	l, err := NewLoop(probe.NewClock())
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(l.Close)
	return l
}

// TestFaultsOverLoop holds a loop to what goroutines are held to.
func TestFaultsOverLoop(t *testing.T) {
	l := newLoop(t)
	for _, f := range faults {
		t.Run(f.name, func(t *testing.T) {
			f.options.Loop, f.options.Clock = l, l.clock
			f.onLoopback(t)
		})
	}
}

// TestLoopUnderLoad sends many ticks at once over many connections, to doors
// that close, reset and stall, while targets come and go.
func TestLoopUnderLoad(t *testing.T) {
	l := newLoop(t)
	d := door.Listen(t, door.HTTP(door.Every(50, door.Reset(),
		door.Every(31, door.CloseAnnounced(), door.Every(17, door.Delay(2*time.Millisecond, door.OK()), door.Sized(3000))))))
	var targets sync.WaitGroup
	for range 8 {
		targets.Go(func() {
			r := newRig(t, d.Addr(), Options{Reuse: true, Loop: l, Way: Way{Clock: l.clock, Timeout: 2 * time.Second}}, probe.Target{Connections: 20, Warm: true})
			r.prober.WarmUp(t.Context())
			for range 500 {
				r.prober.Take(r.clock.Now())
			}
			for range 500 {
				<-r.recorder.came
			}
			r.close()
			ledger := r.prober.Ledger()
			var closed uint64
			for _, n := range ledger.Closed {
				closed += n
			}
			if ledger.Done() != 500 || ledger.Connections != 0 || closed != ledger.Opened {
				t.Errorf("%d completed, %d connections left, %d opened and %d closed", ledger.Done(), ledger.Connections, ledger.Opened, closed)
			}
			if ledger.Failures(probe.Success) < 300 {
				t.Errorf("%d of 500 succeeded", ledger.Failures(probe.Success))
			}
			r.recorder.mu.Lock()
			defer r.recorder.mu.Unlock()
			for i := range r.recorder.samples {
				checkPhases(t, &r.recorder.samples[i])
			}
		})
	}
	targets.Wait()
	if n := len(l.conns); n != 0 {
		t.Errorf("%d connections are left in the loop", n)
	}
}

// TestLoopFinishesWhatTheKernelDidNotTake sends requests to a door that does
// not read for a while, until its window is closed.
func TestLoopFinishesWhatTheKernelDidNotTake(t *testing.T) {
	d := door.Listen(t, func(c *door.Conn) {
		if c.Sleep(50*time.Millisecond) == nil {
			door.HTTP(door.OK())(c)
		}
	})
	body := bytes.Repeat([]byte("x"), inlineLimit-500)
	l := newLoop(t)
	r := newRig(t, d.Addr(), Options{Reuse: true, Loop: l, Way: Way{Clock: l.clock}, Request: Request{Method: "POST", Body: body}}, probe.Target{Connections: 10})
	for range 10 {
		r.prober.Take(r.clock.Now())
	}
	for range 10 {
		if s := r.next(); s.Outcome != probe.Success {
			t.Errorf("%v, want a success", s.Outcome)
		}
	}
}

// TestLoopCarriesACanary measures self latency through a loop.
func TestLoopCarriesACanary(t *testing.T) {
	l := newLoop(t)
	clock := schedule.Portable(l.clock)
	observed := make(chan time.Duration, 10)
	canary, err := schedule.NewCanary(clock, l.Watch, func(d time.Duration) { observed <- d })
	if err != nil {
		t.Fatal(err)
	}
	for range 5 {
		canary.Take(clock.Now().Add(-3 * time.Millisecond))
		if d := <-observed; d < 3*time.Millisecond {
			t.Errorf("observed %v for what was due 3 ms before", d)
		}
	}
	canary.Close()
	canary.Close()
	if n := len(l.watched); n != 0 {
		t.Errorf("%d connections are still watched", n)
	}
}
