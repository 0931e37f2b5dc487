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
	f.Fuzz(func(t *testing.T, data []byte) {
		p := fakeParser()
		config, warnings, err := p.parse(data)
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
		again, warnings2, err := p.parse(masked)
		if err != nil {
			t.Fatalf("masked configuration: %v\n%s", err, masked)
		}
		if string(again.Masked()) != string(masked) {
			t.Errorf("masked twice:\n%s\nmasked once:\n%s", again.Masked(), masked)
		}
		if len(warnings) != len(warnings2) {
			t.Errorf("masked configuration warns of %v, not of %v", warnings2, warnings)
		}
	})
}
