package test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/steadyprobe/steadyprobe/internal/testbed"
	"github.com/steadyprobe/steadyprobe/report"
)

// stream runs one target below HTTP, a connection per tick.
func stream(t testing.TB, url, settings string) report.Result {
	t.Helper()
	return once(t, 400*time.Millisecond, configured(t, `
  - name: door
    url: %s
    rate: 50
    connections: 10
    timeout: 2s
    %s
`, url, strings.ReplaceAll(settings, "\n", "\n    "))...)[0]
}

// TestTCP probes HAProxy that passes connections on, and its own text protocol.
func TestTCP(t *testing.T) {
	checkLeaks(t)
	n := testbed.NGINX(t, testbed.NGINXOptions{AccessLog: true})
	runtime := testbed.FreeAddress(t)
	h := testbed.HAProxy(t, testbed.HAProxyOptions{
		TCP: true, Backends: []string{n.HTTP}, AccessLog: true,
		Global: "\tstats socket ipv4@" + runtime + " level user",
	})
	const get = `tcp: {send: "GET / HTTP/1.0\r\n\r\n", expect: "^HTTP/1.1 200 (?s:.*)0123456789abcdef$"}`
	for _, row := range []struct {
		name, address, settings string
		failure                 string // of all ticks; empty: none
		passed                  bool   // the door counts the connections
		answered                uint64 // requests that the server behind it answers
	}{
		{"connect alone", h.HTTP, "", "", true, 0},
		{"send and expect", h.HTTP, get, "", true, 20},
		{"send alone", h.HTTP, `tcp: {send: "GET / HTTP/1.0\r\n\r\n"}`, "", true, 20},
		{"another answer than expected", h.HTTP, `tcp: {send: "GET / HTTP/1.0\r\n\r\n", expect: "^HTTP/1.1 404"}`, "response/body", true, 20},
		{"nothing to expect anything of", h.HTTP, "timeouts: {response: 200ms}\n" + `tcp: {expect: "^220 "}`, "read/timeout", true, 0},
		{"HAProxy's own protocol", runtime, `tcp: {send: "show info\n", expect: "(?m)^Name: HAProxy$"}`, "", false, 0},
		{"nobody listens", testbed.FreeAddress(t), "", "connect/refused", false, 0},
	} {
		t.Run(row.name, func(t *testing.T) {
			before, answered := h.Counters(), n.Log()
			r := stream(t, "tcp://"+row.address, row.settings)
			if row.failure == "" && r.Failures != 0 || row.failure != "" && r.FailuresBy[row.failure] != r.Completed {
				t.Errorf("failures %v, want %q for all or none", r.FailuresBy, row.failure)
			}
			want := uint64(0)
			if row.passed {
				want = r.Completed
			}
			if got := h.Counters().Connections - before.Connections; got != want {
				t.Errorf("HAProxy counted %d connections, want %d", got, want)
			}
			// Who only sends does not wait for what it is read by.
			testbed.WaitFor(t, "the server to log all requests", 5*time.Second, func() bool {
				return n.Log().Codes[200]-answered.Codes[200] >= row.answered
			})
			if got := n.Log().Codes[200] - answered.Codes[200]; got != row.answered {
				t.Errorf("nginx answered %d requests, want %d", got, row.answered)
			}
			if row.failure == "" && (r.ConnectionsOpened != r.Completed || r.ConnectionsClosedBy["per_request"] != r.Completed) {
				t.Errorf("%d connections opened, closed by %v; want one for each of %d ticks", r.ConnectionsOpened, r.ConnectionsClosedBy, r.Completed)
			}
		})
	}
}

// TestTLSAlone shakes hands with doors and does nothing else, full and resumed.
func TestTLSAlone(t *testing.T) {
	checkLeaks(t)
	for version, allowed := range map[string]testbed.TLSVersions{"TLS1.2": testbed.TLS12, "TLS1.3": testbed.TLS13} {
		h := testbed.HAProxy(t, testbed.HAProxyOptions{TLS: allowed})
		for _, resumption := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s resumption %v", version, resumption), func(t *testing.T) {
				before := h.Counters()
				r := stream(t, "tls://"+h.HTTPS, fmt.Sprintf("tls: {ca_file: %q, resumption: %v}", h.CAFile, resumption))
				c := h.Counters()
				full, resumed := c.Full-before.Full, c.Resumed-before.Resumed
				if r.Failures != 0 || r.TLS.Handshakes != 20 || r.TLS.Handshakes-r.TLS.Resumed != full || r.TLS.Resumed != resumed {
					t.Errorf("failures %v, %d handshakes, %d of them resumed; the door counted %d full and %d resumed",
						r.FailuresBy, r.TLS.Handshakes, r.TLS.Resumed, full, resumed)
				}
				if resumption == (r.TLS.Resumed == 0) {
					t.Errorf("%d handshakes resumed with resumption %v", r.TLS.Resumed, resumption)
				}
				if handshaken(&r, version, "", "", false)+handshaken(&r, version, "", "", true) != 20 {
					t.Errorf("handshakes %+v, want 20 of %s", r.TLS.Kinds, version)
				}
			})
		}
	}
}

// TestTLSPassthrough goes through HAProxy that knows nothing of TLS to nginx
// that ends it, as an OpenShift route of that kind or an NLB does.
func TestTLSPassthrough(t *testing.T) {
	checkLeaks(t)
	n := testbed.NGINX(t, testbed.NGINXOptions{AccessLog: true, Note: "$ssl_server_name"})
	h := testbed.HAProxy(t, testbed.HAProxyOptions{TCP: true, Backends: []string{n.HTTPS}, AccessLog: true})
	trust := fmt.Sprintf("tls: {ca_file: %q, server_name: localhost, resumption: false}", n.CAFile)
	for _, row := range []struct {
		name, url, settings string
		failure             string
		logged              uint64 // requests of nginx
	}{
		{"handshake alone", "tls://" + h.HTTP, trust, "", 0},
		{"send and expect", "tls://" + h.HTTP, trust + "\n" + `tcp: {send: "GET / HTTP/1.0\r\n\r\n", expect: "^HTTP/1.1 200"}`, "", 20},
		{"HTTPS", "https://" + h.HTTP + "/", trust + "\nconnection: {reuse: false}", "", 20},
		{"an authority that is not trusted", "tls://" + h.HTTP, "tls: {resumption: false}", "tls/certificate", 0},
		{"what is behind it is not TLS", "tls://" + n.HTTP, trust, "tls/protocol", 0},
	} {
		t.Run(row.name, func(t *testing.T) {
			accepts, before, passed := n.Counters().Accepts, n.Log(), h.Backends()[0].Sessions
			r := stream(t, row.url, row.settings)
			if row.failure == "" && r.Failures != 0 || row.failure != "" && r.FailuresBy[row.failure] != r.Completed {
				t.Errorf("failures %v, want %q for all or none", r.FailuresBy, row.failure)
			}
			if got := n.Counters().Accepts - accepts; got != r.Completed {
				t.Errorf("nginx accepted %d connections, want %d", got, r.Completed)
			}
			if got := h.Backends()[0].Sessions - passed; got != r.Completed && row.failure != "tls/protocol" { // that one does not pass it
				t.Errorf("HAProxy passed %d connections on, want %d", got, r.Completed)
			}
			log := n.Log()
			if got := log.Codes[200] - before.Codes[200]; got != row.logged || log.Notes["localhost"]-before.Notes["localhost"] != got {
				t.Errorf("nginx logged %d requests, by name %v; want %d, all for localhost", got, log.Notes, row.logged)
			}
			if row.failure == "" && r.TLS.Handshakes != r.Completed {
				t.Errorf("%d handshakes in %d ticks", r.TLS.Handshakes, r.Completed)
			}
		})
	}
}

// TestBalancerWithoutBackends is what a balancer does that has none left: it
// accepts and closes. To who only connects it looks well.
func TestBalancerWithoutBackends(t *testing.T) {
	checkLeaks(t)
	h := testbed.HAProxy(t, testbed.HAProxyOptions{TCP: true, Backends: []string{testbed.FreeAddress(t)}, Server: "disabled"})
	for _, row := range []struct {
		name, url, settings string
		failures            []string // that ticks have; none: all succeed
	}{
		{"connect alone", "tcp://" + h.HTTP, "", nil},
		{"expecting something", "tcp://" + h.HTTP, `tcp: {send: "x\n", expect: "."}`, []string{"read/eof", "read/reset", "write/reset"}},
		{"handshake", "tls://" + h.HTTP, "tls: {insecure_skip_verify: true, resumption: false}", []string{"tls/eof", "tls/reset"}},
	} {
		t.Run(row.name, func(t *testing.T) {
			before := h.Counters()
			r := stream(t, row.url, row.settings)
			var named uint64
			for _, failure := range row.failures {
				named += r.FailuresBy[failure]
			}
			if named != r.Failures || len(row.failures) > 0 && named != r.Completed {
				t.Errorf("failures %v of %d, want %v for all", r.FailuresBy, r.Completed, row.failures)
			}
			if got := h.Counters().Connections - before.Connections; got != r.Completed {
				t.Errorf("HAProxy counted %d connections, want %d", got, r.Completed)
			}
		})
	}
}

// TestProtocolsOfStreams scrapes what answers without a status are counted as.
func TestProtocolsOfStreams(t *testing.T) {
	checkLeaks(t)
	n := testbed.NGINX(t, testbed.NGINXOptions{})
	d := startDaemon(t, fmt.Sprintf(`targets:
  - {name: tcp, url: "tcp://%s", rate: 50}
  - {name: tls, url: "tls://%s", rate: 50, tls: {ca_file: %q}}
`, n.HTTP, n.HTTPS, n.CAFile))
	end := d.watch(50*time.Millisecond, "tcp", "tls")
	d.until("traffic", 10*time.Second, func(s scrape) bool { return s.sum("steadyprobe_responses_total") >= 60 })
	var accepts uint64
	before, err := d.scrape()
	if err != nil {
		t.Fatal(err)
	}
	accepts = n.Counters().Accepts
	last, _ := end()
	within(t, "connections", before.sum("steadyprobe_requests_total"), float64(accepts), last.sum("steadyprobe_connections_opened_total")+20)
	for _, target := range []string{"tcp", "tls"} {
		if got, all := last.sum("steadyprobe_responses_total", "target", target, "protocol", target, "code", ""), last.sum("steadyprobe_responses_total", "target", target); got != all || got == 0 {
			t.Errorf("%v of %v answers counted as %s without a status", got, all, target)
		}
		if f := last.failures(target); len(f) != 0 {
			t.Errorf("%s: failures %v, want none", target, f)
		}
	}
}
