package app

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/steadyprobe/steadyprobe/churn"
	"github.com/steadyprobe/steadyprobe/config"
	"github.com/steadyprobe/steadyprobe/internal/faultdoor"
)

// fakeWorkload has 2 replicas, and has those that it is scaled to at once.
type fakeWorkload struct {
	onScale func(replicas int) // nil: nothing

	mu       sync.Mutex
	replicas int // more than 2
}

func (f *fakeWorkload) Scale(_ context.Context, replicas int) error {
	if f.onScale != nil {
		f.onScale(replicas)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.replicas = replicas - 2
	return nil
}

func (f *fakeWorkload) Observe(context.Context) (churn.Observation, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	n := 2 + f.replicas
	return churn.Observation{Desired: n, Ready: n, Endpoints: n}, nil
}

// As long as the baseline is not restored there is traffic, and how the targets
// fare is observed.
func TestTargetsAreObservedUntilTheBaselineIsRestored(t *testing.T) {
	door := faultdoor.Listen(t, good())
	text := "targets:\n" + targetOf("one", door.URL("http"), "rate: 100, churn: a") +
		"churns: [{name: a, embedded: {}, dry_run: false, steps: [{replicas: 4, hold: 1h}]}]\n"
	loaded, _, err := config.Parse([]byte(text), "test.yml")
	if err != nil {
		t.Fatal(err)
	}
	scaled, restore := make(chan int), make(chan struct{})
	workload := &fakeWorkload{onScale: func(replicas int) {
		scaled <- replicas
		if replicas == 2 {
			<-restore
		}
	}}
	d := &daemon{options: options(""), config: loaded, embedded: workload, loaded: time.Now()}
	if err := d.build(); err != nil {
		t.Fatal(err)
	}
	defer d.engine.close()
	defer d.closeDiscovery()
	ctx, cancel := context.WithCancel(t.Context())
	d.start(ctx)
	if n := <-scaled; n != 4 {
		t.Errorf("scaled to %d, want 4", n)
	}
	cancel()
	stopped := make(chan struct{})
	go func() {
		defer close(stopped)
		d.stop()
	}()
	if n := <-scaled; n != 2 {
		t.Errorf("scaled to %d at the end, want the baseline 2", n)
	}
	before := d.observer.of(d.named("one").target).past.seen
	eventually(t, "the next observation", func() bool { return d.observer.of(d.named("one").target).past.seen > before })
	close(restore)
	<-stopped
}
