package record

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/steadyprobe/steadyprobe/probe"
)

func TestLatencies(t *testing.T) {
	r := New(Options{})
	record := func(at probe.Instant, d time.Duration, o probe.Outcome, n int) {
		for range n {
			r.Record(ended(at*second, d, o))
		}
	}
	record(3000, 3000, probe.Success, 70_000) // more than a pair counts
	record(4000, time.Millisecond, probe.ReadTimeout, 2)
	record(4300, 5, probe.Success, 3)
	record(4300, 0, probe.Success, 1)
	record(4300, 7, probe.ConnectRefused, 4)
	record(4310, 2*time.Hour, probe.ScheduleExpired, 1)
	minute := []Cell{
		{0, 1}, {5, 3},
		// 2^41 ns are less than an hour, which ends in a cell of 2^31 ns: the
		// 1,676th from 0 holds 3,600 s / 2^31 ns = 1,676.4.
		{1677<<31 - 1, 1},
	}
	// 1,000,000 ns are 1,953.1 × 2^9 ns, in the cell that ends at 1,954 × 2^9 - 1.
	five := slices.Insert(slices.Clone(minute), 2, Cell{1954<<9 - 1, 2})
	// 3,000 ns are 1,500 × 2 ns.
	hour := slices.Insert(slices.Clone(five), 2, Cell{3001, 70_000})
	for _, tc := range []struct {
		name   string
		now    probe.Instant
		window int
		want   []Cell
	}{
		{"a minute", 4310, 0, minute},
		{"five minutes", 4310, 1, five},
		{"an hour", 4310, 2, hour},
		{"a minute later", 4380, 0, nil},
		{"the minute is in five", 4380, 1, minute},
		{"two hours later", 11_600, 2, nil},
	} {
		t.Run(tc.name, func(t *testing.T) {
			before := []Cell{{Highest: 1, Count: 2}}
			got := r.latenciesAt(tc.now*second, tc.window, before)
			if want := append(before, tc.want...); !slices.Equal(got, want) {
				t.Errorf("got %v\nwant %v", got, want)
			}
		})
	}
}

// The cells are what the quantiles of a Snapshot are taken from.
func TestLatenciesAreThoseOfQuantiles(t *testing.T) {
	r := New(Options{})
	fill(r, 10, 4000)
	var s Snapshot
	r.snapshot(4001*second, &s)
	for w := range Windows {
		cells := r.latenciesAt(4001*second, w, nil)
		total, seen := uint64(0), uint64(0)
		for i, c := range cells {
			total += c.Count
			if i > 0 && c.Highest <= cells[i-1].Highest {
				t.Fatalf("cell %d: %v after %v", i, c, cells[i-1])
			}
		}
		for _, c := range cells {
			// The first cell in which the rank of the 99th percentile is reached.
			if before := seen; before < rank(0.99, total) && before+c.Count >= rank(0.99, total) && c.Highest.Seconds() != s.Windows[w][2] {
				t.Errorf("%v: p99 %v, of the snapshot %v", Windows[w], c.Highest.Seconds(), s.Windows[w][2])
			}
			seen += c.Count
		}
		if last := cells[len(cells)-1].Highest.Seconds(); last != s.Windows[w][NumQuantiles-1] {
			t.Errorf("%v: maximum %v, of the snapshot %v", Windows[w], last, s.Windows[w][NumQuantiles-1])
		}
	}
}

func TestLatenciesOfClosedLoop(t *testing.T) {
	r := New(Options{})
	r.Record(looped(10*second, time.Millisecond, probe.Success))
	if got := r.latenciesAt(10*second, 2, nil); len(got) != 0 {
		t.Errorf("latencies %v", got)
	}
}

// The window ends now: a minute after the last slice nothing is in it.
func TestLatenciesFollowTheClock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		clock := probe.NewClock()
		r := New(Options{Clock: clock})
		r.Record(ended(clock.Now(), 5, probe.Success))
		time.Sleep(69*time.Second - 1)
		if got := r.Latencies(0, nil); !slices.Equal(got, []Cell{{5, 1}}) {
			t.Errorf("just before 70 s: %v", got)
		}
		time.Sleep(time.Nanosecond)
		if got := r.Latencies(0, nil); len(got) != 0 {
			t.Errorf("at 70 s: %v", got)
		}
	})
}

func TestSlowFailures(t *testing.T) {
	r := New(Options{})
	for _, tc := range []struct {
		outcome probe.Outcome
		churn   probe.ChurnPhase
		latency time.Duration
	}{
		{probe.Success, probe.Settled, time.Millisecond},
		{probe.ConnectRefused, probe.Settled, 2 * time.Millisecond},
		{probe.ReadTimeout, probe.Settled, 3 * time.Second},
		{probe.ScheduleExpired, probe.ScalingDown, 30 * time.Second},
		{probe.ConnectTimeout, probe.ScalingDown, 2 * time.Second},
		{probe.ResponseStatus, probe.ScalingUp, time.Millisecond},
	} {
		s := ended(100*second, tc.latency, tc.outcome)
		s.Churn = tc.churn
		r.Record(s)
	}
	var got Snapshot
	r.snapshot(100*second, &got)
	checkHolds(t, "no churn", &got.SlowFailures[probe.NoChurn])
	checkHolds(t, "settled", &got.SlowFailures[probe.Settled], 3*time.Second)
	checkHolds(t, "scaling up", &got.SlowFailures[probe.ScalingUp])
	checkHolds(t, "scaling down", &got.SlowFailures[probe.ScalingDown], 30*time.Second, 2*time.Second)
	checkHolds(t, "failures while settled", &got.Latency[Failed][probe.Settled], 2*time.Millisecond, 3*time.Second)
	felt := got.Latency[Succeeded][probe.Settled]
	felt.Add(&got.SlowFailures[probe.Settled])
	checkHolds(t, "felt while settled", &felt, time.Millisecond, 3*time.Second)

	closed := New(Options{})
	closed.Record(looped(100*second, time.Second, probe.ReadTimeout))
	closed.snapshot(100*second, &got)
	checkHolds(t, "closed loop", &got.SlowFailures[probe.NoChurn])
}
