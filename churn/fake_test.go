package churn

import (
	"context"
	"fmt"
	"sync"
	"time"
)

// scaled is one call of Scale that took effect.
type scaled struct {
	at       time.Duration // since the fake was made
	replicas int
}

// fakeWorkload is a workload whose replicas follow the desired count after a
// time, and its endpoints after one more.
type fakeWorkload struct {
	ready, endpoints time.Duration // the lags

	// Both are asked first, where they are set; an error is what the call
	// returns, and done says whether Scale takes effect although it fails.
	onScale   func(ctx context.Context, replicas int) (done bool, err error)
	onObserve func(ctx context.Context) error

	mu       sync.Mutex
	start    time.Time
	desired  int
	before   int       // what it was scaled from
	changed  time.Time // when
	broken   int       // replicas that are not ready
	scales   []scaled
	observed int
}

func newFake(replicas int) *fakeWorkload {
	return &fakeWorkload{start: time.Now(), desired: replicas, before: replicas}
}

// set is what anybody may do.
func (f *fakeWorkload) set(replicas int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.before, f.desired, f.changed = f.desired, replicas, time.Now()
}

func (f *fakeWorkload) breakReplicas(n int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.broken = n
}

func (f *fakeWorkload) count() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.desired
}

func (f *fakeWorkload) Scale(ctx context.Context, replicas int) error {
	if f.onScale != nil {
		if done, err := f.onScale(ctx, replicas); err != nil {
			if done {
				f.apply(replicas)
			}
			return err
		}
	}
	f.apply(replicas)
	return nil
}

func (f *fakeWorkload) apply(replicas int) {
	f.set(replicas)
	f.mu.Lock()
	defer f.mu.Unlock()
	f.scales = append(f.scales, scaled{time.Since(f.start), replicas})
}

func (f *fakeWorkload) Observe(ctx context.Context) (Observation, error) {
	if f.onObserve != nil {
		if err := f.onObserve(ctx); err != nil {
			return Observation{}, err
		}
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.observed++
	o := Observation{Desired: f.desired, Ready: f.before, Endpoints: f.before}
	if since := time.Since(f.changed); since >= f.ready {
		o.Ready = f.desired - f.broken
		if since >= f.ready+f.endpoints {
			o.Endpoints = f.desired - f.broken
		}
	}
	return o, nil
}

func (f *fakeWorkload) scaledTo() []scaled {
	f.mu.Lock()
	defer f.mu.Unlock()
	return append([]scaled(nil), f.scales...)
}

// String is how a failed test shows a call.
func (s scaled) String() string { return fmt.Sprintf("%v: %d", s.at, s.replicas) }
