package test

import (
	"fmt"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/steadyprobe/steadyprobe/internal/testbed"
)

// proxiedDoor is a door that insists on a PROXY header, or that knows of none.
type proxiedDoor struct {
	name        string
	http, https string
	caFile      string
	log         func() testbed.Log
	counts      func() doorCounts
}

// proxiedDoors are nginx and HAProxy, which log the target and the client that
// the header named, or else that of the connection.
func proxiedDoors(t testing.TB, insist bool) []proxiedDoor {
	t.Helper()
	options := testbed.NGINXOptions{
		ProxyProtocol: insist, AccessLog: true, Note: "$http_user_agent $remote_addr:$remote_port", Addresses: []string{"::1"},
	}
	bind := ""
	if insist {
		options.Note = "$http_user_agent $proxy_protocol_addr:$proxy_protocol_port"
		bind = "accept-proxy"
	}
	n := testbed.NGINX(t, options)
	h := testbed.HAProxy(t, testbed.HAProxyOptions{
		Bind: bind, AccessLog: true, Note: "%[capture.req.hdr(0)] %ci:%cp", Addresses: []string{"::1"},
		Frontend: "\thttp-request capture req.hdr(User-Agent) len 64",
	})
	return []proxiedDoor{
		{"nginx", n.HTTP, n.HTTPS, n.CAFile, n.Log, func() doorCounts {
			c := n.Counters()
			return doorCounts{connections: c.Accepts, requests: c.Requests}
		}},
		{"HAProxy", h.HTTP, h.HTTPS, h.CAFile, h.Log, func() doorCounts {
			c := h.Counters()
			return doorCounts{connections: c.Connections, requests: c.Requests}
		}},
	}
}

// TestPROXYHeader sends both versions, with the source of the connection and
// with a source that is said, over plain connections and before TLS, to doors at
// IPv4 and IPv6 addresses.
func TestPROXYHeader(t *testing.T) {
	checkLeaks(t)
	rows := []struct {
		name   string
		scheme string
		host   string
		source string // that is said; empty: the connection's own
		logged string // client that the door logs; empty: any port of the host
	}{
		{"own source", "http", "127.0.0.1", "", ""},
		{"own source before TLS", "https", "127.0.0.1", "", ""},
		{"own source over IPv6", "http", "[::1]", "", ""},
		{"said source", "http", "127.0.0.1", "203.0.113.7:40000", "203.0.113.7:40000"},
		{"said source before TLS", "https", "127.0.0.1", "203.0.113.7:40000", "203.0.113.7:40000"},
		{"said source over IPv6", "http", "[::1]", "[2001:db8::7]:40000", "[2001:db8::7]:40000"},
		{"IPv4 source over IPv6", "http", "[::1]", "203.0.113.7:40000", "[::ffff:203.0.113.7]:40000"},
		{"IPv6 source over IPv4", "http", "127.0.0.1", "[2001:db8::7]:40000", "[2001:db8::7]:40000"},
	}
	for _, door := range proxiedDoors(t, true) {
		for _, version := range []string{"v1", "v2"} {
			var targets strings.Builder
			for i, row := range rows {
				port := portOf(t, door.http)
				if row.scheme == "https" {
					port = portOf(t, door.https)
				}
				fmt.Fprintf(&targets, `
  - name: %s-%d
    url: %s://%s:%s/
    rate: 40
    connections: 5
    connection: {reuse: false, proxy_protocol: %[1]s, proxy_source: %[6]q}
    %[7]s
`, version, i, row.scheme, row.host, port, row.source, tlsOf(row.scheme, door.caFile))
			}
			before := door.counts()
			results := once(t, 500*time.Millisecond, configured(t, "%s", targets.String())...)
			if c := door.counts().since(before); c.requests != uint64(20*len(rows)) || c.connections != c.requests {
				t.Errorf("%s counted %d requests and %d connections, want %d of both", door.name, c.requests, c.connections, 20*len(rows))
			}
			log := door.log()
			for i, row := range rows {
				t.Run(door.name+" "+version+" "+row.name, func(t *testing.T) {
					if r := &results[i]; r.Failures != 0 {
						t.Errorf("failures %v, want none", r.FailuresBy)
					}
					by := clients(t, log, fmt.Sprintf("%s-%d", version, i))
					if row.logged != "" {
						if by[netip.MustParseAddrPort(row.logged)] != 20 || len(by) != 1 {
							t.Errorf("the door logged %v, want 20 requests of %s", by, row.logged)
						}
						return
					}
					for client, n := range by {
						if client.Addr() != netip.MustParseAddr(strings.Trim(row.host, "[]")) || n != 1 {
							t.Errorf("the door logged %d requests of %s, want one of each port of %s", n, client, row.host)
						}
					}
					if len(by) != 20 {
						t.Errorf("the door logged %d clients, want 20", len(by))
					}
				})
			}
		}
	}
}

// clients returns how many requests of a target came from which client, as the
// door logged it.
func clients(t testing.TB, log testbed.Log, target string) map[netip.AddrPort]uint64 {
	t.Helper()
	by := map[netip.AddrPort]uint64{}
	for note, n := range log.Notes {
		text, ok := strings.CutPrefix(note, "steadyprobe/test (+"+target+") ")
		if !ok {
			continue
		}
		colon := max(strings.LastIndex(text, ":"), 0)
		// nginx writes an address as version 1 of the header does.
		client, err := netip.ParseAddrPort("[" + text[:colon] + "]" + text[colon:])
		if err != nil {
			client, err = netip.ParseAddrPort(text)
		}
		if err != nil {
			t.Fatalf("reading the client %q: %v", text, err)
		}
		by[client] += n
	}
	return by
}

// tlsOf returns the line of TLS settings for a scheme that needs one.
func tlsOf(scheme, caFile string) string {
	if scheme != "https" && scheme != "tls" {
		return ""
	}
	return fmt.Sprintf("tls: {ca_file: %q, resumption: false}", caFile)
}

// notes returns how often each note came since before.
func notes(now, before testbed.Log) map[string]uint64 {
	grown := map[string]uint64{}
	for note, n := range now.Notes {
		if n > before.Notes[note] {
			grown[note] = n - before.Notes[note]
		}
	}
	return grown
}

// TestPROXYHeaderOnKeptConnections sends the header once for each connection and
// not for each request.
func TestPROXYHeaderOnKeptConnections(t *testing.T) {
	checkLeaks(t)
	for _, door := range proxiedDoors(t, true) {
		t.Run(door.name, func(t *testing.T) {
			r := once(t, time.Second, configured(t, `
  - name: door
    url: http://%s/
    rate: 200
    connections: 5
    connection: {warm: true, max_requests: 20, proxy_protocol: v2, proxy_source: "203.0.113.7:40000"}
`, door.http)...)[0]
			// At least 10 connections of 20 requests, and up to 5 that came after:
			// HAProxy logs those too when they end without a request.
			log := door.log()
			if r.Failures != 0 || log.Codes[200] != 200 || log.Connections < 10 || log.Connections > r.ConnectionsOpened || r.ConnectionsOpened > 15 {
				t.Errorf("failures %v, %d connections; the door logged answers %v on %d, want 200 on 10 to 15",
					r.FailuresBy, r.ConnectionsOpened, log.Codes, log.Connections)
			}
			if by := clients(t, log, "door"); len(by) != 1 || by[netip.MustParseAddrPort("203.0.113.7:40000")] != 200 {
				t.Errorf("the door logged the clients %v, want the said one alone", by)
			}
		})
	}
}

// TestPROXYHeaderThatIsMissing probes doors that insist on a header without one,
// and doors that know of none with one: what comes of it has a name. Which of
// two it is depends on whether the door has read all that was sent, or on
// whether its answer to the header came before the request was sent.
func TestPROXYHeaderThatIsMissing(t *testing.T) {
	checkLeaks(t)
	for _, insist := range []bool{true, false} {
		for _, door := range proxiedDoors(t, insist) {
			for _, row := range []struct {
				scheme, version string
				failures        []string // that requests have, and no other
			}{
				// What is no header is closed without a word.
				{"http", "none", []string{"read/eof", "read/reset"}},
				{"https", "none", []string{"tls/eof", "tls/reset"}},
				// A header is a request that is none: 400.
				{"http", "v1", []string{"response/status", "response/protocol"}},
				{"http", "v2", []string{"response/status", "response/protocol"}},
				// It is no hello of TLS. nginx answers 400 in plain HTTP to the
				// first, HAProxy closes.
				{"https", "v1", []string{"tls/protocol", "tls/eof", "tls/reset"}},
				{"https", "v2", []string{"tls/protocol", "tls/eof", "tls/reset"}},
			} {
				if insist != (row.version == "none") {
					continue
				}
				t.Run(fmt.Sprintf("%s insists %v %s %s", door.name, insist, row.scheme, row.version), func(t *testing.T) {
					address := door.http
					if row.scheme == "https" {
						address = door.https
					}
					before := door.log()
					r := once(t, 250*time.Millisecond, configured(t, `
  - name: door
    url: %s://%s/
    rate: 80
    connections: 5
    connection: {reuse: false, proxy_protocol: %s}
    %s
`, row.scheme, address, row.version, tlsOf(row.scheme, door.caFile))...)[0]
					var named uint64
					for _, failure := range row.failures {
						named += r.FailuresBy[failure]
					}
					if named != r.Completed {
						t.Errorf("failures %v, answers %v; want %v alone", r.FailuresBy, r.Responses, row.failures)
					}
					if log := door.log(); log.Codes[200] != before.Codes[200] {
						t.Errorf("the door logged answers %v, want none with 200", log.Codes)
					}
					t.Logf("failures %v, answers %v", r.FailuresBy, r.Responses)
				})
			}
		}
	}
}
