package churn

import (
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
	log    *strings.Builder

	cancel context.CancelFunc
	done   chan error
}

// newBench makes a Cycle with a settle time of 5 s, unless change says otherwise.
func newBench(t *testing.T, f *fakeWorkload, change func(*Options)) *bench {
	t.Helper()
	b := &bench{fakeWorkload: f, log: new(strings.Builder)}
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
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := newFake(2)
				f.ready, f.endpoints = 300*ms, 200*ms
				b := newBench(t, f, func(o *Options) { o.Plan = upAndDown(tc.hold) })
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
