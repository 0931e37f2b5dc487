package churn

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/steadyprobe/steadyprobe/probe"
)

const second = time.Second

// fail returns an error n times.
func fail(n int, done bool, err error) func(context.Context, int) (bool, error) {
	return func(context.Context, int) (bool, error) {
		if n--; n < 0 {
			return false, nil
		}
		return done, err
	}
}

func TestScaleFails(t *testing.T) {
	boom := errors.New("boom")
	for _, tc := range []struct {
		name   string
		fails  int
		done   bool
		err    error
		want   Reason
		phases []string // after settled and scaling_up at 0 s
		scales []scaled
	}{
		{
			// Tried at 0, and 50, 100, 200 ms after the one before. It is seen 50 ms
			// after a call that it was not done.
			"three times, not done", 3, false, &Error{NotFound, boom}, NotFound,
			[]string{
				"50ms: settled", "50ms: scaling_up", "100ms: settled", "150ms: scaling_up", "200ms: settled",
				"350ms: scaling_up", "6.35s: settled",
			},
			[]scaled{{350 * ms, 4}},
		},
		{
			"once, unclear and not done", 1, false, boom, Other,
			[]string{"50ms: settled", "50ms: scaling_up", "6.05s: settled"},
			[]scaled{{50 * ms, 4}},
		},
		{
			"once, unclear and done", 1, true, context.DeadlineExceeded, Unreachable,
			[]string{"6s: settled"},
			[]scaled{{0, 4}},
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := newFake(2)
				f.ready = second
				f.onScale = fail(tc.fails, tc.done, tc.err)
				b := newBench(t, f, nil)
				b.run(t)
				b.at(10 * ms)
				if s := b.snapshot(); s.State != Running || s.Reason != tc.want || s.Detail != tc.err.Error() || s.Steps[Up] != 0 {
					t.Errorf("state %v, reason %v: %q, steps %v", s.State, s.Reason, s.Detail, s.Steps)
				}
				b.at(9 * second)
				b.wantPhases(t, append([]string{"0s: settled", "0s: scaling_up"}, tc.phases...)...)
				b.wantScales(t, tc.scales...)
				s := b.snapshot()
				if s.Reason != NoReason || s.Steps[Up] != 1 || s.Convergence[Up].Sum != 1 {
					t.Errorf("reason %v, steps %v, converged in %v s", s.Reason, s.Steps, s.Convergence[Up].Sum)
				}
				var once [NumReasons]uint64 // however often it was tried
				if once[tc.want] = 1; s.Errors != once {
					t.Errorf("errors %v, want one of %v", s.Errors, tc.want)
				}
				for _, line := range []string{"msg=scaling ", `msg="scaling fails"`} {
					if n := strings.Count(b.log.String(), line); n != 1 {
						t.Errorf("%s was said %d times:\n%s", line, n, b.log)
					}
				}
				// The next step is due 10 s after the call that was done.
				b.at(tc.scales[0].at + 10*second)
				if n := len(f.scaledTo()); n != 2 {
					t.Errorf("scaled %v, want the next step after 10 s", f.scaledTo())
				}
				if err := b.stop(); err != nil || f.count() != 2 {
					t.Errorf("%d replicas, %v", f.count(), err)
				}
			})
		})
	}
}

// TestConflict: somebody scales while our call is on its way, to any count.
func TestConflict(t *testing.T) {
	for _, to := range []int{1, 3, 4} { // 4 is also what we wanted
		synctest.Test(t, func(t *testing.T) {
			f := newFake(2)
			f.onScale = func(context.Context, int) (bool, error) {
				f.set(to)
				return false, &Error{Conflict, errors.New("it changed")}
			}
			b := newBench(t, f, nil)
			b.run(t)
			b.at(second)
			s := b.snapshot()
			if s.State != Stopped || s.Reason != ExternalChange || s.Errors != ([NumReasons]uint64{Conflict: 1, ExternalChange: 1}) {
				t.Errorf("to %d: state %v, reason %v, errors %v", to, s.State, s.Reason, s.Errors)
			}
			if to == 1 { // not up to 4, and then down from it
				b.wantPhases(t, "0s: settled", "0s: scaling_up", "50ms: scaling_down")
			}
			if to == 4 { // goes on to more, not from 2 to fewer than 4
				b.at(7*second - 10*ms)
				f.set(3)
				b.at(8 * second)
				b.wantPhases(t, "0s: settled", "0s: scaling_up", "5.05s: settled", "7s: scaling_down")
				f.set(4)
			}
			if err := b.stop(); err != nil || f.count() != to {
				t.Errorf("%d replicas, want %d left alone: %v", f.count(), to, err)
			}
		})
	}
}

func TestScaleHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake(2)
		hang := true
		f.onScale = func(ctx context.Context, _ int) (bool, error) {
			if hang {
				hang = false
				<-ctx.Done()
				return false, ctx.Err()
			}
			return false, nil
		}
		b := newBench(t, f, nil)
		b.run(t)
		b.at(20 * second)
		// It was cut after 10 s, seen not to be done at 10.05 s and tried again.
		b.wantScales(t, scaled{10050 * ms, 4})
		b.wantPhases(t, "0s: settled", "0s: scaling_up", "10.05s: settled", "10.05s: scaling_up", "15.1s: settled")
		if s := b.snapshot(); s.Errors != ([NumReasons]uint64{Unreachable: 1}) {
			t.Errorf("errors %v", s.Errors)
		}
		if err := b.stop(); err != nil {
			t.Error(err)
		}
	})
}

// TestObserveFails: what is not seen changes neither the phase nor the count.
func TestObserveFails(t *testing.T) {
	for _, tc := range []struct {
		name     string
		from, to time.Duration
		hang     bool
		phases   []string // after the first two, until 20 s
		pauses   string   // what is said then
	}{
		{
			// Matched from 1 s; at 2 + 4.9 s it is observed again.
			"while scaling up", 2 * second, 6900 * ms, false,
			[]string{"6.9s: settled", "10s: scaling_down", "16s: settled"}, "",
		},
		{
			"while a step would be due", 8 * second, 12 * second, false,
			[]string{"6s: settled", "12s: scaling_down", "18s: settled"}, "",
		},
		{
			"once", 8 * second, 8*second + 50*ms, false,
			[]string{"6s: settled", "10s: scaling_down", "16s: settled"}, "",
		},
		{
			// It is paused, restored, and goes on when that has settled, after 1 + 5 s.
			"for 5 s", 2 * second, 7050 * ms, false,
			[]string{"7.05s: settled", "7.05s: scaling_down", "13.05s: settled", "13.05s: scaling_up", "19.05s: settled"},
			"churn pauses",
		},
		{
			// The call that hangs at 8 s is cut at 18 s, the next is at 18.05 s.
			"by hanging", 8 * second, 17 * second, true,
			[]string{"6s: settled", "18.05s: scaling_down"}, "churn pauses",
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := newFake(2)
				f.ready = second
				f.onObserve = func(ctx context.Context) error {
					if since := time.Since(f.start); since < tc.from || since >= tc.to {
						return nil
					}
					if tc.hang {
						<-ctx.Done()
						return ctx.Err()
					}
					return &Error{Unreachable, errors.New("nobody there")}
				}
				b := newBench(t, f, nil)
				b.run(t)
				b.at(tc.from + 10*ms)
				if s := b.snapshot(); s.State != Running || !tc.hang && (s.Reason != Unreachable || s.Desired != 4 || !s.LastBeat.Equal(b.start.Add(tc.from-50*ms))) {
					t.Errorf("%+v", s)
				}
				b.at(20*second - ms)
				b.wantPhases(t, append([]string{"0s: settled", "0s: scaling_up"}, tc.phases...)...)
				s := b.snapshot()
				if s.Errors != ([NumReasons]uint64{Unreachable: 1}) {
					t.Errorf("errors %v; want one", s.Errors)
				}
				for _, line := range []string{"observing fails", "observed again", tc.pauses} {
					if n := strings.Count(b.log.String(), line); line != "" && n != 1 {
						t.Errorf("%q was said %d times", line, n)
					}
				}
				if paused := s.State == Paused; (s.Reason != NoReason) != paused || !paused && strings.Contains(b.log.String(), "churn pauses") != (tc.pauses != "") {
					t.Errorf("%v, reason %v:\n%s", s.State, s.Reason, b.log)
				}
				if err := b.stop(); err != nil || f.count() != 2 {
					t.Errorf("%d replicas, %v", f.count(), err)
				}
			})
		})
	}
}

func TestCannotBegin(t *testing.T) {
	missing := &Error{NotFound, errors.New("no such deployment")}
	synctest.Test(t, func(t *testing.T) {
		f := newFake(2)
		f.onObserve = func(context.Context) error { return missing }
		b := newBench(t, f, nil)
		b.run(t)
		b.at(second)
		if s := b.snapshot(); s.State != Paused || s.Reason != NotFound || s.Phase != probe.Settled || s.Errors[NotFound] != 1 {
			t.Errorf("%+v", s)
		}
		err := b.stop()
		if err == nil || err.Error() != `beginning churn "shop": not_found: no such deployment` || !errors.Is(err, missing) {
			t.Errorf("got %v", err)
		}
	})
	synctest.Test(t, func(t *testing.T) { // it appears after a second
		f := newFake(2)
		f.onObserve = func(context.Context) error {
			if time.Since(f.start) < second {
				return missing
			}
			return nil
		}
		b := newBench(t, f, nil)
		b.run(t)
		b.at(1010 * ms)
		if s := b.snapshot(); s.State != Running || s.Reason != NoReason {
			t.Errorf("%+v", s)
		}
		b.wantScales(t, scaled{second, 4})
		if err := b.stop(); err != nil {
			t.Error(err)
		}
	})
	synctest.Test(t, func(t *testing.T) { // to be told to end at once is no error
		b := newBench(t, newFake(2), nil)
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if err := b.cycle.Run(ctx); err != nil {
			t.Error(err)
		}
		if b.observed != 0 {
			t.Errorf("observed %d times", b.observed)
		}
		// Nor is it after a Run that could not begin.
		f := b.fakeWorkload
		f.onObserve = func(context.Context) error { return missing }
		b.run(t)
		b.at(second)
		if err := b.stop(); !errors.Is(err, missing) {
			t.Errorf("got %v", err)
		}
		if err := b.cycle.Run(ctx); err != nil {
			t.Errorf("an error of the Run before: %v", err)
		}
	})
}

func TestStuck(t *testing.T) {
	for _, tc := range []struct {
		name   string
		base   int
		set    func(*fakeWorkload)
		phases []string
		scales []scaled
		steps  [NumDirections]uint64
	}{
		{
			"never ready", 2, func(f *fakeWorkload) { f.ready = time.Hour },
			[]string{"0s: settled", "0s: scaling_up", "5m0s: scaling_down"},
			[]scaled{{0, 4}, {5 * time.Minute, 2}}, [NumDirections]uint64{1, 0},
		},
		{
			"not found for ever", 2, func(f *fakeWorkload) { f.onScale = fail(1e6, false, &Error{NotFound, errors.New("no")}) },
			nil, nil, [NumDirections]uint64{},
		},
		{
			// The way back converges, and is no step.
			"never all ready", 2, func(f *fakeWorkload) {
				f.onScale = func(_ context.Context, replicas int) (bool, error) {
					f.breakReplicas(replicas - 2)
					return false, nil
				}
			},
			[]string{"0s: settled", "0s: scaling_up", "5m0s: scaling_down", "5m5.05s: settled"},
			[]scaled{{0, 4}, {5 * time.Minute, 2}}, [NumDirections]uint64{1, 0},
		},
		{
			// It is at the baseline already.
			"on the way to the baseline", 2, func(f *fakeWorkload) {
				f.onScale = func(_ context.Context, replicas int) (bool, error) {
					f.breakReplicas(4 - replicas)
					return false, nil
				}
			},
			[]string{"0s: settled", "0s: scaling_up", "5.05s: settled", "10s: scaling_down"},
			[]scaled{{0, 4}, {10 * second, 2}}, [NumDirections]uint64{1, 1},
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := newFake(tc.base)
				tc.set(f)
				b := newBench(t, f, nil)
				b.run(t)
				b.at(5*time.Minute - 100*ms)
				if s := b.snapshot(); s.State != Running {
					t.Errorf("state %v before the time", s.State)
				}
				b.at(6 * time.Minute)
				s := b.snapshot()
				if s.State != Paused || s.Reason != Stuck || s.Errors[Stuck] != 1 || s.RestorePending || s.Steps != tc.steps {
					t.Errorf("%+v", s)
				}
				if s.Convergence[Down].Count != 0 || s.Convergence[Up].Count != s.Steps[Down] {
					t.Errorf("%d up and %d down converged", s.Convergence[Up].Count, s.Convergence[Down].Count)
				}
				if tc.phases != nil {
					b.wantPhases(t, tc.phases...)
				}
				b.wantScales(t, tc.scales...)
				f.set(9) // is not ours any more
				b.at(7 * time.Minute)
				if err := b.stop(); err != nil || f.count() != 9 {
					t.Errorf("%d replicas, want 9 left alone: %v", f.count(), err)
				}
				if s := b.snapshot(); s.Errors[ExternalChange] != 0 || s.Reason != Stuck || s.State != Stopped {
					t.Errorf("at the end: %+v", s)
				}
			})
		})
	}
}

func TestBackOffIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake(2)
		var calls []time.Duration
		f.onScale = func(context.Context, int) (bool, error) {
			calls = append(calls, time.Since(f.start))
			return false, &Error{Unreachable, errors.New("away")}
		}
		b := newBench(t, f, nil)
		b.run(t)
		b.at(4 * time.Minute)
		// 50 ms × (1 + 2 + … + 2^(n-1)) until 50 ms × 2^10 is more than 30 s:
		// the 11th attempt is at 50 × 1,023 ms, then one each 30 s.
		for i, want := range []time.Duration{0, 50 * ms, 150 * ms, 350 * ms} {
			if calls[i] != want {
				t.Errorf("attempt %d at %v, want %v", i+1, calls[i], want)
			}
		}
		if calls[10] != 51150*ms || calls[11] != 81150*ms || len(calls) != 17 { // 81.15 + 5 × 30 s = 231.15
			t.Errorf("attempts at %v", calls)
		}
		if n := len(b.cycle.unclear); n != 1 {
			t.Errorf("%d counts are remembered, want 1", n)
		}
		if err := b.stop(); err != nil { // nothing was done
			t.Error(err)
		}
		if s := b.snapshot(); s.Reason != NoReason || s.RestorePending || len(b.cycle.unclear) != 0 {
			t.Errorf("at the end: %+v", s)
		}
	})
}

func TestMatchIsLostAndFoundAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake(2)
		f.ready = second
		b := newBench(t, f, nil)
		b.run(t)
		b.at(3 * second)
		f.breakReplicas(1)
		b.at(7 * second)
		f.breakReplicas(0)
		b.at(13 * second)
		// Matched from 7 s on, or from the observation after it.
		s := b.snapshot()
		if sum := s.Convergence[Up].Sum; sum < 7 || sum > 7.05 {
			t.Errorf("converged in %v s, want 7 to 7.05", sum)
		}
		if s.Since.Sub(b.start) < 12*second || s.Phase != probe.ScalingDown { // held until it settled
			t.Errorf("%v since %v", s.Phase, s.Since.Sub(b.start))
		}
		if err := b.stop(); err != nil {
			t.Error(err)
		}
	})
}
