package test

import (
	"bytes"
	"crypto/tls"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/steadyprobe/steadyprobe/internal/dnsdoor"
	"github.com/steadyprobe/steadyprobe/internal/testbed"
	"github.com/steadyprobe/steadyprobe/internal/testcert"
)

const certificateEnds = "steadyprobe_tls_certificate_not_after_timestamp_seconds"

// copyFile puts a copy of one file in the place of another at once, as
// cert-manager and Kubernetes replace them.
func copyFile(t testing.TB, from, to string) {
	t.Helper()
	text, err := os.ReadFile(from)
	if err == nil {
		err = os.WriteFile(to+".new", text, 0o600)
	}
	if err == nil {
		err = os.Rename(to+".new", to)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// clientDoor insists on a client certificate of that authority, and logs whose
// it was. What has none is answered with 400.
func clientDoor(t testing.TB, clients *testcert.CA, versions testbed.TLSVersions) *testbed.NGINXServer {
	t.Helper()
	return testbed.NGINX(t, testbed.NGINXOptions{
		TLS: versions, NoSessionCache: true, NoTickets: true, AccessLog: true, Note: "$ssl_client_verify $ssl_client_s_dn",
		Server: fmt.Sprintf("ssl_client_certificate %s; ssl_verify_client on;", clients.WriteCA(t)),
	})
}

// TestClientCertificates shows doors that insist on a client certificate a good
// one, none, and one of another authority.
func TestClientCertificates(t *testing.T) {
	checkLeaks(t)
	clients := testcert.NewCA(t, "clients", testcert.Options{})
	good := testcert.Options{Client: true, Names: []string{"steadyprobe"}}
	goodCert, goodKey := testcert.Write(t, clients.Leaf(t, good))
	badCert, badKey := testcert.Write(t, testcert.NewCA(t, "strangers", testcert.Options{}).Leaf(t, good))
	for version, allowed := range map[string]testbed.TLSVersions{"TLS1.2": testbed.TLS12, "TLS1.3": testbed.TLS13} {
		n := clientDoor(t, clients, allowed)
		h := testbed.HAProxy(t, testbed.HAProxyOptions{
			TLS: allowed, NoResumption: true, AccessLog: true, CA: n.CA, Note: "%[ssl_c_s_dn(cn)]",
			BindTLS: "verify required ca-file " + clients.WriteCA(t),
		})
		for _, row := range []struct {
			name          string
			files         string
			nginx         string // failure of all requests; empty: none
			haproxy       string
			nginxResponse string // status of the answers
		}{
			{"good", fmt.Sprintf("cert_file: %q, key_file: %q, ", goodCert, goodKey), "", "", "200"},
			// nginx ends the handshake, and says in HTTP what it wants.
			{"none", "", "response/status", "tls/alert", "400"},
			{"of another authority", fmt.Sprintf("cert_file: %q, key_file: %q, ", badCert, badKey), "response/status", "tls/alert", "400"},
		} {
			for _, door := range []struct {
				name, address, failure, status, note string
				log                                  func() testbed.Log
			}{
				{"nginx", n.HTTPS, row.nginx, row.nginxResponse, "SUCCESS CN=steadyprobe", n.Log},
				{"HAProxy", h.HTTPS, row.haproxy, "200", "steadyprobe", h.Log},
			} {
				t.Run(version+" "+door.name+" "+row.name, func(t *testing.T) {
					before := door.log()
					r := once(t, 400*time.Millisecond, configured(t, `
  - name: door
    url: https://%s/
    rate: 50
    connections: 10
    connection: {reuse: false}
    tls: {%sca_file: %q, resumption: false}
`, door.address, row.files, n.CAFile)...)[0]
					log := door.log()
					logged := log.Notes[door.note] - before.Notes[door.note]
					switch door.failure {
					case "":
						if r.Failures != 0 || r.Responses["200"] != 20 || logged != 20 {
							t.Errorf("failures %v, answers %v; the door knew %d of 20 clients", r.FailuresBy, r.Responses, logged)
						}
					case "response/status":
						if r.FailuresBy[door.failure] != 20 || r.Responses[door.status] != 20 || logged != 0 {
							t.Errorf("failures %v, answers %v, want 20 with %s", r.FailuresBy, r.Responses, door.status)
						}
					default:
						if r.FailuresBy[door.failure] != 20 || log.Requests != before.Requests {
							t.Errorf("failures %v, want 20 %s", r.FailuresBy, door.failure)
						}
					}
				})
			}
		}
	}
}

// TestFilesOfTLSThatChange replaces the client's certificate and key, and the
// authority of the door, on disk while requests go through.
func TestFilesOfTLSThatChange(t *testing.T) {
	checkLeaks(t)
	clients := testcert.NewCA(t, "clients", testcert.Options{})
	n := clientDoor(t, clients, testbed.TLSBoth)
	dir := t.TempDir()
	ca, cert, key := filepath.Join(dir, "ca.pem"), filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	client := func(name string) (certFile, keyFile string) {
		return testcert.Write(t, clients.Leaf(t, testcert.Options{Client: true, Names: []string{name}}))
	}
	oneCert, oneKey := client("one")
	copyFile(t, n.CAFile, ca)
	copyFile(t, oneCert, cert)
	copyFile(t, oneKey, key)
	d := startDaemon(t, fmt.Sprintf(`targets:
  - name: door
    url: https://%s/
    rate: 50
    connections: 10
    connection: {reuse: false}
    tls: {ca_file: %q, cert_file: %q, key_file: %q, resumption: true}
`, n.HTTPS, ca, cert, key))
	known := func(name string) uint64 { return n.Log().Notes["SUCCESS CN="+name] }
	testbed.WaitFor(t, "requests of the first client", 10*time.Second, func() bool { return known("one") >= 20 })

	// A certificate without its key: the last good pair stays.
	twoCert, twoKey := client("two")
	copyFile(t, twoCert, cert)
	at := known("one")
	testbed.WaitFor(t, "the first client to go on", 10*time.Second, func() bool { return known("one") >= at+75 }) // 1.5 s
	if known("two") != 0 {
		t.Error("a certificate was used without its key")
	}
	copyFile(t, twoKey, key)
	testbed.WaitFor(t, "the second client", 10*time.Second, func() bool { return known("two") >= 20 })
	at = known("one")
	now := known("two")
	testbed.WaitFor(t, "more of the second client", 10*time.Second, func() bool { return known("two") >= now+20 })
	if known("one") != at {
		t.Error("the first certificate is still used")
	}

	// The door moves to another authority: what is trusted must follow.
	before := d.until("no failure so far", 5*time.Second, func(s scrape) bool { return len(s.failures("door")) == 0 })
	other := testcert.NewCA(t, "another authority", testcert.Options{})
	n.Certify(other.Leaf(t, testcert.Options{}))
	n.Reload()
	d.until("the new authority to be refused", 10*time.Second, func(s scrape) bool { return s.failures("door")["tls/certificate"] >= 10 })
	copyFile(t, other.WriteCA(t), ca)
	trusted := d.until("the new authority to be trusted", 10*time.Second, func(s scrape) bool {
		return s.sum("steadyprobe_responses_total", "code", "200") >= before.sum("steadyprobe_responses_total", "code", "200")+50
	})
	failed := trusted.failures("door")["tls/certificate"]
	last := d.until("more requests", 10*time.Second, func(s scrape) bool {
		return s.sum("steadyprobe_responses_total", "code", "200") >= trusted.sum("steadyprobe_responses_total", "code", "200")+50
	})
	if f := last.failures("door"); f["tls/certificate"] != failed || len(f) != 1 {
		t.Errorf("failures %v, want tls/certificate alone, %d as when it was trusted", f, failed)
	}
}

// TestDoorThatRotatesItsCertificate reloads doors with a new certificate, which
// the next handshake shows: one that was renewed in time, and one that ends
// sooner than the one before.
func TestDoorThatRotatesItsCertificate(t *testing.T) {
	checkLeaks(t)
	soon, late := time.Now().Add(12*time.Hour).Truncate(time.Second), time.Now().Add(48*time.Hour).Truncate(time.Second)
	ca := longLived(t)
	for _, row := range []struct {
		name          string
		first, second time.Time
	}{{"renewed", soon, late}, {"ends sooner", late, soon}} {
		first, second := testcert.Options{NotAfter: row.first}, testcert.Options{NotAfter: row.second}
		n := testbed.NGINX(t, testbed.NGINXOptions{Certificate: first, CA: ca})
		h := testbed.HAProxy(t, testbed.HAProxyOptions{Certificate: first, CA: ca})
		for _, door := range []struct {
			name, address, ca string
			rotate            func()
		}{
			{"nginx", n.HTTPS, n.CAFile, func() { n.Certify(ca.Leaf(t, second)); n.Reload() }},
			{"HAProxy", h.HTTPS, h.CAFile, func() { h.Certify(ca.Leaf(t, second)); h.Reload() }},
		} {
			t.Run(door.name+" "+row.name, func(t *testing.T) {
				d := startDaemon(t, fmt.Sprintf(`targets:
  - name: door
    url: https://%s/
    rate: 100
    connections: 10
    tls: {ca_file: %q}
`, door.address, door.ca))
				before := d.until("the first certificate", 10*time.Second, func(s scrape) bool { return s.sum(certificateEnds) != 0 })
				if got := before.sum(certificateEnds); got != float64(row.first.Unix()) {
					t.Errorf("the certificate ends at %v, want %v", got, row.first.Unix())
				}
				if got := before.sum("steadyprobe_tls_certificate_verified"); got != 1 {
					t.Errorf("verified %v, want 1", got)
				}
				door.rotate()
				d.until("the second certificate", 5*time.Second, func(s scrape) bool { return s.sum(certificateEnds) == float64(row.second.Unix()) })
			})
		}
	}
}

// TestAuthorityThatEndsFirst has a certificate that outlives who signed it: the
// chain is worth no more than its weakest part.
func TestAuthorityThatEndsFirst(t *testing.T) {
	checkLeaks(t)
	ends := time.Now().Add(6 * time.Hour).Truncate(time.Second)
	root := longLived(t)
	n := testbed.NGINX(t, testbed.NGINXOptions{
		CA:          root.Intermediate(t, "intermediate", testcert.Options{NotAfter: ends}),
		Certificate: testcert.Options{NotAfter: time.Now().Add(48 * time.Hour)},
	})
	d := startDaemon(t, fmt.Sprintf(`targets:
  - name: door
    url: https://%s/
    rate: 20
    connections: 5
    tls: {ca_file: %q}
`, n.HTTPS, n.CAFile))
	s := d.until("a certificate", 10*time.Second, func(s scrape) bool { return s.sum(certificateEnds) != 0 })
	if got := s.sum(certificateEnds); got != float64(ends.Unix()) {
		t.Errorf("the chain ends at %v, want the end of the intermediate authority %v", got, ends.Unix())
	}
}

// longLived returns an authority that outlives the leaves of these tests.
func longLived(t testing.TB) *testcert.CA {
	t.Helper()
	return testcert.NewCA(t, "long-lived authority", testcert.Options{NotAfter: time.Now().Add(1000 * time.Hour)})
}

// TestCertificatesThatAreNoGood probes doors with certificates that a client
// must not trust, with and without insecure_skip_verify.
func TestCertificatesThatAreNoGood(t *testing.T) {
	checkLeaks(t)
	expired := testcert.Expired()
	for _, row := range []struct {
		name        string
		certificate testcert.Options
		url         string // host of
		trust       bool   // the door's own authority
	}{
		{"expired", expired, "", true},
		{"not yet valid", testcert.NotYetValid(), "", true},
		{"of another host", testcert.WrongName(), "", true},
		{"of another authority", testcert.Options{}, "", false},
	} {
		t.Run(row.name, func(t *testing.T) {
			n := testbed.NGINX(t, testbed.NGINXOptions{Certificate: row.certificate, AccessLog: true, Note: "$http_user_agent"})
			ca := n.CAFile
			if !row.trust {
				ca = testcert.NewCA(t, "another authority", testcert.Options{}).WriteCA(t)
			}
			const item = `
  - name: %s
    url: https://%s/
    rate: 50
    connections: 10
    connection: {reuse: false}
    tls: {ca_file: %q, resumption: false, insecure_skip_verify: %v}
`
			d := startDaemon(t, "targets:"+fmt.Sprintf(item, "strict", n.HTTPS, ca, false)+fmt.Sprintf(item, "careless", n.HTTPS, ca, true))
			var log testbed.Log
			d.until("traffic", 10*time.Second, func(s scrape) bool { return s.sum("steadyprobe_requests_total", "target", "careless") >= 50 })
			before, after := d.around("careless", func() { log = n.Log() })
			if f := after.failures("strict"); len(f) != 1 || f["tls/certificate"] == 0 || float64(f["tls/certificate"]) != after.sum("steadyprobe_requests_total", "target", "strict") {
				t.Errorf("failures %v, want tls/certificate for every request", f)
			}
			if log.Notes["steadyprobe/test (+strict)"] != 0 {
				t.Errorf("the door was sent requests by who does not trust it: %v", log.Notes)
			}
			if f := after.failures("careless"); len(f) != 0 {
				t.Errorf("failures %v with insecure_skip_verify, want none", f)
			}
			within(t, "requests of who trusts anything", before.sum("steadyprobe_requests_total", "target", "careless"),
				float64(log.Notes["steadyprobe/test (+careless)"]), after.sum("steadyprobe_requests_total", "target", "careless"))
			for target, what := range map[string]string{"strict": "refused", "careless": "not verified"} {
				if got := after.labels("steadyprobe_tls_certificate_verified", target, "target"); got[target] != 0 || len(got) != 1 {
					t.Errorf("verified %v of a certificate that was %s, want 0", got, what)
				}
			}
			if row.name == "expired" {
				want := float64(expired.NotAfter.Unix())
				for _, target := range []string{"strict", "careless"} {
					if got := after.sum(certificateEnds, "target", target); got != want {
						t.Errorf("%s: the certificate ends at %v, want %v", target, got, want)
					}
				}
			}
		})
	}
}

// TestStapledOCSP has openssl sign an OCSP response, which nginx staples.
func TestStapledOCSP(t *testing.T) {
	checkLeaks(t)
	dir := t.TempDir()
	openssl := func(arguments ...string) {
		t.Helper()
		cmd := exec.Command("openssl", arguments...)
		cmd.Dir = dir
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("openssl %v: %v: %s", arguments, err, out)
		}
	}
	write := func(name, text string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	openssl("req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-keyout", "ca.key", "-out", "ca.pem",
		"-subj", "/CN=authority", "-days", "2")
	openssl("req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-keyout", "door.key", "-out", "door.csr", "-subj", "/CN=door")
	write("names", "subjectAltName=IP:127.0.0.1\n")
	openssl("x509", "-req", "-in", "door.csr", "-CA", "ca.pem", "-CAkey", "ca.key", "-set_serial", "1", "-days", "1", "-extfile", "names", "-out", "door.pem")
	// One line of openssl's own database: valid, ends, not revoked, serial, file, subject.
	write("index.txt", "V\t"+time.Now().Add(20*time.Hour).UTC().Format("060102150405Z")+"\t\t01\tunknown\t/CN=door\n")
	openssl("ocsp", "-issuer", "ca.pem", "-cert", "door.pem", "-reqout", "request.der")
	openssl("ocsp", "-index", "index.txt", "-CA", "ca.pem", "-rsigner", "ca.pem", "-rkey", "ca.key", "-reqin", "request.der", "-respout", "response.der", "-ndays", "1")
	pair, err := tls.LoadX509KeyPair(filepath.Join(dir, "door.pem"), filepath.Join(dir, "door.key"))
	if err != nil {
		t.Fatal(err)
	}
	for staples, want := range map[bool]float64{true: 1, false: 0} {
		t.Run(fmt.Sprintf("stapled %v", staples), func(t *testing.T) {
			server := ""
			if staples {
				server = "ssl_stapling on; ssl_stapling_file " + filepath.Join(dir, "response.der") + ";"
			}
			n := testbed.NGINX(t, testbed.NGINXOptions{Server: server})
			n.Certify(pair)
			n.Reload()
			// What the door staples is what openssl sees of it.
			out, _ := exec.Command("openssl", "s_client", "-connect", n.HTTPS, "-status").CombinedOutput() // ends at once: it has no input
			if seen := bytes.Contains(out, []byte("OCSP Response Status: successful")); seen != staples {
				t.Fatalf("openssl sees a stapled response: %v, want %v: %s", seen, staples, out)
			}
			d := startDaemon(t, fmt.Sprintf(`targets:
  - name: door
    url: https://%s/
    rate: 20
    connections: 5
    tls: {ca_file: %q}
`, n.HTTPS, filepath.Join(dir, "ca.pem")))
			s := d.until("a handshake", 10*time.Second, func(s scrape) bool { return s.sum("steadyprobe_tls_handshakes_total") > 0 })
			if got := s.labels("steadyprobe_tls_ocsp_stapled", "door", "target"); got["door"] != want || len(got) != 1 {
				t.Errorf("stapled %v, want %v", got, want)
			}
			if f := s.failures("door"); len(f) != 0 {
				t.Errorf("failures %v, want none", f)
			}
		})
	}
}

// TestExpiryOverAllAddresses has a name with two addresses, whose certificates
// end at different times.
func TestExpiryOverAllAddresses(t *testing.T) {
	checkLeaks(t)
	sooner, later := time.Now().Add(6*time.Hour).Truncate(time.Second), time.Now().Add(12*time.Hour).Truncate(time.Second)
	ca := longLived(t)
	port := portOf(t, testbed.FreeAddress(t))
	bind := ""
	for address, end := range map[string]time.Time{"127.0.0.2": sooner, "127.0.0.3": later} {
		certificate, key := testcert.Write(t, ca.Leaf(t, testcert.Options{Names: []string{moving}, NotAfter: end}))
		bind += fmt.Sprintf("\tbind %s:%s ssl crt %s\n", address, port, oneFile(t, certificate, key))
	}
	h := testbed.HAProxy(t, testbed.HAProxyOptions{Frontend: bind, AccessLog: true, Note: "%fi"})
	names := dnsdoor.Listen(t)
	names.Set(moving, "127.0.0.2", "127.0.0.3")
	d := startDaemon(t, fmt.Sprintf(`targets:
  - name: door
    url: https://%s:%s/
    rate: 100
    connections: 10
    connection: {max_age: 500ms}
    dns: {refresh: 1s, server: "%s"}
    tls: {ca_file: %q, resumption: false}
`, moving, port, names.Addr(), ca.WriteCA(t)))
	s := d.until("both addresses", 10*time.Second, func(s scrape) bool {
		notes := h.Log().Notes
		return notes["127.0.0.2"] > 0 && notes["127.0.0.3"] > 0 && s.sum("steadyprobe_requests_total") >= 100
	})
	if got := s.sum(certificateEnds); got != float64(sooner.Unix()) {
		t.Errorf("the certificates end at %v, want the earlier end %v", got, sooner.Unix())
	}
	names.Set(moving, "127.0.0.3")
	d.until("the later end alone", 10*time.Second, func(s scrape) bool { return s.sum(certificateEnds) == float64(later.Unix()) })
}

// oneFile puts a certificate and its key into one file, as HAProxy wants them.
func oneFile(t *testing.T, certificate, key string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "pair.pem")
	if err := os.WriteFile(file, []byte(read(t, certificate)+read(t, key)), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}
