package schedule

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/steadyprobe/steadyprobe/probe"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// What the pacer is for.
var _ Taker = (*probe.Prober)(nil)

const ms = probe.Instant(time.Millisecond)

// event is one call of a taker, with times in milliseconds of the test.
type event struct {
	who      string
	intended float64 // -1: Drain
	at       float64
}

// bench is a pacer in virtual time and what it did.
type bench struct {
	t      *testing.T
	clock  Clock
	start  probe.Instant
	pacer  *Pacer
	stop   context.CancelFunc
	ended  chan struct{}
	events []event
}

// inBubble runs f with a pacer that does not run yet.
func inBubble(t *testing.T, f func(*bench)) {
	synctest.Test(t, func(t *testing.T) {
		clock := Portable(probe.NewClock())
		f(&bench{t: t, clock: clock, start: clock.Now(), pacer: New(Options{Clock: clock})})
	})
}

func (b *bench) run() {
	ctx, cancel := context.WithCancel(b.t.Context())
	b.stop, b.ended = cancel, make(chan struct{})
	go func() {
		defer close(b.ended)
		b.pacer.Run(ctx)
	}()
}

func (b *bench) end() {
	b.stop()
	<-b.ended
}

func (b *bench) millis(i probe.Instant) float64 { return float64(i-b.start) / float64(ms) }

// every returns a schedule from start + origin with one tick each interval.
func (b *bench) every(origin, interval time.Duration) Schedule {
	return Schedule{Origin: b.start.Add(origin), Rate: Rate{nanos, uint64(interval)}}
}

func (b *bench) want(want ...event) {
	b.t.Helper()
	if !slices.Equal(b.events, want) {
		b.t.Errorf("events\n%v\nwant\n%v", b.events, want)
	}
	b.events = nil
}

// fakeTaker notes every call, then does what the test says. Only the pacer's
// goroutine and, behind synctest.Wait or Remove, the test touch its fields.
type fakeTaker struct {
	b     *bench
	name  string
	take  func(intended probe.Instant) probe.Instant
	drain func() probe.Instant
}

func (f *fakeTaker) Take(intended probe.Instant) probe.Instant {
	f.b.events = append(f.b.events, event{f.name, f.b.millis(intended), f.b.millis(f.b.clock.Now())})
	if f.take == nil {
		return 0
	}
	return f.take(intended)
}

func (f *fakeTaker) Drain() probe.Instant {
	f.b.events = append(f.b.events, event{f.name, -1, f.b.millis(f.b.clock.Now())})
	if f.drain == nil {
		return 0
	}
	return f.drain()
}

func TestPacerGivesEachTickAtItsInstant(t *testing.T) {
	inBubble(t, func(b *bench) {
		b.pacer.Add(b.every(100*time.Millisecond, 250*time.Millisecond), &fakeTaker{b: b, name: "a"})
		b.pacer.Add(b.every(110*time.Millisecond, 400*time.Millisecond), &fakeTaker{b: b, name: "b"})
		b.run()
		time.Sleep(900 * time.Millisecond)
		b.end()
		b.want(
			event{"a", 100, 100}, event{"b", 110, 110}, event{"a", 350, 350},
			event{"b", 510, 510}, event{"a", 600, 600}, event{"a", 850, 850},
		)
	})
}

func TestPacerDoesNotDrift(t *testing.T) {
	inBubble(t, func(b *bench) {
		// An hour at 3/s: tick i at floor(i × 333,333,333.33) ns.
		s := Schedule{Origin: b.start.Add(Lead), Rate: Rate{3, 1}}
		var count uint64
		taker := &fakeTaker{b: b}
		taker.take = func(intended probe.Instant) probe.Instant {
			if want := s.At(count); intended != want || b.clock.Now() != want {
				t.Errorf("tick %d intended %d given at %d, want %d", count, intended, b.clock.Now(), want)
			}
			count++
			return 0
		}
		b.pacer.Add(s, taker)
		b.run()
		time.Sleep(time.Hour + Lead + time.Millisecond)
		b.end()
		if want := uint64(3*3600 + 1); count != want { // both ends of the hour
			t.Errorf("%d ticks, want %d", count, want)
		}
	})
}

func TestPacerStopsAtTheEndOfASchedule(t *testing.T) {
	inBubble(t, func(b *bench) {
		s := b.every(100*time.Millisecond, 100*time.Millisecond)
		s.End = b.start.Add(400 * time.Millisecond) // a tick would be due then
		taker := &fakeTaker{b: b, name: "a"}
		taker.take = func(intended probe.Instant) probe.Instant {
			return intended.Add(250 * time.Millisecond)
		}
		b.pacer.Add(s, taker)
		b.run()
		time.Sleep(time.Second)
		b.end()
		// The backlog is still drained: 300 + 250.
		b.want(event{"a", 100, 100}, event{"a", 200, 200}, event{"a", 300, 300}, event{"a", -1, 550})
	})
}

func TestPacerGivesOverdueTicksOldestFirst(t *testing.T) {
	inBubble(t, func(b *bench) {
		slow := &fakeTaker{b: b, name: "slow"}
		slow.take = func(intended probe.Instant) probe.Instant {
			if intended == b.start.Add(100*time.Millisecond) {
				time.Sleep(500 * time.Millisecond) // stopped until 600
			}
			return 0
		}
		b.pacer.Add(b.every(100*time.Millisecond, 200*time.Millisecond), slow)
		b.pacer.Add(b.every(150*time.Millisecond, 150*time.Millisecond), &fakeTaker{b: b, name: "b"})
		b.pacer.Add(b.every(300*time.Millisecond, time.Second), &fakeTaker{b: b, name: "c"})
		b.run()
		time.Sleep(640 * time.Millisecond)
		b.end()
		b.want(
			event{"slow", 100, 100},
			event{"b", 150, 600},
			event{"slow", 300, 600}, event{"b", 300, 600}, event{"c", 300, 600}, // in the order they were added
			event{"b", 450, 600}, event{"slow", 500, 600},
			event{"b", 600, 600},
		)
	})
}

func TestPacerDrains(t *testing.T) {
	inBubble(t, func(b *bench) {
		a := &fakeTaker{b: b, name: "a"}
		a.take = func(intended probe.Instant) probe.Instant {
			switch intended {
			case b.start + 100*ms:
				return b.start + 1400*ms // replaced by the next tick's answer
			case b.start + 1100*ms:
				return b.start + 1150*ms
			case b.start + 2100*ms:
				return b.start + 3100*ms // together with the next tick
			}
			return 0
		}
		a.drain = func() probe.Instant {
			if now := b.clock.Now(); now < b.start+1170*ms {
				return now + 20*ms
			}
			return 0
		}
		b.pacer.Add(b.every(100*time.Millisecond, time.Second), a)
		b.run()
		time.Sleep(3500 * time.Millisecond)
		b.end()
		b.want(
			event{"a", 100, 100},
			event{"a", 1100, 1100}, event{"a", -1, 1150}, event{"a", -1, 1170},
			event{"a", 2100, 2100},
			event{"a", 3100, 3100}, // no Drain beside it
		)
	})
}

// A taker that always wants to be drained at once must not keep others from
// their ticks.
func TestPacerIsFairToOthersWhenAWakeHasPassed(t *testing.T) {
	inBubble(t, func(b *bench) {
		greedy := &fakeTaker{b: b, name: "greedy"}
		drains := 0
		greedy.take = func(probe.Instant) probe.Instant { return 1 }
		greedy.drain = func() probe.Instant {
			time.Sleep(10 * time.Millisecond)
			if drains++; drains == 5 {
				return 0
			}
			return 1
		}
		b.pacer.Add(b.every(100*time.Millisecond, time.Second), greedy)
		b.pacer.Add(b.every(105*time.Millisecond, 20*time.Millisecond), &fakeTaker{b: b, name: "b"})
		b.run()
		time.Sleep(160 * time.Millisecond)
		b.end()
		b.want(
			event{"greedy", 100, 100}, event{"greedy", -1, 100},
			event{"greedy", -1, 110},                       // due since 100
			event{"b", 105, 120}, event{"greedy", -1, 120}, // due since 110
			event{"greedy", -1, 130}, // due since 120
			event{"b", 125, 140}, event{"greedy", -1, 140},
			event{"b", 145, 150},
		)
	})
}

func TestPacerAddWhileRunning(t *testing.T) {
	inBubble(t, func(b *bench) {
		b.run()
		time.Sleep(333 * time.Millisecond)
		b.pacer.Add(b.every(333*time.Millisecond+Lead, 500*time.Millisecond), &fakeTaker{b: b, name: "ahead"})
		time.Sleep(920 * time.Millisecond) // 1253; the pacer looks every 50 ms
		b.pacer.Add(b.every(0, 500*time.Millisecond), &fakeTaker{b: b, name: "past"})
		time.Sleep(100 * time.Millisecond)
		b.end()
		b.want(
			event{"ahead", 433, 433}, event{"ahead", 933, 933},
			// The first wake-up after 1253 is 933 + 7 × 50.
			event{"past", 0, 1283}, event{"past", 500, 1283}, event{"past", 1000, 1283},
		)
	})
}

func TestPacerAddAgainReplacesTheSchedule(t *testing.T) {
	inBubble(t, func(b *bench) {
		a := &fakeTaker{b: b, name: "a"}
		a.take = func(probe.Instant) probe.Instant { return b.start + 450*ms }
		b.pacer.Add(b.every(100*time.Millisecond, 50*time.Millisecond), a)
		b.run()
		time.Sleep(120 * time.Millisecond)
		b.pacer.Add(b.every(400*time.Millisecond, time.Second), a)
		time.Sleep(500 * time.Millisecond)
		b.pacer.Remove(a)
		b.end()
		// The pacer sees the change when it wakes for the tick of 150.
		b.want(event{"a", 100, 100}, event{"a", 400, 400}, event{"a", -1, 450})
	})
}

func TestPacerRemove(t *testing.T) {
	for _, tt := range []struct {
		name string
		test func(t *testing.T, b *bench, a *fakeTaker)
	}{
		{"never run", func(t *testing.T, b *bench, a *fakeTaker) {
			b.pacer.Remove(a)
			b.run()
			time.Sleep(time.Second)
			b.end()
			b.want()
		}},
		{"running", func(t *testing.T, b *bench, a *fakeTaker) {
			b.run()
			time.Sleep(120 * time.Millisecond)
			b.pacer.Remove(a)
			// The pacer woke at 100 and looks again at 150.
			if got := b.millis(b.clock.Now()); got != 150 {
				t.Errorf("Remove returned at %v, want 150", got)
			}
			time.Sleep(time.Second)
			b.end()
			b.want(event{"a", 100, 100})
		}},
		{"after the run", func(t *testing.T, b *bench, a *fakeTaker) {
			b.run()
			time.Sleep(120 * time.Millisecond)
			b.end()
			b.pacer.Remove(a)
			b.run()
			time.Sleep(time.Second)
			b.end()
			b.want(event{"a", 100, 100})
		}},
		{"while the run ends", func(t *testing.T, b *bench, a *fakeTaker) {
			b.run()
			time.Sleep(120 * time.Millisecond)
			b.stop()
			b.pacer.Remove(a)
			<-b.ended
			b.want(event{"a", 100, 100})
		}},
		{"unknown and twice", func(t *testing.T, b *bench, a *fakeTaker) {
			b.pacer.Remove(&fakeTaker{b: b})
			b.run()
			b.pacer.Remove(&fakeTaker{b: b})
			b.pacer.Remove(a)
			b.pacer.Remove(a)
			b.end()
			b.want()
		}},
		{"added and removed before the pacer looks", func(t *testing.T, b *bench, a *fakeTaker) {
			b.pacer.Remove(a)
			b.run()
			time.Sleep(10 * time.Millisecond)
			b.pacer.Add(b.every(0, time.Millisecond), a)
			b.pacer.Remove(a)
			b.end()
			b.want()
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			inBubble(t, func(b *bench) {
				a := &fakeTaker{b: b, name: "a"}
				b.pacer.Add(b.every(100*time.Millisecond, 200*time.Millisecond), a)
				tt.test(t, b, a)
			})
		})
	}
}

// A process that was stopped for 10 s at 1,000/s has 10,000 overdue ticks;
// with 1 ms for each it takes 10 s to give them, while more become due. A
// Remove and the end of the context must not wait for that.
func TestPacerHeedsChangesInABurst(t *testing.T) {
	inBubble(t, func(b *bench) {
		count := 0
		other := &fakeTaker{b: b, name: "other"}
		late := &fakeTaker{b: b, name: "late"}
		late.take = func(intended probe.Instant) probe.Instant {
			if want := b.start.Add(time.Duration(count) * time.Millisecond); intended != want {
				t.Errorf("tick %d intended %v, want %v", count, b.millis(intended), b.millis(want))
			}
			count++
			b.events = nil
			time.Sleep(time.Millisecond)
			return 0
		}
		b.pacer.Add(b.every(0, time.Millisecond), late)
		b.pacer.Add(b.every(5500*time.Microsecond, time.Hour), other)
		time.Sleep(10 * time.Second)
		b.run()
		time.Sleep(100*time.Millisecond + 500*time.Microsecond) // within tick 100
		b.pacer.Remove(other)
		if got, want := b.millis(b.clock.Now()), 10_101.0; got != want {
			t.Errorf("Remove in a burst returned at %v, want %v", got, want)
		}
		time.Sleep(99*time.Millisecond + 500*time.Microsecond) // 10,200.5, within tick 200
		b.end()
		if got, want := b.millis(b.clock.Now()), 10_201.0; got != want {
			t.Errorf("Run in a burst ended at %v, want %v", got, want)
		}
		if want := 201; count != want { // 0 to 200
			t.Errorf("%d ticks in 201 ms, want %d", count, want)
		}
		late.take = func(probe.Instant) probe.Instant {
			count++
			time.Sleep(500 * time.Microsecond)
			return 0
		}
		b.run() // gives the rest, and is on time again when twice as fast
		time.Sleep(20*time.Second + 250*time.Microsecond)
		b.end()
		// At 30,201 ms the ticks 0 to 30,201 are due and were all given.
		if want := 30_202; count != want {
			t.Errorf("%d ticks, want %d", count, want)
		}
	})
}

func TestPacerWakesWithoutTakers(t *testing.T) {
	inBubble(t, func(b *bench) {
		if got := b.pacer.Woke(); got != 0 {
			t.Errorf("Woke() = %d before Run, want 0", got)
		}
		b.run()
		for range 50 {
			time.Sleep(97 * time.Millisecond)
			synctest.Wait()
			if age := b.clock.Now().Sub(b.pacer.Woke()); age > 100*time.Millisecond {
				t.Errorf("the pacer woke %v ago", age)
			}
		}
		b.end()
	})
}

func TestPacerRefusesASecondRun(t *testing.T) {
	inBubble(t, func(b *bench) {
		b.run()
		synctest.Wait()
		func() {
			defer func() {
				if got, want := recover(), "schedule: Run called while the pacer runs"; got != want {
					t.Errorf("second Run panicked with %v, want %q", got, want)
				}
			}()
			b.pacer.Run(t.Context())
		}()
		b.end()
	})
}

// guardedTaker fails the test when it is called after its removal.
type guardedTaker struct {
	t       *testing.T
	takes   atomic.Int64
	removed atomic.Bool
}

func (g *guardedTaker) Take(intended probe.Instant) probe.Instant {
	if g.removed.Load() {
		g.t.Error("Take called after Remove returned")
	}
	g.takes.Add(1)
	return intended + 1
}

func (g *guardedTaker) Drain() probe.Instant {
	if g.removed.Load() {
		g.t.Error("Drain called after Remove returned")
	}
	return 0
}

func TestPacerConcurrentChanges(t *testing.T) {
	inBubble(t, func(b *bench) {
		b.run()
		var all sync.WaitGroup
		for k := range 16 {
			all.Go(func() {
				for range 20 {
					taker := &guardedTaker{t: t}
					origin := b.clock.Now().Add(Lead)
					b.pacer.Add(Schedule{Origin: origin, Rate: Rate{uint64(100 + 37*k), 1}}, taker)
					time.Sleep(Lead + time.Duration(k)*7*time.Millisecond)
					b.pacer.Remove(taker)
					taker.removed.Store(true)
					if k > 0 && taker.takes.Load() == 0 {
						t.Error("no tick between Add and Remove")
					}
				}
			})
		}
		all.Wait()
		b.end()
		if n := len(b.pacer.agenda.due); n != 0 {
			t.Errorf("%d schedules left, want 0", n)
		}
	})
}
