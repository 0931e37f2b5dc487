package record

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
)

// exactLimit is the longest duration to compare with floats: 6.5 days. Beyond
// 2^49 ns a nanosecond is next to the rounding of the oracle's boundaries, some
// of which are a unit in the last place off.
const exactLimit = 1 << 49

// numberByFloat finds a native bucket as client_golang does: by the logarithm,
// put right by comparing with the boundaries.
func numberByFloat(n uint64) int {
	if n == 0 {
		return zeroNumber
	}
	v := float64(n) / 1e9
	index := math.Ceil(math.Log2(v) * octaveSize)
	for v <= math.Exp2((index-1)/octaveSize) {
		index--
	}
	for v > math.Exp2(index/octaveSize) {
		index++
	}
	return int(index) - nativeLowest
}

func checkNative(t *testing.T, n uint64) {
	t.Helper()
	if got, want := int(native.number(n)), numberByFloat(n); got != want {
		t.Errorf("%d ns are in native bucket %d, want %d", n, got+nativeLowest, want+nativeLowest)
	}
}

func TestNativeNumber(t *testing.T) {
	for _, n := range edges(native.limits[:]) {
		if n <= exactLimit {
			checkNative(t, n)
		}
	}
	for n := range uint64(5000) {
		checkNative(t, n)
	}
	for range 100_000 {
		checkNative(t, randomNanoseconds())
	}
	// 2^0 s is the upper bound of bucket 0 and belongs to it; the longest
	// duration is 2^63 ns = 2^33.1 s, in the octave that ends at 2^34.
	for n, want := range map[uint64]int{
		1e9: 0, 1e9 + 1: 1, 2e9: 32, 5e8: -32, 5e8 + 1: -31, math.MaxInt64: 1060,
	} {
		if got := int(native.number(n)) + nativeLowest; got != want {
			t.Errorf("%d ns are in native bucket %d, want %d", n, got, want)
		}
	}
}

// TestNativeStepsHoldOneBoundary checks what number relies on.
func TestNativeStepsHoldOneBoundary(t *testing.T) {
	for length := 1; length <= 63; length++ {
		for step := range uint64(1 << stepBits) {
			first := native.first[(64-length)<<stepBits|int(step)]
			if length <= stepBits {
				continue // a step is one number at most
			}
			most := (1<<stepBits|step+1)<<(length-stepBits-1) - 1
			if step == 1<<stepBits-1 {
				most = 1<<length - 1
			}
			if most > native.limits[first+1] {
				t.Errorf("step %d of length %d reaches beyond two buckets", step, length)
			}
		}
	}
}

func FuzzNativeNumber(f *testing.F) {
	f.Add(uint64(1))
	f.Add(uint64(1_000_000_000))
	f.Fuzz(func(t *testing.T, n uint64) {
		if n <= exactLimit {
			checkNative(t, n)
		}
	})
}

// randomNanoseconds has any number of bits up to 49 with the same chance.
func randomNanoseconds() uint64 { return rand.Uint64() >> (15 + rand.IntN(50)) }

func TestHistogramAgainstPrometheus(t *testing.T) {
	bounds := DefaultBounds().Latency
	oracle := prometheus.NewHistogram(prometheus.HistogramOpts{
		Name:                            "oracle",
		Buckets:                         bounds.Seconds(),
		NativeHistogramBucketFactor:     1.02190, // schema 5: 2^(1/32) = 1.02189…
		NativeHistogramZeroThreshold:    prometheus.NativeHistogramZeroThresholdZero,
		NativeHistogramMaxBucketNumber:  0,
		NativeHistogramMinResetDuration: 0,
	})
	h := NewHistogram(bounds)
	observe := func(n uint64) {
		h.Observe(time.Duration(n))
		oracle.Observe(float64(n) / 1e9)
	}
	for _, n := range edges(native.limits[:]) {
		if n <= exactLimit {
			observe(n)
		}
	}
	for range 50_000 {
		observe(randomNanoseconds())
	}
	var m dto.Metric
	if err := oracle.Write(&m); err != nil {
		t.Fatal(err)
	}
	var d Distribution
	h.Snapshot(&d)
	if got := m.Histogram.GetSchema(); got != NativeSchema {
		t.Fatalf("the oracle has schema %d", got)
	}
	if d.Zero != m.Histogram.GetZeroCount() {
		t.Errorf("zero count %d, want %d", d.Zero, m.Histogram.GetZeroCount())
	}
	if want := nativeOf(m.Histogram); !slices.Equal(d.Native, want) {
		for i := range want {
			if i >= len(d.Native) || d.Native[i] != want[i] {
				t.Fatalf("native buckets differ from %v, want %v", d.Native[min(i, len(d.Native)):], want[i])
			}
		}
		t.Error("there are more native buckets than there should be")
	}
	var cumulative uint64
	for i, b := range m.Histogram.Bucket {
		cumulative += d.Classic[i]
		if cumulative != b.GetCumulativeCount() {
			t.Errorf("%d observations up to %v, want %d", cumulative, b.GetUpperBound(), b.GetCumulativeCount())
		}
	}
	checkConsistent(t, &d)
	if d.Count != m.Histogram.GetSampleCount() {
		t.Errorf("count %d, want %d", d.Count, m.Histogram.GetSampleCount())
	}
	// The oracle adds floats, which loses some bits.
	if want := m.Histogram.GetSampleSum(); math.Abs(d.Sum-want) > 1e-9*want {
		t.Errorf("sum %v, want %v", d.Sum, want)
	}
}

// nativeOf decodes the spans and deltas of a native histogram.
func nativeOf(h *dto.Histogram) []Bucket {
	var out []Bucket
	var index int32
	var count int64
	next := 0
	for _, span := range h.PositiveSpan {
		index += span.GetOffset()
		for range span.GetLength() {
			count += h.PositiveDelta[next]
			next++
			if count != 0 {
				out = append(out, Bucket{Index: index, Count: uint64(count)})
			}
			index++
		}
	}
	return out
}

// checkConsistent checks that the two kinds of buckets count the same.
func checkConsistent(t *testing.T, d *Distribution) {
	t.Helper()
	var classic, natives uint64
	for _, n := range d.Classic {
		classic += n
	}
	for _, b := range d.Native {
		natives += b.Count
	}
	if classic != d.Count || natives+d.Zero != d.Count {
		t.Errorf("count %d, classic %d, native %d and zero %d", d.Count, classic, natives, d.Zero)
	}
}

func TestHistogram(t *testing.T) {
	h := NewHistogram(DefaultBounds().Latency)
	d := Distribution{Native: []Bucket{{1, 1}}, Classic: []uint64{7}, Count: 3, Zero: 2, Sum: 1}
	h.Snapshot(&d)
	if d.Count != 0 || d.Sum != 0 || d.Zero != 0 || len(d.Native) != 0 || len(d.Classic) != 17 {
		t.Errorf("empty histogram: %+v", d)
	}
	for _, v := range []time.Duration{-time.Second, 0, time.Millisecond, time.Second, time.Second, 90 * time.Second} {
		h.Observe(v)
	}
	h.Snapshot(&d)
	checkConsistent(t, &d)
	// log2(0.001) × 32 = -318.9, so 1 ms is in bucket -318; 1 s = 2^0 in bucket
	// 0; log2(90) × 32 = 207.7, so 90 s are in 208. -1 s counts as 0.
	want := []Bucket{{-318, 1}, {0, 2}, {208, 1}}
	if d.Zero != 2 || !slices.Equal(d.Native, want) {
		t.Errorf("zero %d, native %v, want 2 and %v", d.Zero, d.Native, want)
	}
	if d.Sum != 92.001 {
		t.Errorf("sum %v, want 92.001", d.Sum)
	}
	if d.Classic[0] != 2 || d.Classic[1] != 1 || d.Classic[10] != 2 || d.Classic[16] != 1 {
		t.Errorf("classic %v", d.Classic)
	}
}

// TestSumKeepsPrecision adds what 1,000 requests/s of 30 s each add in a year,
// and a nanosecond: 9.4608e11 s are 9.4608e20 ns, 51 times 2^64.
func TestSumKeepsPrecision(t *testing.T) {
	h := NewHistogram(DefaultBounds().Latency)
	const year = 365 * 24 * 3600
	for range 1000 {
		h.add(point{ns: 30 * year * uint64(time.Second)}) // 9.4608e17 ns
	}
	h.Observe(1)
	if h.sumHigh != 51 {
		t.Errorf("high word %d, want 51", h.sumHigh)
	}
	// 946,080,000,000,000,000,001 - 51 × 18,446,744,073,709,551,616
	if want := uint64(5_296_052_240_812_867_585); h.sum != want {
		t.Errorf("low word %d, want %d", h.sum, want)
	}
	if got, want := h.seconds(), 30.0*1000*year; got != want {
		t.Errorf("sum %v, want %v", got, want)
	}
}

func TestSumNeverFalls(t *testing.T) {
	h := Histogram{sum: math.MaxUint64 - 5000}
	before := h.seconds()
	h.native, h.classic, h.octaves[0] = make([]uint64, octaveSize), []uint64{0}, 1
	for range 10_000 {
		h.add(point{ns: 1})
		if after := h.seconds(); after < before {
			t.Fatalf("the sum fell from %v to %v", before, after)
		} else {
			before = after
		}
	}
}

func TestSnapshotUsesItsRoomAgain(t *testing.T) {
	h := NewHistogram(DefaultBounds().Latency)
	for i := range 1000 {
		h.Observe(time.Duration(i) * time.Millisecond)
	}
	var d Distribution
	h.Snapshot(&d)
	if n := testing.AllocsPerRun(100, func() { h.Snapshot(&d) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func BenchmarkObserve(b *testing.B) {
	h := NewHistogram(DefaultBounds().Latency)
	values := likely(4096)
	i := 0
	for b.Loop() {
		h.Observe(values[i&4095])
		i++
	}
}

// likely returns latencies as a door on the same machine has them: around 0.2
// ms, with a tail.
func likely(n int) []time.Duration {
	r := rand.New(rand.NewPCG(1, 2))
	out := make([]time.Duration, n)
	for i := range out {
		out[i] = time.Duration(math.Exp(math.Log(2e5) + 0.5*r.NormFloat64()))
		if r.IntN(100) == 0 {
			out[i] *= time.Duration(1 + r.IntN(30))
		}
	}
	return out
}
