package test

import (
	"testing"
	"time"

	"github.com/steadyprobe/steadyprobe/internal/testbed"
	"github.com/steadyprobe/steadyprobe/internal/testcert"
)

// TestRoutes sets HAProxy up as a router does for routes that end TLS (edge),
// and that begin another to the backend (re-encrypt), with and without a backend
// that is any good. TestTLSPassthrough has the third kind.
func TestRoutes(t *testing.T) {
	checkLeaks(t)
	n := testbed.NGINX(t, testbed.NGINXOptions{AccessLog: true, Note: "$ssl_protocol"})
	stranger := testcert.NewCA(t, "another authority", testcert.Options{}).WriteCA(t)
	for _, row := range []struct {
		name     string
		backend  string
		server   string // further words of HAProxy's server line
		protocol string // that nginx logs of its own connections; empty: it has none
		status   string // of all answers
		failure  string // of all requests; empty: none
	}{
		{"edge", n.HTTP, "", "-", "200", ""},
		{"re-encrypt", n.HTTPS, "ssl verify required ca-file " + n.CAFile + " verifyhost localhost", "TLSv1.3", "200", ""},
		{"re-encrypt to a backend that is not trusted", n.HTTPS, "ssl verify required ca-file " + stranger, "", "503", "response/status"},
		{"no backend is left", n.HTTP, "disabled", "", "503", "response/status"},
	} {
		t.Run(row.name, func(t *testing.T) {
			h := testbed.HAProxy(t, testbed.HAProxyOptions{
				Backends: []string{row.backend}, Server: row.server, AccessLog: true,
			})
			before := n.Log()
			// HAProxy tries a refused handshake three times more, a second apart.
			r := once(t, 100*time.Millisecond, configured(t, `
  - name: door
    url: https://%s/
    rate: 50
    connections: 5
    connection: {warm: true}
    timeout: 10s
    tls: {ca_file: %q}
`, h.HTTPS, h.CAFile)...)[0]
			if row.failure == "" && r.Failures != 0 || row.failure != "" && r.FailuresBy[row.failure] != r.Completed || r.Responses[row.status] != r.Completed {
				t.Errorf("failures %v, answers %v; want all %s", r.FailuresBy, r.Responses, row.status)
			}
			if r.TLS.Handshakes != 5 {
				t.Errorf("%d handshakes, want 5 with the router", r.TLS.Handshakes)
			}
			log := n.Log()
			want := r.Completed
			if row.protocol == "" {
				want = 0
			}
			if got := log.Requests - before.Requests; got != want || log.Notes[row.protocol]-before.Notes[row.protocol] != want {
				t.Errorf("the backend logged %d requests, by protocol %v; want %d of %q", got, notes(log, before), want, row.protocol)
			}
		})
	}
}

// TestDoorsThatCloseKeptConnections has doors that close connections which are
// idle, or which have carried enough. Neither costs a request.
func TestDoorsThatCloseKeptConnections(t *testing.T) {
	checkLeaks(t)
	counted := testbed.NGINX(t, testbed.NGINXOptions{KeepaliveRequests: 10, AccessLog: true})
	idle := testbed.NGINX(t, testbed.NGINXOptions{KeepaliveTimeout: time.Second, AccessLog: true})
	impatient := testbed.HAProxy(t, testbed.HAProxyOptions{KeepaliveTimeout: 500 * time.Millisecond, AccessLog: true})
	for _, row := range []struct {
		name, address, rate, connections string
		duration                         time.Duration
		reason                           string // that all closes have
		least                            uint64 // closes
		log                              func() testbed.Log
	}{
		// 200 requests on connections of 10.
		{"nginx after ten requests", counted.HTTP, "200", "5", time.Second, "announced", 15, counted.Log},
		// 20 connections at 5 requests/s are each used every 4 s. Those of the first
		// two seconds are closed; a door waits longer for the first request of one.
		{"nginx after a second", idle.HTTP, "5", "20", 3 * time.Second, "peer", 8, idle.Log},
		{"HAProxy after half a second", impatient.HTTP, "5", "20", 3 * time.Second, "peer", 8, impatient.Log},
	} {
		t.Run(row.name, func(t *testing.T) {
			r := once(t, row.duration, configured(t, `
  - name: door
    url: http://%s/
    rate: %s
    connections: %s
    connection: {warm: true}
`, row.address, row.rate, row.connections)...)[0]
			if r.Failures != 0 || row.log().Codes[200] != r.Completed {
				t.Errorf("failures %v of %d, the door logged %v", r.FailuresBy, r.Completed, row.log().Codes)
			}
			closed := r.ConnectionsClosedBy[row.reason]
			if closed < row.least || closed+r.ConnectionsClosedBy["shutdown"] != total(r.ConnectionsClosedBy) {
				t.Errorf("%d connections opened, closed by %v; want at least %d by %s", r.ConnectionsOpened, r.ConnectionsClosedBy, row.least, row.reason)
			}
		})
	}
}

// TestReloadThatWaits reloads HAProxy as a router that is told to wait for one
// more answer on idle connections: no close can be crossed.
func TestReloadThatWaits(t *testing.T) {
	checkLeaks(t)
	h := testbed.HAProxy(t, testbed.HAProxyOptions{AccessLog: true, Frontend: "\toption idle-close-on-response"})
	r := onceWhile(t, 2*time.Second, func() {
		time.Sleep(time.Second)
		h.Reload()
	}, configured(t, `
  - name: door
    url: http://%s/
    rate: 500
    connections: 20
    connection: {warm: true}
`, h.HTTP)...)[0]
	if r.Failures != 0 {
		t.Errorf("failures %v, want none", r.FailuresBy)
	}
	// Each connection of the old worker has one more answer, which says that it
	// is the last.
	if got := r.ConnectionsClosedBy["announced"]; got < 20 || r.ConnectionsClosedBy["peer"] != 0 {
		t.Errorf("connections closed by %v, want 20 announced and none by the door alone", r.ConnectionsClosedBy)
	}
	if c := h.Counters(); c.Requests != r.Completed {
		t.Errorf("the door counted %d requests, the probe %d", c.Requests, r.Completed)
	}
}
