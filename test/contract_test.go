package test

import (
	"fmt"
	"maps"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/steadyprobe/steadyprobe/exporter"
	"github.com/steadyprobe/steadyprobe/internal/monitoring"
	"github.com/steadyprobe/steadyprobe/internal/testbed"
)

// onNoDashboard are the metrics that deliberately no dashboard shows.
var onNoDashboard = map[string]string{
	"steadyprobe_objective_latency_seconds": "the boundary of what counts as within the objective, not a figure that moves",
}

// userLabels are labels of targets that the alerts and dashboards give a
// meaning, or that examples in the pages use. Every other label of a user is
// unknown to them.
var userLabels = []string{"front", "peer_group", "site"}

// foreign are the metrics of others that rules and dashboards may name, with
// their labels beyond job and instance. Those of the usual collectors of Go and
// of the process are asked of a daemon.
var foreign = map[string][]string{
	"up":                      nil,
	"scrape_duration_seconds": nil,
	"ALERTS":                  {"alertname", "alertstate", "severity", "target", "churn", "resource"},
}

// TestContract holds alerts, dashboards and pages against what the exporter
// exposes: every metric, label and label value that they name is there.
func TestContract(t *testing.T) {
	checkLeaks(t)
	c := newContract(t)
	t.Run("names in the pages", c.pages)
	t.Run("expressions in the pages", c.pageExpressions)
	t.Run("alerts", c.alerts)
	t.Run("dashboards", c.dashboards)
	t.Run("all is shown", c.shown)
	t.Run("the lists of exceptions", c.exceptions)
}

// contract is what may be named.
type contract struct {
	root       string
	prometheus *testbed.PrometheusServer // parses
	metrics    map[string]exporter.Metric
	foreign    map[string][]string
	recorded   map[string]labels                     // by recorded name
	values     map[string]map[string]map[string]bool // by family and label, as seen
	rules      []monitoring.Rule
	boards     []monitoring.Dashboard
	named      map[string]bool // families that dashboards name
}

func newContract(t *testing.T) *contract {
	c := &contract{
		root:       testbed.Root(t),
		prometheus: testbed.Prometheus(t, testbed.PrometheusOptions{}),
		metrics:    map[string]exporter.Metric{},
		foreign:    maps.Clone(foreign),
		recorded:   map[string]labels{},
		values:     map[string]map[string]map[string]bool{},
		named:      map[string]bool{},
	}
	for _, m := range exporter.Catalogue() {
		c.metrics[m.Name] = m
	}
	c.observe(t)
	files, err := monitoring.RuleFiles(filepath.Join(c.root, "alerts"))
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		rules, err := monitoring.Rules(file)
		if err != nil {
			t.Fatal(err)
		}
		c.rules = append(c.rules, rules...)
	}
	if c.boards, err = monitoring.Dashboards(filepath.Join(c.root, "dashboards")); err != nil {
		t.Fatal(err)
	}
	if len(c.rules) == 0 || len(c.boards) == 0 {
		t.Fatalf("found %d rules and %d dashboards, want some", len(c.rules), len(c.boards))
	}
	c.record(t)
	return c
}

// record learns which labels recorded series have. A rule may stand on one
// that comes later.
func (c *contract) record(t *testing.T) {
	for range len(c.rules) {
		before := len(c.recorded)
		for _, r := range c.rules {
			if r.Record == "" {
				continue
			}
			e, err := c.prometheus.Parse(r.Expr)
			if err != nil {
				t.Fatalf("%s: %v", r.Name(), err)
			}
			known := !slices.ContainsFunc(e.Selectors(), func(s *testbed.Expression) bool {
				return strings.Contains(s.Name, ":") && c.recorded[s.Name] == nil
			})
			if !known {
				continue
			}
			// What it names wrongly is said once, by the test of the alerts.
			of := (&labelReader{contract: c}).labels(e)
			of = of.with(slices.Collect(maps.Keys(r.Labels))...)
			// Several rules may record the same name: it has what all have.
			if c.recorded[r.Record] != nil {
				of = of.with(c.recorded[r.Record].names()...)
			}
			c.recorded[r.Record] = of
		}
		if len(c.recorded) == before {
			return
		}
	}
}

// observe learns the values of labels, and the names of the usual collectors,
// from daemons: every value of a closed list is exposed from the start.
func (c *contract) observe(t *testing.T) {
	named := startDaemon(t, "targets: [{name: closed, url: 'https://localhost:9/', rate: 1}]")
	demo := &daemon{t: t, address: startDemo(t), client: named.client}
	demo.waitReady()
	// No target that can be configured has the stages of others.
	for _, m := range taxonomy.FindAllStringSubmatch(read(t, filepath.Join(c.root, "docs", "METRICS.md")), -1) {
		for _, family := range []string{"steadyprobe_request_failures_total", "steadyprobe_connection_failures_total"} {
			c.see(family, "failure_stage", m[1])
			for _, reason := range regexp.MustCompile(`\w+`).FindAllString(m[2], -1) {
				c.see(family, "reason", reason)
			}
		}
	}
	for _, d := range []*daemon{named, demo} {
		s, err := d.scrape()
		if err != nil {
			t.Fatal(err)
		}
		for family, f := range s {
			if strings.HasPrefix(family, "go_") || strings.HasPrefix(family, "process_") {
				c.foreign[family] = nil
			}
			for _, m := range f.GetMetric() {
				for _, p := range m.GetLabel() {
					c.see(family, p.GetName(), p.GetValue())
				}
			}
		}
	}
}

// taxonomy is a row of the table of failures.
var taxonomy = regexp.MustCompile("(?m)^\\| `(\\w+)` \\| ((?:`\\w+`(?:, )?)+) \\|$")

// see remembers that a label of a family has a value.
func (c *contract) see(family, label, value string) {
	if c.values[family] == nil {
		c.values[family] = map[string]map[string]bool{}
	}
	if c.values[family][label] == nil {
		c.values[family][label] = map[string]bool{}
	}
	c.values[family][label][value] = true
}

// family returns the metric that a series belongs to, and its suffix.
func (c *contract) family(name string) (m exporter.Metric, suffix string, ok bool) {
	if m, ok = c.metrics[name]; ok {
		return m, "", true
	}
	for _, suffix := range []string{"_bucket", "_count", "_sum"} {
		base, cut := strings.CutSuffix(name, suffix)
		if m, ok := c.metrics[base]; cut && ok && m.Type == exporter.Histogram {
			return m, suffix, true
		}
	}
	return exporter.Metric{}, "", false
}

var metricWord = regexp.MustCompile(`\bsteadyprobe_[a-z0-9_]*`)

// pages looks at every name of a metric in every page. One that ends in an
// underscore stands for all that begin so.
func (c *contract) pages(t *testing.T) {
	words := 0
	for _, page := range pages(t) {
		for _, word := range metricWord.FindAllString(read(t, filepath.Join(c.root, page)), -1) {
			words++
			if _, _, ok := c.family(word); ok {
				continue
			}
			begins := slices.ContainsFunc(slices.Collect(maps.Keys(c.metrics)), func(name string) bool {
				return strings.HasSuffix(word, "_") && strings.HasPrefix(name, word)
			})
			if !begins {
				t.Errorf("%s names %s, which the exporter does not expose", page, word)
			}
		}
	}
	if words < 100 {
		t.Errorf("found %d names of metrics in the pages, which is too few to be all", words)
	}
}

// pageExpressions reads the blocks of PromQL in the pages. A block is one
// expression, or each of its lines or paragraphs is.
func (c *contract) pageExpressions(t *testing.T) {
	found := 0
	for _, page := range pages(t) {
		blocks, err := blocksOf(page, read(t, filepath.Join(c.root, page)))
		if err != nil {
			t.Fatal(err)
		}
		for _, b := range blocks {
			if len(b.info) == 0 || b.info[0] != "promql" {
				continue
			}
			found++
			c.block(t, b)
		}
	}
	if found == 0 {
		t.Error("found no block of PromQL in the pages")
	}
}

func (c *contract) block(t *testing.T, b block) {
	for _, part := range regexp.MustCompile(`\n\s*\n`).Split(b.text, -1) {
		expressions := []string{part}
		if _, err := c.prometheus.Parse(part); err != nil {
			expressions = strings.Split(strings.TrimSpace(part), "\n")
		}
		for _, expr := range expressions {
			c.check(t, b.String(), expr)
		}
	}
}

// check reports what an expression names that there is not, and returns the
// labels of its result.
func (c *contract) check(t *testing.T, where, expr string) labels {
	t.Helper()
	e, err := c.prometheus.Parse(expr)
	if err != nil {
		t.Errorf("%s: %v", where, err)
		return nil
	}
	r := &labelReader{contract: c}
	of := r.labels(e)
	for _, w := range r.wrong {
		t.Errorf("%s: %s, in %s", where, w, expr)
	}
	return of
}

var templateLabel = regexp.MustCompile(`\$labels\.(\w+)`)

// alerts reads the expressions of all rules, and what their annotations say.
func (c *contract) alerts(t *testing.T) {
	uids := map[string]bool{}
	for _, b := range c.boards {
		uids[b.UID] = true
	}
	for _, r := range c.rules {
		where := fmt.Sprintf("%s: %s", strings.TrimPrefix(r.File, c.root+"/"), r.Name())
		of := c.check(t, where, r.Expr).with(slices.Collect(maps.Keys(r.Labels))...)
		for key, text := range r.Annotations {
			for _, m := range templateLabel.FindAllStringSubmatch(text, -1) {
				if !of.has(m[1]) {
					t.Errorf("%s: the annotation %s names the label %s, which the result does not have: %v", where, key, m[1], of.names())
				}
			}
		}
		if r.Alert == "" {
			continue
		}
		runbook := regexp.MustCompile(`/blob/main/(docs/[\w./-]+\.md)`).FindStringSubmatch(r.Annotations["runbook_url"])
		if runbook == nil {
			t.Errorf("%s: the runbook %q is no page of docs", where, r.Annotations["runbook_url"])
		} else {
			read(t, filepath.Join(c.root, runbook[1]))
		}
		board := regexp.MustCompile(`/d/([\w-]+)`).FindStringSubmatch(r.Annotations["dashboard_url"])
		if board == nil || !uids[board[1]] {
			t.Errorf("%s: the dashboard %q is none of %v", where, r.Annotations["dashboard_url"], slices.Sorted(maps.Keys(uids)))
		}
	}
}

var legendLabel = regexp.MustCompile(`\{\{\s*(\w+)\s*\}\}`)

// dashboards reads all expressions, those of variables included.
func (c *contract) dashboards(t *testing.T) {
	for _, b := range c.boards {
		value := templateValue(b)
		for _, v := range b.Variables {
			if m := labelValues.FindStringSubmatch(v.Query); v.Type == "query" && m != nil {
				where := b.Title + " / variable " + v.Name
				if of := c.check(t, where, monitoring.Interpolate(m[1], value)); !of.has(m[2]) {
					t.Errorf("%s: no label %s in %s", where, m[2], m[1])
				}
				c.note(t, monitoring.Interpolate(m[1], value))
			}
		}
		for _, q := range b.Queries {
			expr := monitoring.Interpolate(q.Expr, value)
			of := c.check(t, q.String(), expr)
			c.note(t, expr)
			for _, m := range legendLabel.FindAllStringSubmatch(q.Legend, -1) {
				if !of.has(m[1]) {
					t.Errorf("%v: the legend names the label %s, which the result does not have: %v", q, m[1], of.names())
				}
			}
		}
	}
}

var labelValues = regexp.MustCompile(`(?s)^label_values\((.+),\s*(\w+)\s*\)$`)

// templateValue returns something that stands in for the variables of a
// dashboard where they are not inside of a text.
func templateValue(b monitoring.Dashboard) func(string) (string, bool) {
	return func(name string) (string, bool) {
		switch name {
		case "__rate_interval", "__interval":
			return "1m", true
		case "__range":
			return "1h", true
		case "__range_s", "__interval_ms":
			return "3600", true
		}
		for _, v := range b.Variables {
			if v.Name == name && (v.Type == "custom" || v.Type == "interval" || v.Type == "textbox" || v.Type == "constant") {
				first, _, _ := strings.Cut(v.Query, ",")
				if _, after, named := strings.Cut(first, " : "); named {
					first = after
				}
				return strings.TrimSpace(first), true
			}
		}
		return "", false
	}
}

// note remembers the metrics that a dashboard names, through recorded series
// too.
func (c *contract) note(t *testing.T, expr string) {
	e, err := c.prometheus.Parse(expr)
	if err != nil {
		return // said by check
	}
	for _, s := range e.Selectors() {
		if m, _, ok := c.family(s.Name); ok {
			c.named[m.Name] = true
		}
		for _, r := range c.rules {
			if r.Record == s.Name && s.Name != "" && !c.named[r.Record] {
				c.named[r.Record] = true
				c.note(t, r.Expr)
				c.named[r.Record] = false
			}
		}
	}
}

// shown runs behind dashboards.
func (c *contract) shown(t *testing.T) {
	for _, name := range slices.Sorted(maps.Keys(c.metrics)) {
		switch why := onNoDashboard[name]; {
		case !c.named[name] && why == "":
			t.Errorf("%s is on no dashboard", name)
		case c.named[name] && why != "":
			t.Errorf("%s is on a dashboard, and is listed as on none because %s", name, why)
		}
	}
}

func (c *contract) exceptions(t *testing.T) {
	for name := range onNoDashboard {
		if _, ok := c.metrics[name]; !ok {
			t.Errorf("%s is listed as on no dashboard, and there is no such metric", name)
		}
	}
}
