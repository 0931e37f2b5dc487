package testbed

import (
	"crypto/x509"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/steadyprobe/steadyprobe/internal/testcert"
)

// everywhere are the addresses that doors of these tests listen at besides
// 127.0.0.1.
func everywhere() []string { return []string{"127.0.0.2", "::1"} }

func TestDoorsAtSeveralAddresses(t *testing.T) {
	n := NGINX(t, NGINXOptions{Addresses: everywhere(), AccessLog: true, Note: "$server_addr"})
	h := HAProxy(t, HAProxyOptions{Addresses: everywhere(), AccessLog: true, Note: "%fi"})
	c := newClient(t, n.CA)
	for _, address := range append(everywhere(), "127.0.0.1") {
		for _, door := range []string{n.HTTP, h.HTTP} {
			if code, body := get(t, c, "http://"+portAt(door, address)+"/"); code != 200 || body != Body() {
				t.Errorf("%s at %s answers %d %q, want 200 and the body", door, address, code, body)
			}
		}
	}
	if code, _ := get(t, c, "https://"+portAt(n.HTTPS, "::1")+"/"); code != 200 {
		t.Errorf("nginx over TLS at ::1 answers %d", code)
	}
	if notes := n.Log().Notes; notes["127.0.0.1"] != 1 || notes["127.0.0.2"] != 1 || notes["::1"] != 2 {
		t.Errorf("nginx noted the addresses %v, want 127.0.0.1 and 127.0.0.2 once and ::1 twice", notes)
	}
	if notes := h.Log().Notes; notes["127.0.0.1"] != 1 || notes["127.0.0.2"] != 1 || notes["::1"] != 1 {
		t.Errorf("HAProxy noted the addresses %v, want each once", notes)
	}
}

func TestDoorsThatAreCertifiedAnew(t *testing.T) {
	n := NGINX(t, NGINXOptions{})
	h := HAProxy(t, HAProxyOptions{CA: n.CA})
	for _, door := range []struct {
		name    string
		certify func()
		reload  func()
		address string
	}{
		{"nginx", func() { n.Certify(n.CA.Leaf(t, testcert.Options{Names: []string{"other.invalid", "localhost"}})) }, n.Reload, n.HTTPS},
		{"HAProxy", func() { h.Certify(n.CA.Leaf(t, testcert.Options{Names: []string{"other.invalid", "localhost"}})) }, h.Reload, h.HTTPS},
	} {
		leaf := func() *x509.Certificate {
			c := newClient(t, n.CA)
			defer c.CloseIdleConnections()
			resp, err := c.Get("https://" + door.address + "/")
			if err != nil {
				t.Fatal(err)
			}
			defer resp.Body.Close()
			return resp.TLS.PeerCertificates[0]
		}
		if name := leaf().DNSNames[0]; name != "localhost" {
			t.Errorf("%s begins with a certificate of %s, want localhost", door.name, name)
		}
		door.certify()
		if name := leaf().DNSNames[0]; name != "localhost" {
			t.Errorf("%s has a certificate of %s before it was reloaded, want localhost", door.name, name)
		}
		door.reload()
		if name := leaf().DNSNames[0]; name != "other.invalid" {
			t.Errorf("%s has a certificate of %s after it was reloaded, want other.invalid", door.name, name)
		}
	}
}

func TestDoorsThatInsistOnPROXY(t *testing.T) {
	n := NGINX(t, NGINXOptions{ProxyProtocol: true, AccessLog: true, Note: "$proxy_protocol_addr:$proxy_protocol_port"})
	h := HAProxy(t, HAProxyOptions{Bind: "accept-proxy", AccessLog: true, Note: "%ci:%cp"})
	for _, address := range []string{n.HTTP, h.HTTP} {
		conn, err := net.Dial("tcp", address)
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(conn, "PROXY TCP4 203.0.113.7 127.0.0.1 40000 80\r\nGET / HTTP/1.0\r\n\r\n")
		if answer, err := io.ReadAll(conn); err != nil || len(answer) < len(Body()) {
			t.Errorf("%s answers %q, %v, want the body", address, answer, err)
		}
		conn.Close()
	}
	if log := n.Log(); log.Notes["203.0.113.7:40000"] != 1 {
		t.Errorf("nginx noted %v, want the address in the header", log.Notes)
	}
	if log := h.Log(); log.Notes["203.0.113.7:40000"] != 1 {
		t.Errorf("HAProxy noted %v, want the address in the header", log.Notes)
	}
}

func TestHAProxyCountsItsBackends(t *testing.T) {
	var backends []string
	for range 2 {
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "here") }))
		t.Cleanup(s.Close)
		backends = append(backends, s.Listener.Addr().String())
	}
	for _, row := range []struct {
		name      string
		options   HAProxyOptions
		sessions  uint64 // of each backend
		responses uint64
		codes     int // in the log
	}{
		{"HTTP", HAProxyOptions{}, 2, 2, 200}, // round robin: 4 requests over 2 backends
		{"TCP", HAProxyOptions{TCP: true}, 2, 0, 0},
	} {
		t.Run(row.name, func(t *testing.T) {
			row.options.Backends, row.options.AccessLog, row.options.Note = backends, true, "%s"
			h := HAProxy(t, row.options)
			c := newClient(t, h.CA)
			for range 4 {
				if code, body := get(t, c, "http://"+h.HTTP+"/"); code != 200 || body != "here" {
					t.Errorf("the door answers %d %q", code, body)
				}
				c.CloseIdleConnections()
			}
			for i, b := range h.Backends() {
				if b != (HAProxyBackend{row.sessions, row.responses}) {
					t.Errorf("backend %d has %+v, want %d sessions and %d responses", i, b, row.sessions, row.responses)
				}
			}
			log := h.Log()
			if log.Requests != 4 || log.Codes[row.codes] != 4 || log.Notes["s0"] != 2 || log.Notes["s1"] != 2 {
				t.Errorf("log = %+v, want 4 requests with %d, two of each backend", log, row.codes)
			}
			if got := h.Counters().Connections; got != 4 {
				t.Errorf("%d connections counted, want 4", got)
			}
		})
	}
}

func TestFreeAddress(t *testing.T) {
	if conn, err := net.Dial("tcp", FreeAddress(t)); err == nil {
		conn.Close()
		t.Error("somebody listens at a free address")
	}
}
