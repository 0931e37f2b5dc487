package observability

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/steadyprobe/steadyprobe/internal/monitoring"
	"github.com/steadyprobe/steadyprobe/internal/testbed"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// untrustworthy is the alert that inhibits those on latency.
const untrustworthy = "SteadyprobeUntrustworthy"

// rightAlerts are the alerts that may fire at some time in this scenario, by
// target: each of them is true then. Whatever else fires is wrong. Those of the
// process have no target.
var rightAlerts = map[string][]string{
	"": {"SteadyprobeDeadMansSwitch", "SteadyprobeSaturated"},
	"resetting": {
		untrustworthy, "SteadyprobeReadFailures", "SteadyprobeFailureBudgetBurn", "SteadyprobeLatencyBudgetBurn",
		"SteadyprobeTargetDown", "SteadyprobeLatencyNoBaseline", "SteadyprobeHandshakesCollapsed",
	},
	"slow": {
		untrustworthy, "SteadyprobeLatencyBudgetBurn", "SteadyprobeLatencyRegression", "SteadyprobeLatencyAbovePeer",
		"SteadyprobeFailureBudgetBurn", "SteadyprobeTargetDown", "SteadyprobeWrongAnswers", "SteadyprobeTimeouts",
		"SteadyprobeTooFewConnections", "SteadyprobeReadFailures", // requests on their way when the backend stopped
	},
	"calm":   {untrustworthy},
	"moving": {untrustworthy, "SteadyprobeLatencyNoBaseline"}, // once, where 20 times an hour would be too often
	"untrusted": {
		untrustworthy, "SteadyprobeCertificateRefused", "SteadyprobeFailureBudgetBurn", "SteadyprobeLatencyBudgetBurn", "SteadyprobeTargetDown",
	},
	"unresolved": {
		untrustworthy, "SteadyprobeNoAddress", "SteadyprobeResolveFailures", "SteadyprobeFailureBudgetBurn", "SteadyprobeLatencyBudgetBurn",
		"SteadyprobeTargetDown",
	},
}

// lasts tells whether an alert has a reason to the end.
func lasts(target, alert string) bool {
	switch target {
	case "":
		return alert == "SteadyprobeDeadMansSwitch"
	case "resetting", "moving":
		return alert == "SteadyprobeLatencyNoBaseline"
	case "untrusted", "unresolved":
		return alert != untrustworthy
	}
	return false
}

// TestObservability runs the shipped alerts and dashboards on a real Prometheus
// and a real Alertmanager, while a real door becomes slow, one resets, one loses
// its backend, and the probe itself is starved. See scale and past for the two
// things that are not as in production.
func TestObservability(t *testing.T) {
	s := newStand(t)
	s.stretch("healthy", 25*time.Second, func() {
		s.untilTrusted()
		s.await("firing", "untrusted", "SteadyprobeCertificateRefused")
		s.await("firing", "unresolved", "SteadyprobeNoAddress")
		s.await("firing", "resetting", "SteadyprobeLatencyNoBaseline")
		s.await("firing", "", "SteadyprobeDeadMansSwitch")
	})
	for _, target := range []string{"slow", "calm", "resetting", "moving"} {
		s.checkNever(target, untrustworthy, "SteadyprobeLatencyNoBaseline")
	}
	s.stretch("slow", 25*time.Second, func() {
		s.slow(true)
		s.reset(true)
		s.names.Set("moving.test", "127.0.0.2")
		s.await("firing", "slow", "SteadyprobeLatencyBudgetBurn", "SteadyprobeLatencyRegression", "SteadyprobeLatencyAbovePeer")
		s.await("firing", "resetting", "SteadyprobeReadFailures", "SteadyprobeFailureBudgetBurn", "SteadyprobeTargetDown")
	})
	// Slow is not failing.
	s.checkNever("slow", untrustworthy, "SteadyprobeLatencyBudgetBurn", "SteadyprobeLatencyRegression", "SteadyprobeLatencyAbovePeer", "SteadyprobeTooFewConnections")
	s.checkNever("calm", untrustworthy)
	s.checkSays("slow", "SteadyprobeLatencyBudgetBurn", "take longer than 250ms")
	s.checkSays("resetting", "SteadyprobeTargetDown", "% of the requests to resetting failed")
	var fed func()
	s.stretch("starved", 15*time.Second, func() {
		fed = s.probe.Starve(150*time.Millisecond, 250*time.Millisecond)
		s.await("firing", "slow", untrustworthy)
		s.await("firing", "calm", untrustworthy)
		for _, alert := range []string{"SteadyprobeLatencyBudgetBurn", "SteadyprobeLatencyRegression", "SteadyprobeLatencyAbovePeer"} {
			s.awaitInhibition("slow", alert)
		}
	})
	inhibited := s.parts[len(s.parts)-1].to
	s.stretch("starved, without a backend", 15*time.Second, func() {
		s.backend.Stop()
		s.await("firing", "slow", "SteadyprobeFailureBudgetBurn", "SteadyprobeTargetDown")
		if s.told("resolved", "slow", untrustworthy) {
			s.t.Error("the probe is starved, and is trusted again")
		}
	})
	s.checkStarved(inhibited)
	s.stretch("healthy again", 0, func() {
		fed()
		s.slow(false)
		s.backend.Start()
		s.reset(false)
		s.awaitQuiet()
	})
	ended := time.Now()

	t.Run("no wrong alert", func(t *testing.T) { s.checkNotices(t) })
	t.Run("dashboards", func(t *testing.T) { s.checkDashboards(t, ended) })
	t.Run("classic histograms", func(t *testing.T) { s.checkClassic(t) })
	t.Run("pictures", func(t *testing.T) { s.draw(t) })
}

// part is a stretch of the scenario that is over.
type part struct {
	name     string
	from, to time.Time
}

// stretch runs a part of the scenario, which takes a while even where all that
// it waits for is there earlier.
func (s *stand) stretch(name string, atLeast time.Duration, run func()) {
	s.t.Helper()
	from := time.Now()
	run()
	time.Sleep(time.Until(from.Add(atLeast)))
	s.parts = append(s.parts, part{name, from, time.Now()})
	s.t.Logf("%s: %.1f s", name, time.Since(from).Seconds())
}

// patience is how long is waited for an alert: on a quiet machine it takes some
// seconds.
const patience = 90 * time.Second

// await waits until the receiver was told of alerts of a target.
func (s *stand) await(status, target string, alerts ...string) {
	s.t.Helper()
	for _, alert := range alerts {
		testbed.WaitFor(s.t, fmt.Sprintf("a notice that %s of target %q is %s", alert, target, status), patience, func() bool {
			return s.told(status, target, alert)
		})
	}
}

// told reports whether the last notice of an alert has a status.
func (s *stand) told(status, target, alert string) bool {
	last := ""
	for _, n := range s.hook.Notices() {
		if n.Name() == alert && n.Labels["target"] == target && n.Labels["job"] != "demo" {
			last = n.Status
		}
	}
	return last == status
}

// checkNever checks that the receiver was told of no alert of a target so far,
// but for some.
func (s *stand) checkNever(target string, but ...string) {
	s.t.Helper()
	for _, n := range s.hook.Notices() {
		if n.Labels["target"] == target && n.Labels["job"] == "steadyprobe" && !slices.Contains(but, n.Name()) {
			s.t.Errorf("%.1f s: %s of %s fired: %s", n.Received.Sub(s.began).Seconds(), n.Name(), target, n.Annotations["description"])
		}
	}
}

// checkSays checks what the receiver was told in words.
func (s *stand) checkSays(target, alert, part string) {
	s.t.Helper()
	said := ""
	for _, n := range s.hook.Notices() {
		if n.Labels["target"] == target && n.Name() == alert {
			said = n.Annotations["description"]
		}
	}
	if !strings.Contains(said, part) {
		s.t.Errorf("%s of %s is described as %q, want that it says %q", alert, target, said, part)
	}
}

// untilTrusted waits until the probe has shown for a while that it can be
// trusted: on a busy machine alerts on latency are rightly inhibited.
func (s *stand) untilTrusted() {
	s.t.Helper()
	since, reason := time.Now(), ""
	defer func() { s.t.Logf("the last reason not to trust the probe: %s", reason) }()
	testbed.WaitFor(s.t, "a probe that can be trusted for 10 s: the machine is too busy for this test", 3*time.Minute, func() bool {
		result, _ := s.prometheus.Query(`ALERTS{alertname="` + untrustworthy + `", job="steadyprobe"}`)
		if len(result) > 0 {
			since, reason = time.Now(), s.reasons()
		}
		time.Sleep(200 * time.Millisecond)
		return time.Since(since) > 10*time.Second
	})
}

// reasons returns why the probe is not to be trusted.
func (s *stand) reasons() string {
	result, _ := s.prometheus.Query(`steadyprobe:untrustworthy:cause{job="steadyprobe"}`)
	return result.String()
}

// held returns the alerts of a target that Alertmanager has.
func (s *stand) held(target string) []testbed.HeldAlert {
	s.t.Helper()
	return slices.DeleteFunc(s.manager.Alerts(), func(a testbed.HeldAlert) bool {
		return a.Labels["target"] != target || a.Labels["job"] == "demo"
	})
}

// untrusted returns those of some alerts that are inhibited because the probe
// is not to be trusted.
func untrusted(held []testbed.HeldAlert) (inhibited []string) {
	for _, source := range held {
		if source.Name() != untrustworthy {
			continue
		}
		for _, a := range held {
			if a.Status.State == "suppressed" && slices.Contains(a.Status.InhibitedBy, source.Fingerprint) {
				inhibited = append(inhibited, a.Name())
			}
		}
	}
	return inhibited
}

// awaitInhibition waits until an alert is held back because the probe is not to
// be trusted.
func (s *stand) awaitInhibition(target, alert string) {
	s.t.Helper()
	testbed.WaitFor(s.t, alert+" to be inhibited", patience, func() bool {
		return slices.Contains(untrusted(s.held(target)), alert)
	})
}

// checkStarved looks at what the receiver was told while the probe was starved:
// nothing on latency, but everything on failures.
func (s *stand) checkStarved(since time.Time) {
	s.t.Helper()
	for _, target := range []string{"slow", "calm", "resetting"} {
		for _, n := range s.hook.Notices() {
			if onLatency(n.Name()) && n.Labels["target"] == target && n.Status == "firing" && n.Received.After(since) {
				s.t.Errorf("%s of %s reached the receiver while the probe was starved", n.Name(), target)
			}
		}
		for _, name := range untrusted(s.held(target)) {
			if !onLatency(name) {
				s.t.Errorf("%s of %s is inhibited, which is no alert on latency", name, target)
			}
		}
	}
}

// onLatency tells whether an alert goes by latency, so that a starved probe can
// be all that it is about.
func onLatency(alert string) bool { return strings.HasPrefix(alert, "SteadyprobeLatency") }

// awaitQuiet waits until nothing is held any more that does not last, and the
// receiver was told the end of all that it was told the beginning of.
func (s *stand) awaitQuiet() {
	s.t.Helper()
	for end := time.Now().Add(5 * time.Minute); ; time.Sleep(200 * time.Millisecond) {
		left := s.open()
		for target := range rightAlerts {
			for _, a := range s.held(target) {
				if !lasts(target, a.Name()) {
					left = append(left, target+"/"+a.Name())
				}
			}
		}
		if len(left) == 0 {
			return
		}
		if time.Now().After(end) {
			s.t.Fatalf("waiting for all to resolve: %v are left", left)
		}
	}
}

// open returns the alerts whose end the receiver was not told. Those on latency
// are left out: of an alert that ends while it is inhibited Alertmanager tells
// nothing.
func (s *stand) open() (open []string) {
	last := map[string]string{}
	for _, n := range s.hook.Notices() {
		if n.Labels["job"] != "demo" && !lasts(n.Labels["target"], n.Name()) && !onLatency(n.Name()) {
			last[fmt.Sprint(n.Labels)] = n.Status
		}
	}
	for _, labels := range slices.Sorted(maps.Keys(last)) {
		if last[labels] != "resolved" {
			open = append(open, "no end told of "+labels)
		}
	}
	return open
}

// checkNotices holds all that the receiver was ever told against what is right.
func (s *stand) checkNotices(t *testing.T) {
	wrong := map[string]bool{}
	for _, n := range s.hook.Notices() {
		target, job := n.Labels["target"], n.Labels["job"]
		if job == "demo" {
			s.checkDemo(t, n)
			continue
		}
		if !slices.Contains(rightAlerts[target], n.Name()) && !wrong[target+n.Name()] {
			wrong[target+n.Name()] = true
			t.Errorf("%.1f s: %s of target %q fired, which is wrong here: %s", n.Received.Sub(s.began).Seconds(), n.Name(), target, n.Annotations["description"])
		}
		for _, key := range []string{"summary", "description", "runbook_url", "dashboard_url"} {
			if text := n.Annotations[key]; text == "" || strings.Contains(text, "<no value>") || strings.Contains(text, "error") && strings.Contains(text, "template") {
				t.Errorf("%s: the annotation %s is %q", n.Name(), key, text)
			}
		}
	}
}

// checkDemo looks at the alerts of the demo, which is there for its churn: the
// door that reloads is to be found bad, and the other not down.
func (s *stand) checkDemo(t *testing.T, n testbed.Notice) {
	if steady := strings.HasPrefix(n.Labels["target"], "steady-"); steady && (n.Name() == "SteadyprobeTargetDown" || n.Name() == "SteadyprobeFailureBudgetBurn") {
		t.Errorf("%s of the demo's %s fired", n.Name(), n.Labels["target"])
	}
}

func (s *stand) checkDashboards(t *testing.T, ended time.Time) {
	boards, err := monitoring.Dashboards(filepath.Join(testbed.Root(t), "dashboards"))
	if err != nil || len(boards) == 0 {
		t.Fatalf("%d dashboards: %v", len(boards), err)
	}
	for kind, p := range map[string]*testbed.PrometheusServer{"native": s.prometheus, "classic": s.classic} {
		t.Run(kind, func(t *testing.T) {
			got := newViewer(p, s.began, ended).dashboards(t, boards)
			t.Logf("%d queries returned %d series; nothing, rightly: %s", got.queries, got.series, strings.Join(got.empty, "; "))
		})
	}
}

// checkClassic: the rules for classic histograms, on a Prometheus that knows no
// others, Debian's 2.42, found the same.
func (s *stand) checkClassic(t *testing.T) {
	for target, alerts := range map[string][]string{
		"slow": {
			"SteadyprobeLatencyBudgetBurn", "SteadyprobeLatencyRegression", "SteadyprobeLatencyAbovePeer", "SteadyprobeFailureBudgetBurn",
			"SteadyprobeTargetDown", untrustworthy,
		},
		"resetting": {"SteadyprobeReadFailures", "SteadyprobeFailureBudgetBurn", "SteadyprobeTargetDown"},
	} {
		for _, alert := range alerts {
			expr := fmt.Sprintf(`max_over_time(ALERTS{job="steadyprobe", alertname=%q, target=%q, alertstate="firing"}[%ds])`,
				alert, target, int(time.Since(s.began).Seconds()))
			if got, _ := s.classic.Query(expr); len(got) == 0 {
				t.Errorf("%s of %s never fired", alert, target)
			}
		}
	}
	if got, _ := s.classic.Query(`{__name__=~"steadyprobe_.+"} and histogram_count({__name__=~"steadyprobe_.+"}) >= 0`); len(got) > 0 {
		t.Errorf("there are native histograms: %v", got[0].Metric)
	}
}

// picturesVariable names the folder that the pictures of the pages go to, as in
// the other tests: "make pictures" sets it.
const picturesVariable = "STEADYPROBE_PICTURES"

// draw makes pictures from what Prometheus stored.
func (s *stand) draw(t *testing.T) {
	folder := os.Getenv(picturesVariable)
	if folder == "" {
		folder = t.ArtifactDir()
	}
	s.drawPercentiles(t, filepath.Join(folder, "regression-percentiles.svg"))
	s.drawTimeline(t, filepath.Join(folder, "regression-timeline.svg"))
}
