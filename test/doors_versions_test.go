package test

import (
	"crypto/tls"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"

	"github.com/steadyprobe/steadyprobe/internal/testbed"
	"github.com/steadyprobe/steadyprobe/internal/testcert"
)

// TestTLSVersions probes doors of one version with targets that offer it, and
// with targets that do not.
func TestTLSVersions(t *testing.T) {
	checkLeaks(t)
	for _, row := range []struct {
		name    string
		door    testbed.TLSVersions
		offered string
		want    string // version; empty: the door refuses
	}{
		{"both speak 1.2 and 1.3", testbed.TLSBoth, "", "TLS1.3"},
		{"the target keeps 1.3 out", testbed.TLSBoth, "max_version: TLS12, ", "TLS1.2"},
		{"the target insists on 1.3", testbed.TLSBoth, "min_version: TLS13, ", "TLS1.3"},
		{"the door speaks 1.2 alone", testbed.TLS12, "", "TLS1.2"},
		{"the door does not speak 1.3", testbed.TLS12, "min_version: TLS13, ", ""},
		{"the door does not speak 1.2", testbed.TLS13, "max_version: TLS12, ", ""},
		{"the door does not speak 1.1", testbed.TLSBoth, "min_version: TLS10, max_version: TLS11, ", ""},
	} {
		t.Run(row.name, func(t *testing.T) {
			n := testbed.NGINX(t, testbed.NGINXOptions{TLS: row.door, AccessLog: true})
			h := testbed.HAProxy(t, testbed.HAProxyOptions{TLS: row.door, AccessLog: true, CA: n.CA})
			for _, door := range []struct {
				name, address string
				log           func() testbed.Log
			}{{"nginx", n.HTTPS, n.Log}, {"HAProxy", h.HTTPS, h.Log}} {
				r := once(t, 200*time.Millisecond, configured(t, `
  - name: door
    url: https://%s/
    rate: 50
    connections: 5
    connection: {reuse: false}
    tls: {%sca_file: %q, resumption: false}
`, door.address, row.offered, n.CAFile)...)[0]
				logged := door.log()
				if row.want == "" {
					if r.FailuresBy["tls/alert"] != 10 || logged.Requests != 0 {
						t.Errorf("%s: failures %v, want 10 tls/alert", door.name, r.FailuresBy)
					}
					continue
				}
				if full := handshaken(&r, row.want, "", "", false); r.Failures != 0 || full != 10 {
					t.Errorf("%s: failures %v, handshakes %+v; want 10 of %s", door.name, r.FailuresBy, r.TLS.Kinds, row.want)
				}
				if got := logged.Versions["TLSv"+row.want[len("TLS"):]]; got != 10 {
					t.Errorf("%s logged the versions %v, want 10 of %s", door.name, logged.Versions, row.want)
				}
			}
		})
	}
}

// TestHybridGroup exchanges keys by the hybrid with ML-KEM. The nginx and
// HAProxy of these tests do not know it, so that Go's own server is the door.
func TestHybridGroup(t *testing.T) {
	checkLeaks(t)
	ca := testcert.NewCA(t, "test", testcert.Options{})
	var hybrid, others atomic.Uint64
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.TLS.CurveID == tls.X25519MLKEM768 {
			hybrid.Add(1)
		} else {
			others.Add(1)
		}
	}))
	s.TLS = &tls.Config{Certificates: []tls.Certificate{ca.Leaf(t, testcert.Options{})}}
	s.Config.ErrorLog = log.New(io.Discard, "", 0)
	s.StartTLS()
	t.Cleanup(s.Close)
	for _, row := range []struct{ groups, want string }{
		{"[]", "X25519MLKEM768"}, // Go prefers it
		{"[X25519MLKEM768]", "X25519MLKEM768"},
		{"[X25519, P-256]", "X25519"}, // for doors that break on the large hello
	} {
		t.Run(row.groups, func(t *testing.T) {
			before, beside := hybrid.Load(), others.Load()
			r := once(t, 200*time.Millisecond, configured(t, `
  - name: door
    url: %s/
    rate: 50
    connections: 5
    connection: {reuse: false}
    tls: {ca_file: %q, groups: %s, resumption: false}
`, s.URL, ca.WriteCA(t), row.groups)...)[0]
			if full := handshaken(&r, "TLS1.3", "", row.want, false); r.Failures != 0 || full != 10 {
				t.Errorf("failures %v, handshakes %+v; want 10 by %s", r.FailuresBy, r.TLS.Kinds, row.want)
			}
			counted := hybrid.Load() - before
			if row.want != "X25519MLKEM768" {
				counted = others.Load() - beside
			}
			if counted != 10 {
				t.Errorf("the door counted %d handshakes by %s, want 10", counted, row.want)
			}
		})
	}
}
