package schedule

import (
	"math"
	"math/big"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/steadyprobe/steadyprobe/probe"
)

func ratOf(t testing.TB, text string) *big.Rat {
	t.Helper()
	r, ok := new(big.Rat).SetString(text)
	if !ok {
		t.Fatalf("%q is no number", text)
	}
	return r
}

func rateOf(t testing.TB, text string) Rate {
	t.Helper()
	r, err := NewRate(ratOf(t, text))
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestScheduleAt(t *testing.T) {
	const year = 365 * 24 * 3600
	for _, tt := range []struct {
		name   string
		rate   string
		origin probe.Instant
		i      uint64
		want   probe.Instant
	}{
		{"first", "1000", 5, 0, 5},
		{"second", "1000", 5, 1, 1_000_005},
		{"one third of a second", "3", 0, 1, 333_333_333},
		{"two thirds", "3", 0, 2, 666_666_666}, // not 2 × 333,333,333
		{"three thirds", "3", 0, 3, 1_000_000_000},
		// 7 × 1e9 × 10,000 / 123,456 = 567,003,628.8…
		{"floor", "12.3456", 0, 7, 567_003_628},
		{"ten years at the most", "1000000", 1, 10 * year * 1_000_000, 10*year*1e9 + 1},
		{"ten years at the least", "0.001", 1, 10 * year / 1000, 10*year*1e9 + 1},
		{"ten years at 3 a second", "3", 0, 10 * year * 3, 10 * year * 1e9},
		// 2^63 - 1 ns at 1 ms each is tick 9,223,372,036,854.
		{"last that fits", "1000", 0, 9_223_372_036_854, 9_223_372_036_854_000_000},
		{"beyond int64", "1000", 0, 9_223_372_036_855, never},
		{"beyond int64 by the origin", "1000", 775_808, 9_223_372_036_854, never},
		{"beyond 64 bits", "0.001", 0, math.MaxUint64, never},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := Schedule{Origin: tt.origin, Rate: rateOf(t, tt.rate)}
			if got := s.At(tt.i); got != tt.want {
				t.Errorf("At(%d) = %d, want %d", tt.i, got, tt.want)
			}
		})
	}
}

// randomRate returns any valid rate, of all magnitudes alike.
func randomRate(rng *rand.Rand) (Rate, *big.Rat) {
	for {
		den := 1 + rng.Uint64N(maxDen)>>rng.UintN(34)
		value := math.Pow(10, -3+9*rng.Float64())
		num := uint64(value * float64(den))
		q := new(big.Rat).SetFrac(new(big.Int).SetUint64(num), new(big.Int).SetUint64(den))
		if r, err := NewRate(q); err == nil {
			return r, q
		}
	}
}

// At equals the same formula in unbounded arithmetic, over 100 years; and
// Count is its inverse.
func TestScheduleAgainstUnboundedArithmetic(t *testing.T) {
	const century = uint64(100 * 365 * 24 * time.Hour / time.Second)
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, 0))
	billion := new(big.Int).SetUint64(nanos)
	for range 20_000 {
		rate, q := randomRate(rng)
		s := Schedule{Origin: 1 + probe.Instant(rng.Int64N(int64(time.Hour))), Rate: rate}
		i := rng.Uint64N(1 + uint64(float64(century)*rate.Float()))

		want := new(big.Int).SetUint64(i)
		want.Mul(want, billion)
		want.Mul(want, q.Denom())
		want.Quo(want, q.Num())
		want.Add(want, big.NewInt(int64(s.Origin)))
		at := s.At(i)
		if !want.IsInt64() || int64(at) != want.Int64() {
			t.Fatalf("rate %v origin %d: At(%d) = %d, want %v", rate, s.Origin, i, at, want)
		}
		if before, until := s.Count(at), s.Count(at+1); before != i || until != i+1 {
			t.Fatalf("rate %v origin %d: Count(At(%d)) = %d and %d a nanosecond later", rate, s.Origin, i, before, until)
		}
	}
}

func TestScheduleCount(t *testing.T) {
	const s = probe.Instant(time.Second)
	for _, tt := range []struct {
		name       string
		rate       string
		end, until probe.Instant // from the origin
		want       uint64
	}{
		{"before the origin", "1000", 0, -1, 0},
		{"at the origin", "1000", 0, 0, 0},
		{"behind the origin", "1000", 0, 1, 1},
		{"30 s at 1,000/s", "1000", 0, 30 * s, 30_000},
		{"30 s at 0.3/s: 0, 3.3, … 26.7 s", "0.3", 0, 30 * s, 9},
		{"10 s at 0.3/s: 0, 3.3, 6.7 s, not 10 s", "0.3", 0, 10 * s, 3},
		{"ended", "1000", 2 * s, 30 * s, 2000},
		{"not yet ended", "1000", 40 * s, 30 * s, 30_000},
		// 2^63 - 1 - 1 s from the origin, at 1 us: 9,223,372,035,854,775.807
		{"for ever", "1000000", 0, never - s, 9_223_372_035_854_776},
	} {
		t.Run(tt.name, func(t *testing.T) {
			sched := Schedule{Origin: s, Rate: rateOf(t, tt.rate)}
			if tt.end != 0 {
				sched.End = s + tt.end
			}
			if got := sched.Count(s + tt.until); got != tt.want {
				t.Errorf("Count = %d, want %d", got, tt.want)
			}
		})
	}
}

func BenchmarkScheduleAt(b *testing.B) {
	s := Schedule{Origin: 1, Rate: rateOf(b, "12.3456")}
	var i uint64
	for b.Loop() {
		s.At(i)
		i++
	}
}
