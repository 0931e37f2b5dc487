package schedule

import (
	"math"
	"testing"
	"time"

	"github.com/steadyprobe/steadyprobe/probe"
)

// TestPoisson holds the gaps of a schedule against the exponential
// distribution: mean and standard deviation are both 1/rate, and the share of
// gaps above t is exp(-rate t).
func TestPoisson(t *testing.T) {
	const n = 200_000
	rate := rateOf(t, "1000")
	ticks := Schedule{Origin: 5, Rate: rate, Poisson: true, Seed: 7}.series()
	before := probe.Instant(5)
	var sum, squares float64
	above := map[time.Duration]int{}
	for range n {
		gap := ticks.tick.Sub(before)
		if gap < 0 {
			t.Fatalf("tick %d is before the one before it", ticks.i)
		}
		sum += gap.Seconds()
		squares += gap.Seconds() * gap.Seconds()
		for _, d := range []time.Duration{100 * time.Microsecond, time.Millisecond, 3 * time.Millisecond} {
			if gap > d {
				above[d]++
			}
		}
		before = ticks.tick
		ticks.advance()
	}
	mean := sum / n
	deviation := math.Sqrt(squares/n - mean*mean)
	// The standard error of the mean is 1 ms / sqrt(200,000) = 2.2 us; four of
	// them are 0.9 %. That of the deviation is sqrt(2) times as much.
	if math.Abs(mean/0.001-1) > 0.009 || math.Abs(deviation/0.001-1) > 0.013 {
		t.Errorf("mean %v, standard deviation %v, want 1 ms both", mean, deviation)
	}
	for d, k := range above {
		p := math.Exp(-1000 * d.Seconds())
		if math.Abs(float64(k)/n-p) > 4*math.Sqrt(p*(1-p)/n) {
			t.Errorf("%v of the gaps are above %v, want %v", float64(k)/n, d, p)
		}
	}
}

func TestPoissonIsReproducible(t *testing.T) {
	s := Schedule{Origin: 100, Rate: rateOf(t, "50"), Poisson: true, Seed: 3, End: 100 + probe.Instant(10*time.Second)}
	a, b := s.series(), s.series()
	other := s
	other.Seed = 4
	c := other.series()
	count, same := uint64(0), 0
	for a.tick != never {
		if a.tick != b.tick {
			t.Fatalf("tick %d differs: %d and %d", a.i, a.tick, b.tick)
		}
		if a.tick == c.tick {
			same++
		}
		count++
		a.advance()
		b.advance()
		c.advance()
	}
	if got := s.Count(never); got != count || s.Count(s.Origin) != 0 {
		t.Errorf("Count says %d and %d, there are %d ticks, none at the origin", got, s.Count(s.Origin), count)
	}
	if count < 400 || count > 600 || same > 2 {
		t.Errorf("%d ticks in 10 s at 50/s, %d of them equal to those of another seed", count, same)
	}
}

// TestQuantum wakes a pacer up at multiples of 10 ms for ticks every 4 ms.
func TestQuantum(t *testing.T) {
	inBubble(t, func(b *bench) {
		b.pacer.quantum = 10 * time.Millisecond
		b.pacer.Add(b.every(101*time.Millisecond, 4*time.Millisecond), &fakeTaker{b: b, name: "a"})
		b.run()
		time.Sleep(125 * time.Millisecond)
		b.end()
		b.want(
			event{"a", 101, 110}, event{"a", 105, 110}, event{"a", 109, 110},
			event{"a", 113, 120}, event{"a", 117, 120},
		)
	})
}
