package app

import (
	"context"
	"fmt"
	"sync"
	"testing"

	"github.com/steadyprobe/steadyprobe/churn"
	"github.com/steadyprobe/steadyprobe/internal/faultdoor"
)

// fakeShop is a workload and the door in front of it, which deals requests over
// the replicas in turn, and says in each answer which one it was. A replica that
// is scaled up is a new one.
type fakeShop struct {
	mu       sync.Mutex
	replicas []string
	made     int
	failing  bool // the door fails every request
	turn     int
}

func newFakeShop(replicas int) *fakeShop {
	s := &fakeShop{}
	_ = s.Scale(context.Background(), replicas)
	return s
}

func (s *fakeShop) Scale(_ context.Context, replicas int) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	for len(s.replicas) < replicas {
		s.made++
		s.replicas = append(s.replicas, fmt.Sprintf("web-%d", s.made))
	}
	s.replicas = s.replicas[:replicas]
	return nil
}

func (s *fakeShop) Kill(ctx context.Context, n int) error {
	return s.Scale(ctx, len(s.replicas)-n)
}

func (s *fakeShop) Observe(context.Context) (churn.Observation, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := len(s.replicas)
	return churn.Observation{Desired: n, Ready: n, Endpoints: n}, nil
}

// fail makes the door fail all requests from now on, or none.
func (s *fakeShop) fail(all bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.failing = all
}

func (s *fakeShop) answer() faultdoor.Answer {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.turn++
	a := faultdoor.Answer{Header: []string{"X-Backend: " + s.replicas[s.turn%len(s.replicas)]}, Body: []byte("ok\n")}
	if s.failing {
		a.Code = 503
	}
	return a
}

// open returns a door in front of the shop.
func (s *fakeShop) open(t *testing.T) *faultdoor.Door {
	return faultdoor.Listen(t, faultdoor.HTTP(func(c *faultdoor.Conn, r *faultdoor.Request) error { return c.Answer(r, s.answer()) }))
}

func (d *daemon) snapshot() (s churn.Snapshot) {
	d.churns.list()[0].cycle.Snapshot(&s)
	return s
}

// TestTheTrafficEndsAChurn lets the door fail once the backend is scaled: the
// baseline is put back, and the probe's page says why.
func TestTheTrafficEndsAChurn(t *testing.T) {
	shop := newFakeShop(2)
	door := shop.open(t)
	d := built(t, "targets:\n"+targetOf("one", door.URL("http"), "rate: 200, churn: a")+
		"churns: [{name: a, embedded: {}, dry_run: false, settle: 0s, steps: [{replicas: 4, hold: 1h}], abort_when: {failures: 50%, window: 1s}}]\n", shop)
	ctx, cancel := context.WithCancel(t.Context())
	d.start(ctx)
	eventually(t, "the step", func() bool { return d.snapshot().Desired == 4 })
	if s := d.snapshot(); s.State != churn.Running {
		t.Errorf("before anything fails the state is %v: %s", s.State, s.Detail)
	}
	shop.fail(true)
	eventually(t, "the baseline", func() bool {
		s := d.snapshot()
		return s.Desired == 2 && s.State == churn.Paused && s.Reason == churn.Aborted
	})
	v := d.churns.view()[0]
	if v.Cause != "aborted" || v.Reason == "" || v.PausedUntil.IsZero() || v.Errors["aborted"] != 1 || v.RestorePending {
		t.Errorf("the churn is shown as %+v", v)
	}
	cancel()
	d.stop()
}

// TestWhatADoorMakesOfSteps finds the first answer of new backends, the last
// one of removed ones, and how long the door failed after some were killed.
func TestWhatADoorMakesOfSteps(t *testing.T) {
	shop := newFakeShop(2)
	door := shop.open(t)
	d := built(t, "targets:\n"+targetOf("one", door.URL("http"), "rate: 500, churn: a, backend: {header: X-Backend}")+
		"churns: [{name: a, embedded: {}, dry_run: false, settle: 0s, max_cycles: 1, floor: 1, ceiling: 4, abort_when: {failures: 100%},\n"+
		"  steps: [{replicas: 2, hold: 500ms}, {replicas: 4, hold: 500ms}, {kill: 1, hold: 500ms}]}]\n", shop)
	ctx, cancel := context.WithCancel(t.Context())
	d.start(ctx)
	eventually(t, "the end of the cycle", func() bool { s := d.snapshot(); return s.Cycles == 1 && s.State == churn.Stopped && !s.RestorePending })
	s := d.snapshot()
	// 2 → 4, 4 → 3 by a kill that no request meets; what is known of a step is
	// known with the next call, that to the baseline.
	if s.FirstResponse.Count != 1 || s.LastResponse.Count != 1 || s.Failover.Count != 1 || s.Failover.Sum != 0 {
		t.Errorf("felt were %d first and %d last answers and %d fail-overs of %v s, want 1, 1 and 1 of 0 s",
			s.FirstResponse.Count, s.LastResponse.Count, s.Failover.Count, s.Failover.Sum)
	}
	if s.Kills != 1 || s.Desired != 2 {
		t.Errorf("%d kills and %d replicas at the end, want 1 and the baseline", s.Kills, s.Desired)
	}
	cancel()
	d.stop()
}
