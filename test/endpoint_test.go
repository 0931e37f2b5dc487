package test

import (
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/steadyprobe/steadyprobe/internal/testbed"
	"github.com/steadyprobe/steadyprobe/internal/testcert"
)

// endpoint is a daemon whose endpoint is protected in every way that
// exporter-toolkit knows: TLS, client certificates, passwords.
type endpoint struct {
	*testbed.ProbeServer
	t          *testing.T
	ca         string // file
	cert, key  string // files of a client
	otherCert  string // files of a client of another authority
	otherKey   string
	configFile string
}

// hash is that of the password "pass".
const hash = "$2y$04$PwQF5bGOi/I/9oGIX3vXiuNM1qgaxtYwVXehGnuCsVsqwrdZLk24i"

const protection = `
tls_server_config:
  cert_file: %s
  key_file: %s
  client_auth_type: RequireAndVerifyClientCert
  client_ca_file: %s
  min_version: TLS12
basic_auth_users: {%s: "` + hash + `"}
`

func startEndpoint(t *testing.T, nginx *testbed.NGINXServer) *endpoint {
	servers, clients := testcert.NewCA(t, "servers", testcert.Options{}), testcert.NewCA(t, "clients", testcert.Options{})
	strangers := testcert.NewCA(t, "strangers", testcert.Options{})
	certificate, key := testcert.Write(t, servers.Leaf(t, testcert.Options{}))
	e := &endpoint{t: t, ca: servers.WriteCA(t), configFile: filepath.Join(t.TempDir(), "web.yml")}
	e.cert, e.key = testcert.Write(t, clients.Leaf(t, testcert.Options{Client: true}))
	e.otherCert, e.otherKey = testcert.Write(t, strangers.Leaf(t, testcert.Options{Client: true}))
	e.protect(fmt.Sprintf(protection, certificate, key, clients.WriteCA(t), "user"))
	e.ProbeServer = testbed.Probe(t, testbed.BuildProbe(t),
		fmt.Sprintf("targets: [{name: one, url: 'http://%s/', rate: 20}]", nginx.HTTP), "--web.config.file="+e.configFile)
	return e
}

// protect writes the web configuration.
func (e *endpoint) protect(text string) {
	e.t.Helper()
	if err := os.WriteFile(e.configFile, []byte(text), 0o600); err != nil {
		e.t.Fatal(err)
	}
}

// curl asks for a path over TLS and returns the status, 0 where there was no
// answer, and what was printed.
func (e *endpoint) curl(path string, flags ...string) (status, output string) {
	e.t.Helper()
	_, port, _ := strings.Cut(e.Address, ":")
	args := append([]string{"--silent", "--show-error", "--max-time", "20", "--write-out", "\n%{http_code} %{http_version} %{ssl_verify_result}"}, flags...)
	out, _ := exec.Command(testbed.Program(e.t, "curl"), append(args, "https://localhost:"+port+path)...).CombinedOutput()
	text := strings.TrimSpace(string(out))
	last := text[strings.LastIndexByte(text, '\n')+1:]
	status, _, _ = strings.Cut(last, " ")
	return status, text
}

// TestProtectedEndpoint asks a protected daemon with curl, openssl and
// Prometheus: who lacks any of the three gets nothing.
func TestProtectedEndpoint(t *testing.T) {
	checkLeaks(t)
	nginx := testbed.NGINX(t, testbed.NGINXOptions{})
	e := startEndpoint(t, nginx)
	trusted := []string{"--cacert", e.ca}
	client := append(trusted, "--cert", e.cert, "--key", e.key)
	with := func(flags []string, more ...string) []string { return append(flags[:len(flags):len(flags)], more...) }
	for _, row := range []struct {
		name  string
		path  string
		flags []string
		want  string // status; 000: no answer
		says  string
	}{
		{"all three", "/metrics", with(client, "--user", "user:pass"), "200", "steadyprobe_build_info"},
		{"HTTP/2", "/metrics", with(client, "--user", "user:pass", "--http2"), "200", " 2 0"},
		{"HTTP/1.1", "/api/v1/status", with(client, "--user", "user:pass", "--http1.1"), "200", " 1.1 0"},
		{"a wrong password", "/metrics", with(client, "--user", "user:word"), "401", "Unauthorized"},
		{"another user", "/metrics", with(client, "--user", "other:pass"), "401", "Unauthorized"},
		{"no password", "/metrics", client, "401", "Unauthorized"},
		{"no password for the API", "/api/v1/targets", client, "401", "Unauthorized"},
		{"no password for the page", "/", client, "401", "Unauthorized"},
		{"no password for a reload", "/-/reload", with(client, "--request", "POST"), "401", "Unauthorized"},
		{"no password for the health", "/-/healthy", client, "401", "Unauthorized"},
		{"no certificate", "/metrics", with(trusted, "--user", "user:pass"), "000", ""},
		{"a certificate of another authority", "/metrics", with(trusted, "--user", "user:pass", "--cert", e.otherCert, "--key", e.otherKey), "000", ""},
		{"a server that is not trusted", "/metrics", []string{"--user", "user:pass", "--cert", e.cert, "--key", e.key}, "000", "unable to get local issuer certificate"},
		{"an old version", "/metrics", with(client, "--user", "user:pass", "--tls-max", "1.1", "--ciphers", "DEFAULT@SECLEVEL=0"), "000", "protocol version"},
	} {
		t.Run(row.name, func(t *testing.T) {
			if status, text := e.curl(row.path, row.flags...); status != row.want || !strings.Contains(text, row.says) {
				t.Errorf("status %s, want %s and %q:\n%.500s", status, row.want, row.says, text)
			}
		})
	}
	t.Run("health without any of it", e.health)
	t.Run("openssl", e.openssl)
	t.Run("Prometheus", e.prometheus)
	t.Run("another password", e.otherPassword)
	if out := e.Output(); strings.Contains(out, "pass") || strings.Contains(out, hash) {
		t.Errorf("the log has a password:\n%s", out)
	}
}

func (e *endpoint) health(t *testing.T) {
	for _, path := range []string{"/-/healthy", "/-/ready"} {
		out, err := exec.Command(testbed.Program(t, "curl"), "--silent", "--fail", "http://"+e.Health+path).CombinedOutput()
		if err != nil {
			t.Errorf("%s: %v: %s", path, err, out)
		}
	}
	if out, err := exec.Command(testbed.Program(t, "curl"), "--silent", "--fail", "http://"+e.Health+"/metrics").CombinedOutput(); err == nil {
		t.Errorf("the plain address serves metrics: %s", out)
	}
	// What speaks no TLS is told so, and gets nothing else.
	if out, _ := exec.Command(testbed.Program(t, "curl"), "--silent", "http://"+e.Address+"/metrics").CombinedOutput(); !strings.Contains(string(out), "HTTP request to an HTTPS server") {
		t.Errorf("plain HTTP on the protected address: %s", out)
	}
}

func (e *endpoint) openssl(t *testing.T) {
	for version, want := range map[string]string{"-tls1_2": "TLSv1.2", "-tls1_3": "TLSv1.3"} {
		out, _ := exec.Command(testbed.Program(t, "openssl"), "s_client", "-connect", e.Address, "-servername", "localhost", version,
			"-CAfile", e.ca, "-cert", e.cert, "-key", e.key, "-alpn", "h2", "-brief").CombinedOutput()
		for _, line := range []string{"Protocol version: " + want, "Verification: OK"} {
			if !strings.Contains(string(out), line) {
				t.Errorf("%s: no %q in:\n%s", version, line, out)
			}
		}
	}
}

func (e *endpoint) prometheus(t *testing.T) {
	p := testbed.Prometheus(t, testbed.PrometheusOptions{ScrapeConfigs: fmt.Sprintf(`
- job_name: protected
  scrape_interval: 1s
  scrape_timeout: 1s
  scheme: https
  basic_auth: {username: user, password: pass}
  tls_config: {ca_file: %s, cert_file: %s, key_file: %s, server_name: localhost}
  static_configs: [{targets: [%q]}]
- job_name: stranger
  scrape_interval: 1s
  scrape_timeout: 1s
  scheme: https
  tls_config: {ca_file: %[1]s, cert_file: %[2]s, key_file: %[3]s, server_name: localhost}
  static_configs: [{targets: [%[4]q]}]
`, e.ca, e.cert, e.key, e.Address)})
	p.WaitForQuery(`up{job="protected"} == 1 and on () count(up{job="stranger"} == 0) and on () steadyprobe_requests_total{job="protected"} > 0`, time.Minute)
}

// otherPassword changes the user while the daemon runs, and then breaks the file:
// the first holds at once, the second lets nobody in, and neither ends it.
func (e *endpoint) otherPassword(t *testing.T) {
	client := []string{"--cacert", e.ca, "--cert", e.cert, "--key", e.key}
	before := read(t, e.configFile)
	e.protect(strings.Replace(before, "{user: ", "{another: ", 1))
	for user, want := range map[string]string{"user:pass": "401", "another:pass": "200"} {
		if status, text := e.curl("/metrics", append(client, "--user", user)...); status != want {
			t.Errorf("as %s: status %s, want %s: %.300s", user, status, want, text)
		}
	}
	e.protect("nonsense: true\n")
	if status, text := e.curl("/metrics", append(client, "--user", "another:pass")...); status == "200" {
		t.Errorf("a broken file let somebody in: %.300s", text)
	}
	e.protect(before)
	if status, text := e.curl("/metrics", append(client, "--user", "user:pass")...); status != "200" {
		t.Errorf("a repaired file does not hold: status %s: %.300s", status, text)
	}
}

// brokenClients does to an endpoint what broken scrapers do, until the function
// that it returns is called: scrapes that are not read, requests that never end,
// headers and bodies that are too large, connections that are opened and left,
// and garbage.
func brokenClients(t *testing.T, address string) (stop func()) {
	t.Helper()
	over := make(chan struct{})
	var running sync.WaitGroup
	// Each does one thing on one connection after the other.
	client := func(n int, wait time.Duration, do func(net.Conn)) {
		for range n {
			running.Go(func() {
				for {
					if conn, err := net.DialTimeout("tcp", address, 5*time.Second); err == nil {
						_ = conn.(*net.TCPConn).SetReadBuffer(4096)
						do(conn)
						pause(over, wait)
						_ = conn.Close()
					}
					if pause(over, 10*time.Millisecond) {
						return
					}
				}
			})
		}
	}
	say := func(text string) func(net.Conn) {
		return func(conn net.Conn) {
			_ = conn.SetWriteDeadline(time.Now().Add(5 * time.Second))
			_, _ = conn.Write([]byte(text))
		}
	}
	const get = "GET /metrics HTTP/1.1\r\nHost: a\r\n"
	client(20, time.Hour, say(get+"\r\n"))
	client(5, time.Hour, say(strings.Repeat(get+"\r\n", 500)))
	client(10, time.Hour, say(get+"X-Slow: "))
	client(2, 100*time.Millisecond, say(get+"X-Large: "+strings.Repeat("x", 1<<20)+"\r\n\r\n"))
	client(2, 100*time.Millisecond, say("GET /metrics HTTP/1.1\r\nHost: a\r\nContent-Length: 10000000\r\n\r\n"+strings.Repeat("x", 1<<20)))
	client(2, 100*time.Millisecond, say("POST /-/reload HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n"+strings.Repeat("fff\r\n"+strings.Repeat("x", 0xfff)+"\r\n", 300)))
	client(2, 100*time.Millisecond, say("\x16\x03\x01 this is no HTTP \x00\xff\r\n\r\n"))
	client(150, time.Hour, func(net.Conn) {})
	client(5, time.Hour, say("GET /config HTTP/1.1\r\nHost: a\r\n\r\n"))
	client(5, time.Hour, say("GET /api/v1/targets HTTP/1.1\r\nHost: a\r\n\r\n"))
	return sync.OnceFunc(func() { close(over); running.Wait() })
}

// pause waits for d, or until over is closed, which it reports.
func pause(over chan struct{}, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-over:
		return true
	case <-timer.C:
		return false
	}
}

// TestBrokenScrapers lets clients do all that they can to an endpoint while a
// door is probed at 200 requests/s: every tick is sent and answered, the process
// does not grow, a scraper that behaves gets an answer all the same, now and
// then, and at once when the others are gone.
func TestBrokenScrapers(t *testing.T) {
	checkLeaks(t)
	nginx := testbed.NGINX(t, testbed.NGINXOptions{})
	targets := fmt.Sprintf("targets:\n  - {name: one, url: 'http://%s/', rate: 200, connections: 20}\n", nginx.HTTP)
	// So many that an answer does not fit into the buffers of sockets.
	for i := range 100 {
		targets += fmt.Sprintf("  - {name: other-%d, url: 'http://%s/', rate: 0.1, connections: 1}\n", i, nginx.HTTP)
	}
	p := testbed.Probe(t, testbed.BuildProbe(t), targets)
	d := &daemon{t: t, address: p.Address, client: &http.Client{Timeout: 30 * time.Second, Transport: &http.Transport{DisableKeepAlives: true}}}
	asked := time.Now()
	before, err := d.scrape()
	if err != nil {
		t.Fatal(err)
	}
	answered := time.Now()
	stop := brokenClients(t, p.Address)
	defer stop()
	began, answers := time.Now(), 0
	most := 0.0
	for time.Since(began) < 25*time.Second {
		time.Sleep(500 * time.Millisecond)
		if s, err := d.scrape(); err == nil {
			answers++
			most = max(most, s.sum("process_open_fds"))
			if err := s.checkAccount("one", before); err != nil {
				t.Error(err)
			}
		}
	}
	if answers == 0 {
		t.Error("a scraper that behaves got no answer in 25 s")
	}
	// Connections to the door, the endpoint's clients, and what a process has
	// anyway.
	if most > 20+100+64+40 {
		t.Errorf("%v open files", most)
	}
	stop()
	least := 200 * time.Since(answered).Seconds()
	after, err := d.scrape()
	if err != nil {
		t.Fatalf("when the broken ones are gone: %v", err)
	}
	greatest := 200 * time.Since(asked).Seconds()
	got := after.sum("steadyprobe_requests_scheduled_total", "target", "one") - before.sum("steadyprobe_requests_scheduled_total", "target", "one")
	if got < least-1 || got > greatest+1 {
		t.Errorf("%v ticks were due, want %.0f to %.0f", got, least, greatest)
	}
	if failed := after.failures("one"); len(failed) != 0 {
		t.Errorf("failures: %v", failed)
	}
	if heap := after.sum("go_memstats_heap_inuse_bytes"); heap > 200<<20 {
		t.Errorf("%v bytes of heap", heap)
	}
	if lines := strings.Count(p.Output(), "\n"); lines > 200 {
		t.Errorf("%d lines in the log", lines)
	}
	t.Logf("%d answers in 25 s, %v open files at most, %v ticks", answers, most, got)
}
