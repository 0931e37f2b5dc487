package config

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestBadFiles loads each testdata/*.bad.yml and compares all of its problems,
// which stand as comments at its end: "# want: LINE: FIELD: TEXT".
func TestBadFiles(t *testing.T) {
	t.Parallel()
	names, err := filepath.Glob("testdata/*.bad.yml")
	if err != nil || len(names) == 0 {
		t.Fatalf("finding bad files: %v, %v", names, err)
	}
	for _, name := range names {
		t.Run(filepath.Base(name), func(t *testing.T) {
			t.Parallel()
			data, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			var want []string
			for line := range strings.Lines(string(data)) {
				if text, ok := strings.CutPrefix(line, "# want: "); ok {
					want = append(want, strings.TrimSuffix(text, "\n"))
				}
			}
			config, _, err := Load(name)
			if err == nil || config != nil {
				t.Fatalf("got configuration %v, error %v; want an error only", config, err)
			}
			prefix := name + ":"
			var got []string
			for line := range strings.SplitSeq(err.Error(), "\n") {
				if !strings.HasPrefix(line, prefix) {
					t.Errorf("%q does not name the file", line)
				}
				got = append(got, strings.TrimSpace(strings.TrimPrefix(line, prefix)))
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("problems (-want +got):\n%s", diff)
			}
			if strings.Contains(err.Error(), "s3cret") || strings.Contains(err.Error(), "secret@") {
				t.Error("a problem shows a secret")
			}
		})
	}
}
