package record

import (
	"math/bits"
	"time"
)

// Histogram counts durations for as long as it lives, on the native boundaries
// of [NativeSchema] and, exactly and beside them, on classic boundaries. Its
// buckets are those of Prometheus: an upper bound belongs to its bucket.
//
// An empty histogram takes about 140 bytes; 256 more for each octave (a factor
// of two) that was ever observed. It may not be used concurrently.
type Histogram struct {
	bounds  *Boundaries
	octaves [numOctaves]uint8 // 1 + the place of an octave in native, 0: none
	native  []uint64          // octaves in the order of their first observation
	classic []uint64          // nil before the first observation

	// The sum in nanoseconds is an integer of 128 bits: no number of
	// observations loses precision, or makes it fall. 64 bits would overflow
	// after a week of 1,000 requests/s that take 30 s each.
	sum, sumHigh uint64
}

// NewHistogram returns an empty histogram with the classic boundaries.
func NewHistogram(b *Boundaries) *Histogram { return &Histogram{bounds: b} }

// point is where one duration belongs in the histograms of one family.
type point struct {
	ns      uint64
	native  uint16
	classic uint16
}

// locate finds where d belongs. A negative duration counts as 0.
func (b *Boundaries) locate(d time.Duration) point {
	ns := uint64(max(d, 0))
	return point{ns: ns, native: native.number(ns), classic: b.bucket(ns)}
}

// Observe counts d. A negative duration counts as 0; observations of 0 are
// kept apart from the native buckets.
func (h *Histogram) Observe(d time.Duration) { h.add(h.bounds.locate(d)) }

func (h *Histogram) add(p point) {
	place := h.octaves[p.native>>octaveBits&(numOctaves-1)]
	if place == 0 {
		place = h.grow(p)
	}
	h.native[int(place-1)<<octaveBits|int(p.native&(octaveSize-1))]++
	h.classic[p.classic]++
	var carry uint64
	h.sum, carry = bits.Add64(h.sum, p.ns, 0)
	h.sumHigh += carry
}

// grow makes room for the octave of p and returns its place.
func (h *Histogram) grow(p point) uint8 {
	if h.classic == nil {
		h.classic = make([]uint64, len(h.bounds.limits))
	}
	grown := make([]uint64, len(h.native)+octaveSize)
	copy(grown, h.native)
	h.native = grown
	place := uint8(len(grown) >> octaveBits)
	h.octaves[p.native>>octaveBits] = place
	return place
}

// Snapshot copies the histogram into d, whose slices are used again. It takes
// time and space by the populated octaves only.
func (h *Histogram) Snapshot(d *Distribution) {
	classic, buckets := d.Classic[:0], d.Native[:0]
	*d = Distribution{Sum: h.seconds()}
	if h.classic == nil {
		for range h.bounds.limits {
			classic = append(classic, 0)
		}
	}
	d.Classic = append(classic, h.classic...)
	for _, n := range d.Classic {
		d.Count += n
	}
	for octave, place := range h.octaves {
		if place == 0 {
			continue
		}
		counts := h.native[int(place-1)<<octaveBits:][:octaveSize]
		for i, n := range counts {
			if n != 0 {
				buckets = append(buckets, Bucket{Index: int32(octave<<octaveBits + i + nativeLowest), Count: n})
			}
		}
	}
	if len(buckets) > 0 && buckets[0].Index == zeroNumber+nativeLowest {
		d.Zero = buckets[0].Count
		buckets = append(buckets[:0], buckets[1:]...)
	}
	d.Native = buckets
}

// seconds returns the sum, which never falls: each step of it is monotone.
func (h *Histogram) seconds() float64 {
	const word = 1 << 64
	return (float64(h.sumHigh)*word + float64(h.sum)) / float64(time.Second)
}
