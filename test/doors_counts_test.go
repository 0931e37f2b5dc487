package test

import (
	"testing"
	"time"

	"github.com/steadyprobe/steadyprobe/internal/testbed"
	"github.com/steadyprobe/steadyprobe/report"
)

// TestDoorsCountTheSame sends traffic through real doors in every way there
// is, and holds what the probe counted against what the door counted.
func TestDoorsCountTheSame(t *testing.T) {
	checkLeaks(t)
	for _, kind := range doorKinds {
		for _, versions := range []struct {
			name    string
			allowed testbed.TLSVersions
			log     string // as doors write it in their logs
			ours    string
		}{
			{"TLS 1.2", testbed.TLS12, "TLSv1.2", "TLS1.2"},
			{"TLS 1.3", testbed.TLS13, "TLSv1.3", "TLS1.3"},
		} {
			t.Run(kind.name+" "+versions.name, func(t *testing.T) {
				d := kind.start(t, versions.allowed, true)
				for _, row := range []struct {
					name string
					profile
				}{
					{"HTTP reuse", profile{rate: 500, connections: 20}},
					{"HTTP no reuse", profile{rate: 300, connections: 20, noReuse: true}},
					{"TLS reuse", profile{tls: true, rate: 500, connections: 20}},
					// Handshakes under the race detector are dear.
					{"TLS no reuse", profile{tls: true, rate: 100, connections: 20, noReuse: true}},
					{"TLS no reuse, no resumption", profile{tls: true, rate: 50, connections: 20, noReuse: true, noTickets: true}},
				} {
					if !row.tls && versions.allowed == testbed.TLS12 {
						continue // without TLS its version makes no difference
					}
					t.Run(row.name, func(t *testing.T) {
						before, logBefore := d.counts(), d.server.Log()
						r := once(t, 1500*time.Millisecond, d.target(t, row.profile))[0]
						checkAnswers(t, &r, row.profile)
						compareCounts(t, &r, d.counts().since(before))
						compareLog(t, &r, logSince(d.server.Log(), logBefore), versions.log)
						checkHandshakes(t, &r, row.profile, versions.ours)
					})
				}
			})
		}
	}
}

// TestDoorWithoutResumption probes doors that refuse to resume sessions.
func TestDoorWithoutResumption(t *testing.T) {
	checkLeaks(t)
	for _, kind := range doorKinds {
		for name, versions := range map[string]testbed.TLSVersions{"TLS 1.2": testbed.TLS12, "TLS 1.3": testbed.TLS13} {
			t.Run(kind.name+" "+name, func(t *testing.T) {
				d := kind.start(t, versions, false)
				p := profile{tls: true, rate: 50, connections: 10, noReuse: true}
				r := once(t, time.Second, d.target(t, p))[0]
				compareCounts(t, &r, d.counts())
				if r.TLS.Handshakes != 50 || r.TLS.Resumed != 0 {
					t.Errorf("%d handshakes, %d of them resumed; want 50 and none", r.TLS.Handshakes, r.TLS.Resumed)
				}
				if log := d.server.Log(); log.Full != 50 || log.Resumed != 0 {
					t.Errorf("the door logged %d full and %d resumed handshakes, want 50 and none", log.Full, log.Resumed)
				}
			})
		}
	}
}

// checkAnswers checks that every request was answered with 200 over the
// connections that the profile asks for.
func checkAnswers(t *testing.T, r *report.Result, p profile) {
	t.Helper()
	if r.Failures != 0 || len(r.ConnectionFailuresBy) != 0 {
		t.Errorf("failures %v, of connections %v; want none", r.FailuresBy, r.ConnectionFailuresBy)
	}
	if r.Responses["200"] != r.Completed || total(r.Responses) != r.Completed {
		t.Errorf("responses %v, want %d with 200", r.Responses, r.Completed)
	}
	opened := uint64(p.connections)
	if p.noReuse {
		opened = r.Completed
	}
	if r.ConnectionsOpened != opened {
		t.Errorf("%d connections opened, want %d", r.ConnectionsOpened, opened)
	}
}

// compareCounts holds a run without failures against the door's own counters.
func compareCounts(t *testing.T, r *report.Result, c doorCounts) {
	t.Helper()
	if c.requests != r.Completed || c.connections != r.ConnectionsOpened {
		t.Errorf("the door counted %d requests and %d connections, the probe %d and %d",
			c.requests, c.connections, r.Completed, r.ConnectionsOpened)
	}
}

// compareLog holds a run without failures against the door's log, in which
// TLS connections have that version.
func compareLog(t *testing.T, r *report.Result, log testbed.Log, version string) {
	t.Helper()
	if log.Requests != r.Completed || log.Codes[200] != r.Completed || log.Connections != r.ConnectionsOpened {
		t.Errorf("the door logged %d requests, %d with 200, on %d connections; the probe counted %d, all with 200, on %d",
			log.Requests, log.Codes[200], log.Connections, r.Completed, r.ConnectionsOpened)
	}
	full := r.TLS.Handshakes - r.TLS.Resumed
	if log.Full != full || log.Resumed != r.TLS.Resumed || log.Versions[version] != r.TLS.Handshakes {
		t.Errorf("the door logged %d full and %d resumed handshakes, versions %v; the probe counted %d and %d",
			log.Full, log.Resumed, log.Versions, full, r.TLS.Resumed)
	}
}

// checkHandshakes checks how many handshakes there were and of which kind.
func checkHandshakes(t *testing.T, r *report.Result, p profile, version string) {
	t.Helper()
	want := uint64(0)
	if p.tls {
		want = r.ConnectionsOpened
	}
	if r.TLS.Handshakes != want {
		t.Errorf("%d handshakes on %d connections, want %d", r.TLS.Handshakes, r.ConnectionsOpened, want)
	}
	switch resumable := p.tls && p.noReuse && !p.noTickets; {
	case resumable && r.TLS.Resumed == 0:
		t.Errorf("none of %d handshakes was resumed", r.TLS.Handshakes)
	case !resumable && p.noTickets && r.TLS.Resumed != 0:
		t.Errorf("%d handshakes were resumed although the probe must not", r.TLS.Resumed)
	}
	var full, resumed uint64
	for _, k := range r.TLS.Kinds {
		if k.Version != version || k.Cipher == "" || k.KeyExchange == "" && !k.Resumed {
			t.Errorf("handshakes of kind %+v, want version %s and names for the rest", k, version)
		}
		if k.Resumed {
			resumed += k.Count
		} else {
			full += k.Count
		}
	}
	if full+resumed != r.TLS.Handshakes || resumed != r.TLS.Resumed {
		t.Errorf("kinds %+v do not add up to %d handshakes, %d of them resumed", r.TLS.Kinds, r.TLS.Handshakes, r.TLS.Resumed)
	}
}
