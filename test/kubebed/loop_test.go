package kubebed

import (
	"fmt"
	"math"
	"os"
	"testing"
	"time"

	"github.com/steadyprobe/steadyprobe/internal/testbed"
	"github.com/steadyprobe/steadyprobe/test/kubebed/bed"
)

// loopFor says how long the loop of study two runs, for each pair of doors;
// shortLoop if it is not set.
const (
	loopFor   = "STEADYPROBE_LOOP"
	shortLoop = 30 * time.Second
)

// TestStudyTwo repeats study two: the workload has 4 and 2 replicas in turn, each
// for 10 seconds, while a door that is reloaded and one of the same make that is
// not are asked 1,000 times a second each, over TLS 1.3. Every step must converge,
// every request must be accounted for, and the door that is reloaded must be
// seen to be worse.
func TestStudyTwo(t *testing.T) {
	length := shortLoop
	if text := os.Getenv(loopFor); text != "" {
		var err error
		if length, err = time.ParseDuration(text); err != nil {
			t.Fatalf("reading %s: %v", loopFor, err)
		}
	}
	b := bed.Start(t)
	for _, row := range []struct {
		name            string
		reloading, calm bed.DoorKind
	}{
		{"haproxy", bed.HAProxyReloading, bed.HAProxyRuntime},
		{"nginx", bed.NGINXReloading, bed.NGINXFixed},
	} {
		t.Run(row.name, func(t *testing.T) {
			const baseline = 3 // which none of the steps asks for
			b := b.In(t)
			shop := b.Shop(baseline, row.reloading, row.calm)
			p := b.Probe(shop.Configuration(bed.StudyTwo()))
			l := newLoop(t, shop, p)
			l.watch(length)
			l.everyStepConverged(length)
			reloading, calm := l.harm[row.reloading], l.harm[row.calm]
			t.Logf("\n%v\n%v", reloading, calm)
			reloading.isWorse(t, calm)
			p.Stop()
			if got := b.Replicas(shop.Namespace, "web"); got != baseline {
				t.Errorf("replicas after the end = %d, want the baseline %d", got, baseline)
			}
		})
	}
}

// loop looks at a probe while the workload of a shop is churned.
type loop struct {
	t     *testing.T
	shop  *bed.Shop
	probe *testbed.ProbeServer
	last  testbed.Scrape
	harm  map[bed.DoorKind]*harm
}

func newLoop(t *testing.T, shop *bed.Shop, p *testbed.ProbeServer) *loop {
	l := &loop{t: t, shop: shop, probe: p, harm: map[bed.DoorKind]*harm{}}
	for _, d := range shop.Doors {
		l.harm[d.Kind] = &harm{door: d}
	}
	return l
}

// watch scrapes the probe again and again, for the given time and until the
// step that is under way then has converged, and holds every target's account
// to what must be true.
func (l *loop) watch(length time.Duration) {
	l.t.Helper()
	for began := time.Now(); time.Since(began) < length || !l.settled(); time.Sleep(500 * time.Millisecond) {
		if time.Since(began) > length+limit {
			l.t.Fatalf("a step did not converge within %v", limit)
		}
		now, err := l.probe.Scrape()
		if err != nil {
			l.t.Fatal(err)
		}
		for _, d := range l.shop.Doors {
			if err := now.CheckAccount(d.Kind.String(), l.last); err != nil {
				l.t.Error(err)
			}
		}
		before := l.settled()
		earlier := l.last
		l.last = now
		for _, h := range l.harm {
			h.add(earlier, now, before && l.settled())
		}
	}
}

// churn returns a metric of the churn.
func (l *loop) churn(name string, labels ...string) float64 {
	return l.last.Sum("steadyprobe_churn_"+name, append(labels, "churn", l.shop.Churn)...)
}

// settled reports whether no step was under way at the last scrape.
func (l *loop) settled() bool { return l.last != nil && l.churn("phase", "phase", "settled") == 1 }

// everyStepConverged checks that steps were made all the time, and what came of
// each.
func (l *loop) everyStepConverged(length time.Duration) {
	l.t.Helper()
	// A step takes longer than it is held where it settles late: a quarter of them
	// may.
	steps := l.churn("steps_total")
	if least := math.Floor(0.75 * length.Seconds() / bed.StudyTwo().Hold.Seconds()); steps < least {
		l.t.Errorf("%v steps in %v, want %v or more", steps, length, least)
	}
	if converged := l.churn("convergence_seconds"); converged != steps {
		l.t.Errorf("%v of %v steps converged", converged, steps)
	}
	for _, m := range l.last["steadyprobe_churn_errors_total"].GetMetric() {
		if n := m.GetCounter().GetValue(); n != 0 {
			l.t.Errorf("%v errors of the churn of reason %q, want none", n, testbed.Label(m, "reason"))
		}
	}
}

// slow is what a request takes on a new connection, but seldom on one that is
// open: one of the bounds of the histogram.
const slow = 0.001

// harm is what the users of a door felt.
type harm struct {
	door                     *bed.Door
	opened, openedSettled    float64 // connections, with a handshake each: while scaling, and else
	requests, failures, slow float64 // of the scaling phases so far
}

// add takes what happened between two scrapes.
func (h *harm) add(before, now testbed.Scrape, settled bool) {
	of := func(s testbed.Scrape, name string, labels ...string) float64 {
		return s.Sum("steadyprobe_"+name, append(labels, "target", h.door.Kind.String())...)
	}
	if before != nil { // the first ones are opened because there were none
		opened := of(now, "tls_handshakes_total") - of(before, "tls_handshakes_total")
		if settled {
			h.openedSettled += opened
		} else {
			h.opened += opened
		}
	}
	h.requests, h.failures, h.slow = 0, 0, 0
	for _, phase := range []string{"scaling_up", "scaling_down"} {
		h.requests += of(now, "requests_total", "churn_phase", phase)
		h.failures += of(now, "request_failures_total", "churn_phase", phase)
		h.slow += now.Above("steadyprobe_latency_seconds", slow, "target", h.door.Kind.String(), "churn_phase", phase)
	}
}

// isWorse checks that a door that is reloaded does worse than one that is not,
// both asked at the same time.
func (h *harm) isWorse(t *testing.T, calm *harm) {
	t.Helper()
	reloads := float64(h.door.Reloads())
	if reloads == 0 || calm.door.Reloads() != 0 {
		t.Errorf("reloads = %v and %d, want some and none", reloads, calm.door.Reloads())
	}
	// A reload closes all connections. Some may be busy then, and be closed later.
	if least := reloads * float64(bed.StudyTwo().Connections) / 2; h.opened < least {
		t.Errorf("%v opened %v connections anew while scaling, want %v or more for %v reloads", h.door.Kind, h.opened, least, reloads)
	}
	if most := h.opened / 10; calm.opened > most {
		t.Errorf("%v opened %v connections anew while scaling, want a tenth of what %v did, %v, or fewer", calm.door.Kind, calm.opened, h.door.Kind, most)
	}
	// Whoever opens one feels it. What else makes requests slow, such as a machine
	// that is busy, does so for both doors.
	if more := h.slow - calm.slow; more < h.opened/4 {
		t.Errorf("while scaling, %v requests took more than %v s through %v, and %v through %v: want more of them by a quarter of the connections that were opened, %v",
			h.slow, slow, h.door.Kind, calm.slow, calm.door.Kind, h.opened/4)
	}
}

func (h *harm) String() string {
	return fmt.Sprintf("%-18v %3d reloads; while scaling %6.0f requests, of them %5.0f took more than %v s and %3.0f failed; %4.0f connections opened anew while scaling, %3.0f else",
		h.door.Kind, h.door.Reloads(), h.requests, h.slow, slow, h.failures, h.opened, h.openedSettled)
}
