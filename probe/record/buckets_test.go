package record

import (
	"slices"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
)

func TestCoarsen(t *testing.T) {
	for _, tc := range []struct {
		name string
		in   []Bucket
		by   uint
		want []Bucket
	}{
		{"nothing", nil, 2, nil},
		{"by none", []Bucket{{-5, 1}, {7, 2}}, 0, []Bucket{{-5, 1}, {7, 2}}},
		// In halves, buckets 1 and 2 become 1; -1 and 0 become 0.
		{"neighbours", []Bucket{{-1, 1}, {0, 2}, {1, 4}, {2, 8}, {3, 16}}, 1, []Bucket{{0, 3}, {1, 12}, {2, 16}}},
		// (2^(-33/32), 2^-1] at schema 5 is in (2^-2, 2^-1] at schema 0.
		{"an octave", []Bucket{{-32, 1}, {-31, 2}, {0, 4}, {1, 8}, {32, 16}, {33, 32}}, 5,
			[]Bucket{{-1, 1}, {0, 6}, {1, 24}, {2, 32}}},
		{"to schema -4", []Bucket{{-900, 1}, {-511, 2}, {512, 4}, {513, 8}}, 9, []Bucket{{-1, 1}, {0, 2}, {1, 4}, {2, 8}}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if got := Coarsen(slices.Clone(tc.in), tc.by); !slices.Equal(got, tc.want) {
				t.Errorf("buckets %v, want %v", got, tc.want)
			}
		})
	}
}

func TestCoarsenAgainstPrometheus(t *testing.T) {
	// factor 1.0443 is schema 4, 1.0906 schema 3, 1.19 schema 2, 1.5 schema 1,
	// 2 schema 0, 4 schema -1, 65,536 schema -4
	for schema, factor := range map[int]float64{4: 1.0443, 3: 1.0906, 2: 1.19, 1: 1.5, 0: 2, -1: 4, -4: 65536} {
		oracle := prometheus.NewHistogram(prometheus.HistogramOpts{
			Name:                         "oracle",
			NativeHistogramBucketFactor:  factor,
			NativeHistogramZeroThreshold: prometheus.NativeHistogramZeroThresholdZero,
		})
		h := NewHistogram(DefaultBounds().Latency)
		for _, n := range edges(native.limits[:]) {
			if n <= exactLimit {
				h.Observe(time.Duration(n))
				oracle.Observe(float64(n) / 1e9)
			}
		}
		var m dto.Metric
		if err := oracle.Write(&m); err != nil {
			t.Fatal(err)
		}
		if got := int(m.Histogram.GetSchema()); got != schema {
			t.Fatalf("the oracle has schema %d, want %d", got, schema)
		}
		var d Distribution
		h.Snapshot(&d)
		if got, want := Coarsen(d.Native, uint(NativeSchema-schema)), nativeOf(m.Histogram); !slices.Equal(got, want) {
			t.Errorf("schema %d: buckets %v, want %v", schema, got, want)
		}
	}
}

func TestSchema(t *testing.T) {
	var octaves []Bucket // two octaves, all populated
	for i := range int32(64) {
		octaves = append(octaves, Bucket{Index: i + 1, Count: 1})
	}
	for _, tc := range []struct {
		name         string
		buckets      []Bucket
		wanted, most int
		want         int
	}{
		{"nothing", nil, 5, 1, 5},
		{"no cap", octaves, 5, 0, 5},
		{"just enough", octaves, 5, 64, 5},
		{"half", octaves, 5, 63, 4},
		{"already coarse enough", octaves, 3, 16, 3}, // 2 × 2^3
		{"one for each octave", octaves, 5, 3, 0},
		{"one for both", octaves, 5, 1, -1},
		{"finer than there is", octaves, 8, 100, 5},
		{"coarser than there is", octaves, -9, 100, -4},
		{"too many even so", []Bucket{{-900, 1}, {1, 1}}, 5, 1, -4},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got := Schema(tc.buckets, tc.wanted, tc.most)
			if got != tc.want {
				t.Errorf("schema %d, want %d", got, tc.want)
			}
			by := uint(NativeSchema - got)
			if n := len(Coarsen(slices.Clone(tc.buckets), by)); n != populated(tc.buckets, by) {
				t.Errorf("%d buckets, counted %d before", n, populated(tc.buckets, by))
			}
		})
	}
}
