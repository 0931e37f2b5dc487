package exporter

import (
	"bytes"
	"errors"
	"io"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/testing/protocmp"

	"github.com/steadyprobe/steadyprobe/probe/record"
)

func selfLatencyOf(t *testing.T, h Histograms, d record.Distribution) *dto.Histogram {
	t.Helper()
	o := Options{Histograms: h, SelfLatency: func(out *record.Distribution) { copyTo(out, &d) }}
	return overTheWire(t, newExporter(t, o), catalogue[selfLatency].Name)
}

// overTheWire returns the first histogram of a family after a trip through the
// protobuf exposition format.
func overTheWire(t *testing.T, e *Exporter, name string) *dto.Histogram {
	t.Helper()
	families, done, err := e.Gather()
	defer done()
	if err != nil {
		t.Fatal(err)
	}
	var wire bytes.Buffer
	format := expfmt.NewFormat(expfmt.TypeProtoDelim)
	enc := expfmt.NewEncoder(&wire, format)
	for _, f := range families {
		if err := enc.Encode(f); err != nil {
			t.Fatal(err)
		}
	}
	dec := expfmt.NewDecoder(&wire, format)
	for {
		var f dto.MetricFamily
		if err := dec.Decode(&f); errors.Is(err, io.EOF) {
			t.Fatalf("%s did not arrive", name)
		} else if err != nil {
			t.Fatal(err)
		}
		if f.GetName() == name {
			return f.GetMetric()[0].GetHistogram()
		}
	}
}

func TestNativeBuckets(t *testing.T) {
	// 22 native buckets of schema 5 that are 3 apart: 1, 4, … 64.
	var sparse []record.Bucket
	for i := int32(1); i <= 64; i += 3 {
		sparse = append(sparse, record.Bucket{Index: i, Count: 1})
	}
	for _, row := range []struct {
		name       string
		schema     int
		maxBuckets int
		threshold  float64
		zero       uint64
		native     []record.Bucket

		wantSchema int32
		wantZero   uint64
		wantWidth  float64
		wantSpans  [][2]int // offset, length
		wantDeltas []int64
	}{
		{
			name: "empty", schema: 3, maxBuckets: 160, wantSchema: 3,
		}, {
			name: "zeros only", schema: 3, maxBuckets: 160, zero: 7, wantSchema: 3, wantZero: 7,
		}, {
			name: "as counted", schema: 5, maxBuckets: 160,
			native: []record.Bucket{{Index: -400, Count: 3}, {Index: -399, Count: 5}, {Index: 10, Count: 1}},
			// 10 - (-399) - 1 = 408 empty buckets lie between the spans.
			wantSchema: 5, wantSpans: [][2]int{{-400, 2}, {408, 1}}, wantDeltas: []int64{3, 2, -4},
		}, {
			name: "a gap of two is filled", schema: 5, maxBuckets: 160,
			native:     []record.Bucket{{Index: 1, Count: 4}, {Index: 4, Count: 6}},
			wantSchema: 5, wantSpans: [][2]int{{1, 4}}, wantDeltas: []int64{4, -4, 0, 6},
		}, {
			name: "a gap of three is not", schema: 5, maxBuckets: 160,
			native:     []record.Bucket{{Index: 1, Count: 4}, {Index: 5, Count: 6}},
			wantSchema: 5, wantSpans: [][2]int{{1, 1}, {3, 1}}, wantDeltas: []int64{4, 2},
		}, {
			name: "the first bucket at 0 to 2 has no gap before it", schema: 5, maxBuckets: 160,
			native:     []record.Bucket{{Index: 2, Count: 4}},
			wantSchema: 5, wantSpans: [][2]int{{2, 1}}, wantDeltas: []int64{4},
		}, {
			// Buckets 1 to 4 of schema 5 are bucket 1 of schema 3, 5 to 8 bucket
			// 2; -3 to 0 are bucket 0: (i-1)>>2 + 1.
			name: "two schemas coarser", schema: 3, maxBuckets: 160,
			native: []record.Bucket{{Index: -4, Count: 9}, {Index: -3, Count: 1}, {Index: 0, Count: 1}, {Index: 1, Count: 2},
				{Index: 4, Count: 2}, {Index: 5, Count: 8}},
			wantSchema: 3, wantSpans: [][2]int{{-1, 4}}, wantDeltas: []int64{9, -7, 2, 4},
		}, {
			// 22 buckets at schema 5, 22 at 4? (i-1)>>1 of 0, 3, 6, … 63 is 0, 1,
			// 3, 4, 6, … 31: all different. At schema 3, 0 to 15: 16 buckets. At
			// schema 2, (i-1)>>3: 0 to 7, 8 buckets of 3, 3, 2, 3, 3, 2, 3, 3.
			name: "the cap makes it coarser", schema: 5, maxBuckets: 10, native: sparse,
			wantSchema: 2, wantSpans: [][2]int{{1, 8}}, wantDeltas: []int64{3, 0, -1, 1, 0, -1, 1, 0},
		}, {
			name: "the cap is reached", schema: 5, maxBuckets: 22, native: sparse[:10],
			wantSchema: 5, wantSpans: [][2]int{{1, 28}},
			wantDeltas: slices.Concat([]int64{1}, slices.Repeat([]int64{-1, 0, 1}, 9)),
		}, {
			// 2^-10 s is the bound of bucket -320 at schema 5; 0.001 s is rounded
			// up from below it: 2^-10 = 0.00098 < 0.001 ≤ 2^-9.
			name: "what is below the zero threshold", schema: 5, maxBuckets: 160, threshold: 0.001, zero: 1,
			native:     []record.Bucket{{Index: -500, Count: 2}, {Index: -9 * 32, Count: 4}, {Index: -9*32 + 1, Count: 8}},
			wantSchema: 5, wantZero: 7, wantWidth: 0.001953125, wantSpans: [][2]int{{-287, 1}}, wantDeltas: []int64{8},
		}, {
			name: "a zero threshold that is a power of two", schema: 0, maxBuckets: 160, threshold: 0.25,
			native:     []record.Bucket{{Index: -64, Count: 2}, {Index: -63, Count: 8}},
			wantSchema: 0, wantZero: 2, wantWidth: 0.25, wantSpans: [][2]int{{-1, 1}}, wantDeltas: []int64{8},
		},
	} {
		t.Run(row.name, func(t *testing.T) {
			h := DefaultHistograms()
			h.Classic, h.Schema, h.MaxBuckets = false, row.schema, row.maxBuckets
			width := math.Ldexp(1, -128)
			if row.threshold != 0 {
				h.ZeroThreshold, width = row.threshold, row.wantWidth
			}
			d := record.Distribution{Zero: row.zero, Native: row.native, Count: row.zero, Sum: 1.5}
			for _, b := range row.native {
				d.Count += b.Count
			}
			want := &dto.Histogram{
				SampleCount: &d.Count, SampleSum: &d.Sum, Schema: &row.wantSchema,
				ZeroThreshold: &width, ZeroCount: &row.wantZero, PositiveDelta: row.wantDeltas,
			}
			for _, s := range row.wantSpans {
				want.PositiveSpan = append(want.PositiveSpan, &dto.BucketSpan{
					Offset: proto.Int32(int32(s[0])), Length: proto.Uint32(uint32(s[1])),
				})
			}
			if diff := cmp.Diff(want, selfLatencyOf(t, h, d), protocmp.Transform()); diff != "" {
				t.Errorf("after the wire (-want +got):\n%s", diff)
			}
		})
	}
}

// TestAgainstClientGolang lets client_golang's histogram count the same values
// and compares the whole message.
func TestAgainstClientGolang(t *testing.T) {
	bounds := record.DefaultBounds().Lateness
	const seed = 7
	random := rand.New(rand.NewPCG(seed, seed))
	for _, row := range []struct {
		name   string
		values func(i int) time.Duration
		n      int
	}{
		{"none", nil, 0},
		{"one", func(int) time.Duration { return 30 * time.Microsecond }, 1},
		{"zeros", func(int) time.Duration { return 0 }, 5},
		{"on the bounds", func(i int) time.Duration {
			return []time.Duration{50 * time.Microsecond, 100 * time.Microsecond, time.Millisecond, time.Second}[i%4]
		}, 40},
		{"powers of two", func(i int) time.Duration { return time.Second >> (i % 10) }, 100},
		{"log-normal around 100 us", func(int) time.Duration {
			return time.Duration(math.Exp(random.NormFloat64()) * float64(100*time.Microsecond))
		}, 10_000},
		{"uniform over an hour", func(int) time.Duration { return time.Duration(random.Int64N(int64(time.Hour))) }, 2_000},
		{"tiny and huge", func(i int) time.Duration {
			return []time.Duration{1, 2, 3, 1000, time.Hour, 0}[i%6]
		}, 60},
	} {
		t.Run(row.name, func(t *testing.T) {
			oracle := prometheus.NewHistogram(prometheus.HistogramOpts{
				Name: "oracle", Help: "Test.", Buckets: bounds.Seconds(),
				NativeHistogramBucketFactor: 1.1, // schema 3: 2^(1/8) = 1.09
			})
			h := record.NewHistogram(bounds)
			for i := range row.n {
				v := row.values(i)
				oracle.Observe(v.Seconds())
				h.Observe(v)
			}
			var d record.Distribution
			h.Snapshot(&d)
			var want dto.Metric
			if err := oracle.Write(&want); err != nil {
				t.Fatal(err)
			}
			got := selfLatencyOf(t, DefaultHistograms(), d)
			// The oracle adds up float64s, the recorder adds up nanoseconds.
			if a, b := want.Histogram.GetSampleSum(), got.GetSampleSum(); math.Abs(a-b) > 1e-9*max(1, a) {
				t.Errorf("sum %v, want %v", b, a)
			}
			diff := cmp.Diff(want.Histogram, got, protocmp.Transform(),
				protocmp.IgnoreFields(&dto.Histogram{}, "sample_sum", "created_timestamp"))
			if diff != "" {
				t.Errorf("differs from client_golang (-want +got):\n%s", diff)
			}
		})
	}
}

// TestNativeCounts decodes the spans again: whatever the schema, every bucket
// must hold what was observed between its bounds.
func TestNativeCounts(t *testing.T) {
	const seed = 11
	random := rand.New(rand.NewPCG(seed, seed))
	var values []float64
	counted := record.NewHistogram(record.DefaultBounds().Lateness)
	for range 5_000 {
		v := time.Duration(math.Exp(3*random.NormFloat64()) * float64(time.Millisecond))
		counted.Observe(v)
		values = append(values, v.Seconds())
	}
	slices.Sort(values)
	var d record.Distribution
	counted.Snapshot(&d)
	for schema := 0; schema <= 5; schema++ {
		h := DefaultHistograms()
		h.Schema, h.MaxBuckets = schema, 1_000
		got := selfLatencyOf(t, h, d)
		if int(got.GetSchema()) != schema {
			t.Fatalf("schema %d, want %d", got.GetSchema(), schema)
		}
		var index, delta int
		var count int64
		var total uint64
		for _, s := range got.GetPositiveSpan() {
			index += int(s.GetOffset())
			for range s.GetLength() {
				count += got.GetPositiveDelta()[delta]
				delta++
				upper := math.Exp2(float64(index) / math.Exp2(float64(schema)))
				lower := math.Exp2(float64(index-1) / math.Exp2(float64(schema)))
				above := func(bound float64) int {
					n, _ := slices.BinarySearchFunc(values, bound, func(v, b float64) int {
						if v <= b {
							return -1
						}
						return 1
					})
					return n
				}
				if want := above(upper) - above(lower); int(count) != want {
					t.Errorf("schema %d, bucket (%g, %g]: %d, want %d", schema, lower, upper, count, want)
				}
				total += uint64(count)
				index++
			}
		}
		if total+got.GetZeroCount() != got.GetSampleCount() {
			t.Errorf("schema %d: %d in buckets and %d zeros, want %d in all", schema, total, got.GetZeroCount(), got.GetSampleCount())
		}
	}
}

func TestKinds(t *testing.T) {
	d := distribution(record.DefaultBounds().Lateness, 30*time.Microsecond, time.Minute)
	for _, row := range []struct {
		name            string
		classic, native bool
		wantBuckets     int
	}{
		{"both", true, true, 9},
		{"classic", true, false, 9},
		{"native", false, true, 0},
	} {
		t.Run(row.name, func(t *testing.T) {
			h := DefaultHistograms()
			h.Classic, h.Native = row.classic, row.native
			got := selfLatencyOf(t, h, d)
			if n := len(got.GetBucket()); n != row.wantBuckets {
				t.Errorf("%d classic buckets, want %d", n, row.wantBuckets)
			}
			// A scraper knows a native histogram by its spans, its zero count or
			// its zero threshold.
			if is := got.GetZeroThreshold() > 0 || len(got.GetPositiveSpan()) > 0; is != row.native {
				t.Errorf("native: %v, want %v", is, row.native)
			}
			if got.Schema != nil != row.native {
				t.Errorf("schema is there: %v, want %v", got.Schema != nil, row.native)
			}
		})
	}
}

func TestTextShowsCountWithoutClassic(t *testing.T) {
	o := testOptions()
	o.Histograms.Classic = false
	e := newExporter(t, o)
	families, done, err := e.Gather()
	defer done()
	if err != nil {
		t.Fatal(err)
	}
	var text strings.Builder
	enc := expfmt.NewEncoder(&text, expfmt.NewFormat(expfmt.TypeTextPlain))
	for _, f := range families {
		if f.GetName() == catalogue[selfLatency].Name {
			if err := enc.Encode(f); err != nil {
				t.Fatal(err)
			}
		}
	}
	const want = `# HELP steadyprobe_self_latency_seconds What the probe itself adds to every figure, measured through a local socket.
# TYPE steadyprobe_self_latency_seconds histogram
steadyprobe_self_latency_seconds_bucket{le="+Inf"} 1
steadyprobe_self_latency_seconds_sum 9e-05
steadyprobe_self_latency_seconds_count 1
`
	if got := text.String(); got != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
}

// TestSteadyScrapeAllocates uses one page by hand, because a pool may drop it.
func TestSteadyScrapeAllocates(t *testing.T) {
	// One that has the states of churns at hand, as reading one is not measured.
	states := []ChurnState{{}, {}}
	testChurn().Read(&states[0])
	var churns []Churn
	for i := range states {
		from := &states[i]
		churns = append(churns, Churn{Name: string(rune('a' + i)), Read: func(s *ChurnState) {
			room := *s
			*s = *from
			was, is := room.distributions(), from.distributions()
			for i, d := range s.distributions() {
				*d = *was[i]
				copyTo(d, is[i])
			}
		}})
	}
	e := withChurns(t, newExporter(t, testOptions(), fullTarget(), plainTarget()), churns...)
	p, set, exposed := newPage(e.layout), e.targets.Load(), *e.churns.Load()
	if n := testing.AllocsPerRun(100, func() {
		p.reset()
		for i := range set.targets {
			p.writeTarget(&set.targets[i])
		}
		for i := range exposed {
			p.writeChurn(&exposed[i])
		}
		if _, err := p.finish(); err != nil {
			t.Error(err)
		}
	}); n > 0 {
		t.Errorf("a scrape that finds nothing new allocates %v times, want 0", n)
	}
}
