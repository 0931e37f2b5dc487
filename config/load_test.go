package config

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestLoadUnreadable(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	large := filepath.Join(folder, "large.yml")
	if err := os.WriteFile(large, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(large, mostFile+1); err != nil {
		t.Fatal(err)
	}
	missing := filepath.Join(folder, "missing.yml")
	for _, row := range []struct {
		name, path, want string
		is               error
	}{
		{"missing", missing, missing + ": does not exist; name a readable YAML file", fs.ErrNotExist},
		{"directory", folder, folder + ": is a directory; name a readable YAML file", nil},
		{"too large", large, large + ": is larger than 16 MiB; name a readable YAML file", nil},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			config, _, err := Load(row.path)
			if config != nil || err == nil || err.Error() != row.want {
				t.Errorf("got configuration %v, error %v; want error %s", config, err, row.want)
			}
			if row.is != nil && !errors.Is(err, row.is) {
				t.Errorf("%v is not %v", err, row.is)
			}
		})
	}
}

func TestParseEmpty(t *testing.T) {
	t.Parallel()
	const want = "x.yml:1: is empty; write at least a target with name, url and rate below targets"
	for _, row := range []struct{ name, text string }{
		{"nothing", ""}, {"comment", "# x"}, {"null", "null"}, {"document marker", "---\n"}, {"byte order mark", "\ufeff"},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			_, _, err := Parse([]byte(row.text), "x.yml")
			var all *Errors
			if !errors.As(err, &all) || err.Error() != want {
				t.Errorf("got %v, want %s", err, want)
			}
		})
	}
}

// TestAliasBomb lets every target be an alias of one with many headers: 40 ×
// 1,000 header fields are more than the 20,000 settings of a fakeParser.
func TestAliasBomb(t *testing.T) {
	t.Parallel()
	var b bytes.Buffer
	b.WriteString("targets:\n  - &a\n    name: a\n    url: http://h/\n    rate: 1\n    http:\n      headers:\n")
	for i := range 1000 {
		fmt.Fprintf(&b, "        X-%d: v\n", i)
	}
	b.WriteString("  - tls: [" + strings.Repeat("*a, ", 10) + "]\n")
	b.WriteString(strings.Repeat("  - *a\n", 40))
	p := fakeParser()
	_, _, err := p.parse(b.Bytes())
	if err == nil || !strings.Contains(err.Error(), "aliases or defaults make the file too large") {
		t.Errorf("got %.200v, want one that the file is too large", err)
	}
}

func TestWarnings(t *testing.T) {
	t.Parallel()
	const door = "targets:\n- {name: a, url: 'http://h/', rate: 10, "
	for _, row := range []struct {
		name, text string
		want       []string
	}{
		// 28232 ports / 60 s = 470.5 requests/s
		{"ports enough", "targets:\n- {name: a, url: 'http://h/', rate: 470.5, connection: {reuse: false}}", nil},
		{"too few ports", "targets:\n- {name: a, url: 'http://h/', rate: 471, connection: {reuse: false}}", []string{
			"fuzz.yml:2: targets[0].connection.reuse: false at 471 requests/s may hold 28260 local ports (60 s each), above the 28232 that there are per address of the door; write a rate of at most 470, or reuse: true"}},
		{"two targets of one door", "defaults: {connection: {reuse: false}}\ntargets:\n- {name: a, url: 'http://h/', rate: 400}\n- {name: b, url: 'http://x/', connect_to: 'h:80', rate: 100.5}\n- {name: c, url: 'http://h/', rate: 1}", []string{
			"fuzz.yml:1: defaults.connection.reuse: false at 500.5 requests/s may hold 30030 local ports (60 s each), above the 28232 that there are per address of the door; write a rate of at most 470, or reuse: true"}},
		{"closed loop of few connections", "limits: {allow_closed_loop: true}\ntargets:\n- {name: a, url: 'http://h/', rate: max, connections: 1, connection: {reuse: false}}\n- {name: b, url: 'http://h/', rate: 470, connection: {reuse: false}}", []string{
			"fuzz.yml:3: targets[0].connection.reuse: false in a closed loop may hold all 28232 local ports (60 s each) that there are per address of the door, and then requests fail; write a rate of at most 470, or reuse: true"}},
		{"two doors", "defaults: {connection: {reuse: false}}\ntargets:\n- {name: a, url: 'http://h/', rate: 400}\n- {name: b, url: 'http://h:81/', rate: 400}", nil},
		{"reused", "targets:\n- {name: a, url: 'http://h/', rate: 5000}", nil},
		{"insecure", "targets:\n- {name: a, url: 'https://h/', rate: 10, tls: {insecure_skip_verify: true}}", []string{
			"fuzz.yml:2: targets[0].tls.insecure_skip_verify: any certificate is accepted, so that nobody knows who answers; write ca_file with the door's authority instead"}},
		{"settings of TLS without TLS", door + "tls: {resumption: true, min_version: TLS13, insecure_skip_verify: true}}", []string{
			"fuzz.yml:2: targets[0].tls.min_version: has no effect on a door whose URL begins with http://; write https://, or remove it",
			"fuzz.yml:2: targets[0].tls.insecure_skip_verify: has no effect on a door whose URL begins with http://; write https://, or remove it"}},
		{"defaults of TLS without TLS", "defaults: {tls: {min_version: TLS13}}\ntargets:\n- {name: a, url: 'http://h/', rate: 10}", nil},
		{"settings of TLS over bare TCP", "targets:\n- {name: a, url: 'tcp://h:1', rate: 10, tls: {resumption: false}}", []string{
			"fuzz.yml:2: targets[0].tls.resumption: has no effect on a door whose URL begins with tcp://; write tls://, or remove it"}},
		{"resumed handshakes", "targets:\n- {name: a, url: 'https://h/', rate: 10, connection: {reuse: false}}\n- {name: b, url: 'tls://h:1', rate: 10}", []string{
			"fuzz.yml:2: targets[0].tls.resumption: is true where nothing is written, so that a new connection per request measures resumed handshakes where the door offers them; write false for full ones, or true if that is meant",
			"fuzz.yml:3: targets[1].tls.resumption: is true where nothing is written, so that a new connection per request measures resumed handshakes where the door offers them; write false for full ones, or true if that is meant"}},
		{"handshakes as they are meant", "defaults: {tls: {resumption: true}}\ntargets:\n- {name: a, url: 'https://h/', rate: 10, connection: {reuse: false}, tls: {resumption: false}}\n- {name: b, url: 'tls://h:1', rate: 10}\n- {name: c, url: 'https://h/', rate: 10}", nil},
		{"suites without TLS 1.2 alone", "targets:\n- {name: a, url: 'https://h/', rate: 10, tls: {ciphers: [ECDHE-RSA-AES128-SHA]}}", []string{
			"fuzz.yml:2: targets[0].tls.ciphers: choose nothing when the door speaks TLS 1.3; write max_version: TLS12 to insist on them, or max_version: TLS13 if that is meant"}},
		{"nothing to look up", "targets:\n- {name: a, url: 'http://[fe80::1%25eth0]/', rate: 10, dns: {family: ipv6, spread: first, refresh: 30s, per_address: true}}\n- {name: b, url: 'http://h/', connect_to: '10.0.0.7:80', rate: 1, dns: {server: '10.0.0.2'}}", []string{
			"fuzz.yml:2: targets[0].dns.family: has no effect, as the address in url is dialled and nothing is looked up; write a name there, or remove it",
			"fuzz.yml:2: targets[0].dns.spread: has no effect, as the address in url is dialled and nothing is looked up; write a name there, or remove it",
			"fuzz.yml:3: targets[1].dns.server: has no effect, as the address in connect_to is dialled and nothing is looked up; write a name there, or remove it"}},
		{"looked up", "defaults: {dns: {spread: first}}\ntargets:\n- {name: a, url: 'http://10.0.0.7/', connect_to: 'h:80', rate: 1, dns: {family: ipv6}}\n- {name: b, url: 'http://10.0.0.7/', rate: 1}", nil},
		{"backends that nothing tells", "defaults: {backend: {most: 9}}\ntargets:\n- {name: a, url: 'http://h/', rate: 1}\n- {name: b, url: 'http://h/', rate: 1, backend: {most: 8}}", []string{
			"fuzz.yml:4: targets[1].backend.most: limits nothing, as nothing says who answered; write backend.header or backend.body too, or remove it"}},
		// 28232 ports / 60 s = 470.5 ticks/s
		{"too few ports for bare TCP", "limits: {allow_closed_loop: true}\ntargets:\n- {name: a, url: 'tcp://h:1', rate: 471}\n- {name: b, url: 'tcp://h:2', rate: max}", []string{
			"fuzz.yml:3: targets[0].rate: a connection per tick at 471 requests/s may hold 28260 local ports (60 s each), above the 28232 that there are per address of the door; write a rate of at most 470",
			"fuzz.yml:4: targets[1].rate: a connection per tick in a closed loop may hold all 28232 local ports (60 s each) that there are per address of the door, and then requests fail; write a rate of at most 470"}},
		// 1 GiB / 1024 = 1 MiB, which is the default
		{"bodies that fit", door + "connections: 1024, expect: {body: ok}}", nil},
		{"bodies that are not kept", door + "connections: 5000, expect: {max_body: 1GiB, body_size: 2, headers: {A: b}}}", nil},
		{"bodies that take much memory", door + "connections: 1025, expect: {body_contains: ok}}\n- {name: b, url: 'tcp://h:1', rate: 1, connections: 2, tcp: {expect: ok}, expect: {max_body: 513MiB}}", []string{
			"fuzz.yml:2: targets[0].expect.max_body: 1025 connections that may each keep a body of 1MiB until it is whole may take more than 1GiB of memory; write a smaller max_body, or fewer connections",
			"fuzz.yml:3: targets[1].expect.max_body: 2 connections that may each keep a body of 513MiB until it is whole may take more than 1GiB of memory; write a smaller max_body, or fewer connections"}},
		{"long timeouts", door + "timeout: 2s, timeouts: {connect: 3s, tls: 2s, response: 2001ms}}", []string{
			"fuzz.yml:2: targets[0].timeouts.connect: is longer than timeout (2s), which ends the request before; write less, or a longer timeout",
			"fuzz.yml:2: targets[0].timeouts.response: is longer than timeout (2s), which ends the request before; write less, or a longer timeout"}},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			p := fakeParser()
			_, warnings, err := p.parse([]byte(row.text))
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, w := range warnings {
				got = append(got, w.String())
			}
			if diff := cmp.Diff(row.want, got); diff != "" {
				t.Errorf("warnings (-want +got):\n%s", diff)
			}
		})
	}
}

// TestShownKeys cuts what may hold a value, not names in other languages.
func TestShownKeys(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("ü", 41)
	for _, row := range []struct{ name, key, want string }{
		{"plain", "max_total.rate-2", "max_total.rate-2"},
		{"empty", "", `""`},
		{"other letters", "ünï", "ünï"},
		{"40 letters", long[:80], long[:80]},
		{"41 letters", long, `"` + long[:80] + `"…`},
		{"a value", "pass word", `"pass"…`},
		{"a control character", "ü\x1b[31m", `"ü"…`},
		{"not UTF-8", "a\xff", `"a"…`},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			equal(t, "key", shown(row.key), row.want)
		})
	}
}

func TestPortsIn(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		name, text string
		want       int
	}{
		{"Linux", "32768\t60999\n", 28232},
		{"one port", "5 5", 1},
		{"turned", "6 5", 28232},
		{"words", "a b", 28232},
		{"empty", "", 28232},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			equal(t, "ports", portsIn(row.text), row.want)
		})
	}
}

// TestDefaultsGiveWay has targets that say in another way what the defaults
// say.
func TestDefaultsGiveWay(t *testing.T) {
	t.Parallel()
	const defaults = `
defaults:
  timeout: 5s
  http:
    headers: {X-Team: a}
    basic_auth: {username: u, password: p}
    body: default
targets:
  - {name: a, url: "http://h/", rate: 1, http: `
	for _, row := range []struct{ name, http, header, body string }{
		{"nothing", "{}", "X-Team: a|Authorization: Basic dTpw", "default"},
		{"body from a file", "{body_file: x}", "X-Team: a|Authorization: Basic dTpw", "content"},
		{"empty body", `{body: ""}`, "X-Team: a|Authorization: Basic dTpw", ""},
		{"authorization", "{authorization: {credentials: t}}", "X-Team: a|Authorization: Bearer t", "default"},
		{"authorization header", "{headers: {authorization: t}}", "X-Team: a|authorization: t", "default"},
		{"password from a file", "{basic_auth: {password_file: x}}", "X-Team: a|Authorization: Basic dTpjb250ZW50", "default"}, // u:content
		{"header in another case", "{headers: {x-team: b}}", "x-team: b|Authorization: Basic dTpw", "default"},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			p := fakeParser()
			config, _, err := p.parse([]byte(defaults + row.http + "}\n"))
			if err != nil {
				t.Fatal(err)
			}
			target := &config.Targets[0]
			var lines []string
			for _, f := range target.HeaderFields() {
				lines = append(lines, f.Name+": "+f.Value.Reveal())
			}
			equal(t, "header", strings.Join(lines, "|"), row.header)
			equal(t, "body", target.HTTP.Content().Reveal(), row.body)
		})
	}
}

// TestClosedLoopWithoutTheDefaultsOfSchedules has closed loops in a file whose
// defaults say how schedules are kept.
func TestClosedLoopWithoutTheDefaultsOfSchedules(t *testing.T) {
	t.Parallel()
	p := fakeParser()
	config, _, err := p.parse([]byte(`
limits: {allow_closed_loop: true, max_total_rate: 5, max_connections: 20}
defaults: {timeout: 2s, backlog: 1s, catch_up: 2, pacing: economy, arrival: poisson, objective: {latency: 1s, ratio: 0.9}}
targets:
- {name: open, url: "http://h/", rate: 5}
- {name: closed, url: "http://h/", rate: max}
`))
	if err != nil {
		t.Fatal(err)
	}
	want := builtInTarget()
	want.Name, want.URL, want.Rate, want.Timeout = "closed", config.Targets[1].URL, mustRate("max"), 2*time.Second
	if got := &config.Targets[1]; !got.Equal(&want) {
		t.Errorf("closed loop: got %+v, want %+v", *got, want)
	}
	open := &config.Targets[0]
	equal(t, "pacing", open.Pacing, "economy")
	equal(t, "objective", open.Objective, Objective{Latency: time.Second, Ratio: 0.9})
	if again, _, err := Parse(config.Masked(), "again.yml"); err != nil || !again.Targets[1].Equal(&want) {
		t.Errorf("parsing what is shown: %v", err)
	}
}

// TestGoodTargetDespiteBadDefaults has a target that replaces what is wrong.
func TestGoodTargetDespiteBadDefaults(t *testing.T) {
	t.Parallel()
	p := fakeParser()
	_, _, err := p.parse([]byte("defaults: {timeout: x}\ntargets:\n- {name: a, url: 'http://h/', rate: 1, timeout: 0s}"))
	checkError(t, err, `fuzz.yml:1: defaults.timeout: "x" is not a duration; write one such as 250ms, 5s or 1m30s
fuzz.yml:3: targets[0].timeout: 0s is out of range; write a duration from 1ms to 1d`)
}
