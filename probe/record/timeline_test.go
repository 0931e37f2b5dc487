package record

import (
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/steadyprobe/steadyprobe/probe"
)

// ended returns a sample that ends at an instant.
func ended(end probe.Instant, latency time.Duration, outcome probe.Outcome) *probe.Sample {
	intended := end.Add(-latency)
	return &probe.Sample{Tick: probe.Tick{Intended: intended}, Begun: intended, End: end, Outcome: outcome}
}

// looped returns the same sample of a closed loop.
func looped(end probe.Instant, latency time.Duration, outcome probe.Outcome) *probe.Sample {
	s := ended(end, latency, outcome)
	s.Closed = true
	return s
}

// cellEnd is the greatest latency in the cell of d: what a Moment tells of it.
func cellEnd(d time.Duration) time.Duration { return highestOf(cellOf(uint64(d))) }

func checkMoments(t *testing.T, what string, got []Moment, want ...Moment) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("%s:\n got %v\nwant %v", what, got, want)
	}
}

func TestSeconds(t *testing.T) {
	const (
		success, refused, timeout = probe.Success, probe.ConnectRefused, probe.ReadTimeout
		lat                       = time.Millisecond
	)
	seen := cellEnd(lat)
	for _, tc := range []struct {
		name    string
		read    probe.Instant // before anything was recorded; 0: not
		samples []*probe.Sample
		now     probe.Instant
		want    []Moment
	}{
		{name: "nothing", read: 5 * second, now: 900 * second},
		{name: "the open second is left out", now: 5*second + 999*ms,
			samples: []*probe.Sample{ended(5*second+ms, lat, success)}},
		{name: "boundaries", now: 7 * second,
			// 5 s - 1 ns belongs to second 4, 5 s to second 5, as does 6 s - 1 ns.
			samples: []*probe.Sample{ended(5*second-1, lat, success), ended(5*second, lat, success), ended(6*second-1, 2*lat, success)},
			want:    []Moment{{4 * second, 1, 0, seen, 0, 0}, {5 * second, 2, 0, cellEnd(2 * lat), 0, 0}, {From: 6 * second}}},
		{name: "what is recorded late belongs to the open second", now: 7 * second,
			samples: []*probe.Sample{ended(6*second+ms, lat, success), ended(5*second, 2*lat, timeout)},
			want:    []Moment{{6 * second, 2, 1, cellEnd(2 * lat), 0, 0}}},
		{name: "a pause", now: 9 * second,
			samples: []*probe.Sample{ended(5*second+ms, lat, success), ended(8*second, lat, success)},
			want:    []Moment{{5 * second, 1, 0, seen, 0, 0}, {From: 6 * second}, {From: 7 * second}, {8 * second, 1, 0, seen, 0, 0}}},
		{name: "begins where the first tick was due", now: 6 * second,
			samples: []*probe.Sample{ended(5*second+ms, 2*time.Second, timeout)},
			want:    []Moment{{From: 3 * second}, {From: 4 * second}, {5 * second, 1, 1, cellEnd(2 * time.Second), 0, 0}}},
		{name: "read before the first is recorded", read: 7 * second, now: 8 * second,
			// It ended at 5 s, but belongs to the second that was open.
			samples: []*probe.Sample{ended(5*second+ms, lat, success)},
			want:    []Moment{{From: 5 * second}, {From: 6 * second}, {7 * second, 1, 0, seen, 0, 0}}},
		{name: "a fast failure has no latency", now: 6 * second,
			samples: []*probe.Sample{ended(5*second+ms, lat, refused)},
			want:    []Moment{{5 * second, 1, 1, 0, 0, 0}}},
		{name: "a slow failure and an expired tick", now: 6 * second,
			samples: []*probe.Sample{ended(5*second+2*ms, 2*lat, timeout), ended(5*second+ms, lat, probe.ScheduleExpired)},
			want:    []Moment{{5 * second, 2, 2, cellEnd(2 * lat), 0, 0}}},
		{name: "longer than an hour", now: 4001 * second,
			// Of the seconds since second 399 the last 300 are kept.
			samples: []*probe.Sample{ended(4000*second, time.Hour+time.Second, timeout)},
			want: append(zeros(3701*second, second, 299),
				Moment{4000 * second, 1, 1, cellEnd(time.Hour), 0, 0})},
		{name: "silence of an hour", now: 3605 * second,
			samples: []*probe.Sample{ended(5*second+ms, lat, success)},
			want:    zeros(3305*second, second, 300)},
		{name: "silence of 285 years", now: 9_000_000_000 * second,
			samples: []*probe.Sample{ended(5*second+ms, lat, success)},
			want:    zeros(8_999_999_700*second, second, 300)},
		{name: "the last of the kept", now: 305*second + ms,
			samples: []*probe.Sample{ended(4*second+ms, lat, success), ended(5*second+ms, lat, success)},
			want:    append([]Moment{{5 * second, 1, 0, seen, 0, 0}}, zeros(6*second, second, 299)...)},
	} {
		t.Run(tc.name, func(t *testing.T) {
			r := New(Options{})
			if tc.read != 0 {
				checkMoments(t, "before", r.secondsAt(tc.read, nil))
			}
			for _, s := range tc.samples {
				r.Record(s)
			}
			before := []Moment{{From: 1}}
			got := r.secondsAt(tc.now, before)
			checkMoments(t, "seconds", got, append(before, tc.want...)...)
		})
	}
}

// zeros returns the moments of a silence.
func zeros(from, span probe.Instant, n int) []Moment {
	m := make([]Moment, n)
	for i := range m {
		m[i].From = from + probe.Instant(i)*span
	}
	return m
}

func TestSlices(t *testing.T) {
	// hundred are 1 to 100 ms that end at 12 to 12.099 s, then a refused one.
	var hundred []*probe.Sample
	for i := range probe.Instant(100) {
		hundred = append(hundred, ended(12*second+i*ms, time.Duration(i+1)*time.Millisecond, probe.Success))
	}
	hundred = append(hundred, ended(13*second, time.Microsecond, probe.ConnectRefused))
	// The 50th and the 99th of 100 in ascending order; the failure is none of them.
	whole := Moment{10 * second, 101, 1, cellEnd(100 * time.Millisecond), cellEnd(50 * time.Millisecond), cellEnd(99 * time.Millisecond)}
	for _, tc := range []struct {
		name    string
		samples []*probe.Sample
		now     probe.Instant
		want    []Moment
	}{
		{name: "nothing", now: 900 * second},
		{name: "the open slice is left out", samples: hundred, now: 20*second - 1},
		{name: "one slice", samples: hundred, now: 20 * second, want: []Moment{whole}},
		{name: "a pause", samples: append(slices.Clone(hundred), ended(45*second, time.Millisecond, probe.ReadTimeout)), now: 50 * second,
			// One has no median.
			want: []Moment{whole, {From: 20 * second}, {From: 30 * second}, {40 * second, 1, 1, cellEnd(time.Millisecond), 0, 0}}},
		{name: "fewer than a hundred have no p99", samples: hundred[:99], now: 20 * second,
			// 0.5 × 99 + 0.5 = 50: the 50th.
			want: []Moment{{10 * second, 99, 0, cellEnd(99 * time.Millisecond), cellEnd(50 * time.Millisecond), 0}}},
		{name: "two have a median", samples: hundred[:2], now: 20 * second,
			// 0.5 × 2 + 0.5 = 1.5: the first.
			want: []Moment{{10 * second, 2, 0, cellEnd(2 * time.Millisecond), cellEnd(time.Millisecond), 0}}},
		{name: "begins where the first tick was due", now: 40 * second,
			samples: []*probe.Sample{ended(31*second, 12*time.Second, probe.ReadTimeout)},
			want:    []Moment{{From: 10 * second}, {From: 20 * second}, {30 * second, 1, 1, cellEnd(12 * time.Second), 0, 0}}},
		{name: "boundaries", now: 30 * second,
			samples: []*probe.Sample{
				ended(20*second-1, time.Millisecond, probe.Success), ended(20*second, time.Millisecond, probe.Success),
				ended(20*second-1, 3*time.Millisecond, probe.Success), // late
			},
			want: []Moment{
				{10 * second, 1, 0, cellEnd(time.Millisecond), 0, 0},
				{20 * second, 2, 0, cellEnd(3 * time.Millisecond), cellEnd(time.Millisecond), 0},
			}},
		{name: "silence of an hour", samples: hundred, now: 3619*second + 999*ms,
			// Slice 1 is the first of the 360 before slice 361, which opens at 3,610 s.
			want: append([]Moment{whole}, zeros(20*second, 10*second, 359)...)},
		{name: "longer", samples: hundred, now: 3620 * second, want: zeros(20*second, 10*second, 360)},
		{name: "beyond what windows hold", samples: hundred, now: 4000 * second, want: zeros(400*second, 10*second, 360)},
		{name: "silence of 285 years", samples: hundred, now: 9_000_000_000 * second,
			want: zeros(8_999_996_400*second, 10*second, 360)},
	} {
		t.Run(tc.name, func(t *testing.T) {
			r := New(Options{})
			for _, s := range tc.samples {
				r.Record(s)
			}
			before := []Moment{{From: 1}}
			got := r.slicesAt(tc.now, before)
			checkMoments(t, "slices", got, append(before, tc.want...)...)
		})
	}
}

// A closed loop has no latency, but counts.
func TestTimelineOfClosedLoop(t *testing.T) {
	r := New(Options{})
	for i := range probe.Instant(200) {
		r.Record(looped(12*second+i*ms, time.Millisecond, probe.Success))
	}
	r.Record(looped(13*second-1, time.Millisecond, probe.ReadTimeout))
	checkMoments(t, "seconds", r.secondsAt(13*second, nil),
		Moment{From: 11 * second}, // in which the first began
		Moment{From: 12 * second, Completed: 201, Failed: 1})
	checkMoments(t, "slices", r.slicesAt(20*second, nil), Moment{From: 10 * second, Completed: 201, Failed: 1})
}

// An opening that belongs to no tick completes nothing.
func TestTimelineLeavesOpeningsOut(t *testing.T) {
	r := New(Options{})
	s := openingSample()
	r.RecordOpening(&s)
	checkMoments(t, "seconds", r.secondsAt(60*second, nil))
	checkMoments(t, "slices", r.slicesAt(60*second, nil))
}

// TestTimelineFollowsTheClock reads the way others do.
func TestTimelineFollowsTheClock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		clock := probe.NewClock() // at 1 s
		r := New(Options{Clock: clock})
		r.Record(ended(clock.Now(), 0, probe.Success))
		checkMoments(t, "seconds", r.Seconds(nil))
		time.Sleep(time.Second) // 2 s
		checkMoments(t, "seconds", r.Seconds(nil), Moment{From: second, Completed: 1})
		time.Sleep(8*time.Second - 1) // 10 s - 1 ns
		checkMoments(t, "slices", r.Slices(nil))
		time.Sleep(time.Nanosecond)
		checkMoments(t, "slices", r.Slices(nil), Moment{From: 0, Completed: 1})
	})
}

// TestRingsWrap has second i hold i%7 ticks, for longer than seconds and slices
// are kept.
func TestRingsWrap(t *testing.T) {
	r := New(Options{})
	for i := probe.Instant(1); i <= 8000; i++ {
		for range i % 7 {
			r.Record(ended(i*second+ms, time.Millisecond, probe.Success))
		}
		if i%450 != 0 {
			continue
		}
		got := r.secondsAt(i*second, nil)
		if want := min(int(i)-1, keptSeconds); len(got) != want {
			t.Fatalf("%d seconds after %d, want %d", len(got), i, want)
		}
		for j, m := range got {
			at := i - probe.Instant(len(got)-j)
			if m.From != at*second || m.Completed != uint64(at%7) {
				t.Fatalf("after %d, second %d is %v", i, at, m)
			}
		}
		got = r.slicesAt(i*second, nil)
		if want := min(int(i)/10, keptSlices); len(got) != want {
			t.Fatalf("%d slices after %d, want %d", len(got), i, want)
		}
		for j, m := range got {
			at := i/10 - probe.Instant(len(got)-j)
			want := uint64(0)
			for s := at * 10; s < at*10+10; s++ {
				want += uint64(s % 7)
			}
			if m.From != at*10*second || m.Completed != want {
				t.Fatalf("after %d, slice %d is %v, want %d", i, at, m, want)
			}
		}
	}
}

// oracle is what a moment should be, gathered anew.
type oracle struct {
	completed, failed uint64
	latencies         []time.Duration
}

func (o *oracle) moment(from probe.Instant, quantiles bool) Moment {
	m := Moment{From: from, Completed: o.completed, Failed: o.failed}
	slices.Sort(o.latencies)
	n := len(o.latencies)
	if n > 0 {
		m.Max = cellEnd(o.latencies[n-1])
	}
	if quantiles && n >= 2 {
		m.P50 = cellEnd(o.latencies[int(0.5*float64(n)+0.5)-1])
	}
	if quantiles && n >= 100 {
		m.P99 = cellEnd(o.latencies[int(0.99*float64(n)+0.5)-1])
	}
	return m
}

// TestTimelineAtRandom records at random, some of it late, reads at random, and
// compares with what was recorded: in every second and slice, and altogether.
func TestTimelineAtRandom(t *testing.T) {
	for seed := range uint64(6) {
		r := rand.New(rand.NewPCG(seed, 7))
		rec := New(Options{})
		seconds, all := map[probe.Instant]*oracle{}, uint64(0)
		slicesOf := map[probe.Instant]*oracle{}
		now := probe.Instant(r.Int64N(1e12)) + 10*second
		first, open := now/second, now/second
		record := func(end probe.Instant) {
			outcome := []probe.Outcome{probe.Success, probe.Success, probe.Success, probe.ReadTimeout, probe.ReadReset}[r.IntN(5)]
			d := min(time.Duration(r.Uint64N(uint64(time.Hour))>>r.IntN(30)), end.Sub(first*second))
			rec.Record(ended(end, d, outcome))
			open = max(open, end/second)
			for _, at := range []struct {
				of   map[probe.Instant]*oracle
				span probe.Instant
			}{{seconds, 1}, {slicesOf, 10}} {
				o := at.of[open/at.span]
				if o == nil {
					o = new(oracle)
					at.of[open/at.span] = o
				}
				o.completed++
				if outcome != probe.Success {
					o.failed++
				}
				if outcome.Slow() {
					o.latencies = append(o.latencies, d)
				}
			}
			all++
		}
		check := func() {
			t.Helper()
			open = max(open, now/second)
			for _, at := range []struct {
				got        []Moment
				of         map[probe.Instant]*oracle
				span, most probe.Instant // seconds, moments
			}{
				{rec.secondsAt(now, nil), seconds, 1, keptSeconds},
				{rec.slicesAt(now, nil), slicesOf, 10, keptSlices},
			} {
				first, open := first/at.span, open/at.span
				if want := min(open-first, at.most); len(at.got) != int(want) {
					t.Fatalf("seed %d: %d moments of %d s, want %d", seed, len(at.got), at.span, want)
				}
				for i, m := range at.got {
					number := max(first, open-at.most) + probe.Instant(i)
					o := at.of[number]
					if o == nil {
						o = new(oracle)
					}
					if want := o.moment(number*at.span*second, at.span > 1); m != want {
						t.Fatalf("seed %d: %v, want %v", seed, m, want)
					}
				}
			}
		}
		// The first is due in the second in which it ends.
		record(now)
		for range 40 {
			if r.IntN(10) == 0 {
				now += probe.Instant(r.Int64N(int64(time.Minute)))
			}
			for gap := 1 + r.Int64N(int64(20*time.Millisecond)); r.IntN(700) != 0; {
				now += probe.Instant(r.Int64N(2 * gap))
				record(max(now-probe.Instant(r.Int64N(int64(time.Second))), first*second))
			}
			check()
		}
		// Two slices later everything is in slices: 40 × (1 + 12 s) are less than
		// the hour that they keep.
		now += 20 * second
		check()
		var total, inWindows uint64
		for _, m := range rec.slicesAt(now, nil) {
			total += m.Completed
		}
		var s Snapshot
		rec.snapshot(now, &s)
		inLatency := s.Latency[Succeeded][probe.NoChurn].Count + s.Latency[Failed][probe.NoChurn].Count
		for _, c := range rec.latenciesAt(now, 2, nil) {
			inWindows += c.Count
		}
		slow := s.Latency[Succeeded][probe.NoChurn].Count + s.SlowFailures[probe.NoChurn].Count
		if total != all || inLatency != all || inWindows != slow {
			t.Errorf("seed %d: %d in slices, %d in latency of %d, %d in the hour of %d", seed, total, inLatency, all, inWindows, slow)
		}
	}
}

// Slices are those of the windows: 6 of them and the open one are a minute.
func TestSlicesAreThoseOfWindows(t *testing.T) {
	r := New(Options{})
	values := likely(1 << 12)
	var s Snapshot
	for i := range probe.Instant(3000) {
		at := 7*second + i*101*ms
		r.Record(ended(at, values[i], probe.Success))
		if i%97 != 0 {
			continue
		}
		r.snapshot(at, &s)
		got := r.slicesAt(at, nil)
		greatest := highestOf(r.timeline.slice.max)
		greatest = max(greatest, highestOf(r.timeline.open.max))
		for _, m := range got[max(0, len(got)-6):] {
			greatest = max(greatest, m.Max)
		}
		if want := s.Windows[0][NumQuantiles-1]; greatest.Seconds() != want {
			t.Fatalf("at %v: greatest of the slices of a minute %v, of the minute %v", at, greatest.Seconds(), want)
		}
	}
}

// Seconds are closed without allocation once a ring is full.
func TestTimelineDoesNotAllocate(t *testing.T) {
	r := New(Options{})
	s := ended(10*second, time.Millisecond, probe.ConnectRefused)
	next := func() {
		s.End += second
		s.Intended += second
		s.Begun += second
		r.Record(s)
	}
	for range keptSlices * 10 {
		next()
	}
	if n := testing.AllocsPerRun(1000, next); n != 0 {
		t.Errorf("%v allocations a second", n)
	}
	m := make([]Moment, 0, keptSlices)
	if n := testing.AllocsPerRun(100, func() { r.secondsAt(s.End, m); r.slicesAt(s.End, m) }); n != 0 {
		t.Errorf("%v allocations a reading", n)
	}
}

func TestTimelineConcurrently(t *testing.T) {
	r := New(Options{Clock: probe.NewClock()})
	const workers, each = 3, 4000
	var wg sync.WaitGroup
	for range workers {
		wg.Go(func() {
			for i := range probe.Instant(each) {
				r.Record(ended(second+i*10*ms, time.Millisecond, []probe.Outcome{probe.Success, probe.ReadTimeout}[i%2]))
			}
		})
	}
	var m []Moment
	var cells []Cell
	for i := range 60 {
		m = r.Seconds(m[:0])
		m = r.Slices(m)
		cells = r.Latencies(i%NumWindows, cells[:0])
	}
	wg.Wait()
	// 40 s: all of it is in seconds, in slices and in the window of an hour.
	var seconds, ofSlices, failed, latencies uint64
	for _, m := range r.secondsAt(60*second, nil) {
		seconds += m.Completed
	}
	for _, m := range r.slicesAt(60*second, nil) {
		ofSlices += m.Completed
		failed += m.Failed
	}
	for _, c := range r.Latencies(2, nil) {
		latencies += c.Count
	}
	if seconds != workers*each || ofSlices != workers*each || latencies != workers*each || failed != workers*each/2 {
		t.Errorf("%d in seconds, %d in slices, %d in the hour, %d failed", seconds, ofSlices, latencies, failed)
	}
}
