package kubebed

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/steadyprobe/steadyprobe/internal/testbed"
)

// brake takes the annotation away, as an owner does who cannot reach the probe,
// and puts it there again.
func brake(t *testing.T, s *stand) {
	p := s.start(quick())
	s.waitFor(p, "4 replicas", func(now testbed.Scrape) bool { return desired(now) == 4 })
	s.b.Kubectl("-n", s.Namespace, "annotate", "deployment/web", "steadyprobe.io/churn-")
	s.waitFor(p, "the churn to be refused", func(now testbed.Scrape) bool { return in("paused")(now) && s.errors(now, "refused") > 0 })
	s.restored(t, s.ended())
	mark := s.mark()
	time.Sleep(2 * quickHold)
	if counts := s.since(mark); !slices.Equal(counts, []int{baseline}) {
		t.Errorf("replicas went %v while the owner does not allow it, want the baseline", counts)
	}
	s.b.Kubectl("-n", s.Namespace, "annotate", "deployment/web", "steadyprobe.io/churn="+s.Probes+"/"+s.Churn)
	s.waitFor(p, "the cycle to go on", func(now testbed.Scrape) bool { return desired(now) == 4 })
	s.goodProbing(p, nil)
	p.Stop()
	s.back()
}

// external has a person scale the workload. It is left alone, also at the end.
func external(t *testing.T, s *stand) {
	const theirs = 5
	p := s.start(quick())
	s.waitFor(p, "4 replicas", func(now testbed.Scrape) bool { return desired(now) == 4 })
	s.b.Kubectl("-n", s.Namespace, "scale", "deployment/web", fmt.Sprintf("--replicas=%d", theirs))
	s.waitFor(p, "the churn to stop", in("stopped"))
	if s.errors(s.scrape(p), "external_change") != 1 {
		t.Error("want one error of reason external_change")
	}
	mark := s.mark()
	time.Sleep(2 * quickHold)
	s.goodProbing(p, nil)
	p.Stop()
	p.Start() // and what was theirs is not taken for a baseline that is owed
	s.waitFor(p, "the daemon to lead", leads)
	if counts := s.since(mark); counts[0] != theirs || slices.Contains(counts, baseline) {
		t.Errorf("replicas went %v after somebody else had asked for %d, want them to be left alone", counts, theirs)
	}
	p.Stop()
	if got := s.b.Replicas(s.Namespace, "web"); got != theirs {
		t.Errorf("replicas after the end = %d, want the %d that the daemon has found", got, theirs)
	}
}

// autoscaler has an autoscaler appear in the middle of a step. When that is seen,
// which may take some steps, the baseline is restored, and the churn pauses until
// it is gone.
func autoscaler(t *testing.T, s *stand) {
	p := s.start(quick())
	s.waitFor(p, "4 replicas", func(now testbed.Scrape) bool { return desired(now) == 4 })
	s.b.Kubectl("-n", s.Namespace, "autoscale", "deployment/web", "--min=1", "--max=10", "--cpu=50%")
	s.waitFor(p, "the churn to be refused", func(now testbed.Scrape) bool { return in("paused")(now) && s.errors(now, "refused") > 0 })
	s.restored(t, s.ended())
	mark := s.mark()
	time.Sleep(2 * quickHold)
	if counts := s.since(mark); !slices.Equal(counts, []int{baseline}) {
		t.Errorf("replicas went %v while there is an autoscaler, want the baseline", counts)
	}
	s.b.Kubectl("-n", s.Namespace, "delete", "horizontalpodautoscaler/web")
	s.waitFor(p, "the cycle to go on", func(now testbed.Scrape) bool { return desired(now) == 4 })
	p.Stop()
	s.back()
}

// stuck has new pods that never become ready. The step is given up, and the baseline
// restored.
func stuck(t *testing.T, s *stand) {
	s.b.NeverReady(s.Namespace)
	c := quick()
	c.StuckAfter = 3 * time.Second
	p := s.start(c)
	mark := s.mark()
	s.waitFor(p, "the step to be given up", func(now testbed.Scrape) bool { return s.errors(now, "stuck") == 1 })
	testbed.WaitFor(t, "the baseline", limit, func() bool { counts := s.since(mark); return counts[len(counts)-1] == baseline && len(counts) > 1 })
	if counts := s.since(mark); !slices.Equal(counts, []int{baseline, 4, baseline}) {
		t.Errorf("replicas went %v, want 4 and back", counts)
	}
	s.goodProbing(p, nil)
	p.Stop()
	s.back()
}
