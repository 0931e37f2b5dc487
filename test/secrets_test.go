package test

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/steadyprobe/steadyprobe/internal/faultdoor"
	"github.com/steadyprobe/steadyprobe/internal/testbed"
	"github.com/steadyprobe/steadyprobe/internal/testcert"
)

// planted is part of every secret of this test, and of nothing else.
const planted = "Pl4nted"

// plantedTargets have secrets in every place that may have one, and doors that
// answer, refuse, reset, do not exist, or have a certificate that nobody trusts:
// what fails is told of.
const plantedTargets = `
defaults: {timeout: 2s, connections: 2}
targets:
  - {name: in-url, url: "http://Pl4ntedUser:Pl4ntedPass@%[1]s/path?token=Pl4ntedQuery", rate: 5}
  - name: everywhere
    url: "http://%[1]s/?token=Pl4ntedQuery"
    rate: 5
    http:
      method: POST
      headers: {X-A: Pl4ntedHeader, X-B: {values: [Pl4ntedValue], secrets: [Pl4ntedSecret], files: [header]}}
      basic_auth: {username: Pl4ntedName, password_file: password}
      body: Pl4ntedBody
  - {name: bearer, url: "http://%[1]s/status/403", rate: 5, http: {authorization: {credentials_file: token}, method: POST, body_file: body}}
  - {name: echo, url: "http://Pl4ntedUser:Pl4ntedPass@%[2]s/Pl4ntedIsNoSecretHere", rate: 5, expect: {body: nothing}, http: {headers: {X-A: Pl4ntedHeader}}}
  - {name: refused, url: "http://Pl4ntedUser:Pl4ntedPass@%[3]s/?token=Pl4ntedQuery", rate: 5, http: {headers: {X-A: Pl4ntedHeader}}}
  - {name: reset, url: "http://Pl4ntedUser:Pl4ntedPass@%[4]s/?token=Pl4ntedQuery", rate: 5}
  - {name: no-name, url: "http://Pl4ntedUser:Pl4ntedPass@nowhere.invalid/?token=Pl4ntedQuery", rate: 5}
  - {name: untrusted, url: "https://Pl4ntedUser:Pl4ntedPass@%[5]s/?token=Pl4ntedQuery", rate: 5}
  - {name: with-certificate, url: "https://%[5]s/?token=Pl4ntedQuery", rate: 5, tls: {ca_file: %[6]s, cert_file: client.pem, key_file: client.key}}
  - {name: bare, url: "tcp://%[1]s", rate: 5, tcp: {send: "Pl4ntedSend\r\n\r\n", expect: nothing}}
  - {name: bare-file, url: "tls://%[5]s", rate: 5, tls: {ca_file: %[6]s}, tcp: {send_file: body, expect: nothing}, churn: failing}
profiles:
  - {name: gentle, rate: 1, http: {headers: {X-A: Pl4ntedProfile}, authorization: {credentials_file: token}}}
discovery:
  - name: found
    file_sd_configs: [{files: [doors.yml]}]
    http_sd_configs:
      - {url: "http://Pl4ntedUser:Pl4ntedPass@%[3]s/?key=Pl4ntedQuery", refresh_interval: 5s}
      - {url: "http://%[1]s/status/500?key=Pl4ntedQuery", refresh_interval: 5s, basic_auth: {username: Pl4ntedName, password: Pl4ntedPassword}}
      - {url: "https://%[5]s/?key=Pl4ntedQuery", refresh_interval: 5s, authorization: {credentials: Pl4ntedToken}}
    profile: gentle
    allow: {networks: [127.0.0.0/8]}
churns:
  - name: failing
    command: {scale: [sh, -c, "exit 1 # Pl4ntedArgument {replicas}"], read: [sh, -c, "exit 1 # Pl4ntedArgument"], interval: 1s}
    steps: [{replicas: 2, hold: 5s}, {replicas: 1, hold: 5s}]
    dry_run: false
`

// brokenConfigurations have secrets where they make a file wrong.
func brokenConfigurations() []string {
	return []string{
		"targets: [{name: a, rate: 1, url: 'u:Pl4nted@h/?Pl4nted'}]",
		"targets: [{name: a, rate: 1, url: 'http://u:Pl4nted@h:Pl4nted/?Pl4nted'}]",
		"targets: [{name: a, rate: 1, url: 'http://h/', http: {headers: ['X-A: Pl4nted']}}]",
		"targets: [{name: a, rate: 1, url: 'http://h/', http: {basic_auth: {username: u, password: {Pl4nted: x}}}}]",
		"targets: [{name: a, rate: 1, url: 'http://h/', http: {body: Pl4nted, body_file: body}}]",
		"targets: [{name: a, rate: 1, url: 'http://h/', tls: {ca_file: password, cert_file: token, key_file: token}}]",
		"targets: [{name: a, rate: 1, url: 'http://h/', http: {headers: {X-A: \"Pl4nted\\r\\nX-B: Pl4nted\"}}}]",
		"targets:\n  - {name: a, rate: 1, url: 'http://Pl4nted:Pl4nted@h/'\n    http: {body: Pl4nted}}",
		"discovery: [{name: a, http_sd_configs: [{url: 'http://u:Pl4nted@h:Pl4nted/?Pl4nted'}], profile: none, allow: {hosts: [h]}}]",
		"discovery: [{name: a, http_sd_configs: [{url: 'http://h/', basic_auth: {username: u, password: [Pl4nted]}}], profile: none, allow: {hosts: [h]}}]",
		"churns: [{name: a, command: {scale: Pl4nted, read: [Pl4nted, {Pl4nted: x}]}, steps: [{replicas: 1, hold: 5s}]}]",
	}
}

// secret is one form of what must not be seen.
type secret struct{ what, text string }

// forms returns what must not be seen: secrets as they are, as parts of a Basic
// Authorization, and in the forms in which programs print bytes.
func forms(key []byte) []secret {
	basic := func(user, password string) string {
		return base64.StdEncoding.EncodeToString([]byte(user + ":" + password))
	}
	all := []secret{
		{"a secret", planted},
		{"a secret in hexadecimal", hex.EncodeToString([]byte(planted))},
		{"a secret as bytes", strings.Trim(fmt.Sprintf("%d", []byte(planted)), "[]")},
		{"the Authorization of a URL", basic("Pl4ntedUser", "Pl4ntedPass")},
		{"the Authorization of a basic_auth", basic("Pl4ntedName", "Pl4ntedPassword")},
		{"a secret in base64", base64.StdEncoding.EncodeToString([]byte("Pl4ntedToken"))},
		{"the hash of a password", hash},
	}
	for _, line := range bytes.Split(key, []byte("\n")) {
		if len(line) > 20 && !bytes.HasPrefix(line, []byte("---")) {
			all = append(all, secret{"a private key", string(line)})
		}
	}
	return all
}

// TestNoSecretIsShown plants secrets in a configuration, runs the program with
// it at debug level, asks for everything that it serves, makes it reload broken
// files, and looks for them in every answer, in the log, and in what is kept on
// disk.
func TestNoSecretIsShown(t *testing.T) {
	checkLeaks(t)
	files := t.TempDir()
	nginx := testbed.NGINX(t, testbed.NGINXOptions{})
	certificate, key := testcert.Write(t, testcert.NewCA(t, "clients", testcert.Options{}).Leaf(t, testcert.Options{Client: true}))
	keyText := []byte(read(t, key))
	for name, text := range map[string]string{
		"header": "Pl4ntedFile\n", "password": "Pl4ntedPassword\n", "token": "Pl4ntedToken\n", "body": "Pl4ntedBodyFile",
		"client.pem": read(t, certificate), "client.key": string(keyText),
		"doors.yml": "- targets: ['" + nginx.HTTP + "']\n",
		"web.yml":   "basic_auth_users: {user: \"" + hash + "\"}\n",
	} {
		if err := os.WriteFile(filepath.Join(files, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	// Whatever it is asked comes back in the body of an answer.
	echo := faultdoor.Listen(t, faultdoor.HTTP(func(c *faultdoor.Conn, r *faultdoor.Request) error {
		return c.Answer(r, faultdoor.Answer{Body: []byte("you said " + planted)})
	}))
	reset := faultdoor.Listen(t, faultdoor.HTTP(faultdoor.Reset()))
	configuration := fmt.Sprintf(plantedTargets, nginx.HTTP, echo.Addr(), faultdoor.Refused(t), reset.Addr(), nginx.HTTPS, nginx.CAFile)
	// Relative paths are looked for where the configuration is.
	configuration = regexp.MustCompile(`\b(files: \[|\w+_file: )([a-z.]+)`).ReplaceAllString(configuration, "${1}"+files+"/$2")
	folder := t.TempDir()
	p := testbed.Probe(t, testbed.BuildProbe(t), configuration, "--log.level=debug", "--web.config.file="+filepath.Join(files, "web.yml"),
		"--web.enable-lifecycle", "--web.enable-pprof", "--storage.path="+folder, "--storage.interval=10s")
	a := &asker{t: t, base: "http://" + p.Address, secrets: forms(keyText)}
	testbed.WaitFor(t, "all that fails to be told of", time.Minute, func() bool {
		out := p.Output()
		for _, told := range []string{"target=no-name", "target=untrusted", "target=refused", "discovery=found err=", "churn=failing"} {
			if !strings.Contains(out, told) {
				return false
			}
		}
		return true
	})

	for _, path := range a.paths() {
		a.ask(http.MethodGet, path)
	}
	for _, text := range brokenConfigurations() {
		p.Configure(text)
		if status := a.ask(http.MethodPost, "/-/reload"); status != http.StatusInternalServerError {
			t.Errorf("reloading %q: status %d", text, status)
		}
		a.ask(http.MethodGet, "/api/v1/status")
		a.ask(http.MethodGet, "/")
	}
	p.Configure(strings.Replace(configuration, "name: bare,", "name: bare-again,", 1))
	if status := a.ask(http.MethodPost, "/-/reload"); status != http.StatusOK {
		t.Errorf("reloading a good file: status %d", status)
	}
	if a.asked < 60 || a.seen < 10 {
		t.Errorf("asked %d times and saw a path %d times, which is too few to be everything", a.asked, a.seen)
	}
	p.Stop()
	a.look("the log", p.Output())
	kept := 0
	err := filepath.WalkDir(folder, func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.Type().IsRegular() {
			kept++
			a.look(path, read(t, path))
		}
		return err
	})
	if err != nil || kept < 5 {
		t.Errorf("%d files are kept on disk (%v)", kept, err)
	}
}

// asker asks for everything, and looks for secrets in it.
type asker struct {
	t       *testing.T
	base    string
	secrets []secret
	asked   int
	seen    int // what was planted and is no secret
}

// paths returns all that docs/API.md says there is, for all targets, in all
// forms, and what there is not.
func (a *asker) paths() (all []string) {
	a.t.Helper()
	page := read(a.t, filepath.Join(testbed.Root(a.t), "docs", "API.md"))
	table, _, _ := strings.Cut(page[strings.Index(page, "| path |"):], "\n\n")
	for _, line := range strings.Split(table, "\n") {
		first, _, _ := strings.Cut(strings.TrimPrefix(line, "|"), "|")
		for _, m := range regexp.MustCompile("`(/[^`]*)`").FindAllStringSubmatch(first, -1) {
			all = append(all, m[1])
		}
	}
	if len(all) < 12 {
		a.t.Fatalf("found %d paths in docs/API.md: %v", len(all), all)
	}
	var each []string
	for _, path := range all {
		if !strings.Contains(path, "{name}") {
			each = append(each, path)
			continue
		}
		for _, name := range []string{"in-url", "everywhere", "echo", "refused", "untrusted", "bare", "nobody"} {
			each = append(each, strings.Replace(path, "{name}", url.PathEscape(name), 1))
		}
	}
	return append(each, "/nowhere", "/api/v1/nowhere", "/plot/percentiles.svg?theme=dark&form=narrow",
		"/api/v1/targets/everywhere/distribution?format=hgrm", "/api/v1/targets/everywhere/timeline?span=10s",
		"/debug/pprof/goroutine?debug=2", "/debug/pprof/heap?debug=1", "/debug/pprof/heap", "/debug/pprof/allocs", "/debug/pprof/cmdline",
		"/debug/pprof/profile?seconds=1", "/debug/pprof/trace?seconds=0.2", "/debug/pprof/symbol")
}

// ask asks once and returns the status. Metrics are asked for in all formats.
func (a *asker) ask(method, path string) (status int) {
	a.t.Helper()
	accepts := []string{""}
	if path == "/metrics" {
		accepts = append(accepts, "application/openmetrics-text; version=1.0.0", "application/vnd.google.protobuf;proto=io.prometheus.client.MetricFamily;encoding=delimited")
	}
	client := &http.Client{Timeout: time.Minute, Transport: &http.Transport{DisableKeepAlives: true}}
	for _, accept := range accepts {
		r, err := http.NewRequest(method, a.base+path, nil)
		if err != nil {
			a.t.Fatal(err)
		}
		r.Header.Set("Accept", accept)
		r.SetBasicAuth("user", "pass")
		answer, err := client.Do(r)
		if err != nil {
			a.t.Errorf("%s %s: %v", method, path, err)
			continue
		}
		text, err := io.ReadAll(answer.Body)
		_ = answer.Body.Close()
		if err != nil {
			a.t.Errorf("%s %s: %v", method, path, err)
		}
		if unpacked, err := gzip.NewReader(bytes.NewReader(text)); err == nil { // a profile
			more, _ := io.ReadAll(unpacked)
			text = append(text, more...)
		}
		a.look(method+" "+path+" "+accept, fmt.Sprint(answer.Header)+string(text))
		a.asked++
		status = answer.StatusCode
	}
	return status
}

// look looks for secrets in a text.
func (a *asker) look(what, text string) {
	a.t.Helper()
	// What is no secret, and is meant to be seen.
	a.seen += strings.Count(text, "Pl4ntedIsNoSecretHere")
	text = strings.ReplaceAll(text, "Pl4ntedIsNoSecretHere", "")
	for _, s := range a.secrets {
		if i := strings.Index(text, s.text); i >= 0 {
			a.t.Errorf("%s shows %s: …%.120q", what, s.what, text[max(0, i-60):])
		}
	}
}
