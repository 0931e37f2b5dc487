package schedule

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/steadyprobe/steadyprobe/probe"
)

// The heap gives what a sorted list would, whatever is added and removed.
func TestAgendaAgainstSorting(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, 0))
	a := newAgenda()
	var takers []*countingTaker
	for step := range 20_000 {
		switch n := rng.IntN(10); {
		case n < 2 || len(takers) == 0:
			taker := &countingTaker{}
			takers = append(takers, taker)
			a.add(Schedule{Origin: probe.Instant(rng.IntN(1000)), Rate: Rate{1 + rng.Uint64N(1000), 1}}, taker)
		case n < 3:
			k := rng.IntN(len(takers))
			a.add(Schedule{Origin: probe.Instant(rng.IntN(1000)), Rate: Rate{1, 1}}, takers[k])
		case n < 4:
			k := rng.IntN(len(takers))
			a.remove(takers[k])
			takers = slices.Delete(takers, k, k+1)
		default:
			least := slices.MinFunc(a.due, func(x, y due) int {
				if x.before(&y) {
					return -1
				}
				return 1
			})
			if got := a.next(); got != least.at || a.due[0] != least {
				t.Fatalf("step %d: root is due at %d, want %d", step, got, least.at)
			}
			a.give(a.next())
		}
		if len(a.due) != len(takers) || len(a.entries) != len(takers) {
			t.Fatalf("step %d: %d due, %d entries, want %d", step, len(a.due), len(a.entries), len(takers))
		}
	}
}

// countingTaker never wants to be drained.
type countingTaker struct{ count int }

func (c *countingTaker) Take(probe.Instant) probe.Instant { c.count++; return 0 }
func (c *countingTaker) Drain() probe.Instant             { return 0 }

// fakeClock jumps to where a sleep ends.
type fakeClock struct{ now probe.Instant }

func (c *fakeClock) Now() probe.Instant         { return c.now }
func (c *fakeClock) SleepUntil(i probe.Instant) { c.now = max(c.now, i) }

// paceFake returns a pacer with as many targets, in jumping time.
func paceFake(targets int, rate Rate) (p *Pacer, count func() int) {
	p = New(Options{Clock: &fakeClock{now: 1}})
	takers := make([]*countingTaker, targets)
	for k := range takers {
		takers[k] = new(countingTaker)
		p.Add(Schedule{Origin: probe.Instant(1).Add(Spread(uint64(k), rate)), Rate: rate}, takers[k])
	}
	return p, func() (n int) {
		for _, t := range takers {
			n += t.count
		}
		return n
	}
}

func TestPacerAllocatesNothing(t *testing.T) {
	p, count := paceFake(100, Rate{1000, 1})
	if allocs := testing.AllocsPerRun(10_000, p.turn); allocs != 0 {
		t.Errorf("%v allocations a turn, want 0", allocs)
	}
	if count() == 0 {
		t.Error("no tick was given")
	}
}
