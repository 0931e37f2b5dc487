package record

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

func distributionOf(all ...time.Duration) (d Distribution) {
	h := NewHistogram(DefaultBounds().Latency)
	for _, v := range all {
		h.Observe(v)
	}
	h.Snapshot(&d)
	return d
}

func TestDistributionQuantile(t *testing.T) {
	var hundred []time.Duration // 1 to 100 ms
	for i := range time.Duration(100) {
		hundred = append(hundred, (i+1)*time.Millisecond)
	}
	// bound is the boundary of a bucket: 2^(index/32) s.
	bound := func(index float64) float64 { return math.Exp2(index / 32) }
	for _, tc := range []struct {
		name string
		of   []time.Duration
		q    float64
		want float64
	}{
		{"nothing", nil, 0.5, math.NaN()},
		{"the maximum of nothing", nil, 1, math.NaN()},
		{"the least of nothing", nil, 0, math.NaN()},
		{"the median of one", []time.Duration{time.Second}, 0.5, math.NaN()},
		{"the maximum of one", []time.Duration{time.Second}, 1, 1}, // 2^0: an upper bound belongs to its bucket
		{"the least of one", []time.Duration{time.Second}, 0, 1},
		// 0.5 × 2 + 0.5 = 1.5: the first of two.
		{"the median of two", []time.Duration{4 * time.Second, time.Second}, 0.5, 1},
		{"zeros", []time.Duration{0, 0, time.Second}, 0.5, 0},
		{"above zeros", []time.Duration{0, 0, time.Second}, 1, 1},
		// 32 × log2(0.050) = -138.3, log2(0.099) × 32 = -106.8, log2(0.1) × 32 = -106.3.
		{"the median of a hundred", hundred, 0.5, bound(-138)},
		{"p99 of a hundred", hundred, 0.99, bound(-106)},
		{"p99 of 99", hundred[:99], 0.99, math.NaN()},
		{"p999 of a hundred", hundred, 0.999, math.NaN()},
		{"the maximum of a hundred", hundred, 1, bound(-106)},
		{"longer than two hours", []time.Duration{3 * time.Hour}, 1, bound(429)}, // 32 × log2(10,800) = 428.8
	} {
		t.Run(tc.name, func(t *testing.T) {
			d := distributionOf(tc.of...)
			got := d.Quantile(tc.q)
			if math.Abs(got-tc.want) > 1e-12*tc.want || math.IsNaN(got) != math.IsNaN(tc.want) {
				t.Errorf("q %v: %v, want %v", tc.q, got, tc.want)
			}
		})
	}
}

func TestDistributionAdd(t *testing.T) {
	const s = time.Second
	for _, tc := range []struct {
		name string
		a, b []time.Duration
	}{
		{"nothing to nothing", nil, nil},
		{"nothing to some", []time.Duration{s, 2 * s}, nil},
		{"some to nothing", nil, []time.Duration{s, 2 * s}},
		{"above", []time.Duration{s}, []time.Duration{2 * s, 4 * s}},
		{"below", []time.Duration{4 * s}, []time.Duration{s, 2 * s}},
		{"in between", []time.Duration{s, 4 * s}, []time.Duration{2 * s, 3 * s}},
		{"the same buckets", []time.Duration{s, 2 * s, 4 * s}, []time.Duration{4 * s, s}},
		{"zeros", []time.Duration{0, s}, []time.Duration{0, 0}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			a, b := distributionOf(tc.a...), distributionOf(tc.b...)
			a.Add(&b)
			checkHolds(t, "sum", &a, append(slices.Clone(tc.a), tc.b...)...)
			checkHolds(t, "what was added", &b, tc.b...)
			var zero Distribution
			zero.Add(&b)
			checkHolds(t, "sum with zero", &zero, tc.b...)
			zero.Add(&a)
			checkHolds(t, "what was added to zero", &b, tc.b...)
		})
	}
}

func TestDistributionAddAtRandom(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	var sum Distribution
	all := NewHistogram(DefaultBounds().Latency)
	for range 200 {
		var some []time.Duration
		for range r.IntN(20) {
			some = append(some, time.Duration(r.Uint64N(uint64(time.Hour))>>r.IntN(40)))
			all.Observe(some[len(some)-1])
		}
		d := distributionOf(some...)
		sum.Add(&d)
		var want Distribution
		all.Snapshot(&want)
		if sum.Count != want.Count || sum.Zero != want.Zero || !slices.Equal(sum.Native, want.Native) || !slices.Equal(sum.Classic, want.Classic) {
			t.Fatalf("sum %v, want %v", sum, want)
		}
		checkConsistent(t, &sum)
	}
	d, double := distributionOf(time.Second, 2*time.Second), Distribution{}
	double.Add(&d)
	double.Add(&double)
	checkHolds(t, "twice itself", &double, time.Second, time.Second, 2*time.Second, 2*time.Second)
	if n := testing.AllocsPerRun(100, func() { double.Add(&d) }); n != 0 {
		t.Errorf("%v allocations where there is room", n)
	}
}
