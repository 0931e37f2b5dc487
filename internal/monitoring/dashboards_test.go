package monitoring

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestDashboards(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, "other.json", `{"packages": 1}`)
	write(t, dir, "a.json", `{
		"uid": "a", "title": "A",
		"templating": {"list": [
			{"name": "datasource", "type": "datasource", "query": "prometheus"},
			{"name": "job", "type": "query", "query": {"query": "label_values(up, job)", "refId": "x"}, "multi": true, "includeAll": true, "allValue": ".*"}]},
		"annotations": {"list": [
			{"name": "Annotations & Alerts", "datasource": {"type": "grafana", "uid": "-- Grafana --"}},
			{"name": "steps", "expr": "changes(a[1m]) > 0", "datasource": {"uid": "${datasource}"}}]},
		"panels": [
			{"type": "row", "title": "R", "panels": [
				{"type": "stat", "title": "S", "description": "d", "datasource": {"uid": "${datasource}"}, "fieldConfig": {"defaults": {"unit": "s"}},
				 "targets": [{"refId": "A", "expr": "a", "instant": true, "legendFormat": "{{job}}"}]}]},
			{"type": "text", "title": "T"},
			{"type": "timeseries", "title": "G", "datasource": "old", "targets": [{"refId": "B", "expr": "b", "datasource": {"uid": "x"}}]}]}`)
	got, err := Dashboards(dir)
	if err != nil {
		t.Fatal(err)
	}
	want := []Dashboard{{
		File: filepath.Join(dir, "a.json"), UID: "a", Title: "A",
		Variables: []Variable{
			{Name: "datasource", Type: "datasource", Query: "prometheus"},
			{Name: "job", Type: "query", Query: "label_values(up, job)", Multi: true, IncludeAll: true, AllValue: ".*"},
		},
		Panels: []Panel{
			{Title: "S", Type: "stat", Description: "d", Unit: "s", Datasource: "${datasource}"},
			{Title: "T", Type: "text"},
			{Title: "G", Type: "timeseries", Datasource: "old"},
		},
		Queries: []Query{
			{Dashboard: "A", Panel: "annotation steps", Ref: "A", Expr: "changes(a[1m]) > 0", Datasource: "${datasource}"},
			{Dashboard: "A", Panel: "S", Ref: "A", Expr: "a", Legend: "{{job}}", Instant: true, Datasource: "${datasource}"},
			{Dashboard: "A", Panel: "G", Ref: "B", Expr: "b", Datasource: "x"},
		},
	}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	write(t, dir, "b.json", `{`)
	if _, err := Dashboards(dir); err == nil {
		t.Error("a file that is no JSON: no error")
	}
}

func TestInterpolate(t *testing.T) {
	value := func(name string) (string, bool) {
		v, ok := map[string]string{"job": "j", "__rate_interval": "5s"}[name]
		return v, ok
	}
	for _, row := range []struct{ name, text, want string }{
		{"plain", `a{job="$job"}[$__rate_interval]`, `a{job="j"}[5s]`},
		{"in braces", `a{job=~"${job}|${job:regex}|[[job]]|[[job:pipe]]"}`, `a{job=~"j|j|j|j"}`},
		{"behind one that is not known", `a{b="$other$job"}`, `a{b="$otherj"}`},
		{"a group of a regular expression", `label_replace(a, "b", "$1", "job", "(.*)$")`, `label_replace(a, "b", "$1", "job", "(.*)$")`},
		{"a longer name", `$jobs`, `$jobs`},
	} {
		t.Run(row.name, func(t *testing.T) {
			if got := Interpolate(row.text, value); got != row.want {
				t.Errorf("got %s, want %s", got, row.want)
			}
		})
	}
}

func TestRules(t *testing.T) {
	dir := t.TempDir()
	rules := write(t, dir, "rules.yml", "groups: [{name: g, rules: [{record: 'a:b', expr: a, labels: {c: d}}, {alert: A, expr: b, for: 5m, annotations: {summary: s}}]}]")
	write(t, dir, "alertmanager.yml", "route: {receiver: a}")
	write(t, dir, "tests/a_test.yml", "rule_files: [a]\ntests: [{interval: 1m}]")
	files, err := RuleFiles(dir)
	if err != nil || !cmp.Equal(files, []string{rules}) {
		t.Fatalf("rule files %v, error %v", files, err)
	}
	got, err := Rules(rules)
	want := []Rule{
		{File: rules, Group: "g", Record: "a:b", Expr: "a", Labels: map[string]string{"c": "d"}},
		{File: rules, Group: "g", Alert: "A", Expr: "b", For: "5m", Annotations: map[string]string{"summary": "s"}},
	}
	if diff := cmp.Diff(want, got); err != nil || diff != "" {
		t.Errorf("%v (-want +got)\n%s", err, diff)
	}
	if got[0].Name() != "a:b" || got[1].Name() != "A" {
		t.Errorf("names %q and %q", got[0].Name(), got[1].Name())
	}
	bad := write(t, dir, "bad.yml", "a: b\ngroups: [{name: g, rules: [{record: [a]}]}]")
	if _, err := Rules(bad); err == nil {
		t.Error("rules that cannot be read: no error")
	}
	if _, err := RuleFiles(filepath.Join(dir, "none")); err == nil {
		t.Error("a folder that is not there: no error")
	}
}

func write(t *testing.T, dir, name, text string) string {
	t.Helper()
	path := filepath.Join(dir, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}
