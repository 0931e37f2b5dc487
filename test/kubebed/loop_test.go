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

// loopFor says how long the loop of study two runs; a minute if it is not set.
const loopFor = "STEADYPROBE_LOOP"

// What study two asked of each door.
const (
	loopRate        = 1000
	loopConnections = 50
)

// TestStudyTwo repeats study two: the workload has 4 and 2 replicas in turn, each
// for 10 seconds, while every door is asked 1,000 times a second over TLS 1.3. Every
// step must converge, every request must be accounted for, and doors that are
// reloaded must be seen to be worse.
func TestStudyTwo(t *testing.T) {
	length := time.Minute
	if text := os.Getenv(loopFor); text != "" {
		var err error
		if length, err = time.ParseDuration(text); err != nil {
			t.Fatalf("reading %s: %v", loopFor, err)
		}
	}
	b := bed.Start(t)
	const baseline = 3 // neither of the steps
	shop := b.Shop(baseline)
	p := b.Probe(shop.Configuration(loopRate, loopConnections))
	began := time.Now()
	var last testbed.Scrape
	for time.Since(began) < length {
		now, err := p.Scrape()
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range shop.Doors {
			if err := now.CheckAccount(d.Kind.String(), last); err != nil {
				t.Error(err)
			}
		}
		last = now
		time.Sleep(time.Second)
	}
	churns := func(name string, labels ...string) float64 {
		return last.Sum("steadyprobe_churn_"+name, append(labels, "churn", shop.Churn)...)
	}
	testbed.WaitFor(t, "the last step to converge", limit, func() bool {
		now, err := p.Scrape()
		if err != nil {
			t.Fatal(err)
		}
		last = now
		return churns("phase", "phase", "settled") == 1
	})
	// A step every 10 seconds, but for those that take longer than that to settle.
	steps := churns("steps_total")
	if least := math.Floor(length.Seconds()/10) * 0.75; steps < least {
		t.Errorf("%v steps in %v, want %v or more", steps, length, least)
	}
	if converged := churns("convergence_seconds"); converged != steps {
		t.Errorf("%v of %v steps converged, errors %v", converged, steps, churns("errors_total"))
	}
	if errors := churns("errors_total"); errors != 0 {
		t.Errorf("%v errors of the churn, want none", errors)
	}
	harms := map[bed.DoorKind]harm{}
	for _, d := range shop.Doors {
		harms[d.Kind] = harmOf(last, d)
		t.Logf("%v", harms[d.Kind])
	}
	p.Stop()
	if got := b.Replicas(shop.Namespace, "web"); got != baseline {
		t.Errorf("replicas after the end = %d, want the baseline %d", got, baseline)
	}
}

// harm is what users of a door felt while its backends changed.
type harm struct {
	door                *bed.Door
	requests, failures  float64 // in scaling phases
	settled             float64 // failures when nothing changed
	closed              float64 // connections that the door closed, or that failed
	handshakes          float64
	slow, slower, slows float64 // requests in scaling phases above 10, 25, 100 ms
}

func harmOf(s testbed.Scrape, d *bed.Door) harm {
	of := func(name string, labels ...string) float64 {
		return s.Sum("steadyprobe_"+name, append(labels, "target", d.Kind.String())...)
	}
	h := harm{
		door: d, handshakes: of("tls_handshakes_total"),
		settled: of("request_failures_total", "churn_phase", "settled"),
	}
	for _, reason := range []string{"peer", "announced", "error"} {
		h.closed += of("connections_closed_total", "reason", reason)
	}
	for _, phase := range []string{"scaling_up", "scaling_down"} {
		h.requests += of("requests_total", "churn_phase", phase)
		h.failures += of("request_failures_total", "churn_phase", phase)
		for bound, to := range map[float64]*float64{0.01: &h.slow, 0.025: &h.slower, 0.1: &h.slows} {
			*to += s.Above("steadyprobe_latency_seconds", bound, "target", d.Kind.String(), "churn_phase", phase)
		}
	}
	return h
}

func (h harm) String() string {
	return fmt.Sprintf("%-18v %3d reloads; while scaling %6.0f requests, %4.0f failures, above 10/25/100 ms %5.0f %5.0f %5.0f; settled %4.0f failures; %4.0f connections closed, %4.0f handshakes",
		h.door.Kind, h.door.Reloads(), h.requests, h.failures, h.slow, h.slower, h.slows, h.settled, h.closed, h.handshakes)
}
