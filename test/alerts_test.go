package test

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"gopkg.in/yaml.v3"

	"github.com/steadyprobe/steadyprobe/internal/testbed"
)

// TestAlertRules runs the unit tests of the alerts, with native histograms, on
// Prometheus 3.
func TestAlertRules(t *testing.T) {
	alerts := filepath.Join(testbed.Root(t), "alerts")
	promtool := testbed.Tool(t, "prometheus", "promtool")
	checkRules(t, promtool, alerts, "native")
	testRules(t, promtool, glob(t, alerts, "tests/*.yml"))
}

// TestAlertRulesClassic runs them with classic histograms, on Debian's
// Prometheus 2. Its promtool knows no native ones, and its ranges hold one
// sample more, so figures in annotations differ a little: they are left out.
func TestAlertRulesClassic(t *testing.T) {
	promtool, err := exec.LookPath("promtool")
	if err != nil {
		t.Fatalf("finding the promtool of the system: %v; `make setup` installs it", err)
	}
	alerts := filepath.Join(testbed.Root(t), "alerts")
	checkRules(t, promtool, alerts, "classic")
	dir := t.TempDir()
	for _, folder := range []string{".", "classic", "tests"} {
		if err := os.MkdirAll(filepath.Join(dir, folder), 0o700); err != nil {
			t.Fatal(err)
		}
		for _, file := range glob(t, alerts, folder+"/*.yml") {
			rewrite(t, file, filepath.Join(dir, folder, filepath.Base(file)))
		}
	}
	testRules(t, promtool, glob(t, dir, "tests/*.yml"))
}

// rewrite copies rules or their unit tests, without annotations and native
// histograms.
func rewrite(t *testing.T, from, to string) {
	t.Helper()
	text, err := os.ReadFile(from)
	if err != nil {
		t.Fatal(err)
	}
	var file any
	if err := yaml.Unmarshal(text, &file); err != nil {
		t.Fatalf("reading %q: %v", from, err)
	}
	if text, err = yaml.Marshal(classic(file)); err != nil {
		t.Fatalf("writing %q: %v", to, err)
	}
	if err := os.WriteFile(to, text, 0o600); err != nil {
		t.Fatal(err)
	}
}

func classic(node any) any {
	switch node := node.(type) {
	case map[string]any:
		delete(node, "annotations")
		delete(node, "exp_annotations")
		for key, value := range node {
			node[key] = classic(value)
		}
	case []any:
		node = slices.DeleteFunc(node, func(item any) bool {
			series, _ := item.(map[string]any)
			values, _ := series["values"].(string)
			return strings.HasPrefix(values, "{{")
		})
		for i, item := range node {
			node[i] = classic(item)
		}
		return node
	case string:
		return strings.Replace(node, "../native/", "../classic/", 1)
	}
	return node
}

func glob(t *testing.T, dir, pattern string) []string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, pattern))
	if err != nil || len(files) == 0 {
		t.Fatalf("no %s in %s (%v)", pattern, dir, err)
	}
	return files
}

// checkRules has promtool read the rules that all load, and those of a variant.
func checkRules(t *testing.T, promtool, alerts, variant string) {
	t.Helper()
	args := []string{"check", "rules"}
	for _, file := range append(glob(t, alerts, "*.yml"), glob(t, alerts, variant+"/*.yml")...) {
		if filepath.Base(file) != "alertmanager.yml" {
			args = append(args, file)
		}
	}
	if out, err := exec.Command(promtool, args...).CombinedOutput(); err != nil {
		t.Fatalf("%s %s: %v\n%s", promtool, strings.Join(args, " "), err, out)
	}
}

func testRules(t *testing.T, promtool string, files []string) {
	t.Helper()
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			t.Parallel()
			if out, err := exec.Command(promtool, "test", "rules", file).CombinedOutput(); err != nil {
				t.Errorf("%v\n%s", err, out)
			}
		})
	}
}

// TestAlertmanagerConfiguration has amtool read the shipped configuration, and
// ask it where alerts go.
func TestAlertmanagerConfiguration(t *testing.T) {
	amtool := testbed.Tool(t, "alertmanager", "amtool")
	file := filepath.Join(testbed.Root(t), "alerts", "alertmanager.yml")
	if out, err := exec.Command(amtool, "check-config", file).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for _, row := range []struct{ name, severity, want string }{
		{"SteadyprobeTargetDown", "page", "page"},
		{"SteadyprobeLatencyRegression", "ticket", "ticket"},
		{"SteadyprobeLatencyNoBaseline", "info", "info"},
		{"SteadyprobeDeadMansSwitch", "info", "heartbeat"},
		{"SteadyprobeNew", "other", "ticket"},
	} {
		t.Run(row.name, func(t *testing.T) {
			out, err := exec.Command(amtool, "config", "routes", "test", "--config.file="+file,
				"alertname="+row.name, "severity="+row.severity).CombinedOutput()
			if got := strings.TrimSpace(string(out)); err != nil || got != row.want {
				t.Errorf("goes to %q, want %q (%v)", got, row.want, err)
			}
		})
	}
}
