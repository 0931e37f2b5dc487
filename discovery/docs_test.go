package discovery

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/steadyprobe/steadyprobe/config"
)

// TestThePage holds docs/DISCOVERY.md against what there is: labels, reasons and
// examples.
func TestThePage(t *testing.T) {
	t.Parallel()
	data, err := os.ReadFile("../docs/DISCOVERY.md")
	if err != nil {
		t.Fatal(err)
	}
	page := string(data)
	row := func(label string) {
		t.Helper()
		if !regexp.MustCompile("(?m)^\\| (`[^|]+`, )?`" + regexp.QuoteMeta(label) + "`").MatchString(page) {
			t.Errorf("no table has a row for %s", label)
		}
	}
	for _, label := range append(Controls(), "__address__", "__scheme__", "__param_NAME") {
		row(label)
	}
	for i := range NumReasons {
		row(Reason(i).String())
	}
	own := 0
	for _, role := range []string{"gateway", "httproute", "route"} {
		golden, err := os.ReadFile("kubernetes/testdata/" + role + ".golden")
		if err != nil {
			t.Fatal(err)
		}
		for _, found := range regexp.MustCompile(`(?m)^ +(?:- )?(`+role+`_\w+)=`).FindAllStringSubmatch(string(golden), -1) {
			name := found[1]
			if strings.Contains(name, "_label_") || strings.Contains(name, "present_") || strings.Contains(name, "_annotation_") || name == role+"_name" {
				continue
			}
			own++
			if !strings.Contains(page, "`__meta_kubernetes_"+name+"`") {
				t.Errorf("the page does not have __meta_kubernetes_%s", name)
			}
		}
	}
	if own < 100 {
		t.Errorf("%d labels of our own were looked for, which is too few to be all", own)
	}
	files, err := filepath.Glob("../examples/discovery/*.yml")
	if err != nil || len(files) < 4 {
		t.Fatalf("found %v, %v", files, err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		_, settings, _ := strings.Cut(string(text), "profiles:")
		if !strings.Contains(page, "```yaml\nprofiles:"+settings+"```") {
			t.Errorf("the page does not have what %s has", file)
		}
	}
}

// TestExamples prepares the examples, as the command check does.
func TestExamples(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("../examples/discovery/*.yml")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			t.Parallel()
			data, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			name := filepath.Join(t.TempDir(), "steadyprobe.yml")
			if err := os.WriteFile(filepath.Join(filepath.Dir(name), "token"), []byte("secret"), 0o600); err != nil {
				t.Fatal(err)
			}
			c, warnings, err := config.Parse(data, name)
			if err != nil || len(warnings) > 0 {
				t.Fatalf("error %v, warnings %v", err, warnings)
			}
			if _, err := Prepare(c); err != nil {
				t.Error(err)
			}
		})
	}
}
