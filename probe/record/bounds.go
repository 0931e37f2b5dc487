package record

import (
	"fmt"
	"math"
	"math/bits"
	"slices"
	"sync"
	"time"
)

// Boundaries are the classic boundaries of one histogram family: the upper,
// inclusive bounds of its buckets. They do not change once made and may be
// shared by any number of histograms.
type Boundaries struct {
	seconds []float64
	limits  []uint64   // the most nanoseconds in each bucket, the last without bound
	first   [64]uint16 // by bit length: the bucket of the least value of that length
}

// NewBoundaries returns the given boundaries in seconds, in ascending order and
// each once. A boundary must be positive and finite.
func NewBoundaries(seconds ...float64) (*Boundaries, error) {
	sorted := slices.Clone(seconds)
	slices.Sort(sorted)
	sorted = slices.Compact(sorted)
	for _, s := range sorted {
		if !(s > 0) || math.IsInf(s, 1) {
			return nil, fmt.Errorf("checking boundary %v: want a positive, finite number of seconds", s)
		}
	}
	b := &Boundaries{seconds: sorted, limits: make([]uint64, len(sorted)+1)}
	for i, s := range sorted {
		b.limits[i] = limitOf(s)
	}
	b.limits[len(sorted)] = math.MaxUint64
	for length := range b.first {
		least := uint64(1) << length >> 1
		i, _ := slices.BinarySearch(b.limits, least)
		b.first[length] = uint16(i)
	}
	return b, nil
}

// limitOf returns the largest number of nanoseconds which, as a float64 of
// seconds, is at most the boundary: what Prometheus would count below it.
func limitOf(seconds float64) uint64 {
	below := func(n int64) bool { return float64(n)/float64(time.Second) <= seconds }
	if below(math.MaxInt64) {
		return math.MaxInt64
	}
	n := int64(seconds * float64(time.Second))
	for !below(n) {
		n--
	}
	for below(n + 1) {
		n++
	}
	return uint64(n)
}

// Seconds returns a copy of the boundaries, ascending.
func (b *Boundaries) Seconds() []float64 { return slices.Clone(b.seconds) }

// bucket returns the index of the bucket that n nanoseconds belong to. There
// are rarely two boundaries within a factor of two, so the walk is short.
func (b *Boundaries) bucket(n uint64) uint16 {
	i := b.first[bits.Len64(n)&63]
	for n > b.limits[i] {
		i++
	}
	return i
}

// Bounds are the classic boundaries of every family of a target, and of a
// churn. They do not change once made; recorders share them.
type Bounds struct {
	Latency     *Boundaries
	ServiceTime *Boundaries
	Handshake   *Boundaries
	Phase       *Boundaries
	Lateness    *Boundaries // of lateness, and of self latency
	Convergence *Boundaries // of a churn's steps, in no Recorder
}

// Additional are boundaries in seconds that a user adds to the fixed ones of a
// family. The fixed ones are part of the public interface and always kept.
type Additional struct {
	Latency     []float64
	ServiceTime []float64
	Handshake   []float64
	Phase       []float64
	Lateness    []float64
	Convergence []float64
}

// NewBounds returns the fixed boundaries with the additional ones.
func NewBounds(more Additional) (*Bounds, error) {
	var b Bounds
	for _, f := range []struct {
		name  string
		to    **Boundaries
		fixed []float64
		more  []float64
	}{
		{"latency", &b.Latency, slowBoundaries(), more.Latency},
		{"service time", &b.ServiceTime, slowBoundaries(), more.ServiceTime},
		{"handshake", &b.Handshake, slowBoundaries(), more.Handshake},
		{"phase", &b.Phase, slowBoundaries(), more.Phase},
		{"lateness", &b.Lateness, fastBoundaries(), more.Lateness},
		{"convergence", &b.Convergence, stepBoundaries(), more.Convergence},
	} {
		bounds, err := NewBoundaries(append(f.fixed, f.more...)...)
		if err != nil {
			return nil, fmt.Errorf("adding boundaries to %q: %w", f.name, err)
		}
		*f.to = bounds
	}
	return &b, nil
}

// defaultBounds are the fixed boundaries alone, made once.
var defaultBounds = sync.OnceValue(func() *Bounds {
	b, err := NewBounds(Additional{})
	if err != nil {
		panic(err) // the fixed boundaries are constants
	}
	return b
})

// DefaultBounds returns the fixed boundaries alone.
func DefaultBounds() *Bounds { return defaultBounds() }

// slowBoundaries are those of what a door takes part in.
func slowBoundaries() []float64 {
	return []float64{0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60}
}

// fastBoundaries are those of what the probe itself takes.
func fastBoundaries() []float64 {
	return []float64{0.00005, 0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.01, 0.1, 1}
}

// stepBoundaries are those of what a churn waits for.
func stepBoundaries() []float64 {
	return []float64{0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300}
}
