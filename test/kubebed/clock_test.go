package kubebed

import (
	"context"
	"sync"
	"testing"
	"time"

	coordination "k8s.io/api/coordination/v1"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/steadyprobe/steadyprobe/internal/testbed"
)

// forger holds the lease of a churn as another daemon would, one whose clock is
// wrong.
type forger struct {
	s      *stand
	offset time.Duration // of its clock
	end    context.CancelFunc
	over   sync.WaitGroup
}

// forge takes the lease of the stand's churn and renews it until stop is called.
func forge(s *stand, offset time.Duration) *forger {
	s.t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	f := &forger{s: s, offset: offset, end: cancel}
	s.t.Cleanup(f.stop)
	leases := s.b.Client.CoordinationV1().Leases(s.Probes)
	holder, seconds, turns := "forger", int32(lease.Seconds()), int32(0)
	now := f.now()
	object, err := leases.Create(ctx, &coordination.Lease{
		ObjectMeta: meta.ObjectMeta{Name: s.leaseName()},
		Spec: coordination.LeaseSpec{
			HolderIdentity: &holder, LeaseDurationSeconds: &seconds, LeaseTransitions: &turns, AcquireTime: &now, RenewTime: &now,
		},
	}, meta.CreateOptions{})
	if err != nil {
		s.t.Fatalf("forging the lease: %v", err)
	}
	f.over.Go(func() {
		for ctx.Err() == nil {
			select {
			case <-ctx.Done():
				return
			case <-time.After(time.Second):
			}
			now := f.now()
			object.Spec.RenewTime = &now
			renewed, err := leases.Update(ctx, object, meta.UpdateOptions{})
			if err != nil && ctx.Err() == nil {
				s.t.Errorf("renewing the forged lease: %v", err)
				return
			}
			object = renewed
		}
	})
	return f
}

func (f *forger) now() meta.MicroTime { return meta.NewMicroTime(time.Now().Add(f.offset)) }

// stop lets the lease run out. It may be called again.
func (f *forger) stop() {
	f.end()
	f.over.Wait()
}

// leaseName returns the name of the Lease of the stand's churn.
func (s *stand) leaseName() string { return "steadyprobe-churn-" + s.Churn }

// clocks has a daemon stand by while another one leads whose clock is a minute
// off. What counts is when the daemon sees a renewal, and not what it says: a
// leader that lives is not robbed, and one that is gone is not waited for longer.
func clocks(t *testing.T, s *stand, offset time.Duration) {
	f := forge(s, offset)
	p := s.start(quick())
	for began := time.Now(); time.Since(began) < 2*lease; time.Sleep(100 * time.Millisecond) {
		if now := s.scrape(p); leads(now) || desired(now) != 0 && desired(now) != baseline {
			t.Fatalf("while another daemon leads, this one leads: %t, with %d replicas", leads(now), desired(now))
		}
	}
	if !in("standby")(s.scrape(p)) {
		t.Error("the daemon does not stand by")
	}
	f.stop()
	ended := time.Now()
	s.waitFor(p, "the daemon to lead", leads)
	if took := time.Since(ended); took < lease/2 || took > 2*lease {
		t.Errorf("the daemon leads %v after the last renewal, want it soon after the lease of %v has run out", took, lease)
	}
	s.waitFor(p, "the first step", func(now testbed.Scrape) bool { return desired(now) == 4 })
	p.Stop()
	s.back()
}
