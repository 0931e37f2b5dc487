package churn

import (
	"context"
	"errors"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/steadyprobe/steadyprobe/probe"
)

// TestEndInEachPhase: as in TestExternalChange, from a baseline of 3.
func TestEndInEachPhase(t *testing.T) {
	for _, tc := range []struct {
		name    string
		at      time.Duration
		restore bool
		phase   probe.ChurnPhase // that is left
	}{
		{"at the begin", 0, true, probe.ScalingDown},
		{"scaling up, before it matches", 500 * ms, true, probe.ScalingDown},
		{"scaling up, when it matches", 2 * second, true, probe.ScalingDown},
		{"settled above", 8 * second, true, probe.ScalingDown},
		{"scaling down, before it matches", 10500 * ms, true, probe.ScalingUp},
		{"scaling down, when it matches", 12 * second, true, probe.ScalingUp},
		{"settled below", 18 * second, true, probe.ScalingUp},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := newFake(3)
				f.ready = second
				b := newBench(t, f, nil)
				b.run(t)
				b.at(tc.at)
				before := f.scaledTo()
				if err := b.stop(); err != nil {
					t.Error(err)
				}
				b.wantScales(t, append(before, scaled{tc.at, 3})...)
				// It has looked once more, to see it done.
				if got := time.Since(f.start); got != tc.at+50*ms {
					t.Errorf("it took until %v", got)
				}
				s := b.snapshot()
				if s.State != Stopped || s.RestorePending || s.Desired != 3 || s.Phase != tc.phase {
					t.Errorf("%+v", s)
				}
			})
		})
	}
}

// TestEndWhileScaling: the call has a second to say whether it was done.
func TestEndWhileScaling(t *testing.T) {
	for _, tc := range []struct {
		name  string
		takes time.Duration
		done  bool // where it is cut
		end   time.Duration
		last  []scaled
	}{
		// Told to end at 100 ms. The restore looks once more, after 50 ms, to see itself done.
		// What was not done may still be, for 2 s after it was first seen not to be.
		{"it is accepted", 500 * ms, false, 550 * ms, []scaled{{500 * ms, 4}, {500 * ms, 2}}},
		{"it is cut and was done", time.Hour, true, 1150 * ms, []scaled{{1100 * ms, 4}, {1100 * ms, 2}}},
		{"it is cut and was not done", time.Hour, false, 3100 * ms, nil},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := newFake(2)
				f.onScale = func(ctx context.Context, replicas int) (bool, error) {
					if replicas == 2 {
						return false, nil
					}
					select {
					case <-time.After(tc.takes):
						return false, nil
					case <-ctx.Done():
						return tc.done, ctx.Err()
					}
				}
				b := newBench(t, f, nil)
				b.run(t)
				b.at(100 * ms)
				if err := b.stop(); err != nil {
					t.Error(err)
				}
				if got := time.Since(f.start); got != tc.end {
					t.Errorf("it took until %v, want %v", got, tc.end)
				}
				b.wantScales(t, tc.last...)
				if s := b.snapshot(); f.count() != 2 || s.RestorePending || s.Errors != ([NumReasons]uint64{}) {
					t.Errorf("%d replicas, restore pending %v, errors %v", f.count(), s.RestorePending, s.Errors)
				}
			})
		})
	}
}

func TestPanicRestores(t *testing.T) {
	for _, tc := range []struct {
		name string
		set  func(*fakeWorkload, *Options)
	}{
		{"in Scale, when it is done", func(f *fakeWorkload, _ *Options) {
			f.onScale = func(_ context.Context, replicas int) (bool, error) {
				if replicas == 4 {
					f.set(4)
					panic("boom")
				}
				return false, nil
			}
		}},
		{"in Observe", func(f *fakeWorkload, _ *Options) {
			once := true
			f.onObserve = func(context.Context) error {
				if once && f.count() == 4 {
					once = false
					panic("boom")
				}
				return nil
			}
		}},
		{"in Phase", func(f *fakeWorkload, o *Options) {
			o.Settle = 0
			told := 0
			o.Phase = func(probe.ChurnPhase) {
				if told++; told == 3 { // settled, scaling up, settled
					panic("boom")
				}
			}
		}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := newFake(2)
				b := newBench(t, f, func(o *Options) { tc.set(f, o) })
				func() {
					defer func() {
						if got := recover(); got != "boom" {
							t.Errorf("recovered %v", got)
						}
					}()
					ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
					defer cancel()
					_ = b.cycle.Run(ctx)
				}()
				if got := time.Since(f.start); got > second {
					t.Errorf("it went on for %v", got)
				}
				if s := b.snapshot(); f.count() != 2 || s.State != Stopped || s.RestorePending {
					t.Errorf("%d replicas, %+v", f.count(), s)
				}
			})
		})
	}
}

// TestRestoreFails and is tried again by the next Run, to the same baseline.
func TestRestoreFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake(2)
		var down atomic.Bool
		away := &Error{Unreachable, errors.New("server away")}
		f.onScale = func(context.Context, int) (bool, error) {
			if down.Load() {
				return false, away
			}
			return false, nil
		}
		b := newBench(t, f, nil)
		b.run(t)
		b.at(second)
		down.Store(true)
		err := b.stop()
		want := `restoring churn "shop" to 2 replicas within 30s: unreachable: server away`
		if err == nil || err.Error() != want || !errors.Is(err, away) {
			t.Errorf("got %v, want %s", err, want)
		}
		if got := time.Since(f.start); got != 31*second {
			t.Errorf("it took until %v, want 30 s", got)
		}
		s := b.snapshot()
		if s.State != Stopped || s.Reason != Unreachable || !s.RestorePending || s.Baseline != 2 || s.Desired != 4 {
			t.Errorf("%+v", s)
		}

		b.run(t) // still down
		b.at(40 * second)
		if s := b.snapshot(); s.State != Paused || !s.RestorePending || s.Baseline != 2 {
			t.Errorf("the next Run: %+v", s)
		}
		down.Store(false)
		b.at(70 * second) // the back-off is at most 25.6 s by now
		if s := b.snapshot(); s.State != Running || s.RestorePending || s.Baseline != 2 {
			t.Errorf("when it answers: %+v", s)
		}
		scales := f.scaledTo()
		if len(scales) < 3 || scales[1].replicas != 2 || scales[2].replicas != 4 {
			t.Errorf("scaled %v, want to the baseline first", scales)
		}
		if err := b.stop(); err != nil || f.count() != 2 {
			t.Errorf("%d replicas, %v", f.count(), err)
		}
	})
}

// TestRestoreIsNotSeen: a call that hangs for ever has no error of its own.
func TestRestoreIsNotSeen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake(2)
		var hang atomic.Bool
		f.onObserve = func(ctx context.Context) error {
			if hang.Load() {
				<-ctx.Done()
				return ctx.Err()
			}
			return nil
		}
		b := newBench(t, f, func(o *Options) { o.RestoreWithin, o.CallTimeout = 3*second, 5*second })
		b.run(t)
		b.at(second)
		hang.Store(true)
		err := b.stop()
		if want := `restoring churn "shop" to 2 replicas within 3s: context deadline exceeded`; err == nil || err.Error() != want {
			t.Errorf("got %v, want %s", err, want)
		}
		if got := time.Since(f.start); got != 4*second {
			t.Errorf("it took until %v, want 3 s", got)
		}
	})
}

func TestRestoreIsTriedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake(2)
		b := newBench(t, f, nil)
		b.run(t)
		b.at(second)
		f.onScale = fail(2, false, &Error{Conflict, errors.New("again")})
		if err := b.stop(); err != nil {
			t.Error(err)
		}
		// At 1 s, 1.05 s and, done, 1.15 s.
		b.wantScales(t, scaled{0, 4}, scaled{1150 * ms, 2})
		if s := b.snapshot(); s.Errors != ([NumReasons]uint64{Conflict: 1}) || s.RestorePending || s.Reason != NoReason {
			t.Errorf("%+v", s)
		}
	})
}

// TestSomebodyElseRestores: the baseline is what was wanted, whoever did it.
func TestSomebodyElseRestores(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake(2)
		b := newBench(t, f, nil)
		b.run(t)
		b.at(second + 10*ms)
		f.set(2)
		if err := b.stop(); err != nil {
			t.Error(err)
		}
		if s := b.snapshot(); s.Errors != ([NumReasons]uint64{}) || s.RestorePending || len(f.scaledTo()) != 1 {
			t.Errorf("%+v, scaled %v", s, f.scaledTo())
		}
	})
}

// TestRunAgain takes a new baseline when the old one was restored.
func TestRunAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake(2)
		f.ready = second
		b := newBench(t, f, nil)
		b.run(t)
		b.at(7 * second)
		if err := b.stop(); err != nil { // at 7.05 s, still scaling down
			t.Error(err)
		}
		b.at(8 * second)
		f.set(3)
		b.at(9 * second)
		b.run(t)
		b.at(10 * second)
		if s := b.snapshot(); s.Baseline != 3 || s.State != Running || s.Errors != ([NumReasons]uint64{}) {
			t.Errorf("%+v", s)
		}
		// That of 3 has begun unseen: the phase begins anew, and the plan with 4.
		b.wantPhases(t, "0s: settled", "0s: scaling_up", "6s: settled", "7s: scaling_down", "9s: settled", "9s: scaling_up")
		if err := b.stop(); err != nil || f.count() != 3 {
			t.Errorf("%d replicas, %v", f.count(), err)
		}
	})
}

// TestExternalChangeWhileRestoring: what cannot be restored after a step was
// stuck is changed by somebody else.
func TestExternalChangeWhileRestoring(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake(2)
		f.ready = time.Hour
		f.onScale = func(_ context.Context, replicas int) (bool, error) {
			if replicas == 2 {
				return false, &Error{Forbidden, errors.New("no")}
			}
			return false, nil
		}
		b := newBench(t, f, func(o *Options) { o.StuckAfter = 20 * second })
		b.run(t)
		b.at(30 * second)
		s := b.snapshot()
		if s.State != Paused || s.Reason != Stuck || !s.RestorePending || s.Errors[Forbidden] == 0 {
			t.Errorf("stuck: %+v", s)
		}
		f.set(3)
		b.at(31 * second)
		s = b.snapshot()
		if s.State != Stopped || s.Reason != ExternalChange || s.RestorePending {
			t.Errorf("changed: %+v", s)
		}
		if err := b.stop(); err != nil || f.count() != 3 {
			t.Errorf("%d replicas, want 3 left alone: %v", f.count(), err)
		}
	})
}

// TestUnclearStepIsRestored: a step whose call failed and took effect only
// later is ours when it shows, also while the baseline is being restored.
func TestUnclearStepIsRestored(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake(3)
		f.onScale = func(_ context.Context, replicas int) (bool, error) {
			if replicas == 2 && f.count() == 4 {
				time.AfterFunc(75*ms, func() { f.set(2) })
				return false, errors.New("gateway timeout")
			}
			return false, nil
		}
		b := newBench(t, f, func(o *Options) { o.Poll = 200 * ms })
		b.run(t)
		b.at(10*second + 50*ms) // after the call for 2 has failed, before it is done
		b.cancel()
		if err := <-b.done; err != nil {
			t.Error(err)
		}
		if s := b.snapshot(); f.count() != 3 || s.RestorePending || s.Errors != ([NumReasons]uint64{Other: 1}) {
			t.Errorf("%d replicas, %+v", f.count(), s)
		}
	})
}

// TestRestoreDoesNotWait for the back-off of a step.
func TestRestoreDoesNotWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake(3)
		f.onScale = func(_ context.Context, replicas int) (bool, error) {
			if replicas == 2 {
				return false, &Error{Conflict, errors.New("again and again")}
			}
			return false, nil
		}
		b := newBench(t, f, nil)
		b.run(t)
		b.at(20 * second) // the 8th attempt was at 10 + 6.35 s, the next is at 22.75 s
		if err := b.stop(); err != nil {
			t.Error(err)
		}
		b.wantScales(t, scaled{0, 4}, scaled{20 * second, 3})
	})
}

// TestRunAgainWhileScaling: the phase goes on from one Run to the next.
func TestRunAgainWhileScaling(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake(2)
		f.ready = second
		b := newBench(t, f, func(o *Options) { slices.Reverse(o.Plan.Steps) })
		b.run(t)
		b.at(15 * second)
		if err := b.stop(); err != nil {
			t.Error(err)
		}
		b.run(t) // at 15.05 s, with a step to what there is until 25.05 s
		b.at(27 * second)
		b.wantPhases(t, "0s: settled", "10s: scaling_up", "15s: scaling_down", "21s: settled", "25.05s: scaling_up")
		if s := b.snapshot(); s.Convergence[Up].Count+s.Convergence[Down].Count != 0 {
			t.Errorf("converged %+v, but no step has settled", s.Convergence)
		}
		if err := b.stop(); err != nil {
			t.Error(err)
		}
	})
}

// TestEndWhileObserving: no step begins after the end.
func TestEndWhileObserving(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake(2)
		b := newBench(t, f, nil)
		f.onObserve = func(context.Context) error {
			b.cancel()
			return nil
		}
		b.run(t)
		if err := <-b.done; err != nil {
			t.Error(err)
		}
		b.wantScales(t)
		f.onObserve = nil
		b.at(6 * time.Minute) // the step that was due is not under way since then
		b.run(t)
		b.at(6*time.Minute + second)
		if s := b.snapshot(); s.State != Running || s.Reason != NoReason {
			t.Errorf("%+v", s)
		}
		if err := b.stop(); err != nil {
			t.Error(err)
		}
	})
}
