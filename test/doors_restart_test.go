package test

import (
	"strings"
	"testing"
	"time"
)

// TestRestart stops a door while the daemon probes it, leaves it down for a
// moment and starts it again: every request that this costs is a failure of a
// specific kind, and the account is right at every instant.
func TestRestart(t *testing.T) {
	checkLeaks(t)
	for _, kind := range doorKinds {
		t.Run(kind.name, func(t *testing.T) {
			d := kind.start(t, 0, true)
			daemon := startDaemon(t, "targets:"+
				d.targetConfiguration("plain", profile{rate: 300, connections: 20})+
				d.targetConfiguration("secure", profile{tls: true, rate: 100, connections: 20})+
				d.targetConfiguration("single", profile{rate: 50, connections: 20, noReuse: true}))
			targets := []string{"plain", "secure", "single"}
			end := daemon.watch(50*time.Millisecond, targets...)
			time.Sleep(time.Second)
			d.server.Stop()
			time.Sleep(300 * time.Millisecond)
			d.server.Start()
			time.Sleep(2 * time.Second)
			last, scrapes := end()
			if scrapes < 10 {
				t.Errorf("%d scrapes in 3 s, want many", scrapes)
			}
			var answered, completed float64
			for _, target := range targets {
				checkRestarted(t, last, target)
				completed += last.sum("steadyprobe_requests_total", "target", target)
				answered += last.sum("steadyprobe_requests_total", "target", target) - last.sum("steadyprobe_request_failures_total", "target", target)
			}
			// The log was read later than the counters, and is not complete
			// where a request was not.
			if log := d.server.Log(); float64(log.Codes[200]) < answered {
				t.Errorf("the door logged %d answers, the probe saw %v", log.Codes[200], answered)
			}
			t.Logf("%d scrapes, %v requests completed, %v answered", scrapes, completed, answered)
		})
	}
}

// checkRestarted checks one target after a restart of its door.
func checkRestarted(t *testing.T, s scrape, target string) {
	t.Helper()
	failures := s.failures(target)
	t.Logf("%s: failures %v", target, failures)
	if failures["connect/refused"] == 0 {
		t.Errorf("%s: failures %v while nobody listened, want connect/refused", target, failures)
	}
	for failure := range failures {
		switch failure {
		case "connect/refused", "connect/reset", // nobody listens, or no longer
			"tls/eof", "tls/reset", // stopped in the handshake
			"read/eof", "read/reset", "read/stale", "read/truncated",
			"write/stale", "write/reset": // stopped in the request
		default:
			t.Errorf("%s: failures %v, do not expect %s", target, failures, failure)
		}
	}
	for _, m := range s["steadyprobe_connection_failures_total"].GetMetric() {
		if n := m.GetCounter().GetValue(); n > 0 && strings.HasSuffix(label(m, "reason"), "error") {
			t.Errorf("%s: %v openings failed as %s/error", target, n, label(m, "failure_stage"))
		}
	}
	// It is well again: all connections of a warm target are open.
	open, limit := s.sum("steadyprobe_connections", "target", target), s.sum("steadyprobe_connections_limit", "target", target)
	if target != "single" && open != limit {
		t.Errorf("%s: %v connections are open, want %v", target, open, limit)
	}
}
