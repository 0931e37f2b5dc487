package record

import (
	"math"
	"slices"
	"sort"
	"strings"
	"testing"
	"time"
)

func TestBoundaries(t *testing.T) {
	for _, tc := range []struct {
		name string
		in   []float64
		want []float64
		err  string
	}{
		{name: "none"},
		{name: "sorted and each once", in: []float64{1, 0.5, 1}, want: []float64{0.5, 1}},
		{name: "below a nanosecond", in: []float64{1e-12}, want: []float64{1e-12}},
		{name: "longer than a duration", in: []float64{1e300}, want: []float64{1e300}},
		{name: "zero", in: []float64{1, 0}, err: "checking boundary 0: want a positive, finite number of seconds"},
		{name: "negative", in: []float64{-1}, err: "checking boundary -1: want"},
		{name: "infinite", in: []float64{math.Inf(1)}, err: "checking boundary +Inf: want"},
		{name: "not a number", in: []float64{math.NaN()}, err: "checking boundary NaN: want"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			b, err := NewBoundaries(tc.in...)
			if tc.err != "" {
				if err == nil || !strings.Contains(err.Error(), tc.err) {
					t.Fatalf("error %v, want %q", err, tc.err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if got := b.Seconds(); !slices.Equal(got, tc.want) {
				t.Errorf("boundaries %v, want %v", got, tc.want)
			}
			for _, n := range edges(b.limits) {
				checkClassic(t, b, n)
			}
		})
	}
}

func TestBounds(t *testing.T) {
	b, err := NewBounds(Additional{Phase: []float64{0.003}, Lateness: []float64{0.0002}, Convergence: []float64{600}})
	if err != nil {
		t.Fatal(err)
	}
	slow := []float64{0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60}
	for _, tc := range []struct {
		name string
		got  *Boundaries
		want []float64
	}{
		{"latency", b.Latency, slow},
		{"service time", b.ServiceTime, slow},
		{"handshake", b.Handshake, slow},
		{"phase", b.Phase, slices.Insert(slices.Clone(slow), 3, 0.003)},
		{"lateness", b.Lateness, []float64{0.00005, 0.0001, 0.0002, 0.00025, 0.0005, 0.001, 0.0025, 0.01, 0.1, 1}},
		{"convergence", b.Convergence, []float64{0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300, 600}},
		{"default latency", DefaultBounds().Latency, slow},
	} {
		if got := tc.got.Seconds(); !slices.Equal(got, tc.want) {
			t.Errorf("%s: boundaries %v, want %v", tc.name, got, tc.want)
		}
	}
	if _, err := NewBounds(Additional{Handshake: []float64{-2}}); err == nil ||
		err.Error() != `adding boundaries to "handshake": checking boundary -2: want a positive, finite number of seconds` {
		t.Errorf("error %v", err)
	}
}

// TestBoundaryIsInclusive has the nanoseconds by hand: 0.0005 s are 500,000 ns,
// although the float64 0.0005 is not 5/10,000.
func TestBoundaryIsInclusive(t *testing.T) {
	b := DefaultBounds().Latency
	for _, tc := range []struct {
		d    time.Duration
		want uint16
	}{
		{0, 0}, {1, 0}, {500_000, 0}, {500_001, 1}, {time.Millisecond, 1}, {time.Millisecond + 1, 2},
		{time.Second, 10}, {time.Second + 1, 11}, {time.Minute, 15}, {time.Minute + 1, 16}, {math.MaxInt64, 16},
	} {
		if got := b.bucket(uint64(tc.d)); got != tc.want {
			t.Errorf("%d ns are in bucket %d, want %d", tc.d, got, tc.want)
		}
	}
}

// edges returns the numbers around each limit, and around each power of two.
func edges(limits []uint64) []uint64 {
	var out []uint64
	around := func(n uint64) {
		for _, v := range []uint64{n - 1, n, n + 1} {
			if v <= math.MaxInt64 {
				out = append(out, v)
			}
		}
	}
	for _, n := range limits {
		around(n)
	}
	for shift := range 64 {
		around(1 << shift)
	}
	return append(out, 0, math.MaxInt64)
}

func checkClassic(t *testing.T, b *Boundaries, n uint64) {
	t.Helper()
	want := sort.SearchFloat64s(b.seconds, float64(n)/1e9)
	if got := int(b.bucket(n)); got != want {
		t.Errorf("%d ns are in classic bucket %d, want %d of %v", n, got, want, b.seconds)
	}
}

func FuzzClassicBucket(f *testing.F) {
	f.Add(int64(500_000), 0.0005, 0.3)
	f.Add(int64(1_100_000_000), 1.1, 1.1)
	f.Fuzz(func(t *testing.T, n int64, first, second float64) {
		b, err := NewBoundaries(first, second)
		if err != nil || n < 0 {
			return
		}
		for _, v := range append(edges(b.limits), uint64(n)) {
			checkClassic(t, b, v)
		}
	})
}
