package record

import (
	"math"
	"math/big"
	"math/bits"
	"time"
)

// Native buckets are numbered here from 0, so that they index an array: bucket
// number b is the native bucket of index b + nativeLowest, and holds
//
//	(2^((index-1)/32), 2^(index/32)] seconds.
//
// An octave is 32 of them that end at a power of two. 64 octaves hold every
// positive time.Duration. No nanosecond falls into the lowest three buckets,
// and the lowest of all counts observations of 0.
const (
	octaveBits   = NativeSchema
	octaveSize   = 1 << octaveBits
	numOctaves   = 64
	nativeLowest = -29*octaveSize - octaveSize + 1 // the first above 2^-30 s, which is below 1 ns
	zeroNumber   = 0
)

// stepBits is how many bits below its leading one choose a value's step in the
// table. 64 steps an octave are at most log2(1+1/64) = 0.0224 octaves wide,
// less than the 1/32 of a bucket, so that at most one boundary is in a step.
const stepBits = 6

// nativeTable finds the bucket of a number of nanoseconds.
type nativeTable struct {
	limits [numOctaves * octaveSize]uint64 // the most nanoseconds in each bucket
	first  [65 << stepBits]uint16          // by step: the bucket of its least value
}

// native is constant.
var native = newNativeTable()

// newNativeTable computes the boundaries with integers: a float64 of 2^(k/32)
// is rounded, the floor of 2^(k/32) s in nanoseconds is not.
func newNativeTable() (t nativeTable) {
	const precision = 192
	root := big.NewFloat(2).SetPrec(precision)
	for range octaveBits {
		root.Sqrt(root)
	}
	// bound is 2^(k/32) × 10^9 × 2^33 for k from 0, which fits into 64 bits;
	// shifted to the right it is the boundary in every lower octave.
	bound := big.NewFloat(float64(time.Second)).SetPrec(precision)
	bound.SetMantExp(bound, 33)
	for k := range octaveSize {
		scaled, _ := bound.Uint64()
		for octave := range numOctaves {
			// The boundary with k = 0 ends the octave before its own.
			if number := octave<<octaveBits + k - 1; number >= 0 {
				t.limits[number] = scaled >> (63 - octave)
			}
		}
		bound.Mul(bound, root)
	}
	t.limits[len(t.limits)-1] = math.MaxUint64
	number := 0
	for length := 1; length <= 63; length++ {
		for step := range uint64(1 << stepBits) {
			least := (1<<stepBits|step)<<(63-stepBits)>>(64-length) + roundUp(step, length)
			for least > t.limits[number] {
				number++
			}
			t.first[(64-length)<<stepBits|int(step)] = uint16(number)
		}
	}
	return t
}

// roundUp is 1 where the least value of a step of short numbers is no integer.
func roundUp(step uint64, length int) uint64 {
	if length > stepBits {
		return 0
	}
	if step&(1<<(stepBits+1-length)-1) != 0 {
		return 1
	}
	return 0
}

// number returns the bucket of n nanoseconds, zeroNumber for 0.
func (t *nativeTable) number(n uint64) uint16 {
	zeros := bits.LeadingZeros64(n)
	step := n << zeros >> (63 - stepBits) & (1<<stepBits - 1)
	b := t.first[zeros<<stepBits|int(step)]
	if n > t.limits[b] {
		b++
	}
	return b
}
