package main

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/grafana/grafana-foundation-sdk/go/prometheus"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql/parser"
)

// expressions returns every expression of a dashboard by the title of its panel
// or the name of its annotation.
func expressions(d model) map[string][]string {
	all := map[string][]string{}
	for _, p := range flat(d) {
		for _, target := range p.Targets {
			all[*p.Title] = append(all[*p.Title], target.(prometheus.Dataquery).Expr)
		}
	}
	for _, a := range d.Annotations.List {
		name := "annotation " + a.Name
		all[name] = append(all[name], a.Target.(prometheus.Dataquery).Expr, *a.Expr)
	}
	return all
}

// reference is a variable in an expression or a title.
var reference = regexp.MustCompile(`\$\{?(\w+)`)

// builtIn are the variables that Grafana itself has, with a value.
var builtIn = map[string]string{"__rate_interval": "1m", "__interval": "15s", "__range": "1h"}

// parse puts values into an expression and parses it.
func parse(t *testing.T, where, expr string) parser.Expr {
	t.Helper()
	filled := reference.ReplaceAllStringFunc(expr, func(name string) string {
		if value, ok := builtIn[name[1:]]; ok {
			return value
		}
		return "x"
	})
	parsed, err := parser.NewParser(parser.Options{}).ParseExpr(filled)
	if err != nil {
		t.Fatalf("%q asks %s: %v", where, expr, err)
	}
	return parsed
}

// TestVariables: a dashboard uses the variables that it has, and has none that
// it does not use.
func TestVariables(t *testing.T) {
	each(t, func(t *testing.T, b board, d model) {
		defined, used := map[string]bool{}, map[string]bool{"datasource": true, "labels": true}
		for _, v := range d.Templating.List {
			defined[v.Name] = true
			if v.Label == nil || v.Description == nil || !strings.HasSuffix(*v.Description, ".") {
				t.Errorf("%q has no label or no description", v.Name)
			}
			if v.Type == "query" {
				note(used, *v.Query.String)
			}
		}
		for _, all := range expressions(d) {
			for _, expr := range all {
				note(used, expr)
			}
		}
		for _, p := range d.Panels {
			if p.RowPanel != nil {
				note(used, *p.RowPanel.Title)
			}
		}
		for name := range used {
			if !defined[name] && builtIn[name] == "" && name != "labels" {
				t.Errorf("there is no variable %q", name)
			}
		}
		for name := range defined {
			if !used[name] {
				t.Errorf("nothing uses the variable %q", name)
			}
		}
		for _, name := range []string{"datasource", "job"} {
			if !defined[name] {
				t.Errorf("there is no variable %q", name)
			}
		}
	})
}

func note(used map[string]bool, text string) {
	for _, m := range reference.FindAllStringSubmatch(text, -1) {
		used[m[1]] = true
	}
}

// TestSelections: a variable of several values is compared as a regular
// expression, one of a single value is not, because Grafana then does not quote
// it; and no expression looks beyond the chosen job.
func TestSelections(t *testing.T) {
	each(t, func(t *testing.T, b board, d model) {
		many := map[string]bool{}
		for _, v := range d.Templating.List {
			many[v.Name] = v.Multi != nil && *v.Multi
		}
		compared := regexp.MustCompile(`(=~?)"\$(\w+)"`)
		for where, all := range expressions(d) {
			for _, expr := range all {
				for _, m := range compared.FindAllStringSubmatch(expr, -1) {
					if (m[1] == "=~") != many[m[2]] {
						t.Errorf("%q compares %s", where, m[0])
					}
				}
				selectors(parse(t, where, expr), func(s *parser.VectorSelector) {
					if !slices.ContainsFunc(s.LabelMatchers, func(m *labels.Matcher) bool { return m.Name == "job" }) {
						t.Errorf("%q asks %s of every job", where, s.Name)
					}
				})
			}
		}
	})
}

// TestHistograms: native histograms and classic buckets are read each in their
// way, kept apart by job, and never added up over all jobs.
func TestHistograms(t *testing.T) {
	types := catalogue(t)
	each(t, func(t *testing.T, b board, d model) {
		for where, all := range expressions(d) {
			for _, expr := range all {
				parsed := parse(t, where, expr)
				parser.Inspect(parsed, func(node parser.Node, _ []parser.Node) error {
					aggregate, ok := node.(*parser.AggregateExpr)
					if !ok {
						return nil
					}
					if name, ok := rated(aggregate.Expr); ok && types[family(name)] == "histogram" {
						histogram(t, where, name, aggregate)
					}
					return nil
				})
				selectors(parsed, func(s *parser.VectorSelector) {
					if kind := types[s.Name]; kind == "" && types[family(s.Name)] == "counter" {
						t.Errorf("%q reads the counter %s as a histogram", where, s.Name)
					}
				})
			}
		}
	})
}

// histogram looks at one sum over a histogram or a part of it.
func histogram(t *testing.T, where, name string, sum *parser.AggregateExpr) {
	t.Helper()
	if sum.Without || !slices.Contains(sum.Grouping, "job") {
		t.Errorf("%q adds up %s over several jobs", where, name)
	}
	if strings.HasSuffix(name, "_bucket") != slices.Contains(sum.Grouping, "le") {
		t.Errorf("%q groups %s by %v", where, name, sum.Grouping)
	}
}

// TestBothKinds: every histogram that is read as a native one is also read from
// its classic series, in the same panel.
func TestBothKinds(t *testing.T) {
	types := catalogue(t)
	each(t, func(t *testing.T, b board, d model) {
		for where, all := range expressions(d) {
			for _, expr := range all {
				native, classic := map[string]bool{}, map[string]bool{}
				selectors(parse(t, where, expr), func(s *parser.VectorSelector) {
					switch {
					case types[s.Name] == "histogram":
						native[s.Name] = true
					case types[family(s.Name)] == "histogram":
						classic[family(s.Name)] = true
					}
				})
				for name := range native {
					if !classic[name] {
						t.Errorf("%q reads %s only as a native histogram", where, name)
					}
				}
				for name := range classic {
					if !native[name] {
						t.Errorf("%q reads %s only as a classic histogram", where, name)
					}
				}
			}
		}
	})
}

// TestRates: what only grows is never shown as it is.
func TestRates(t *testing.T) {
	types := catalogue(t)
	each(t, func(t *testing.T, b board, d model) {
		for where, all := range expressions(d) {
			if where == "Requests unaccounted for" {
				continue // a difference of counters
			}
			for _, expr := range all {
				parser.Inspect(parse(t, where, expr), func(node parser.Node, path []parser.Node) error {
					s, ok := node.(*parser.VectorSelector)
					if !ok || types[s.Name] != "counter" && types[family(s.Name)] != "histogram" {
						return nil
					}
					if _, ok := path[len(path)-1].(*parser.MatrixSelector); !ok {
						t.Errorf("%q shows %s as it is", where, s.Name)
					}
					return nil
				})
			}
		}
	})
}

func selectors(e parser.Expr, visit func(*parser.VectorSelector)) {
	parser.Inspect(e, func(node parser.Node, _ []parser.Node) error {
		if s, ok := node.(*parser.VectorSelector); ok {
			visit(s)
		}
		return nil
	})
}

// rated returns the name of the metric whose rate an expression is.
func rated(e parser.Expr) (string, bool) {
	call, ok := e.(*parser.Call)
	if !ok || call.Func.Name != "rate" && call.Func.Name != "increase" {
		return "", false
	}
	matrix, ok := call.Args[0].(*parser.MatrixSelector)
	if !ok {
		return "", false
	}
	return matrix.VectorSelector.(*parser.VectorSelector).Name, true
}

// family is the name of a histogram that a series of it in the classic form
// belongs to; any other name stays as it is.
func family(name string) string {
	for _, suffix := range []string{"_bucket", "_sum", "_count"} {
		if base, ok := strings.CutSuffix(name, suffix); ok {
			return base
		}
	}
	return name
}

// catalogue returns the types of the metrics by name, as docs/METRICS.md has
// them. That every metric exists is held by the contract test of the repository.
func catalogue(t *testing.T) map[string]string {
	t.Helper()
	page, err := os.ReadFile("../docs/METRICS.md")
	if err != nil {
		t.Fatal(err)
	}
	types := map[string]string{
		"go_sched_latencies_seconds": "histogram",
		// Named in the design, for panels that are there before them.
		"steadyprobe_address_latency_seconds": "histogram",
	}
	for _, m := range regexp.MustCompile("(?m)^\\| `(\\w+)` \\| (counter|gauge|histogram) \\|").FindAllStringSubmatch(string(page), -1) {
		types[m[1]] = m[2]
	}
	if len(types) < 50 {
		t.Fatalf("docs/METRICS.md lists %d metrics", len(types))
	}
	return types
}
