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

// proxiedDoors are nginx and HAProxy, which log the client that the header
// named, or else that of the connection.
func proxiedDoors(t testing.TB, insist bool) []proxiedDoor {
	t.Helper()
	options := testbed.NGINXOptions{ProxyProtocol: insist, AccessLog: true, Note: "$remote_addr:$remote_port", Addresses: []string{"::1"}}
	bind := ""
	if insist {
		options.Note = "$proxy_protocol_addr:$proxy_protocol_port"
		bind = "accept-proxy"
	}
	n := testbed.NGINX(t, options)
	h := testbed.HAProxy(t, testbed.HAProxyOptions{Bind: bind, AccessLog: true, Note: "%ci:%cp", Addresses: []string{"::1"}})
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
	for _, door := range proxiedDoors(t, true) {
		for _, row := range []struct {
			name   string
			host   string
			source string // that is said; empty: the connection's own
			logged string // client that the door logs; empty: any port of the host
		}{
			{"own source", "127.0.0.1", "", ""},
			{"own source over IPv6", "[::1]", "", ""},
			{"said source", "127.0.0.1", "203.0.113.7:40000", "203.0.113.7:40000"},
			{"said source over IPv6", "[::1]", "[2001:db8::7]:40000", "2001:db8::7:40000"},
			{"IPv4 source over IPv6", "[::1]", "203.0.113.7:40000", "::ffff:203.0.113.7:40000"},
			{"IPv6 source over IPv4", "127.0.0.1", "[2001:db8::7]:40000", "2001:db8::7:40000"},
		} {
			for _, version := range []string{"v1", "v2"} {
				for _, scheme := range []string{"http", "https"} {
					if scheme == "https" && row.host != "127.0.0.1" {
						continue // the header comes before TLS, and knows nothing of it
					}
					t.Run(strings.Join([]string{door.name, row.name, version, scheme}, " "), func(t *testing.T) {
						port := portOf(t, door.http)
						if scheme == "https" {
							port = portOf(t, door.https)
						}
						before, logged := door.counts(), door.log()
						r := once(t, 250*time.Millisecond, configured(t, `
  - name: door
    url: %s://%s:%s/
    rate: 80
    connections: 5
    connection: {reuse: false, proxy_protocol: %s, proxy_source: %q}
    %s
`, scheme, row.host, port, version, row.source, tlsOf(scheme, door.caFile))...)[0]
						if r.Failures != 0 {
							t.Errorf("failures %v, want none", r.FailuresBy)
						}
						compareCounts(t, &r, door.counts().since(before))
						log := door.log()
						if row.logged != "" {
							// nginx logs the address as version 1 writes it.
							if by := notes(log, logged); len(by) != 1 || !sameClient(by, row.logged, r.Completed) {
								t.Errorf("the door logged %v, want %d requests of %s", by, r.Completed, row.logged)
							}
							return
						}
						// Each connection has its own port, so that no note is there twice.
						for note, n := range notes(log, logged) {
							if !strings.HasPrefix(note, strings.Trim(row.host, "[]")+":") || n != 1 {
								t.Errorf("the door logged %d requests of %q, want one of each port of %s", n, note, row.host)
							}
						}
						if got := len(notes(log, logged)); uint64(got) != r.Completed {
							t.Errorf("the door logged %d clients, want %d", got, r.Completed)
						}
					})
				}
			}
		}
	}
}

// sameClient reports whether that many requests were noted of a client, however
// its address is written.
func sameClient(notes map[string]uint64, client string, requests uint64) bool {
	want := strings.LastIndex(client, ":")
	for note, n := range notes {
		i := strings.LastIndex(note, ":")
		if i < 0 || note[i:] != client[want:] || n != requests {
			continue
		}
		address, err := netip.ParseAddr(note[:i])
		if err == nil && address == netip.MustParseAddr(client[:want]) {
			return true
		}
	}
	return false
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
			if len(log.Notes) != 1 || log.Notes["203.0.113.7:40000"] < 200 {
				t.Errorf("the door logged the clients %v, want the said one alone", log.Notes)
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
