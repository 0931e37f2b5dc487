// Package alerts_test holds the shipped alerts to their form. Whether they fire
// when they should is tested by promtool, see test/alerts_test.go.
package alerts_test

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"gopkg.in/yaml.v3"

	"github.com/steadyprobe/steadyprobe/internal/monitoring"
)

const runbooks = "../docs/runbooks"

// rules returns all rules below this folder.
func rules(t *testing.T) []monitoring.Rule {
	t.Helper()
	files, err := monitoring.RuleFiles(".")
	if err != nil {
		t.Fatal(err)
	}
	var all []monitoring.Rule
	for _, file := range files {
		of, err := monitoring.Rules(file)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, of...)
	}
	return all
}

// alerts returns the alerting rules. A name may have several.
func alerts(t *testing.T) []monitoring.Rule {
	t.Helper()
	all := slices.DeleteFunc(rules(t), func(r monitoring.Rule) bool { return r.Alert == "" })
	if len(all) < 40 {
		t.Fatalf("found %d alerting rules, and there are more", len(all))
	}
	return all
}

// names returns the names of all alerts, sorted.
func names(t *testing.T) []string {
	t.Helper()
	set := map[string]bool{}
	for _, r := range alerts(t) {
		set[r.Alert] = true
	}
	return slices.Sorted(maps.Keys(set))
}

func read(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// TestAlerts checks what every alert has.
func TestAlerts(t *testing.T) {
	dashboards, err := monitoring.Dashboards("../dashboards")
	if err != nil {
		t.Fatal(err)
	}
	boards := map[string]bool{}
	for _, d := range dashboards {
		boards[d.UID] = true
	}
	board := regexp.MustCompile(`^/d/([a-z-]+)(\?var-[a-z]+=\{\{ \$labels\.[a-z]+ \| urlquery \}\}(&var-[a-z]+=\{\{ \$labels\.[a-z]+ \| urlquery \}\})*)?$`)
	for _, r := range alerts(t) {
		t.Run(r.Alert+" "+r.Labels["severity"], func(t *testing.T) {
			if !strings.HasPrefix(r.Alert, "Steadyprobe") {
				t.Error("the name does not begin with Steadyprobe")
			}
			if filepath.Dir(r.File) != "." {
				t.Errorf("is in %s: only what is recorded may differ between native and classic histograms", r.File)
			}
			if !slices.Contains([]string{"page", "ticket", "info"}, r.Labels["severity"]) || len(r.Labels) != 1 {
				t.Errorf("labels %v: want a severity of page, ticket or info", r.Labels)
			}
			want := []string{"dashboard_url", "description", "runbook_url", "summary"}
			if got := slices.Sorted(maps.Keys(r.Annotations)); !cmp.Equal(got, want) {
				t.Errorf("annotations %v, want %v", got, want)
			}
			if s := r.Annotations["summary"]; s == "" || strings.HasSuffix(s, ".") {
				t.Errorf("summary %q: want a line without a full stop", s)
			}
			if d := r.Annotations["description"]; !strings.Contains(d, "$value") || !strings.HasSuffix(d, ".") {
				t.Errorf("description %q: want sentences with the measured value", d)
			}
			if got, want := r.Annotations["runbook_url"], "https://github.com/steadyprobe/steadyprobe/blob/main/docs/runbooks/"+r.Alert+".md"; got != want {
				t.Errorf("runbook_url %q, want %q", got, want)
			}
			if m := board.FindStringSubmatch(r.Annotations["dashboard_url"]); m == nil || !boards[m[1]] {
				t.Errorf("dashboard_url %q leads to none of %v", r.Annotations["dashboard_url"], slices.Sorted(maps.Keys(boards)))
			}
		})
	}
}

// TestVariants checks that native and classic rules record the same series, and
// that both may be loaded together with all others.
func TestVariants(t *testing.T) {
	recorded := map[string][]string{}
	for _, r := range rules(t) {
		if r.Record != "" {
			recorded[filepath.Dir(r.File)] = append(recorded[filepath.Dir(r.File)], r.Group+" "+r.Record)
		}
	}
	if diff := cmp.Diff(recorded["native"], recorded["classic"]); diff != "" || len(recorded["native"]) == 0 {
		t.Errorf("(-native +classic)\n%s", diff)
	}
	for _, name := range recorded["native"] {
		if slices.Contains(recorded["."], name) {
			t.Errorf("%q is recorded twice", name)
		}
	}
}

// TestAggregations checks that figures of different jobs never meet: their
// histograms may be of different kinds, of which the sum is nothing.
func TestAggregations(t *testing.T) {
	by := regexp.MustCompile(`\bby ?\(([^)]*)\)`)
	for _, r := range rules(t) {
		for _, m := range by.FindAllStringSubmatch(r.Expr, -1) {
			if !slices.Contains(strings.Split(m[1], ", "), "job") {
				t.Errorf("%s: by (%s) has no job", r.Name(), m[1])
			}
		}
		if strings.Contains(r.Expr, "without") {
			t.Errorf("%s: without keeps labels that nobody knows of", r.Name())
		}
	}
}

// TestRunbooks checks that there is a page for each alert, with its parts, and
// that the overview knows them all.
func TestRunbooks(t *testing.T) {
	var pages []string
	files, err := filepath.Glob(filepath.Join(runbooks, "*.md"))
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		pages = append(pages, strings.TrimSuffix(filepath.Base(file), ".md"))
	}
	if diff := cmp.Diff(names(t), pages); diff != "" {
		t.Errorf("alerts and runbooks differ (-alerts +pages)\n%s", diff)
	}
	parts := regexp.MustCompile(`(?s)^# (\w+)\n\n.+\n## What it means\n\n.+\n## How to check\n\n.+\n## How to act\n\n.+\n$`)
	for _, page := range pages {
		text := read(t, filepath.Join(runbooks, page+".md"))
		if m := parts.FindStringSubmatch(text); m == nil || m[1] != page {
			t.Errorf("%s.md: want its name, a line on it, and the parts What it means, How to check, How to act", page)
		}
	}
	overview := read(t, "../docs/ALERTS.md")
	listed := regexp.MustCompile(`(?m)^\| \[(\w+)\]\(runbooks/(\w+)\.md\) \| (\w+(?:, \w+)*) \|`).FindAllStringSubmatch(overview, -1)
	got := map[string]string{}
	for _, m := range listed {
		if m[1] != m[2] {
			t.Errorf("%s leads to %s", m[1], m[2])
		}
		got[m[1]] = m[3]
	}
	want := map[string]string{}
	for _, r := range alerts(t) {
		want[r.Alert] = strings.TrimPrefix(want[r.Alert]+", "+r.Labels["severity"], ", ")
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("alerts and the tables of docs/ALERTS.md differ (-alerts +tables)\n%s", diff)
	}
}

// TestUnitTests checks that the tests of promtool see every alert of every
// severity fire, and every alert not fire.
func TestUnitTests(t *testing.T) {
	fires, quiet := map[string]bool{}, map[string]bool{}
	files, err := filepath.Glob("tests/*.yml")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		var tests struct {
			Tests []struct {
				Checks []struct {
					Alert string `yaml:"alertname"`
					Want  []struct {
						Labels map[string]string `yaml:"exp_labels"`
					} `yaml:"exp_alerts"`
				} `yaml:"alert_rule_test"`
			}
		}
		if err := yaml.Unmarshal([]byte(read(t, file)), &tests); err != nil {
			t.Fatalf("reading %q: %v", file, err)
		}
		for _, test := range tests.Tests {
			for _, check := range test.Checks {
				if len(check.Want) == 0 {
					quiet[check.Alert] = true
				}
				for _, want := range check.Want {
					fires[check.Alert+" "+want.Labels["severity"]] = true
				}
			}
		}
	}
	for _, r := range alerts(t) {
		if name := r.Alert + " " + r.Labels["severity"]; !fires[name] {
			t.Errorf("no test sees %s fire", name)
		}
		if !quiet[r.Alert] && r.Alert != "SteadyprobeDeadMansSwitch" {
			t.Errorf("no test sees %s not fire", r.Alert)
		}
	}
}

// TestInhibition checks what an untrustworthy probe mutes in the shipped
// configuration of Alertmanager: what is about latency, and nothing else.
func TestInhibition(t *testing.T) {
	var configuration struct {
		Rules []struct {
			Source []string `yaml:"source_matchers"`
			Target []string `yaml:"target_matchers"`
			Equal  []string
		} `yaml:"inhibit_rules"`
	}
	if err := yaml.Unmarshal([]byte(read(t, "alertmanager.yml")), &configuration); err != nil {
		t.Fatal(err)
	}
	var muted []string
	for _, rule := range configuration.Rules {
		if !slices.Contains(rule.Source, `alertname="SteadyprobeUntrustworthy"`) {
			continue
		}
		if !cmp.Equal(rule.Equal, []string{"job", "target"}) {
			t.Errorf("equal %v, want job and target", rule.Equal)
		}
		pattern := strings.TrimSuffix(strings.TrimPrefix(rule.Target[0], `alertname=~"`), `"`)
		for _, name := range names(t) {
			if regexp.MustCompile(fmt.Sprintf("^(?:%s)$", pattern)).MatchString(name) {
				muted = append(muted, name)
			}
		}
	}
	want := []string{
		"SteadyprobeFlappingUnderChurn", "SteadyprobeLatencyAboveBaseline", "SteadyprobeLatencyAbovePeer",
		"SteadyprobeLatencyBudgetBurn", "SteadyprobeLatencyNoBaseline", "SteadyprobeLatencyRegression",
		"SteadyprobeScalingBudgetBurn",
	}
	if diff := cmp.Diff(want, muted); diff != "" {
		t.Errorf("muted (-want +got)\n%s", diff)
	}
}
