package schedule

import (
	"math"
	"math/bits"

	"github.com/steadyprobe/steadyprobe/probe"
)

// never is an instant that does not come.
const never = probe.Instant(math.MaxInt64)

// Schedule is the series of intended times of one target at a constant rate.
// It is a value and may be used concurrently.
type Schedule struct {
	Origin probe.Instant // of tick 0
	Rate   Rate
	End    probe.Instant // ticks at or after End are not part of it; 0: it has no end
}

// At returns the intended time of tick i, counted from 0:
//
//	at(i) = origin + floor(i × 1e9 × den / num)
//
//	at(i), origin   instants, nanoseconds of one clock
//	i               the number of the tick, without unit
//	1e9             nanoseconds per second
//	num / den       the rate, requests per second, in its lowest terms
//
// The product has 128 bits and is exact, and so each instant is exact to the
// nanosecond, however far it is from the origin. An instant that lies beyond
// the range of int64 (292 years) is the largest one. At does not look at End.
func (s Schedule) At(i uint64) probe.Instant {
	hi, lo := bits.Mul64(i, s.Rate.den*nanos)
	if hi >= s.Rate.num { // the quotient has more than 64 bits, or there is no rate
		return never
	}
	elapsed, _ := bits.Div64(hi, lo, s.Rate.num)
	if elapsed > uint64(never-s.Origin) {
		return never
	}
	return s.Origin + probe.Instant(elapsed)
}

// Count returns how many ticks of the schedule are intended before until,
// End taken into account: the smallest i with at(i) ≥ until, which is
//
//	ceil((until - origin) × num / (1e9 × den))
//
// in the symbols of [Schedule.At].
func (s Schedule) Count(until probe.Instant) uint64 {
	if s.End != 0 {
		until = min(until, s.End)
	}
	if until <= s.Origin || s.Rate.num == 0 {
		return 0
	}
	// The quotient fits: it is at most 2^63 ns × 1,000,000/s / 1e9 ns.
	hi, lo := bits.Mul64(uint64(until-s.Origin), s.Rate.num)
	count, rest := bits.Div64(hi, lo, s.Rate.den*nanos)
	if rest > 0 {
		count++
	}
	return count
}

// tick returns the intended time of tick i, or never where it has none.
func (s Schedule) tick(i uint64) probe.Instant {
	at := s.At(i)
	if s.End != 0 && at >= s.End {
		return never
	}
	return at
}
