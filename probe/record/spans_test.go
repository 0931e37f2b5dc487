package record

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/steadyprobe/steadyprobe/probe"
)

// checkSpans compares all that spans say.
func checkSpans(t *testing.T, what string, got []Span, want ...Span) {
	t.Helper()
	same := slices.EqualFunc(got, want, func(a, b Span) bool {
		return a.From == b.From && a.Until == b.Until && a.Completed == b.Completed && a.Failed == b.Failed && slices.Equal(a.Cells, b.Cells)
	})
	if !same {
		t.Errorf("%s:\n got %v\nwant %v", what, got, want)
	}
}

func TestSpans(t *testing.T) {
	const (
		success, refused, timeout = probe.Success, probe.ConnectRefused, probe.ReadTimeout
		lat                       = time.Millisecond
		m                         = 60 * second
	)
	one := []Cell{{cellEnd(lat), 1}}
	two := []Cell{{cellEnd(lat), 1}, {cellEnd(3 * lat), 1}}
	for _, tc := range []struct {
		name    string
		samples []*probe.Sample
		length  int
		from    probe.Instant
		now     probe.Instant
		want    []Span
		open    Span
	}{
		{name: "nothing was recorded", length: 1, from: 5 * second, now: 2*m + second,
			want: []Span{{From: 5 * second, Until: m}, {From: m, Until: 2 * m}}, open: Span{From: 2 * m, Until: 2*m + second}},
		{name: "not over", length: 1, now: m - 1, samples: []*probe.Sample{ended(5*second, lat, success)},
			open: Span{0, m - 1, 1, 0, one}},
		{name: "just over", length: 1, now: m, samples: []*probe.Sample{ended(5*second, lat, success)},
			want: []Span{{0, m, 1, 0, one}}, open: Span{From: m, Until: m}},
		{name: "a timeout counts with its time, a refusal only as failed", length: 1, now: m, from: 2 * second,
			samples: []*probe.Sample{ended(5*second, lat, success), ended(6*second, lat, refused), ended(7*second, 3*lat, timeout)},
			want:    []Span{{2 * second, m, 3, 2, two}}, open: Span{From: m, Until: m}},
		{name: "slices of 10 s, the last six", length: 0, from: 0, now: 95 * second,
			samples: []*probe.Sample{ended(25*second, lat, success), ended(31*second, lat, success), ended(89*second, lat, refused), ended(94*second, lat, success)},
			want: []Span{
				{30 * second, 40 * second, 1, 0, one}, {From: 40 * second, Until: 50 * second}, {From: 50 * second, Until: m},
				{From: m, Until: 70 * second}, {From: 70 * second, Until: 80 * second}, {80 * second, 90 * second, 1, 1, nil},
			},
			open: Span{90 * second, 95 * second, 1, 0, one}},
		{name: "from the middle of one", length: 0, from: 85 * second, now: 95 * second,
			samples: []*probe.Sample{ended(81*second, lat, success)},
			want:    []Span{{85 * second, 90 * second, 1, 0, one}}, open: Span{From: 90 * second, Until: 95 * second}},
		{name: "from the end of one", length: 0, from: 90 * second, now: 95 * second,
			samples: []*probe.Sample{ended(81*second, lat, success)}, open: Span{From: 90 * second, Until: 95 * second}},
		{name: "five minutes, in which there is all of them", length: 2, from: second, now: 9*m + 25*second,
			samples: []*probe.Sample{ended(second, lat, success), ended(4*m+59*second, 3*lat, success), ended(5*m, lat, success), ended(9*m+24*second, 3*lat, timeout)},
			want:    []Span{{second, 5 * m, 2, 0, two}}, open: Span{5 * m, 9*m + 25*second, 2, 1, two}},
		{name: "what is recorded late belongs to a later one", length: 1, from: 0, now: 2*m + second,
			samples: []*probe.Sample{ended(m+second, lat, success), ended(50*second, 3*lat, timeout)},
			want:    []Span{{From: 0, Until: m}, {m, 2 * m, 2, 1, two}}, open: Span{From: 2 * m, Until: 2*m + second}},
		{name: "a closed loop has counts", length: 1, now: m,
			samples: []*probe.Sample{looped(second, lat, success), looped(second, lat, timeout)},
			want:    []Span{{0, m, 2, 1, nil}}, open: Span{From: m, Until: m}},
		{name: "from the future", length: 1, from: 3 * m, now: 2 * m, open: Span{From: 3 * m, Until: 3 * m}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			r := New(Options{})
			for _, s := range tc.samples {
				r.Record(s)
			}
			checkSpans(t, "spans", r.spansAt(tc.now, tc.length, tc.from), tc.want...)
			checkSpans(t, "the open one", []Span{r.openSpanAt(tc.now, tc.length, tc.from)}, tc.open)
		})
	}
}

// TestSpansHoldEverythingOnce reads recorders at random moments, from the end
// of the last span on, and in the end what is open: every tick is in one span,
// and the spans follow each other without a gap.
func TestSpansHoldEverythingOnce(t *testing.T) {
	for seed := range uint64(30) {
		rng := rand.New(rand.NewPCG(seed, 1))
		length := int(seed % 3)
		r := New(Options{})
		from := probe.Instant(rng.Int64N(int64(2 * time.Hour)))
		start, now := from, from
		var want, got pages
		var completed, failed, wantCompleted, wantFailed uint64
		take := func(s Span) {
			if s.From != from || s.Until < from {
				t.Fatalf("seed %d: a span from %d to %d follows what ended at %d", seed, s.From, s.Until, from)
			}
			from = s.Until
			completed += s.Completed
			failed += s.Failed
			for _, c := range s.Cells {
				got.add(cellOf(uint64(c.Highest)), uint32(c.Count))
			}
		}
		for range 300 {
			for range rng.IntN(50) {
				// Up to 12 s pass between two ticks.
				now += probe.Instant(rng.Int64N(int64(12 * time.Second / 50)))
				latency := time.Duration(rng.Int64N(int64(time.Minute)))
				outcome := []probe.Outcome{probe.Success, probe.Success, probe.ReadTimeout, probe.ConnectRefused}[rng.IntN(4)]
				r.Record(ended(now, latency, outcome))
				wantCompleted++
				if outcome != probe.Success {
					wantFailed++
				}
				if outcome.Slow() {
					want.add(cellOf(uint64(latency)), 1)
				}
			}
			// Rarely enough for some to be late, often enough not to be too late.
			now += probe.Instant(rng.Int64N(int64(SpanLengths[length])))
			for _, s := range r.spansAt(now, length, from) {
				take(s)
			}
		}
		take(r.openSpanAt(now, length, from))
		if from != now || from == start {
			t.Errorf("seed %d: spans end at %d, want %d", seed, from, now)
		}
		if completed != wantCompleted || failed != wantFailed || !slices.Equal(got.cells(nil), want.cells(nil)) {
			t.Errorf("seed %d: spans of %v hold %d ticks, %d failed; want %d and %d, or the latencies differ", seed, SpanLengths[length], completed, failed, wantCompleted, wantFailed)
		}
	}
}
