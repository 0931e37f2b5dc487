package schedule

import (
	"errors"
	"math"
	"math/big"
	"math/bits"
	"time"
)

const nanos = uint64(time.Second)

// maxDen is the largest denominator of a rate: nanos × maxDen fits 64 bits,
// which [Schedule.At] relies on. It leaves room for ten decimal places.
const maxDen = math.MaxUint64 / nanos

var (
	errRateRange  = errors.New("must be from 0.001 to 1000000 requests per second")
	errRateDigits = errors.New("must have at most 10 decimal places")
)

// Rate is a number of requests per second, from 0.001 to 1,000,000, as an
// exact fraction in its lowest terms. Rates are equal when they compare equal.
// The zero Rate is not valid; a [Schedule] with it never ticks.
type Rate struct{ num, den uint64 }

// NewRate returns the rate r in requests per second. It fails when r is out of
// range, or when its denominator is above 18,446,744,073: that many decimal
// places make no difference that could be measured.
func NewRate(r *big.Rat) (Rate, error) {
	if r.Cmp(big.NewRat(1, 1000)) < 0 || r.Cmp(big.NewRat(1_000_000, 1)) > 0 {
		return Rate{}, errRateRange
	}
	if !r.Denom().IsUint64() || r.Denom().Uint64() > maxDen {
		return Rate{}, errRateDigits
	}
	// The numerator is at most 1,000,000 × maxDen, which fits.
	return Rate{num: r.Num().Uint64(), den: r.Denom().Uint64()}, nil
}

// String returns the rate without loss: as a decimal where it has an end, else
// as a fraction. The unit, requests per second, is left out.
func (r Rate) String() string {
	q := r.rat()
	if places, exact := q.FloatPrec(); exact {
		return q.FloatString(places)
	}
	return q.RatString()
}

// Float returns the rate in requests per second, rounded to the nearest
// float64.
func (r Rate) Float() float64 {
	f, _ := r.rat().Float64()
	return f
}

// Interval returns the time between two ticks, rounded down to a nanosecond.
// Sums of it drift: use [Schedule.At] for instants. It is 0 for the zero Rate.
func (r Rate) Interval() time.Duration {
	if r.num == 0 {
		return 0
	}
	return time.Duration(r.den * nanos / r.num)
}

func (r Rate) rat() *big.Rat {
	return new(big.Rat).SetFrac(
		new(big.Int).SetUint64(r.num),
		new(big.Int).SetUint64(max(r.den, 1)))
}

// Spread returns how long after a common origin the schedule of target k must
// start, so that the ticks of many targets are spread out over time:
//
//	phase = floor(frac(k/φ + √2) × interval)
//
// with φ the golden ratio, interval that of the rate in nanoseconds, and k any
// number that is the target's own, such as 0 for the first. Multiples of 1/φ
// fill an interval evenly however many there are, as no fraction approximates
// φ well: of n targets with the same rate no two come closer than 0.38/n
// intervals (the three-distance theorem). Adding √2 keeps apart targets whose
// rates are multiples of each other: without it, k at 1/s and 2k at 2/s would
// always meet.
func Spread(k uint64, r Rate) time.Duration {
	const (
		goldenRatio = 0x9E3779B97F4A7C15 // 1/φ × 2^64
		rootOfTwo   = 0x6A09E667F3BCC908 // frac(√2) × 2^64
	)
	phase, _ := bits.Mul64(k*goldenRatio+rootOfTwo, uint64(r.Interval()))
	return time.Duration(phase)
}
