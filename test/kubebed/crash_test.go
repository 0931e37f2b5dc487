package kubebed

import (
	"slices"
	"testing"
	"time"

	"github.com/steadyprobe/steadyprobe/internal/testbed"
	"github.com/steadyprobe/steadyprobe/test/kubebed/bed"
)

// crashes kills a daemon at every point of a cycle. Whoever comes next, here the
// same daemon started again, must put the baseline back before it does anything
// else.
func crashes(t *testing.T, b *bed.Bed) {
	hangScaling := bed.Behaviour{Hang: true, Only: scaling}
	phaseAt := func(name string, replicas int) func(testbed.Scrape) bool {
		return func(s testbed.Scrape) bool { return phase(s) == name && desired(s) == replicas }
	}
	for _, row := range []struct {
		name   string
		before bed.Behaviour                                  // of the front, from the start
		at     func(testbed.Scrape) bool                      // when the daemon is killed; nil: see until
		until  func(*testing.T, *stand, *testbed.ProbeServer) // brings it to where it is killed
	}{
		{name: "when nothing is changed yet", before: hangScaling, until: func(t *testing.T, s *stand, _ *testbed.ProbeServer) {
			s.waitForScaling(1)
		}},
		{name: "when the answer to the first change is lost", before: bed.Behaviour{LoseAnswer: true, Only: scaling}, until: func(t *testing.T, s *stand, _ *testbed.ProbeServer) {
			s.waitForScaling(1)
			testbed.WaitFor(t, "the change", limit, func() bool { return s.mark() > 0 })
		}},
		{name: "scaling up", at: phaseAt("scaling_up", 4)},
		{name: "settled after up", at: phaseAt("settled", 4)},
		{name: "scaling down", at: phaseAt("scaling_down", 2)},
		{name: "settled after down", at: phaseAt("settled", 2)},
		{name: "restoring", until: func(t *testing.T, s *stand, p *testbed.ProbeServer) {
			s.waitFor(p, "4 replicas", phaseAt("settled", 4))
			s.front.Set(hangScaling)
			asked := s.scalings()
			p.Terminate()
			s.waitForScaling(asked + 1)
		}},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			s := newStand(t, b.In(t))
			s.front.Set(row.before)
			p := s.start(quick())
			if row.at != nil {
				s.waitFor(p, row.name, row.at)
			} else {
				row.until(t, s, p)
			}
			p.Kill()
			mark := s.ended()
			s.front.Set(bed.Behaviour{})
			p.Start()
			s.restored(t, mark)
			s.waitFor(p, "the cycle to go on", func(now testbed.Scrape) bool { return desired(now) == 4 && phase(now) == "scaling_up" })
			p.Stop()
			s.back()
		})
	}
}

// scalings returns how often the workload was asked to be scaled, through the
// front.
func (s *stand) scalings() int {
	return s.front.Requests()["PATCH /apis/apps/v1/namespaces/"+s.Namespace+"/deployments/web/scale"]
}

// waitForScaling waits until the workload was asked to be scaled so often.
func (s *stand) waitForScaling(n int) {
	s.t.Helper()
	testbed.WaitFor(s.t, "the workload to be scaled", limit, func() bool { return s.scalings() >= n })
}

// twoDaemons has two daemons with the same churn. Exactly one of them churns,
// both say in which phase it is, and when the one that leads ends, the other
// one goes on.
func twoDaemons(t *testing.T, s *stand) {
	first := s.start(quick())
	s.waitFor(first, "the first daemon to lead", leads)
	second := s.start(quick())
	s.waitFor(second, "the second daemon to stand by", in("standby"))

	// Both see the same phases. Their scrapes are not of one instant, so that only
	// what they have seen in all is compared.
	seen := map[string]map[string]bool{"first": {}, "second": {}}
	all := func(phases map[string]bool) bool {
		return phases["scaling_up"] && phases["scaling_down"] && phases["settled"]
	}
	enough := func(d time.Duration) bool {
		return d >= limit || d >= 4*quickHold && all(seen["first"]) && all(seen["second"])
	}
	for began := time.Now(); !enough(time.Since(began)); time.Sleep(50 * time.Millisecond) {
		one, other := s.scrape(first), s.scrape(second)
		seen["first"][phase(one)], seen["second"][phase(other)] = true, true
		if !leads(one) || leads(other) {
			t.Fatalf("leaders: %t and %t, want the first daemon only", leads(one), leads(other))
		}
	}
	for name, phases := range seen {
		if !all(phases) {
			t.Errorf("the %s daemon saw the phases %v, want all three", name, phases)
		}
	}
	if steps := s.scrape(second).Sum("steadyprobe_churn_steps_total"); steps != 0 {
		t.Errorf("the daemon that stands by made %v steps, want none", steps)
	}

	// A clean end restores, then gives the lease up: the other one need not wait
	// until it has run out.
	mark := s.mark()
	first.Stop()
	ended := time.Now()
	testbed.WaitFor(t, "the baseline", limit, func() bool { return slices.Contains(s.since(mark), baseline) })
	s.waitFor(second, "the second daemon to lead", leads)
	t.Logf("hand-over after a clean end: %v", time.Since(ended))
	first.Start()
	s.waitFor(first, "the first daemon to stand by", in("standby"))

	// A crash: the lease has to run out.
	s.waitFor(second, "4 replicas", func(now testbed.Scrape) bool { return desired(now) == 4 })
	second.Kill()
	ended = time.Now()
	mark = s.ended()
	s.waitFor(first, "the first daemon to lead", leads)
	handOver := time.Since(ended)
	t.Logf("hand-over after a crash: %v", handOver)
	if handOver > 2*lease {
		t.Errorf("the first daemon leads %v after the crash of the second one, want it soon after the lease of %v has run out", handOver, lease)
	}
	s.restored(t, mark)
	second.Start()
	s.waitFor(second, "the second daemon to stand by", in("standby"))
	second.Stop()
	s.goodProbing(first, nil)
	first.Stop()
	s.back()
}
