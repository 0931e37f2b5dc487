package churn

import (
	"context"
	"errors"
	"math"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// fakeKiller is a workload whose backends can be stopped.
type fakeKiller struct {
	*fakeWorkload
	onKill func(ctx context.Context, n int) (done bool, err error)
}

func (k *fakeKiller) Kill(ctx context.Context, n int) error {
	if k.onKill != nil {
		if done, err := k.onKill(ctx, n); err != nil {
			if done {
				k.apply(k.count() - n)
			}
			return err
		}
	}
	k.apply(k.count() - n)
	return nil
}

// fakeFloorer is a workload with a floor.
type fakeFloorer struct {
	*fakeWorkload
	floor func(baseline int) (int, error)
}

func (f fakeFloorer) Floor(_ context.Context, baseline int) (int, error) { return f.floor(baseline) }

func steps(all ...Step) []Step {
	for i := range all {
		all[i].Hold = time.Second
	}
	return all
}

func to(n int) Step   { return Step{Replicas: n} }
func kill(n int) Step { return Step{Kill: n} }

func TestLimits(t *testing.T) {
	five, none, one := 5, 0, 1
	for _, tc := range []struct {
		name     string
		guard    Guard
		baseline int
		plan     Plan
		want     string // why it is refused, empty: it is not
	}{
		{"within", Guard{}, 4, Plan{Steps: steps(to(2), to(8))}, ""},
		{"below half", Guard{}, 4, Plan{Steps: steps(to(4), to(1))}, "step 2 to 1 replicas is below the floor of 2"},
		{"half of an odd one is rounded up", Guard{}, 5, Plan{Steps: steps(to(2))}, "step 1 to 2 replicas is below the floor of 3"},
		{"above twice", Guard{}, 4, Plan{Steps: steps(to(9))}, "step 1 to 9 replicas is above the ceiling of 8"},
		{"of one", Guard{}, 1, Plan{Steps: steps(to(2), to(1))}, ""},
		{"of one to none", Guard{}, 1, Plan{Steps: steps(to(0))}, "step 1 to 0 replicas is below the floor of 1"},
		{"of none", Guard{}, 0, Plan{Steps: steps(to(1))}, "step 1 to 1 replicas is above the ceiling of 0"},
		{"a floor of its own", Guard{Floor: &none}, 4, Plan{Steps: steps(to(0))}, ""},
		{"a ceiling of its own", Guard{Ceiling: &five}, 4, Plan{Steps: steps(to(5), to(6))}, "step 2 to 6 replicas is above the ceiling of 5"},
		{"a floor above the baseline", Guard{Floor: &five}, 4, Plan{Steps: steps(to(5))}, ""},
		{"a step to the baseline below the floor", Guard{Floor: &five}, 4, Plan{Steps: steps(to(4), to(6))}, ""},
		{"a kill", Guard{}, 4, Plan{Steps: steps(kill(2), to(4))}, ""},
		{"a kill too many", Guard{}, 4, Plan{Steps: steps(to(4), kill(3))}, "step 2 to 1 replicas is below the floor of 2"},
		{"a kill from what a step before has left", Guard{}, 4, Plan{Steps: steps(to(2), kill(1))}, "step 2 to 1 replicas is below the floor of 2"},
		{"a kill from what the last step has left", Guard{}, 4, Plan{Steps: steps(kill(2), to(3))}, "step 1 to 1 replicas is below the floor of 2"},
		{"once only", Guard{}, 4, Plan{MaxCycles: 1, Steps: steps(kill(2), to(3))}, ""},
		{"kills alone", Guard{}, 4, Plan{Steps: steps(kill(1))}, "step 1 to 1 replicas is below the floor of 2"},
		{"kills alone, twice", Guard{}, 4, Plan{MaxCycles: 2, Steps: steps(kill(1))}, ""},
		{"kills alone, three times", Guard{}, 4, Plan{MaxCycles: 3, Steps: steps(kill(1))}, "step 1 to 1 replicas is below the floor of 2"},
		{"kills of more than there are", Guard{Floor: &none}, 1, Plan{Steps: steps(to(1), kill(2))}, "step 2 to -1 replicas is below the floor of 0"},
		{"many cycles", Guard{Floor: &one}, 4, Plan{MaxCycles: 1 << 40, Steps: steps(to(4), kill(1))}, ""},
	} {
		if got := tc.guard.limits(tc.baseline).checkPlan(tc.plan, tc.baseline); got != tc.want {
			t.Errorf("%s: %q, want %q", tc.name, got, tc.want)
		}
	}
}

func TestGuardIsValid(t *testing.T) {
	minus, two, three := -1, 2, 3
	for _, tc := range []struct {
		guard Guard
		want  string
	}{
		{Guard{}, ""},
		{Guard{Floor: &two, Ceiling: &two, AbortShare: 0.99, AbortWindow: 1, Cooldown: 1}, ""},
		{Guard{Floor: &minus, Ceiling: &minus}, "floor -1: want 0 or more\nceiling -1: want 0 or more"},
		{Guard{Floor: &three, Ceiling: &two}, "floor 3: want at most the ceiling 2"},
		{Guard{AbortShare: 1}, "abort share 1: want 0 to less than 1"},
		{Guard{AbortShare: -0.1}, "abort share -0.1: want 0 to less than 1"},
		{Guard{AbortShare: math.NaN()}, "abort share NaN: want 0 to less than 1"},
		{Guard{AbortWindow: -1, Cooldown: -1}, "abort window -1ns: want more than 0s, or 0s for 30s\ncooldown -1ns: want 0s or more"},
	} {
		got := ""
		if err := tc.guard.validate(); err != nil {
			got = err.Error()
		}
		if got != tc.want {
			t.Errorf("%+v: %q, want %q", tc.guard, got, tc.want)
		}
	}
}

// TestPlanIsRefused before anything is changed or saved, until there is another
// count.
func TestPlanIsRefused(t *testing.T) {
	for _, dry := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			f, book, all := newFake(3), new(fakeNotebook), new(told)
			b := newBench(t, f, func(o *Options) {
				o.Plan.Steps = append(o.Plan.Steps, Step{Replicas: 1, Hold: second})
				o.Notebook, o.DryRun, o.Announce = book, dry, all.announce
			})
			b.run(t)
			b.at(time.Minute)
			s := b.snapshot()
			want := "step 3 to 1 replicas is below the floor of 2, with a baseline of 3"
			if s.State != Paused || s.Reason != Refused || s.Detail != want || s.Errors != ([NumReasons]uint64{Refused: 1}) || s.Floor != 2 || s.Ceiling != 6 {
				t.Errorf("dry %v: %+v", dry, s)
			}
			if len(f.scaledTo()) != 0 || book.saved() != 0 {
				t.Errorf("scaled %v, saved %d notes", f.scaledTo(), book.saved())
			}
			f.set(4)
			b.at(61 * second)
			if s := b.snapshot(); s.Errors[Refused] != 2 || s.Detail != "step 3 to 1 replicas is below the floor of 2, with a baseline of 4" {
				t.Errorf("of 4: %+v", s)
			}
			f.set(2)
			b.at(62 * second)
			state := Running
			if dry {
				state = DryRun
			}
			if s := b.snapshot(); s.State != state || s.Baseline != 2 || s.Floor != 1 || s.Ceiling != 4 {
				t.Errorf("of 2: %+v", s)
			}
			if got := all.reasons(); !strings.HasPrefix(got, "Refused! Refused! Resumed ") {
				t.Errorf("told %s", got)
			}
			if err := b.stop(); err != nil {
				t.Error(err)
			}
		})
	}
}

// TestFloorOfTheWorkload counts whatever the configuration says, and also when
// it rises later.
func TestFloorOfTheWorkload(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, all := newFake(4), new(told)
		floor, none := 3, 0
		var asked []int
		b := newBench(t, f, func(o *Options) {
			o.Guard = Guard{Floor: &none, Cooldown: time.Minute}
			o.Workload = fakeFloorer{f, func(baseline int) (int, error) {
				asked = append(asked, baseline)
				return floor, nil
			}}
			o.Plan.Steps[0].Replicas = 5
			o.Announce = all.announce
		})
		b.run(t)
		b.at(second)
		if s := b.snapshot(); s.State != Paused || s.Detail != "step 2 to 2 replicas is below the floor of 3, with a baseline of 4" || s.Floor != 3 {
			t.Errorf("%+v", s)
		}
		b.at(59 * second)
		if len(asked) != 1 || asked[0] != 4 {
			t.Errorf("asked for the floor of %v", asked)
		}
		b.at(61 * second)
		if s := b.snapshot(); len(asked) != 2 || s.Errors != ([NumReasons]uint64{Refused: 1}) || all.reasons() != "Refused!" { // nothing new
			t.Errorf("asked for the floor of %v, errors %v, told %s", asked, s.Errors, all.reasons())
		}
		floor = 2
		b.at(121 * second)
		if s := b.snapshot(); s.State != Running || f.count() != 5 {
			t.Errorf("%+v", s)
		}
		floor = 3
		b.at(131 * second)
		s := b.snapshot()
		if s.State != Paused || s.Detail != "a step to 2 replicas is below the floor of 3" || f.count() != 4 || s.Errors != ([NumReasons]uint64{Refused: 2}) {
			t.Errorf("%d replicas, %+v", f.count(), s)
		}
		if err := b.stop(); err != nil {
			t.Error(err)
		}
	})
}

// TestBaselineBelowTheFloor: to go back to it is no step that is refused.
func TestBaselineBelowTheFloor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake(2)
		b := newBench(t, f, func(o *Options) {
			o.Workload = fakeFloorer{f, func(int) (int, error) { return 3, nil }}
		})
		b.run(t)
		b.at(15 * second)
		b.wantScales(t, scaled{0, 4}, scaled{10 * second, 2})
		if s := b.snapshot(); s.State != Running || s.Floor != 3 || s.Errors != ([NumReasons]uint64{}) {
			t.Errorf("%+v", s)
		}
		if err := b.stop(); err != nil {
			t.Error(err)
		}
	})
}

// TestFloorCannotBeKnown: then nothing begins, and no step goes down.
func TestFloorCannotBeKnown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake(3)
		known, asked := false, 0
		b := newBench(t, f, func(o *Options) {
			o.Workload = fakeFloorer{f, func(int) (int, error) {
				if asked++; !known {
					return 0, &Error{Forbidden, errors.New("no budgets for you")}
				}
				return 0, nil
			}}
		})
		b.run(t)
		b.at(10 * second)
		s := b.snapshot()
		if s.State != Paused || s.Reason != Forbidden || s.Detail != "asking for the floor: forbidden: no budgets for you" || s.Errors != ([NumReasons]uint64{Forbidden: 1}) {
			t.Errorf("%+v", s)
		}
		if asked > 9 { // 50 ms × 2^8 are more than 10 s
			t.Errorf("asked %d times", asked)
		}
		known = true
		b.at(20 * second)
		if s := b.snapshot(); s.State != Running || s.Reason != NoReason || f.count() != 4 {
			t.Errorf("%+v", s)
		}
		known = false
		b.at(35 * second)
		if s := b.snapshot(); f.count() != 4 || s.Reason != Forbidden {
			t.Errorf("%d replicas, %+v", f.count(), s)
		}
		if err := b.stop(); err != nil || f.count() != 3 { // what is restored needs no floor
			t.Errorf("%d replicas, %v", f.count(), err)
		}
	})
}

func TestFlow(t *testing.T) {
	f := flow{window: 10 * time.Second}
	start := time.Now()
	at := func(d time.Duration) time.Time { return start.Add(d) }
	for _, tc := range []struct {
		name  string
		at    time.Duration
		add   Traffic
		want  Traffic
		whole bool
	}{
		{"first", 0, Traffic{100, 10}, Traffic{}, false},
		{"within", 5 * second, Traffic{150, 10}, Traffic{}, false},
		{"just not", 10*second - ms, Traffic{199, 11}, Traffic{}, false},
		{"whole", 10 * second, Traffic{200, 12}, Traffic{100, 2}, true},
		{"slides", 15 * second, Traffic{250, 12}, Traffic{100, 2}, true},          // since 5 s
		{"more than whole", 18 * second, Traffic{280, 12}, Traffic{130, 2}, true}, // since 5 s; there is nothing of 8 s
		{"goes back", 19 * second, Traffic{50, 1}, Traffic{}, false},
		{"and on", 29 * second, Traffic{60, 5}, Traffic{10, 4}, true},
	} {
		f.add(at(tc.at), tc.add)
		if got, whole := f.latest(at(tc.at)); got != tc.want || whole != tc.whole {
			t.Errorf("%s: %+v, %v", tc.name, got, whole)
		}
	}
	for i := range 10_000 { // every 50 ms
		now := at(time.Minute + time.Duration(i)*50*ms)
		f.add(now, Traffic{Completed: 60 + uint64(i), Failed: 5})
		if got, whole := f.latest(now); whole && i > 400 && (got.Completed < 200 || got.Completed > 204) { // a fiftieth more at most
			t.Fatalf("after %d: %+v", i, got)
		}
	}
	if len(f.samples) > flowSamples+2 || cap(f.samples) > 4*flowSamples {
		t.Errorf("%d samples in room for %d", len(f.samples), cap(f.samples))
	}
}

// TestAbort: too many failures restore the baseline, as soon as there was a
// whole window of them and not before.
func TestAbort(t *testing.T) {
	for _, tc := range []struct {
		name   string
		share  float64
		failed func(since time.Duration) uint64 // of 100/s
		want   time.Duration                    // when it was aborted; 0: it was not
	}{
		{"none fail", 0.05, func(time.Duration) uint64 { return 0 }, 0},
		{"all fail, and nothing is to be aborted", 0, func(d time.Duration) uint64 { return uint64(d / (10 * ms)) }, 0},
		// From 15 s on one in ten: 50 of 1,000 in the window at 20 s.
		{"too many from a moment on", 0.05, func(d time.Duration) uint64 { return uint64(max(0, d-15*second) / (100 * ms)) }, 20*second + 100*ms},
		{"exactly so many", 0.1, func(d time.Duration) uint64 { return uint64(d / (100 * ms)) }, 0},
		// All of a second, which is a tenth of the window.
		{"for a short time", 0.11, func(d time.Duration) uint64 { return uint64(min(max(0, d-15*second), second) / (10 * ms)) }, 0},
		{"from the begin on", 0.05, func(d time.Duration) uint64 { return uint64(d / (10 * ms)) }, 10 * second},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f, all := newFake(2), new(told)
				b := newBench(t, f, func(o *Options) {
					o.Guard.AbortShare, o.Guard.AbortWindow, o.Announce = tc.share, 10*second, all.announce
					o.Traffic = func() Traffic {
						d := time.Since(f.start)
						return Traffic{Completed: uint64(d / (10 * ms)), Failed: tc.failed(d)}
					}
				})
				b.run(t)
				b.at(40 * second)
				s := b.snapshot()
				if tc.want == 0 {
					if s.State != Running || s.Errors[Aborted] != 0 {
						t.Errorf("%+v", s)
					}
				} else {
					if s.State != Paused || s.Reason != Aborted || s.Errors != ([NumReasons]uint64{Aborted: 1}) || f.count() != 2 {
						t.Errorf("%d replicas, %+v", f.count(), s)
					}
					scales := f.scaledTo()
					if last := scales[len(scales)-1]; last.replicas != 2 || last.at < tc.want || last.at > tc.want+250*ms {
						t.Errorf("scaled %v, want to the baseline at %v", scales, tc.want)
					}
				}
				if err := b.stop(); err != nil {
					t.Error(err)
				}
			})
		})
	}
}

// TestAbortWaitsForBetterTimes: it does not begin again while requests fail.
func TestAbortWaitsForBetterTimes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, all := newFake(2), new(told)
		b := newBench(t, f, func(o *Options) {
			o.Guard, o.Announce = Guard{AbortShare: 0.5, AbortWindow: 10 * second, Cooldown: 20 * second}, all.announce
			o.Traffic = func() Traffic {
				d := time.Since(f.start)
				return Traffic{Completed: uint64(d / (10 * ms)), Failed: uint64(min(d, time.Minute) / (10 * ms))}
			}
		})
		b.run(t)
		b.at(11 * second)
		if s := b.snapshot(); s.Detail != "1000 of 1000 requests failed within 10s, more than 50 %" || s.Reason != Aborted {
			t.Errorf("%+v", s)
		}
		b.at(50 * second)
		if s := b.snapshot(); s.State != Paused || s.Reason != Aborted || s.Detail != "waits until fewer requests fail" || s.Errors[Aborted] != 1 {
			t.Errorf("%+v", s)
		}
		b.at(64 * second) // 600 of the last 1,000
		if s := b.snapshot(); s.State != Paused {
			t.Errorf("%+v", s)
		}
		b.at(66 * second)
		if s := b.snapshot(); s.State != Running || s.Errors[Aborted] != 1 || s.Reason != NoReason {
			t.Errorf("%+v", s)
		}
		if err := b.stop(); err != nil {
			t.Error(err)
		}
		if got := all.reasons(); got != "ScaledUp Aborted! Restored Paused Resumed ScaledUp Restored" {
			t.Errorf("told %s", got)
		}
	})
}

// TestResumeAfterAbort: who resumes by hand wants it to begin.
func TestResumeAfterAbort(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake(2)
		b := newBench(t, f, func(o *Options) {
			o.Guard = Guard{AbortShare: 0.5, AbortWindow: 10 * second}
			o.Traffic = func() Traffic {
				all := uint64(time.Since(f.start) / (10 * ms))
				return Traffic{Completed: all, Failed: all}
			}
		})
		b.run(t)
		b.at(20 * second)
		if err := b.cycle.Resume(t.Context()); err != nil {
			t.Error(err)
		}
		b.at(22 * second)
		if s := b.snapshot(); s.State != Running || f.count() != 4 {
			t.Errorf("%+v", s)
		}
		b.at(31 * second) // a window later
		if s := b.snapshot(); s.State != Paused || s.Errors[Aborted] != 2 || f.count() != 2 {
			t.Errorf("%+v", s)
		}
		if err := b.stop(); err != nil {
			t.Error(err)
		}
	})
}
