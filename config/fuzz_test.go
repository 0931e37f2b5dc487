package config

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// fakeParser reads no file but its own, and has the ports of any Linux.
func fakeParser() parser {
	open := func(string) ([]byte, error) { return []byte("content"), nil }
	return parser{report: &report{file: "fuzz.yml", most: 20_000}, files: newFiles(".", open), ports: lastPort - firstPort + 1}
}

// FuzzParse looks for panics, for problems that do not name their place, and
// for configurations whose masked form is not a configuration that says the
// same.
func FuzzParse(f *testing.F) {
	names, err := filepath.Glob("testdata/*.yml")
	if err != nil {
		f.Fatal(err)
	}
	for _, name := range append(names, "../examples/steadyprobe.yml") {
		data, err := os.ReadFile(name)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
	f.Add([]byte("targets: [{name: a, url: \"http://[fe80::1%25eth0]:1/a(b)?%20\", rate: 0.001}]"))
	f.Add([]byte("targets: &a [*a]"))
	f.Add([]byte("targets: [{name: a, url: \"http://h\", rate: 1, churn: b}]\nchurns: [{name: b, embedded: {}, steps: [{replicas: 0, hold: 1ms}]}, {name: c, embedded: {}, steps: [{replicas: 2, hold: 1d}]}]"))
	f.Add([]byte("targets: [{name: a, url: \"http://h\", rate: 1, churn: \"b\\n\"}]\nchurns: [{name: \"b\\nc\", embedded: , steps: [{}]}]"))
	f.Add([]byte("targets: [{name: a, url: \"tls://[::1]:1\", rate: 1, tls: {ciphers: [AES128-SHA, ecdhe-rsa-aes128-sha], groups: [P-256, secp384r1]}, tcp: {send: \"a\\r\", expect: \"^b\"}}]"))
	f.Add([]byte("defaults: {http: {method: HEAD, body: a}, expect: {body_size: 0, body: a, headers: {X-A: b}}, backend: {body: (a), most: 9}, tcp: {send: a}, dns: {server: \"::1\", refresh: 9s}, tls: {min_version: TLS13}}\ntargets: [{name: a, url: \"tcp://h:1\", rate: 1}, {name: b, url: \"http://127.0.0.1\", rate: 1, http: {method: HEAD}, backend: {header: X-B}, expect: {headers: {x-a: .}}}]"))
	f.Add([]byte("targets: [{name: a, url: \"http://h\", rate: 1, connection: {proxy_protocol: v2, proxy_source: \"[::ffff:1.2.3.4]:5\"}, expect: {body: \"(?i)[\", body_sha256: 0}, backend: {body: \"a(b\"}}]"))
	f.Fuzz(func(t *testing.T, data []byte) {
		p := fakeParser()
		config, _, err := p.parse(data)
		if err != nil {
			for line := range strings.SplitSeq(err.Error(), "\n") {
				if !strings.HasPrefix(line, "fuzz.yml:") {
					t.Errorf("%q does not name the file", line)
				}
			}
			return
		}
		masked := config.Masked()
		p = fakeParser()
		again, _, err := p.parse(masked)
		if err != nil {
			t.Fatalf("masked configuration: %v\n%s", err, masked)
		}
		if string(again.Masked()) != string(masked) {
			t.Errorf("masked twice:\n%s\nmasked once:\n%s", again.Masked(), masked)
		}
	})
}
