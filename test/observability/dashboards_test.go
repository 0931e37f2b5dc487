package observability

import (
	"fmt"
	"math"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/common/model"

	"github.com/steadyprobe/steadyprobe/internal/monitoring"
	"github.com/steadyprobe/steadyprobe/internal/testbed"
)

// withoutData are the queries that cannot return data here, and why. They have
// to parse and to run all the same.
var withoutData = map[string]string{
	"steadyprobe: churn / annotation Addresses / A":             "the demo's doors have an address, and no name",
	"steadyprobe: churn / Fail-over / A":                        "nobody kills the demo's backends",
	"steadyprobe: churn / Fail-over / B":                        "nobody kills the demo's backends",
	"steadyprobe: churn / First answer of a new backend / A":    "nothing tells the demo's backends apart",
	"steadyprobe: churn / First answer of a new backend / B":    "nothing tells the demo's backends apart",
	"steadyprobe: churn / Last answer of a removed backend / A": "nothing tells the demo's backends apart",
	"steadyprobe: churn / Last answer of a removed backend / B": "nothing tells the demo's backends apart",
	"steadyprobe: churn / What kept it from its steps / A":      "nobody is in the way of the demo's churn",
	"steadyprobe: one door / Latency by percentile / F":         "the 99.999th percentile wants 100,000 requests in the window",
	"steadyprobe: probe health / The probe's own failures / A":  "the probe has ports and files enough",
	"steadyprobe: probe health / Discovered targets / A":        "nothing is discovered here",
	"steadyprobe: probe health / Discovered targets / B":        "nothing is discovered here",
	"steadyprobe: probe health / Discovered targets / C":        "nothing is discovered here",

	"steadyprobe: probe health / Failures of the probe's services / A": "nothing is discovered here",
	"steadyprobe: probe health / Failures of the probe's services / B": "nothing is written to disk here",
}

// viewer looks at dashboards as Grafana does.
type viewer struct {
	prometheus *testbed.PrometheusServer
	from, to   time.Time
	window     string // range of rates
}

func newViewer(p *testbed.PrometheusServer, from, to time.Time) *viewer {
	return &viewer{prometheus: p, from: from, to: to, window: "10s"}
}

// shown is what became of the queries of all dashboards.
type shown struct {
	queries int
	series  int
	empty   []string // queries without data
}

// dashboards evaluates every query of every dashboard with every value of the
// variables of one value: none may fail or be remarked on, and each has to
// return data for at least one of them.
func (v *viewer) dashboards(t *testing.T, boards []monitoring.Dashboard) shown {
	var all shown
	for _, b := range boards {
		choices := v.choices(t, b)
		for _, q := range b.Queries {
			all.queries++
			found := 0
			for _, chosen := range choices {
				n, ok := v.evaluate(t, q, chosen)
				if !ok {
					break
				}
				found += n
			}
			all.series += found
			switch why := withoutData[q.String()]; {
			case found == 0 && why == "":
				t.Errorf("%v returns nothing in any of %v: %s", q, choices, q.Expr)
			case found > 0 && why != "":
				t.Errorf("%v returns data, and is listed as without because %s", q, why)
			case found == 0:
				all.empty = append(all.empty, q.String())
			}
		}
	}
	return all
}

// evaluate returns how many series with a number a query returns.
func (v *viewer) evaluate(t *testing.T, q monitoring.Query, chosen map[string]string) (series int, ok bool) {
	t.Helper()
	expr := monitoring.Interpolate(q.Expr, v.valueIn(chosen))
	answer := v.prometheus.Range(expr, v.from, v.to, 5*time.Second)
	if answer.Err != nil {
		t.Errorf("%v: %v", q, answer.Err)
		return 0, false
	}
	if remarks := answer.Remarks(); len(remarks) > 0 {
		t.Errorf("%v with %v is remarked on: %v, of %s", q, chosen, remarks, expr)
		return 0, false
	}
	names := legend.FindAllStringSubmatch(q.Legend, -1)
	for _, s := range answer.Value.(model.Matrix) {
		if !hasNumber(s) {
			continue
		}
		series++
		for _, name := range names {
			if _, has := s.Metric[model.LabelName(name[1])]; !has && name[1] != "le" { // no le on native histograms
				t.Errorf("%v: the legend names %s, and there is a series %v", q, name[1], s.Metric)
				return series, false
			}
		}
	}
	return series, true
}

var legend = regexp.MustCompile(`\{\{\s*(\w+)\s*\}\}`)

// hasNumber tells whether there is something to draw.
func hasNumber(s *model.SampleStream) bool {
	return len(s.Histograms) > 0 || slices.ContainsFunc(s.Values, func(p model.SamplePair) bool {
		return !math.IsNaN(float64(p.Value)) && !math.IsInf(float64(p.Value), 0)
	})
}

var labelValues = regexp.MustCompile(`(?s)^label_values\((.+),\s*(\w+)\s*\)$`)

// choices returns the values of a dashboard's variables: one set for every
// combination of those of which one value is chosen, as a reader goes through
// them.
func (v *viewer) choices(t *testing.T, b monitoring.Dashboard) []map[string]string {
	t.Helper()
	all := []map[string]string{{}}
	for _, variable := range b.Variables {
		var more []map[string]string
		for _, chosen := range all {
			for _, value := range v.values(t, b, variable, chosen) {
				with := map[string]string{variable.Name: value}
				for name, value := range chosen {
					with[name] = value
				}
				more = append(more, with)
			}
		}
		all = more
	}
	if len(all) == 0 {
		t.Fatalf("%s: a variable has no value", b.Title)
	}
	return all
}

// values returns what a variable may be with others chosen.
func (v *viewer) values(t *testing.T, b monitoring.Dashboard, variable monitoring.Variable, chosen map[string]string) []string {
	t.Helper()
	switch variable.Type {
	case "custom":
		return strings.Split(variable.Query, ",")[:1]
	case "query":
	default: // the data source, filters
		return []string{""}
	}
	m := labelValues.FindStringSubmatch(variable.Query)
	if m == nil {
		t.Fatalf("%s: the variable %s is %q, want label_values(…)", b.Title, variable.Name, variable.Query)
	}
	path := "label/" + m[2] + "/values?" + url.Values{
		"match[]": {monitoring.Interpolate(m[1], v.valueIn(chosen))},
		"start":   {fmt.Sprint(v.from.Unix())}, "end": {fmt.Sprint(v.to.Unix())},
	}.Encode()
	var values []string
	if e := v.prometheus.API(path, &values); e.Error != "" || len(values) == 0 {
		t.Errorf("%s: the variable %s has no values with %v: %+v", b.Title, variable.Name, chosen, e)
	}
	if variable.Multi || variable.IncludeAll {
		if variable.AllValue != "" {
			return []string{variable.AllValue}
		}
		return []string{strings.Join(values, "|")}
	}
	return values
}

// valueIn returns the values of variables, Grafana's own included.
func (v *viewer) valueIn(chosen map[string]string) func(string) (string, bool) {
	return func(name string) (string, bool) {
		switch name {
		case "__rate_interval", "__interval":
			return v.window, true
		case "__range":
			return fmt.Sprintf("%ds", int(v.to.Sub(v.from).Seconds())), true
		}
		value, ok := chosen[name]
		return value, ok
	}
}
