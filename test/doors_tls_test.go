package test

import (
	"fmt"
	"testing"
	"time"

	"github.com/steadyprobe/steadyprobe/internal/testbed"
	"github.com/steadyprobe/steadyprobe/internal/testcert"
	"github.com/steadyprobe/steadyprobe/report"
)

// handshaken counts the handshakes of a run of one kind: full or resumed, with
// that suite and key exchange, where they are not empty.
func handshaken(r *report.Result, version, cipher, exchange string, resumed bool) (n uint64) {
	for _, k := range r.TLS.Kinds {
		if k.Version == version && (cipher == "" || k.Cipher == cipher) && (exchange == "" || k.KeyExchange == exchange) && k.Resumed == resumed {
			n += k.Count
		}
	}
	return n
}

// TestCipherSuites probes doors that speak one suite each, named as the IANA
// and as OpenSSL name it, and with the wrong one.
func TestCipherSuites(t *testing.T) {
	checkLeaks(t)
	for _, row := range []struct {
		suite   string // of the door, as OpenSSL names it
		rsa     bool
		ciphers string // of the target
		iana    string // what is counted; empty: the door refuses
	}{
		{"ECDHE-RSA-AES256-GCM-SHA384", true, "ECDHE-RSA-AES256-GCM-SHA384", "TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384"},
		{"ECDHE-RSA-AES256-GCM-SHA384", true, "TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384", "TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384"},
		{"ECDHE-RSA-AES256-GCM-SHA384", true, "ECDHE-RSA-AES128-GCM-SHA256", ""},
		{"ECDHE-RSA-CHACHA20-POLY1305", true, "ecdhe-rsa-chacha20-poly1305, ECDHE-RSA-AES128-GCM-SHA256", "TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256"},
		{"ECDHE-ECDSA-AES128-GCM-SHA256", false, "ECDHE-ECDSA-AES128-GCM-SHA256", "TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256"},
		{"ECDHE-ECDSA-AES128-GCM-SHA256", false, "ECDHE-RSA-AES128-GCM-SHA256", ""}, // the certificate is not RSA
		{"AES128-SHA", true, "AES128-SHA", "TLS_RSA_WITH_AES_128_CBC_SHA"},          // not secure, and an old door may insist
		{"AES128-SHA", true, "ECDHE-RSA-AES128-GCM-SHA256", ""},
	} {
		t.Run(row.suite+" "+row.ciphers, func(t *testing.T) {
			certificate := testcert.Options{RSA: row.rsa}
			n := testbed.NGINX(t, testbed.NGINXOptions{
				TLS: testbed.TLS12, NoSessionCache: true, NoTickets: true, AccessLog: true,
				Note: "$ssl_cipher", Server: "ssl_ciphers " + row.suite + ":@SECLEVEL=0;", Certificate: certificate,
			})
			h := testbed.HAProxy(t, testbed.HAProxyOptions{
				TLS: testbed.TLS12, NoResumption: true, AccessLog: true,
				Note: "%sslc", BindTLS: "ciphers " + row.suite + ":@SECLEVEL=0", Certificate: certificate, CA: n.CA,
			})
			for _, door := range []struct {
				name, address string
				log           func() testbed.Log
			}{{"nginx", n.HTTPS, n.Log}, {"HAProxy", h.HTTPS, h.Log}} {
				r := once(t, 400*time.Millisecond, configured(t, `
  - name: door
    url: https://%s/
    rate: 50
    connections: 10
    connection: {reuse: false}
    tls: {ca_file: %q, max_version: TLS12, ciphers: [%s], resumption: false}
`, door.address, n.CAFile, row.ciphers)...)[0]
				if row.iana == "" {
					if r.FailuresBy["tls/alert"] != 20 || door.log().Requests != 0 {
						t.Errorf("%s: failures %v, want 20 tls/alert", door.name, r.FailuresBy)
					}
					continue
				}
				if full := handshaken(&r, "TLS1.2", row.iana, "", false); r.Failures != 0 || full != 20 {
					t.Errorf("%s: failures %v, handshakes %+v; want 20 full ones with %s", door.name, r.FailuresBy, r.TLS.Kinds, row.iana)
				}
				if log := door.log(); log.Notes[row.suite] != 20 || log.Full != 20 {
					t.Errorf("%s logged %+v, want 20 full handshakes with %s", door.name, log, row.suite)
				}
			}
		})
	}
}

// TestGroups probes doors that exchange keys in one group each.
func TestGroups(t *testing.T) {
	checkLeaks(t)
	for _, row := range []struct {
		curve  string // of the door, as OpenSSL names it
		groups string // of the target
		want   string // what is counted; empty: the door refuses
	}{
		{"X25519", "[X25519]", "X25519"},
		{"prime256v1", "[P-256]", "CurveP256"},
		{"prime256v1", "[secp256r1, X25519]", "CurveP256"},
		{"secp384r1", "[P-384]", "CurveP384"},
		{"secp521r1", "[P-521]", "CurveP521"},
		{"X25519", "[]", "X25519"}, // Go offers all that it knows
		{"X25519", "[X25519MLKEM768, X25519]", "X25519"},
		{"X25519", "[P-256]", ""},
		{"X25519", "[X25519MLKEM768]", ""}, // these doors do not know the hybrid
	} {
		for version, allowed := range map[string]testbed.TLSVersions{"TLS1.2": testbed.TLS12, "TLS1.3": testbed.TLS13} {
			if allowed == testbed.TLS12 && row.groups == "[X25519MLKEM768]" {
				continue // there is nothing of it in TLS 1.2
			}
			t.Run(version+" "+row.curve+" "+row.groups, func(t *testing.T) {
				n := testbed.NGINX(t, testbed.NGINXOptions{
					TLS: allowed, NoSessionCache: true, NoTickets: true, AccessLog: true, Note: "$ssl_cipher",
					Server: "ssl_ecdh_curve " + row.curve + ";", Certificate: testcert.Options{RSA: true},
				})
				r := once(t, 400*time.Millisecond, configured(t, `
  - name: door
    url: https://%s/
    rate: 50
    connections: 10
    connection: {reuse: false}
    tls: {ca_file: %q, groups: %s, resumption: false}
`, n.HTTPS, n.CAFile, row.groups)...)[0]
				if row.want == "" {
					if r.FailuresBy["tls/alert"] != 20 || n.Log().Requests != 0 {
						t.Errorf("failures %v, want 20 tls/alert", r.FailuresBy)
					}
					return
				}
				if full := handshaken(&r, version, "", row.want, false); r.Failures != 0 || full != 20 {
					t.Errorf("failures %v, handshakes %+v; want 20 full ones by %s", r.FailuresBy, r.TLS.Kinds, row.want)
				}
				if log := n.Log(); log.Full != 20 {
					t.Errorf("the door logged %+v, want 20 full handshakes", log)
				}
			})
		}
	}
}

// TestTLSTransactions is the profile of study one: a full handshake with a named
// suite, and an empty answer, for each request, although the door would resume.
func TestTLSTransactions(t *testing.T) {
	checkLeaks(t)
	const suite = "ECDHE-RSA-AES256-GCM-SHA384"
	n := testbed.NGINX(t, testbed.NGINXOptions{
		TLS: testbed.TLSBoth, AccessLog: true, Note: "$ssl_cipher $body_bytes_sent", Certificate: testcert.Options{RSA: true},
		Locations: "\t\tlocation = /empty { return 200; }\n",
	})
	h := testbed.HAProxy(t, testbed.HAProxyOptions{
		TLS: testbed.TLSBoth, AccessLog: true, Note: "%sslc", Certificate: testcert.Options{RSA: true}, CA: n.CA,
		Frontend: "\thttp-request return status 200 if { path /empty }",
	})
	for _, door := range []struct {
		name, address, note string
		log                 func() testbed.Log
	}{{"nginx", n.HTTPS, suite + " 0", n.Log}, {"HAProxy", h.HTTPS, suite, h.Log}} {
		t.Run(door.name, func(t *testing.T) {
			r := once(t, time.Second, configured(t, `
  - name: tls-transactions
    url: https://%s/empty
    rate: 100
    connections: 20
    connection: {reuse: false}
    tls: {ca_file: %q, max_version: TLS12, ciphers: [%s], resumption: false}
    expect: {status: ["200"], body_size: 0}
`, door.address, n.CAFile, suite)...)[0]
			full := handshaken(&r, "TLS1.2", "TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384", "", false)
			if r.Failures != 0 || full != 100 || r.TLS.Handshakes != 100 || r.ConnectionsOpened != 100 {
				t.Errorf("failures %v, %d connections, handshakes %+v; want 100 full ones", r.FailuresBy, r.ConnectionsOpened, r.TLS.Kinds)
			}
			if log := door.log(); log.Full != 100 || log.Resumed != 0 || log.Notes[door.note] != 100 || log.Codes[200] != 100 {
				t.Errorf("the door logged %+v, want 100 full handshakes with %s", log, suite)
			}
		})
	}
	if c := h.Counters(); c.Full != 100 || c.Resumed != 0 || c.TLS != 100 {
		t.Errorf("HAProxy counted %+v, want 100 full handshakes", c)
	}
}

// TestFullAndResumed holds the daemon's counts of handshakes, by version and
// kind, against those of doors that resume.
func TestFullAndResumed(t *testing.T) {
	checkLeaks(t)
	for version, allowed := range map[string]testbed.TLSVersions{"TLS1.2": testbed.TLS12, "TLS1.3": testbed.TLS13} {
		t.Run(version, func(t *testing.T) {
			n := testbed.NGINX(t, testbed.NGINXOptions{TLS: allowed, AccessLog: true})
			h := testbed.HAProxy(t, testbed.HAProxyOptions{TLS: allowed, CA: n.CA})
			const item = `
  - name: %s
    url: https://%s/
    rate: 50
    connections: 10
    connection: {reuse: false}
    tls: {ca_file: %q, resumption: true}
`
			d := startDaemon(t, "targets:"+fmt.Sprintf(item, "nginx", n.HTTPS, n.CAFile)+fmt.Sprintf(item, "haproxy", h.HTTPS, n.CAFile))
			for target, counted := range map[string]func() (full, resumed uint64){
				"nginx":   func() (uint64, uint64) { l := n.Log(); return l.Full, l.Resumed },
				"haproxy": func() (uint64, uint64) { c := h.Counters(); return c.Full, c.Resumed },
			} {
				d.until("resumed handshakes", 15*time.Second, func(s scrape) bool {
					return s.sum("steadyprobe_tls_handshakes_total", "target", target, "resumed", "true") >= 50
				})
				var full, resumed uint64
				before, after := d.around(target, func() { full, resumed = counted() })
				count := func(s scrape, resumed string) float64 {
					return s.sum("steadyprobe_tls_handshakes_total", "target", target, "tls_version", version, "resumed", resumed)
				}
				within(t, target+": full handshakes", count(before, "false"), float64(full), count(after, "false"))
				within(t, target+": resumed handshakes", count(before, "true"), float64(resumed), count(after, "true"))
				for _, kind := range []string{"true", "false"} {
					timed, counted := after.sum("steadyprobe_tls_handshake_seconds", "target", target, "resumed", kind), count(after, kind)
					if timed < counted || timed > counted+10 || counted == 0 {
						t.Errorf("%s: %v handshakes timed, %v counted, resumed %s", target, timed, counted, kind)
					}
				}
				if f := after.failures(target); len(f) != 0 {
					t.Errorf("%s: failures %v, want none", target, f)
				}
			}
		})
	}
}
