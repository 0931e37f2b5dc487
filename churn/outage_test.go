package churn

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/steadyprobe/steadyprobe/probe"
)

// TestOutageIsKnown after a kill at 10 s of one of 4, until the call at 30 s.
func TestOutageIsKnown(t *testing.T) {
	for _, tc := range []struct {
		name      string
		kill      bool
		before    time.Duration // the last failure before; below 0: none
		last      time.Duration // the last one at the end; below 0: none
		completed uint64        // requests since the kill
		want      time.Duration // below 0: nothing
	}{
		{"it failed for a while", true, -1, 13 * second, 20_000, 3 * second},
		{"it failed for a moment", true, -1, 10*second + ms, 20_000, ms},
		{"nothing failed", true, -1, -1, 20_000, 0},
		{"nothing failed since", true, 2 * second, 2 * second, 20_000, 0},
		{"nothing failed, of enough", true, -1, -1, 80, 0}, // 20 for each of 4
		{"nothing failed, of too few", true, -1, -1, 79, -1},
		{"it has failed before, long ago", true, 2 * second, 13 * second, 20_000, 3 * second},
		{"it had failed before as well", true, 8 * second, 13 * second, 20_000, -1}, // 2 s before, for 3 s
		{"it has not ended failing", true, -1, 29 * second, 20_000, -1},
		{"it has failed for more than half of the time", true, -1, 21 * second, 20_000, -1}, // 11 s, and 9 s of rest
		{"it was no kill", false, -1, 13 * second, 20_000, -1},
	} {
		t.Run(tc.name, func(t *testing.T) {
			start := time.Now()
			at := func(d time.Duration) time.Time {
				if d < 0 {
					return time.Time{}
				}
				return start.Add(d)
			}
			last, all := at(tc.before), Traffic{Completed: 1000}
			o := outage{latest: func() time.Time { return last }, traffic: func() Traffic { return all }}
			if d := o.mark(at(10*second), 4); d >= 0 {
				t.Errorf("before the kill: %v", d)
			}
			o.watch(at(10*second), tc.kill)
			last, all.Completed = at(tc.last), all.Completed+tc.completed
			if d := o.mark(at(30*second), 3); d != tc.want {
				t.Errorf("%v, want %v", d, tc.want)
			}
			if d := o.mark(at(40*second), 4); d >= 0 {
				t.Errorf("after what was no kill: %v", d)
			}
		})
	}
	var none outage
	if none.mark(time.Now(), 4); none.mark(time.Now(), 4) >= 0 {
		t.Error("something is known where nothing is asked")
	}
	unknown := outage{latest: func() time.Time { return time.Time{} }} // without traffic
	unknown.mark(time.Now(), 4)
	unknown.watch(time.Now(), true)
	if d := unknown.mark(time.Now().Add(time.Hour), 4); d >= 0 {
		t.Errorf("nothing failed of nobody knows how many: %v", d)
	}
}

// TestKill stops backends, and is a step to fewer in all that is counted.
func TestKill(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, book, all := newFake(4), new(fakeNotebook), new(told)
		f.ready = second
		var failed time.Time
		kills := 0
		b := newBench(t, f, func(o *Options) {
			o.Workload = &fakeKiller{f, nil}
			o.Plan = Plan{Steps: []Step{{Kill: 1, Hold: 10 * second}, {Replicas: 4, Hold: 10 * second}}}
			o.Notebook, o.Announce = book, all.announce
			o.LastFailure = func() time.Time { return failed }
			phase := o.Phase
			o.Phase = func(p probe.ChurnPhase) {
				if phase(p); p == probe.ScalingDown {
					if kills++; kills == 2 { // the first one harms nobody, but nobody knows
						failed = time.Now().Add(1500 * ms)
					}
				}
			}
		})
		b.run(t)
		b.at(second)
		if n := short(book.held()); n != `{true 4: 3<-4 "" false}` {
			t.Errorf("the note is %s", n)
		}
		b.at(35 * second)
		b.wantScales(t, scaled{0, 3}, scaled{10 * second, 4}, scaled{20 * second, 3}, scaled{30 * second, 4})
		s := b.snapshot()
		if s.Steps != ([NumDirections]uint64{Up: 2, Down: 2}) || s.Kills != 2 || s.Convergence[Down].Count != 2 || s.Cycles != 1 {
			t.Errorf("%+v", s)
		}
		if s.Failover.Count != 1 || s.Failover.Sum != 1.5 {
			t.Errorf("failed over %d times, in %v s", s.Failover.Count, s.Failover.Sum)
		}
		if err := b.stop(); err != nil {
			t.Error(err)
		}
		want := "Stopped 1 of 4 backends without drain; the baseline is 4.\nScaled from 3 to 4 replicas; the baseline is 4.\n" +
			"Stopped 1 of 4 backends without drain; the baseline is 4.\nScaled from 3 to 4 replicas; the baseline is 4.\n" +
			"The baseline of 4 replicas is there again."
		if got := all.messages(); got != want {
			t.Errorf("told\n%s\nwant\n%s", got, want)
		}
	})
}

// TestKillIsNotDoneTwice: one that was done although it failed is ours.
func TestKillIsNotDoneTwice(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake(4)
		k := &fakeKiller{f, fail(1, true, &Error{Unreachable, errDead})}
		b := newBench(t, f, func(o *Options) {
			o.Workload, o.Plan = k, Plan{Steps: []Step{{Kill: 2, Hold: 10 * second}, {Replicas: 4, Hold: 10 * second}}}
		})
		b.run(t)
		b.at(9 * second)
		if s := b.snapshot(); s.State != Running || s.Steps[Down] != 1 || s.Kills != 1 || f.count() != 2 {
			t.Errorf("%d replicas, %+v", f.count(), s)
		}
		if err := b.stop(); err != nil || f.count() != 4 {
			t.Errorf("%d replicas, %v", f.count(), err)
		}
	})
}

// TestKillThatWasNotDone for sure is tried again.
func TestKillThatWasNotDone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake(4)
		k := &fakeKiller{f, fail(2, false, &Error{Conflict, errDead})}
		b := newBench(t, f, func(o *Options) {
			o.Workload, o.Plan = k, Plan{Steps: []Step{{Kill: 2, Hold: 10 * second}, {Replicas: 4, Hold: 10 * second}}}
		})
		b.run(t)
		b.at(9 * second)
		b.wantScales(t, scaled{150 * ms, 2})
		if err := b.stop(); err != nil || f.count() != 4 {
			t.Errorf("%d replicas, %v", f.count(), err)
		}
	})
}
