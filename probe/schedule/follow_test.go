package schedule

import (
	"math/big"
	"math/rand/v2"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/steadyprobe/steadyprobe/probe"
)

func TestThen(t *testing.T) {
	const second = probe.Instant(time.Second)
	for _, row := range []struct {
		name     string
		s, next  Schedule
		at, want probe.Instant // of the first tick
	}{
		// A quarter of 1 ms is left, which is a quarter of 2 ms.
		{"slower", Schedule{Origin: second, Rate: Rate{1000, 1}}, Schedule{Rate: Rate{500, 1}}, second + 750_000, second + 750_000 + 500_000},
		{"faster", Schedule{Origin: second, Rate: Rate{500, 1}}, Schedule{Rate: Rate{1000, 1}}, second + 500_000, second + 500_000 + 750_000},
		{"same rate", Schedule{Origin: second, Rate: Rate{3, 1}}, Schedule{Rate: Rate{3, 1}}, 2*second + 1, second + 1_333_333_333},
		// 999 s of 1,000 are left, and 0.999 s of 1.
		{"from a tick in 1,000 s", Schedule{Origin: second, Rate: Rate{1, 1000}}, Schedule{Rate: Rate{1, 1}}, 2 * second, 2*second + 999_000_000},
		{"to a tick in 1,000 s", Schedule{Origin: second, Rate: Rate{1000, 1}}, Schedule{Rate: Rate{1, 1000}}, second + 500_000, second + 500_000 + 500*second},
		{"at a tick", Schedule{Origin: second, Rate: Rate{10, 1}}, Schedule{Rate: Rate{20, 1}}, second + 100_000_000, second + 100_000_000},
		{"yet to begin", Schedule{Origin: 9 * second, Rate: Rate{10, 1}}, Schedule{Rate: Rate{20, 1}}, second, second + 50_000_000},
		{"behind its end", Schedule{Origin: second, Rate: Rate{10, 1}, End: 2 * second}, Schedule{Rate: Rate{20, 1}}, 3*second + 60_000_000, 3*second + 80_000_000},
		// A share of 1/2 of 1,000/s ticks every 2 ms: 1 ms of that is left, half of 4 ms.
		{"shares", Schedule{Origin: second, Rate: Rate{1000, 1}, Step: 2}, Schedule{Rate: Rate{500, 1}, Step: 2}, second + 1_000_000, second + 3_000_000},
		{"from random ticks", Schedule{Origin: second, Rate: Rate{10, 1}, Poisson: true}, Schedule{Origin: 3 * second, Rate: Rate{20, 1}}, 2 * second, 3 * second},
		{"from nothing", Schedule{}, Schedule{Origin: 3 * second, Rate: Rate{20, 1}}, 2 * second, 3 * second},
	} {
		t.Run(row.name, func(t *testing.T) {
			if got := row.s.Then(row.next, row.at).At(0); got != row.want {
				t.Errorf("first tick at %d, want %d", got, row.want)
			}
		})
	}
}

// However often the rate changes, the ticks so far are the rates over their
// times, rounded up, because there is one at the origin.
func TestThenLosesNothing(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, 0))
	for range 200 {
		s := Schedule{Origin: probe.Instant(rng.Int64N(int64(time.Second))), Rate: Rate{1 + rng.Uint64N(5000), 1 + rng.Uint64N(9)}}
		at, ticks, due := s.Origin, uint64(0), new(big.Rat)
		for range 20 {
			until := at.Add(time.Duration(rng.Int64N(int64(10 * time.Second))))
			ticks += s.Count(until)
			due.Add(due, new(big.Rat).Mul(s.Rate.rat(), big.NewRat(int64(until-at), int64(nanos))))
			s = s.Then(Schedule{Rate: Rate{1 + rng.Uint64N(5000), 1 + rng.Uint64N(9)}}, until)
			at = until
			// Each change rounds its origin down to a nanosecond, which moves a
			// tick over the edge where one is due just then.
			low, _ := due.Float64()
			if got := float64(ticks); got < low-0.001 || got > low+1.001 {
				t.Fatalf("%d ticks, want %s and up to one more", ticks, due.FloatString(6))
			}
		}
	}
}

func TestFollow(t *testing.T) {
	inBubble(t, func(b *bench) {
		a := &fakeTaker{b: b, name: "a"}
		b.pacer.Add(b.every(100*time.Millisecond, 100*time.Millisecond), a)
		b.pacer.Add(b.every(110*time.Millisecond, 200*time.Millisecond), &fakeTaker{b: b, name: "b"})
		b.run()
		time.Sleep(150 * time.Millisecond)
		b.pacer.Follow(b.every(340*time.Millisecond, 50*time.Millisecond), b.start+330*ms, a)
		b.pacer.Follow(b.every(520*time.Millisecond, time.Second), b.start+440*ms, a) // before the first is there
		time.Sleep(400 * time.Millisecond)
		b.pacer.Follow(Schedule{}, b.start+600*ms, a)
		time.Sleep(500 * time.Millisecond)
		b.end()
		b.want(
			event{"a", 100, 100}, event{"b", 110, 110}, event{"a", 200, 200}, event{"a", 300, 300},
			event{"b", 310, 310}, event{"a", 340, 340}, event{"a", 390, 390}, event{"b", 510, 510},
			event{"a", 520, 520}, event{"b", 710, 710}, event{"b", 910, 910},
		)
	})
}

// What is overdue when the change comes is given, each tick with its own
// intended time, and what was given behind the change is not given twice.
func TestFollowLate(t *testing.T) {
	inBubble(t, func(b *bench) {
		a := &fakeTaker{b: b, name: "a"}
		b.pacer.Add(b.every(100*time.Millisecond, 100*time.Millisecond), a)
		time.Sleep(350 * time.Millisecond)                                                              // the pacer does not run yet
		b.pacer.Follow(b.every(240*time.Millisecond, 70*time.Millisecond), b.start+240*ms, a)           // 240, 310, 380
		b.pacer.Follow(b.every(390*time.Millisecond, 1000*time.Millisecond), b.start+385*ms, a)         // 390
		b.pacer.Follow(b.every(2000*time.Millisecond, 1000*time.Millisecond), b.start+1000*ms, a)       // none of it
		b.pacer.Add(b.every(2000*time.Millisecond, 1000*time.Millisecond), &fakeTaker{b: b, name: "b"}) // none of it
		b.run()
		time.Sleep(150 * time.Millisecond)
		b.end()
		b.want(event{"a", 100, 350}, event{"a", 200, 350}, event{"a", 240, 350}, event{"a", 310, 350}, event{"a", 380, 380}, event{"a", 390, 390})
		// At 540 ms it ends. A change from 300 ms on comes too late.
		b.pacer.Add(b.every(600*time.Millisecond, 100*time.Millisecond), a)
		b.run()
		time.Sleep(240 * time.Millisecond) // until 780: 600, 700, asleep until 800
		b.pacer.Follow(b.every(650*time.Millisecond, 50*time.Millisecond), b.start+650*ms, a)
		time.Sleep(60 * time.Millisecond)
		b.end()
		b.want(event{"a", 600, 600}, event{"a", 700, 700}, event{"a", 750, 800}, event{"a", 800, 800})
	})
}

// A taker is drained when it asks for that, and its schedule stays.
func TestWake(t *testing.T) {
	inBubble(t, func(b *bench) {
		a := &fakeTaker{b: b, name: "a"}
		a.drain = func() probe.Instant { return 0 }
		b.pacer.Add(b.every(500*time.Millisecond, time.Hour), a)
		b.run()
		time.Sleep(120 * time.Millisecond)
		b.pacer.Wake(a)
		b.pacer.Wake(&fakeTaker{b: b, name: "unknown"})
		time.Sleep(500 * time.Millisecond)
		b.end()
		if len(b.events) != 2 || b.events[0].intended != -1 || b.events[0].at < 120 || b.events[0].at > 170 {
			t.Errorf("events %v, want a drain within 50 ms and one tick", b.events)
		}
	})
}

// Ticks are given between changes, however many there are at once.
func TestManyChangesHoldUpNoTick(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := newAgenda()
		p := New(Options{Clock: Portable(probe.NewClock())})
		p.agenda, p.running = a, true
		busy := &countingTaker{}
		p.agenda.add(Schedule{Origin: 1, Rate: Rate{1_000_000, 1}}, busy)
		for range 100 * mostChanges {
			p.Add(Schedule{Origin: never - 1, Rate: Rate{1, 1}}, &countingTaker{})
		}
		turns := 0
		for ; p.changed.Load(); turns++ {
			p.turn()
		}
		if turns != 100 || busy.count != 100 {
			t.Errorf("%d turns and %d ticks for %d changes, want 100 and 100", turns, busy.count, 100*mostChanges)
		}
		if n := len(p.agenda.due); n != 100*mostChanges+1 || !slices.ContainsFunc(p.agenda.due, func(d due) bool { return d.entry.taker == Taker(busy) }) {
			t.Errorf("%d targets", n)
		}
	})
}
