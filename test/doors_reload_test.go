package test

import (
	"testing"
	"time"

	"github.com/steadyprobe/steadyprobe/internal/testbed"
	"github.com/steadyprobe/steadyprobe/report"
)

// TestReloadCutsNothingElse reloads doors while they are probed. A reload
// closes 50 idle connections, which costs no request. It may cut the request
// that crosses such a close: the door has not read it, and it is stale.
func TestReloadCutsNothingElse(t *testing.T) {
	checkLeaks(t)
	for _, kind := range doorKinds {
		t.Run(kind.name, func(t *testing.T) {
			d := kind.start(t, testbed.TLSBoth, true)
			plain := d.target(t, profile{rate: 500, connections: 50})
			secure := d.target(t, profile{tls: true, rate: 500, connections: 50})
			results := onceWhile(t, 6*time.Second, func() {
				for range 3 {
					time.Sleep(1500 * time.Millisecond)
					d.server.Reload()
				}
			}, plain, secure)
			var completed, cut, opened uint64
			for i := range results {
				checkReloaded(t, &results[i])
				completed += results[i].Completed
				cut += results[i].Failures
				opened += results[i].ConnectionsOpened
			}
			// What the door answered it has logged, and nothing else: it knows
			// nothing of a request that it did not read.
			c, log := d.counts(), d.server.Log()
			if c.requests != completed-cut || log.Requests != completed-cut || log.Codes[200] != completed-cut {
				t.Errorf("the door counted %d requests and logged %d, %d with 200; the probe completed %d, %d of them cut",
					c.requests, log.Requests, log.Codes[200], completed, cut)
			}
			if c.connections != opened {
				t.Errorf("the door counted %d connections, the probe %d", c.connections, opened)
			}
			// Two targets with 50 idle connections, three times. A tool that takes
			// idle connections for requests has 300 failures here; what crosses
			// is one request or two each time, however fast the machine.
			if cut > 30 {
				t.Errorf("%d requests were cut, want only those that crossed a close", cut)
			}
		})
	}
}

// checkReloaded checks one target of a door that was reloaded three times.
func checkReloaded(t *testing.T, r *report.Result) {
	t.Helper()
	stale := r.FailuresBy["read/stale"] + r.FailuresBy["write/stale"]
	if late := max(r.SelfLatency.Max, r.Lateness.Max) > 0.001; late {
		// A probe that reads late cannot tell when the close came.
		stale += r.FailuresBy["read/eof"] + r.FailuresBy["read/reset"]
	}
	if r.Failures != stale {
		t.Errorf("%s: failures %v, want none but stale ones", r.URL, r.FailuresBy)
	}
	if len(r.ConnectionFailuresBy) != 0 {
		t.Errorf("%s: connections failed: %v", r.URL, r.ConnectionFailuresBy)
	}
	// All connections of each worker are closed, by the door, and replaced.
	closed := r.ConnectionsClosedBy["peer"] + r.ConnectionsClosedBy["announced"]
	if closed < 150 || closed != total(r.ConnectionsClosedBy) || r.ConnectionsOpened != closed+50 {
		t.Errorf("%s: %d connections opened, closed %v; want at least 150 closed by the door and replaced",
			r.URL, r.ConnectionsOpened, r.ConnectionsClosedBy)
	}
	t.Logf("%s: failures %v, connections closed %v, latency p99 %.1f ms, self latency p99 %.1f ms",
		r.URL, r.FailuresBy, r.ConnectionsClosedBy, 1000*r.Latency.P99, 1000*r.SelfLatency.P99)
}
