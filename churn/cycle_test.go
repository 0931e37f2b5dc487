package churn

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/steadyprobe/steadyprobe/probe"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const ms = time.Millisecond

// upAndDown is the plan 4, 2 with the given hold.
func upAndDown(hold time.Duration) Plan {
	return Plan{Steps: []Step{{Replicas: 4, Hold: hold}, {Replicas: 2, Hold: hold}}}
}

// bench runs one Cycle on a fake workload and notes its phases.
type bench struct {
	*fakeWorkload
	cycle  *Cycle
	phases []string // "since the start: phase"
	log    *logBuffer

	cancel context.CancelFunc
	done   chan error
}

// newBench makes a Cycle with a settle time of 5 s, unless change says otherwise.
func newBench(t *testing.T, f *fakeWorkload, change func(*Options)) *bench {
	t.Helper()
	b := &bench{fakeWorkload: f, log: new(logBuffer)}
	o := Options{
		Name: "shop", Plan: upAndDown(10 * time.Second), Settle: 5 * time.Second, Workload: f,
		Logger: textLogger(b.log),
		Phase: func(p probe.ChurnPhase) {
			b.phases = append(b.phases, fmt.Sprintf("%v: %v", time.Since(f.start), p))
		},
	}
	if change != nil {
		change(&o)
	}
	c, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	b.cycle = c
	return b
}

func (b *bench) run(t *testing.T) {
	var ctx context.Context
	ctx, b.cancel = context.WithCancel(t.Context())
	b.done = make(chan error, 1)
	go func() { b.done <- b.cycle.Run(ctx) }()
}

// at waits until a time since the fake was made.
func (b *bench) at(since time.Duration) {
	b.publish()
	time.Sleep(since - time.Since(b.start))
	synctest.Wait()
}

func (b *bench) stop() error {
	b.cancel()
	return <-b.done
}

func (b *bench) snapshot() Snapshot {
	var s Snapshot
	b.cycle.Snapshot(&s)
	return s
}

func (b *bench) wantPhases(t *testing.T, want ...string) {
	t.Helper()
	if !slices.Equal(b.phases, want) {
		t.Errorf("phases\n  %s\nwant\n  %s", strings.Join(b.phases, "\n  "), strings.Join(want, "\n  "))
	}
}

func (b *bench) wantScales(t *testing.T, want ...scaled) {
	t.Helper()
	if got := b.scaledTo(); !slices.Equal(got, want) {
		t.Errorf("scaled %v, want %v", got, want)
	}
}

func TestCycleFollowsThePlan(t *testing.T) {
	for _, tc := range []struct {
		name   string
		hold   time.Duration
		settle time.Duration // 0: 5 s
		until  time.Duration
		phases []string
		scales []scaled
	}{
		{
			// A step takes 300 + 200 ms to match and settles 5 s later.
			name: "settle shorter than hold", hold: 10 * time.Second, until: 29 * time.Second,
			phases: []string{
				"0s: settled", "0s: scaling_up", "5.5s: settled", "10s: scaling_down", "15.5s: settled",
				"20s: scaling_up", "25.5s: settled",
			},
			scales: []scaled{{0, 4}, {10 * time.Second, 2}, {20 * time.Second, 4}},
		},
		{
			name: "settle longer than hold", hold: time.Second, until: 12 * time.Second,
			phases: []string{
				"0s: settled", "0s: scaling_up", "5.5s: settled", "5.5s: scaling_down", "11s: settled", "11s: scaling_up",
			},
			scales: []scaled{{0, 4}, {5500 * ms, 2}, {11 * time.Second, 4}},
		},
		{
			// 5,512 ms are no multiple of the time between two observations.
			name: "hold between two observations", hold: 5512 * ms, until: 10 * time.Second,
			phases: []string{"0s: settled", "0s: scaling_up", "5.5s: settled", "5.512s: scaling_down"},
			scales: []scaled{{0, 4}, {5512 * ms, 2}},
		},
		{
			name: "settle between two observations", hold: 10 * time.Second, settle: 3012 * ms, until: 14 * time.Second,
			phases: []string{"0s: settled", "0s: scaling_up", "3.512s: settled", "10s: scaling_down", "13.512s: settled"},
			scales: []scaled{{0, 4}, {10 * time.Second, 2}},
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := newFake(2)
				f.ready, f.endpoints = 300*ms, 200*ms
				b := newBench(t, f, func(o *Options) {
					o.Plan = upAndDown(tc.hold)
					o.Settle = cmp.Or(tc.settle, o.Settle)
				})
				b.run(t)
				b.at(tc.until)
				b.wantPhases(t, tc.phases...)
				b.wantScales(t, tc.scales...)
				if err := b.stop(); err != nil {
					t.Error(err)
				}
				if f.count() != 2 {
					t.Errorf("%d replicas were left, want the baseline 2", f.count())
				}
			})
		})
	}
}

func TestConvergenceIsExact(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake(2)
		f.ready, f.endpoints = 700*ms, 100*ms
		b := newBench(t, f, nil)
		b.run(t)
		b.at(29 * time.Second)
		s := b.snapshot()
		if s.Steps != [NumDirections]uint64{Up: 2, Down: 1} {
			t.Errorf("steps %v, want 2 up and 1 down", s.Steps)
		}
		// 700 + 100 ms after each call, which is a multiple of 50 ms.
		for d, count := range s.Steps {
			got := s.Convergence[d]
			if got.Count != count || got.Sum != 0.8*float64(count) {
				t.Errorf("%v: %d converged in %v s, want %d in 0.8 s each", Direction(d), got.Count, got.Sum, count)
			}
		}
		if up := s.Convergence[Up].Classic; up[3] != 2 { // 0.1, 0.25, 0.5, 1
			t.Errorf("up in buckets %v, want both in the fourth", up)
		}
		// The restore at the end is no step of the plan.
		if err := b.stop(); err != nil {
			t.Error(err)
		}
		if s := b.snapshot(); s.Steps[Down] != 1 || s.Convergence[Down].Count != 1 {
			t.Errorf("after the end: steps %v", s.Steps)
		}
	})
}

func TestStepToWhatThereIsScalesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake(4)
		f.ready = time.Second
		b := newBench(t, f, func(o *Options) {
			o.Plan.Steps = append(o.Plan.Steps, Step{Replicas: 2, Hold: 3 * time.Second})
		})
		b.run(t)
		b.at(24 * time.Second)
		// 4 is there until 10 s; 2 until 20 s, and for 3 s more.
		b.wantScales(t, scaled{10 * time.Second, 2}, scaled{23 * time.Second, 4})
		b.wantPhases(t, "0s: settled", "10s: scaling_down", "16s: settled", "23s: scaling_up")
		if s := b.snapshot(); s.Baseline != 4 || s.Steps != [NumDirections]uint64{1, 1} {
			t.Errorf("baseline %d, steps %v", s.Baseline, s.Steps)
		}
		if err := b.stop(); err != nil {
			t.Error(err)
		}
		b.wantScales(t, scaled{10 * time.Second, 2}, scaled{23 * time.Second, 4}) // 4 is the baseline
	})
}

func TestSnapshotOfARunningCycle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake(2)
		f.ready, f.endpoints = time.Second, time.Second
		b := newBench(t, f, nil)
		if s := b.snapshot(); s.Name != "shop" || s.State != Stopped || s.Phase != probe.NoChurn || !s.LastBeat.IsZero() || len(s.History) != 0 {
			t.Errorf("before it begins: %+v", s)
		}
		b.run(t)
		b.at(1500 * ms)
		s := b.snapshot()
		if s.State != Running || s.Reason != NoReason || s.Phase != probe.ScalingUp || s.RestorePending {
			t.Errorf("state %v, reason %v, phase %v, restore pending %v", s.State, s.Reason, s.Phase, s.RestorePending)
		}
		if s.Baseline != 2 || s.Observation != (Observation{4, 4, 2}) {
			t.Errorf("baseline %d, observed %+v", s.Baseline, s.Observation)
		}
		if !s.Since.Equal(b.start) || !s.LastBeat.Equal(b.start.Add(1500*ms)) {
			t.Errorf("since %v, last beat %v", s.Since.Sub(b.start), s.LastBeat.Sub(b.start))
		}
		if len(s.History) != 2 || s.History[0].Phase != probe.Settled || s.History[1] != (PhaseChange{probe.ScalingUp, s.Since}) {
			t.Errorf("history %v", s.History)
		}
		if err := b.stop(); err != nil {
			t.Error(err)
		}
		if s := b.snapshot(); s.State != Stopped || s.Reason != NoReason || s.RestorePending || s.Desired != 2 {
			t.Errorf("at the end: %+v", s)
		}
	})
}

// TestMaxCycles: then the baseline is restored, and nothing more is done.
func TestMaxCycles(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, book, all := newFake(3), new(fakeNotebook), new(told)
		b := newBench(t, f, func(o *Options) {
			o.Plan.MaxCycles, o.Notebook, o.Announce = 2, book, all.announce
		})
		b.run(t)
		b.at(35 * second)
		if s := b.snapshot(); s.State != Running || s.Cycles != 1 || !s.NextStep.Equal(b.start.Add(40*second)) || s.Next.Replicas != 4 {
			t.Errorf("%+v", s)
		}
		b.at(3 * time.Minute)
		s := b.snapshot()
		if s.State != Stopped || s.Reason != NoReason || s.Detail != "all 2 cycles are done" || s.Cycles != 2 || s.RestorePending || book.held().Held || !s.NextStep.IsZero() {
			t.Errorf("%+v, %+v", s, book.held())
		}
		b.wantScales(t, scaled{0, 4}, scaled{10 * second, 2}, scaled{20 * second, 4}, scaled{30 * second, 2}, scaled{40 * second, 3})
		f.set(9) // is nobody's business
		b.at(3*time.Minute + second)
		if err := b.stop(); err != nil || f.count() != 9 {
			t.Errorf("%d replicas, %v", f.count(), err)
		}
		if got := all.reasons(); got != "ScaledUp ScaledDown ScaledUp ScaledDown Stopped Restored" {
			t.Errorf("told %s", got)
		}
	})
}

func TestRunTwiceAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, newFake(2), nil)
		b.run(t)
		b.at(time.Second)
		if err := b.cycle.Run(t.Context()); err == nil || err.Error() != `running churn "shop": it runs already` {
			t.Errorf("got %v", err)
		}
		if err := b.stop(); err != nil {
			t.Error(err)
		}
	})
}

func TestSnapshotWhileItRuns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake(2)
		b := newBench(t, f, func(o *Options) { o.Settle, o.Plan = 0, upAndDown(70*ms) })
		b.run(t)
		var s Snapshot
		for range 999 {
			time.Sleep(7 * ms)
			b.cycle.Snapshot(&s)
			if n := len(s.History); s.History[n-1] != (PhaseChange{s.Phase, s.Since}) {
				t.Fatalf("history ends with %v, phase %v since %v", s.History[n-1], s.Phase, s.Since)
			}
		}
		if s.Steps[Up] != 50 || s.Steps[Down] != 50 { // one each 70 ms until 6.993 s: 100, the first at 0
			t.Errorf("steps %v", s.Steps)
		}
		if err := b.stop(); err != nil {
			t.Error(err)
		}
	})
}

// TestPhaseIsToldBeforeScale, and each call has a deadline.
func TestPhaseIsToldBeforeScale(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake(2)
		var b *bench
		var atScale []string
		f.onScale = func(ctx context.Context, _ int) (bool, error) {
			atScale = append(atScale, b.phases[len(b.phases)-1])
			if at, ok := ctx.Deadline(); !ok || time.Until(at) != DefaultCallTimeout {
				t.Errorf("Scale has until %v", time.Until(at))
			}
			return false, nil
		}
		f.onObserve = func(ctx context.Context) error {
			if at, ok := ctx.Deadline(); !ok || time.Until(at) > DefaultCallTimeout {
				t.Errorf("Observe has until %v", time.Until(at))
			}
			return nil
		}
		b = newBench(t, f, nil)
		b.run(t)
		b.at(21 * time.Second)
		if err := b.stop(); err != nil {
			t.Error(err)
		}
		want := []string{"0s: scaling_up", "10s: scaling_down", "20s: scaling_up", "21s: scaling_down"}
		if !slices.Equal(atScale, want) {
			t.Errorf("when Scale was called, told last: %v, want %v", atScale, want)
		}
	})
}
