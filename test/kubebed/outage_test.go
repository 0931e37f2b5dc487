package kubebed

import (
	"net/http"
	"testing"
	"time"

	"github.com/steadyprobe/steadyprobe/internal/testbed"
	"github.com/steadyprobe/steadyprobe/test/kubebed/bed"
)

// TestSafety looks at whole daemons that churn while things go wrong, all at the
// same time, each with a workload of its own.
func TestSafety(t *testing.T) {
	t.Parallel()
	b := bed.Start(t)
	t.Run("crash", func(t *testing.T) { t.Parallel(); crashes(t, b) })
	t.Run("outage", func(t *testing.T) { t.Parallel(); outages(t, b) })
	for name, test := range map[string]func(*testing.T, *stand){
		"two daemons":             twoDaemons,
		"roles":                   roles,
		"slow server":             slowServer,
		"a clock that is ahead":   func(t *testing.T, s *stand) { clocks(t, s, time.Minute) },
		"a clock that is behind":  func(t *testing.T, s *stand) { clocks(t, s, -time.Minute) },
		"the owner says stop":     brake,
		"somebody else scales":    external,
		"an autoscaler appears":   autoscaler,
		"pods never become ready": stuck,
	} {
		t.Run(name, func(t *testing.T) { t.Parallel(); test(t, newStand(t, b.In(t))) })
	}
}

// TestServerOutages takes the API server itself away, in every way. Each has a
// cluster of its own: after two outages in a row the controllers wait for long
// until they ask again.
func TestServerOutages(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		name      string
		away, end func(*bed.Bed)
	}{
		{"killed", (*bed.Bed).KillAPIServer, (*bed.Bed).StartAPIServer},
		{"stopped", (*bed.Bed).StopAPIServer, (*bed.Bed).StartAPIServer},
		{"paused", (*bed.Bed).PauseAPIServer, (*bed.Bed).ContinueAPIServer},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			s := newStand(t, bed.Start(t))
			outage(t, s, "unreachable", func() { row.away(s.b) }, func() { row.end(s.b) })
		})
	}
}

// outageFor is how long the API server is away: longer than a call may take, which
// is longer than the lease of the daemon lasts, so that it can no longer be sure
// to lead.
const outageFor = 15 * time.Second

// outages has a front that keeps requests from the API server.
func outages(t *testing.T, b *bed.Bed) {
	for _, row := range []struct {
		name      string
		behaviour bed.Behaviour
		reason    string // of the churn's error
	}{
		{"refuses", bed.Behaviour{Status: http.StatusForbidden}, "forbidden"},
		{"is busy", bed.Behaviour{Status: http.StatusTooManyRequests, RetryAfter: 1}, "unreachable"},
		{"hangs", bed.Behaviour{Hang: true}, "unreachable"},
		{"is cut off", bed.Behaviour{Cut: true}, "unreachable"},
		{"is too slow", bed.Behaviour{Delay: 2 * outageFor}, "unreachable"},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			s := newStand(t, b.In(t))
			outage(t, s, row.reason, func() { s.front.Set(row.behaviour) }, func() { s.front.Set(bed.Behaviour{}) })
		})
	}
}

// outage takes the API server away in the middle of a step. The probe goes on as
// if nothing were. When the server is back, the baseline is restored before
// anything else, and then the cycle goes on.
func outage(t *testing.T, s *stand, reason string, away, end func()) {
	p := s.start(quick())
	s.waitFor(p, "the first step", func(now testbed.Scrape) bool { return desired(now) == 4 && phase(now) == "scaling_up" })
	before := s.goodProbing(p, nil)
	mark := s.mark()
	away()
	s.kept(p, outageFor)
	after := s.goodProbing(p, before)
	if s.errors(after, reason) == s.errors(before, reason) {
		t.Errorf("no error of reason %q, want one", reason)
	}
	if in("running")(after) {
		t.Error("the churn says that it runs while nobody answers")
	}
	if leads(after) {
		t.Error("the daemon says that it leads after its lease has run out")
	}
	if after.Sum("steadyprobe_churn_restore_pending") != 1 {
		t.Error("the daemon does not say that something is to be put back")
	}
	end()
	ended := time.Now()
	s.restored(t, mark)
	restored := time.Since(ended)
	s.waitFor(p, "the cycle to go on", func(now testbed.Scrape) bool { return desired(now) == 4 && phase(now) == "scaling_up" })
	t.Logf("after %s, the baseline was back in %v, and the cycle went on in %v", t.Name(), restored, time.Since(ended))
	s.goodProbing(p, after)
	p.Stop()
	s.back()
}

// slowServer has an API server that answers every request late. Everything
// works, only slower.
func slowServer(t *testing.T, s *stand) {
	s.front.Set(bed.Behaviour{Delay: 300 * time.Millisecond})
	p := s.start(quick())
	s.waitFor(p, "three steps", func(now testbed.Scrape) bool { return now.Sum("steadyprobe_churn_steps_total") >= 3 })
	if n := s.errors(s.goodProbing(p, nil), ""); n != 0 {
		t.Errorf("%v errors, want none", n)
	}
	p.Stop()
	s.back()
}
