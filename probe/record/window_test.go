package record

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
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
	for seed := range uint64(4) {
		r := rand.New(rand.NewPCG(seed, 5))
		type entry struct {
			at probe.Instant
			d  time.Duration
		}
		var w window
		var all []entry
		now := probe.Instant(r.Int64N(1e13))
		for range 40 {
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

// TestSteadySlicesUsePagesAgain closes slices with the same load: one
// allocation makes a closed slice, one its sum with those before it, none the
// open one.
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
	// In 30 slices there are 30 closed ones, 25 sums of a minute and 4 of five
	// minutes: 59 allocations, 1.97 each.
	if n := testing.AllocsPerRun(300, slice); n > 1 {
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
		for i, pair := range p.take() {
			if int(pair.cell) != i || int(pair.count) != i+1 {
				t.Fatalf("pair %d is %v", i, pair)
			}
		}
		if p.used != 0 || q.used != numPages {
			t.Errorf("round %d: %d pages in use, %d in the copy", round, p.used, q.used)
		}
	}
	q.copyFrom(&p)
	q.add(3, 1)
	if c := q.take(); !slices.Equal(c, closed{{3, 1}}) {
		t.Errorf("a copy of nothing holds %v", c)
	}
}

func TestLargeCounts(t *testing.T) {
	var p, q pages
	// 65,535 is one pair, 65,536 are two, 200,000 = 3 × 65,535 + 3,395 are four.
	p.add(1, 65_535)
	p.add(2, 65_536)
	p.add(70, 200_000)
	c := p.take()
	want := closed{{1, 65_535}, {2, 65_535}, {2, 1}, {70, 65_535}, {70, 65_535}, {70, 65_535}, {70, 3_395}}
	if !slices.Equal(c, want) {
		t.Errorf("pairs %v, want %v", c, want)
	}
	q.addClosed(c)
	q.addClosed(c)
	var sums []uint32
	for _, n := range q.counts {
		if n != 0 {
			sums = append(sums, n)
		}
	}
	if want := []uint32{131_070, 131_072, 400_000}; !slices.Equal(sums, want) {
		t.Errorf("sums %v, want %v", sums, want)
	}
}
