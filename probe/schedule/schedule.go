package schedule

import (
	"math"
	"math/big"
	"math/bits"
	"math/rand/v2"
	"time"

	"github.com/steadyprobe/steadyprobe/probe"
)

// never is an instant that does not come.
const never = probe.Instant(math.MaxInt64)

// Schedule is the series of intended times of one target at a constant rate,
// evenly spaced unless Poisson is set: the whole, or a share of it (see
// [Schedule.Share]). It is a value and may be used concurrently.
type Schedule struct {
	Origin probe.Instant // of tick 0 of the whole; a Poisson schedule has no tick there
	Rate   Rate          // of the whole
	End    probe.Instant // ticks at or after End are not part of it; 0: it has no end

	// Poisson makes ticks come as independent users do: the gaps between them
	// are random with an exponential distribution and 1/Rate as mean. Seed says
	// which ones: equal schedules have equal ticks.
	Poisson bool
	Seed    uint64

	// First and Step make it a share: its tick i is tick First + i × Step of the
	// whole. A Step of 0 is one of 1. Of a Poisson schedule Step divides the rate,
	// and First means nothing.
	First, Step uint64
}

// At returns the intended time of tick i of an evenly spaced schedule, counted
// from 0:
//
//	at(i) = origin + floor((first + i × step) × 1e9 × den / num)
//
//	at(i), origin   instants, nanoseconds of one clock
//	i               the number of the tick, without unit
//	first, step     which ticks of the whole are its own; 0 and 1 for all
//	1e9             nanoseconds per second
//	num / den       the rate of the whole, requests per second, in its lowest terms
//
// The product has 128 bits and is exact, and so each instant is exact to the
// nanosecond, however far it is from the origin. An instant that lies beyond
// the range of int64 (292 years) is the largest one. At does not look at End.
func (s Schedule) At(i uint64) probe.Instant {
	over, i := bits.Mul64(i, s.step())
	i, carry := bits.Add64(i, s.First, 0)
	hi, lo := bits.Mul64(i, s.Rate.den*nanos)
	if over+carry > 0 || hi >= s.Rate.num { // the quotient has more than 64 bits, or there is no rate
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
//	ceil((ceil((until - origin) × num / (1e9 × den)) - first) / step)
//
// in the symbols of [Schedule.At]. The ticks of a Poisson schedule are counted
// one by one.
func (s Schedule) Count(until probe.Instant) uint64 {
	if s.End != 0 {
		until = min(until, s.End)
	}
	if s.Poisson {
		ticks := s.series()
		for ticks.tick < until {
			ticks.advance()
		}
		return ticks.i
	}
	whole := s.ofWhole(until)
	if whole <= s.First {
		return 0
	}
	return (whole-s.First-1)/s.step() + 1
}

// ofWhole returns how many ticks of the whole are intended before until.
func (s Schedule) ofWhole(until probe.Instant) uint64 {
	if until <= s.Origin || s.Rate.num == 0 {
		return 0
	}
	// The quotient fits: it is at most 2^64 ns × 1,000,000/s / 1e9 ns.
	hi, lo := bits.Mul64(uint64(until-s.Origin), s.Rate.num)
	count, rest := bits.Div64(hi, lo, s.Rate.den*nanos)
	if rest > 0 {
		count++
	}
	return count
}

func (s Schedule) step() uint64 { return max(1, s.Step) }

// Split deals the ticks of s to n schedules, n being at least 1: tick i to the
// schedule i mod n, at the instant that it has in s. Shares of a Poisson
// schedule are Poisson schedules of their own, and together have its rate.
func (s Schedule) Split(n int) []Schedule {
	shares := make([]Schedule, n)
	for i := range shares {
		shares[i] = s
		shares[i].First = s.First + uint64(i)*s.step()
		shares[i].Step = s.step() * uint64(n)
		shares[i].Seed += uint64(i)
	}
	return shares
}

// Share returns which ticks of s are those of one of n processes that have the
// same s and do not know of each other: the ticks i of s for which i mod n is
// index, from the first one at or after from on, each at the instant that it
// has in s. Whenever each of them began, together they have the ticks of s from
// the latest beginning on, each exactly once. index must be below n.
//
// A Poisson schedule begins at from and has the n-th part of the rate. The sum
// of independent Poisson processes is one of the sum of their rates, so that all
// shares together are what s describes, provided that their Seeds differ; there
// is no tick that they would have to agree on.
func (s Schedule) Share(index, n uint64, from probe.Instant) Schedule {
	share := s
	share.Step = s.step() * n
	if s.Poisson {
		share.Origin = max(s.Origin, from)
		return share
	}
	next := s.Count(from) // of s, its own or not
	next += (index + n - next%n) % n
	share.First = s.First + next*s.step()
	return share
}

// Then returns next with the origin from which on it goes on where s is at an
// instant:
//
//	origin = at + floor((due - at) × interval(next) / interval(s))
//
//	due          the first tick of s at or after at
//	interval     of a schedule: step × 1e9 × den / num nanoseconds
//
// The share of an interval that is over at the change counts as the same share
// of the new one. So there is neither a gap nor a burst, the number of ticks is
// that of the rates over their times, and what was spread over an interval
// stays so. Where s has yet to begin, due is one interval away at most. Where one of them is a Poisson schedule, which has no
// interval, next is returned as it is.
func (s Schedule) Then(next Schedule, at probe.Instant) Schedule {
	if s.Poisson || next.Poisson || s.Rate.num == 0 || next.Rate.num == 0 {
		return next
	}
	s.End = 0
	wait := new(big.Rat).SetInt64(int64(s.At(s.Count(at)) - at))
	interval := next.interval()
	wait.Mul(wait, interval).Quo(wait, s.interval())
	if wait.Cmp(interval) > 0 {
		wait = interval
	}
	next.Origin = at.Add(time.Duration(new(big.Int).Quo(wait.Num(), wait.Denom()).Int64()))
	return next
}

// interval returns the nanoseconds between two ticks.
func (s Schedule) interval() *big.Rat {
	one := new(big.Rat).Inv(s.Rate.rat())
	return one.Mul(one, new(big.Rat).SetInt(new(big.Int).SetUint64(s.step()*nanos)))
}

// series is the ticks of a schedule, one after the other.
type series struct {
	schedule Schedule
	i        uint64        // number of the tick
	tick     probe.Instant // its intended time, or never
	random   *rand.Rand    // of a Poisson schedule
}

// series returns the ticks of s from the first on.
func (s Schedule) series() series {
	r := series{schedule: s, tick: s.Origin}
	if s.Poisson {
		r.random = rand.New(rand.NewPCG(s.Seed, 0))
		r.advance()
		r.i = 0
		return r
	}
	r.tick = r.within(s.At(0))
	return r
}

// advance goes on to the next tick.
func (r *series) advance() {
	r.i++
	if r.random == nil {
		r.tick = r.within(r.schedule.At(r.i))
		return
	}
	if r.tick == never {
		return
	}
	// Rounding a gap to a nanosecond is as often too much as too little, so that
	// it makes no drift.
	gap := math.Round(r.random.ExpFloat64() * float64(nanos) * float64(r.schedule.step()) / r.schedule.Rate.Float())
	if gap > float64(never-r.tick) {
		r.tick = never
		return
	}
	r.tick = r.within(r.tick + probe.Instant(gap))
}

// within returns at, or never where the schedule has ended by then.
func (r *series) within(at probe.Instant) probe.Instant {
	if r.schedule.End != 0 && at >= r.schedule.End {
		return never
	}
	return at
}
