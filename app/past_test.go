package app

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/steadyprobe/steadyprobe/probe"
)

// second is what happens to a ledger within one second.
type second struct{ due, succeed, fail uint64 }

// pastOf observes so many seconds of each kind in turn, and once before them.
func pastOf(l *probe.Ledger, states *[]string, timeout time.Duration, steps ...any) *past {
	p := &past{}
	now := probe.Instant(time.Second)
	state := ""
	observe := func() {
		p.observe(now, l)
		now = now.Add(time.Second)
		if after := p.state(state, timeout); after != state {
			state = after
			*states = append(*states, after)
		}
	}
	observe()
	for i := 0; i < len(steps); i += 2 {
		for range steps[i].(int) {
			s := steps[i+1].(second)
			l.Scheduled += s.due
			l.Completed[probe.Settled][probe.Success] += s.succeed
			l.Completed[probe.ScalingUp][probe.ReadTimeout] += s.fail
			observe()
		}
	}
	return p
}

func TestStates(t *testing.T) {
	good, bad := second{10, 10, 0}, second{10, 0, 10}
	for _, row := range []struct {
		name    string
		timeout time.Duration
		steps   []any
		want    []string
	}{
		{"nothing is due", time.Second, []any{30, second{}}, []string{"starting"}},
		{"all is well", time.Second, []any{100, good}, []string{"starting", "up"}},
		{"nothing is ever answered", time.Second, []any{12, second{1, 0, 0}}, []string{"starting", "down"}},
		{"an answer that takes 9 s is no outage", time.Second, []any{1, second{1, 0, 0}, 8, second{}, 1, second{0, 1, 0}}, []string{"starting", "up"}},
		{"nor is one of 19 s that may take 20", 20 * time.Second, []any{1, second{1, 0, 0}, 18, second{}, 1, second{0, 1, 0}}, []string{"starting", "up"}},
		{"one of 21 s is", 20 * time.Second, []any{1, second{1, 0, 0}, 20, second{}, 1, second{0, 1, 0}}, []string{"starting", "down", "up"}},
		{"a minute is always one", time.Hour, []any{1, second{1, 0, 0}, 60, second{}}, []string{"starting", "down"}},
		{"all fails", time.Second, []any{5, bad}, []string{"starting", "down"}},
		// 1 of 10 fails, for 59 s after that it is within the last minute.
		{"one failure is remembered for a minute", time.Second, []any{60, good, 1, second{10, 9, 1}, 59, good}, []string{"starting", "up", "degraded"}},
		{"and forgotten then", time.Second, []any{60, good, 1, second{10, 9, 1}, 60, good}, []string{"starting", "up", "degraded", "up"}},
		// After 4 s of failing the last 10 s hold 40 of 100, after 5 s 50.
		{"fewer than half of the last 10 s fail", time.Second, []any{60, good, 4, bad, 60, good}, []string{"starting", "up", "degraded", "up"}},
		{"half of the last 10 s fail", time.Second, []any{60, good, 6, bad, 70, good}, []string{"starting", "up", "degraded", "down", "degraded", "up"}},
		{"it stands still", time.Second, []any{60, good, 11, second{10, 0, 0}}, []string{"starting", "up", "down"}},
		// One request in 30 s: the last minute decides, and between requests
		// nothing changes.
		{"a slow rate that fails", time.Second, []any{1, second{1, 0, 1}, 29, second{}, 1, second{1, 0, 1}, 120, second{}}, []string{"starting", "down"}},
		{"a slow rate recovers", time.Second, []any{1, second{1, 0, 1}, 90, second{}, 1, second{1, 1, 0}}, []string{"starting", "down", "up"}},
	} {
		t.Run(row.name, func(t *testing.T) {
			var l probe.Ledger
			var got []string
			pastOf(&l, &got, row.timeout, row.steps...)
			if diff := cmp.Diff(row.want, got); diff != "" {
				t.Errorf("states (-want +got):\n%s", diff)
			}
		})
	}
}

func TestRateKept(t *testing.T) {
	var l probe.Ledger
	var states []string
	if _, ok := new(past).rateKept(); ok {
		t.Error("a past that has seen nothing tells a rate")
	}
	if _, ok := pastOf(&l, &states, time.Second, 9, second{10, 10, 0}).rateKept(); ok {
		t.Error("9 s tell a rate")
	}
	l = probe.Ledger{}
	// 20 s at 10/s and 40 s at 4/s, the 30 s before do not count: 360/60.
	got, ok := pastOf(&l, &states, time.Second, 30, second{100, 100, 0}, 20, second{10, 10, 0}, 40, second{10, 3, 1}).rateKept()
	if !ok || got != 6 {
		t.Errorf("kept %v (%v), want 6", got, ok)
	}
}

func TestRecentFailures(t *testing.T) {
	var l probe.Ledger
	var states []string
	// 10 s with 2 failures a second, then 301 s with 1 failure in the last one.
	p := pastOf(&l, &states, time.Second, 10, second{10, 8, 2}, 300, second{10, 10, 0}, 1, second{10, 9, 1})
	all := failuresOf(&l)
	for _, row := range []struct {
		spans int
		want  uint64
	}{
		{6, 1},
		// The span that began 300 s before the last one began after the 20.
		{30, 1},
	} {
		if got := p.recent(all, row.spans).of(probe.ReadTimeout); got != row.want {
			t.Errorf("%d failures in %d spans, want %d", got, row.spans, row.want)
		}
	}
	if got := p.recent(all, 6).top(); got != probe.ReadTimeout {
		t.Errorf("%v is most frequent, want read/timeout", got)
	}
	if got := all.of(probe.ReadTimeout); got != 21 {
		t.Errorf("%d failures in all, want 21", got)
	}
	l = probe.Ledger{}
	p = pastOf(&l, &states, time.Second, 3, second{10, 9, 1})
	if got := p.recent(failuresOf(&l), 30).of(probe.ReadTimeout); got != 3 {
		t.Errorf("%d failures in a past of 3 s, want 3", got)
	}
	if got := failures(nil).top(); got != probe.Success {
		t.Errorf("%v is the most frequent of no failures", got)
	}
}
