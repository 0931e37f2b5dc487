package record

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/steadyprobe/steadyprobe/probe"
)

const second = probe.Instant(time.Second)

// quantilesAt returns the quantiles of w at an instant.
func quantilesAt(w *window, now probe.Instant) (out [NumWindows][NumQuantiles]float64) {
	var v view
	w.advance(now)
	v.copyFrom(w)
	v.quantiles(&out)
	return out
}

func (w *window) record(at probe.Instant, d time.Duration) {
	w.advance(at)
	w.open.add(cellOf(uint64(d)), 1)
}

// TestWindowSpans puts one latency at an instant and looks at the maximum of
// each window at a later one.
func TestWindowSpans(t *testing.T) {
	const gone, there = false, true
	for _, tc := range []struct {
		at, now probe.Instant // seconds
		want    [NumWindows]bool
	}{
		{1, 1, [...]bool{there, there, there}},
		{9, 10, [...]bool{there, there, there}},
		// The slice 0…10 is the sixth before the open one until 70.
		{0, 60, [...]bool{there, there, there}},
		{9, 69, [...]bool{there, there, there}},
		{9, 70, [...]bool{gone, there, there}},
		{55, 119, [...]bool{there, there, there}},
		{59, 120, [...]bool{gone, there, there}},
		// The minute 0…60 is the fifth before the open one until 360.
		{0, 300, [...]bool{gone, there, there}},
		{59, 359, [...]bool{gone, there, there}},
		{59, 360, [...]bool{gone, gone, there}},
		{240, 599, [...]bool{gone, there, there}},
		{299, 600, [...]bool{gone, gone, there}},
		// The five minutes 0…300 are the twelfth before the open ones until 3,900.
		{0, 3600, [...]bool{gone, gone, there}},
		{299, 3899, [...]bool{gone, gone, there}},
		{299, 3900, [...]bool{gone, gone, gone}},
		{0, 1_000_000_000, [...]bool{gone, gone, gone}}, // 32 years of silence
	} {
		// Any later start that is aligned to five minutes must give the same.
		for _, start := range []probe.Instant{0, 300, 7500, 1_000_000_200} {
			t.Run(fmt.Sprintf("%d to %d from %d", tc.at, tc.now, start), func(t *testing.T) {
				var w window
				w.record((start+tc.at)*second, 1000)
				got := quantilesAt(&w, (start+tc.now)*second)
				for i, want := range tc.want {
					if max := got[i][NumQuantiles-1]; (max == 1e-6) != want || math.IsNaN(max) == want {
						t.Errorf("%v: maximum %v, want it there: %v", Windows[i], max, want)
					}
				}
			})
		}
	}
}

// TestWindowsAtRandom compares with all that was recorded, gathered anew in the
// library's histogram, with rates, pauses and scrapes at random.
func TestWindowsAtRandom(t *testing.T) {
	for seed := range uint64(8) {
		r := rand.New(rand.NewPCG(seed, 5))
		type entry struct {
			at probe.Instant
			d  time.Duration
		}
		var w window
		var all []entry
		now := probe.Instant(r.Int64N(1e13))
		for range 60 {
			switch r.IntN(12) {
			case 0:
				now += probe.Instant(r.Int64N(int64(2 * time.Hour)))
			case 1:
				now += probe.Instant(r.Int64N(int64(10 * time.Minute)))
			}
			gap := 1 + r.Int64N(int64(100*time.Millisecond))
			for range r.IntN(5000) {
				now += probe.Instant(r.Int64N(2 * gap))
				d := time.Duration(r.Uint64N(uint64(highest)) >> r.IntN(30))
				w.record(now, d)
				all = append(all, entry{now, d})
			}
			got := quantilesAt(&w, now)
			for i, span := range [NumWindows]probe.Instant{10, 60, 300} {
				// Aligned to its parts, a window begins the number of parts
				// before the open one.
				begin := (now/(span*second) - [NumWindows]probe.Instant{6, 5, 12}[i]) * span * second
				oracle := newHDR()
				for _, e := range all {
					if e.at >= begin {
						if err := oracle.RecordValue(int64(e.d)); err != nil {
							t.Fatal(err)
						}
					}
				}
				for j, q := range Quantiles {
					want := float64(oracle.ValueAtQuantile(100*q)) / 1e9
					fewest := [NumQuantiles]int64{2, 10, 100, 1000, 10_000, 100_000, 1}[j]
					if oracle.TotalCount() < fewest {
						want = math.NaN()
					}
					if g := got[i][j]; math.Abs(g-want) > 1e-9*want || math.IsNaN(g) != math.IsNaN(want) {
						t.Fatalf("seed %d, %v, q %v of %d: %v, want %v", seed, Windows[i], q, oracle.TotalCount(), g, want)
					}
				}
			}
		}
	}
}

func TestQuantilesNeedEnough(t *testing.T) {
	fewest := [NumQuantiles]uint32{2, 10, 100, 1000, 10_000, 100_000, 1} // 1/(1-q)
	for i, q := range Quantiles {
		var out [NumQuantiles]float64
		var p pages
		p.add(7, fewest[i]-1)
		if p.quantiles(&out); !math.IsNaN(out[i]) {
			t.Errorf("q %v of %d: %v, want NaN", q, fewest[i]-1, out[i])
		}
		p.add(7, 1)
		if p.quantiles(&out); out[i] != 7e-9 {
			t.Errorf("q %v of %d: %v, want 7e-9", q, fewest[i], out[i])
		}
	}
}

// A tick that ended just before a scrape is recorded just after it.
func TestWindowTakesTheLate(t *testing.T) {
	var w window
	w.advance(10 * second)
	w.record(10*second-1, 1000)
	if got := quantilesAt(&w, 10*second)[0][NumQuantiles-1]; got != 1e-6 {
		t.Errorf("maximum %v, want 1e-6", got)
	}
}

// TestSteadySlicesUsePagesAgain closes slices with the same load: two
// allocations make a closed slice, none the open one.
func TestSteadySlicesUsePagesAgain(t *testing.T) {
	var w window
	now := probe.Instant(0)
	slice := func() {
		for i := range 1000 {
			w.record(now, time.Duration(i)*time.Microsecond)
		}
		now += probe.Instant(sliceLength)
	}
	slice()
	// A minute closes with every sixth slice, five minutes with every thirtieth:
	// 2 × (30 + 5 + 1) allocations in 30 runs are 2.4, rounded down.
	if n := testing.AllocsPerRun(300, slice); n > 2 {
		t.Errorf("%v allocations a slice", n)
	}
}

func TestPagesAreBounded(t *testing.T) {
	var p, q pages
	for round := range 3 {
		for cell := range uint16(numCells) {
			p.add(cell, uint32(cell)+1)
		}
		if got := len(p.counts); got > numPages*pageSize*9/8 {
			t.Errorf("round %d: room for %d cells of %d", round, got, numCells)
		}
		q.copyFrom(&p)
		for i, n := range p.take().counts {
			if n != uint32(i)+1 {
				t.Fatalf("cell %d holds %d", i, n)
			}
		}
		if p.used != 0 || q.used != numPages {
			t.Errorf("round %d: %d pages in use, %d in the copy", round, p.used, q.used)
		}
	}
	q.copyFrom(&p)
	q.add(3, 1)
	if c := q.take(); len(c.cells) != 1 || c.cells[0] != 3 || c.counts[0] != 1 {
		t.Errorf("a copy of nothing holds %v", c)
	}
}

// loaded returns a window after an hour and a bit at a rate.
func loaded(rate int) *window {
	w := new(window)
	values := likely(1 << 16)
	for i := range rate * 4000 {
		w.record(probe.Instant(i)*second/probe.Instant(rate), values[rand.IntN(len(values))])
	}
	return w
}

// BenchmarkClose is what one request in 10 s waits for the lock: the closing of
// a slice, of a minute with it, of five minutes with it.
func BenchmarkClose(b *testing.B) {
	for _, rate := range []int{1, 1000, 10_000} {
		for _, kind := range []struct {
			name   string
			number int64 // of the slice that closes, from a multiple of five minutes
		}{{"slice", 0}, {"minute", 5}, {"five", 29}} {
			b.Run(fmt.Sprintf("rate=%d/%s", rate, kind.name), func(b *testing.B) {
				w := loaded(rate)
				values := likely(10 * rate)
				b.ReportAllocs()
				for b.Loop() {
					b.StopTimer()
					w.number = w.number/30*30 + kind.number
					for _, v := range values {
						w.open.add(cellOf(uint64(v)), 1)
					}
					b.StartTimer()
					w.close()
				}
			})
		}
	}
}

func BenchmarkQuantiles(b *testing.B) {
	for _, rate := range []int{1, 1000} {
		b.Run(fmt.Sprintf("rate=%d", rate), func(b *testing.B) {
			w := loaded(rate)
			var v view
			var out [NumWindows][NumQuantiles]float64
			b.ReportAllocs()
			for b.Loop() {
				v.copyFrom(w)
				v.quantiles(&out)
			}
		})
	}
}
