package test

import (
	"strings"
	"testing"

	"github.com/steadyprobe/steadyprobe/exporter"
	"github.com/steadyprobe/steadyprobe/internal/testbed"
)

// TestContractComplains holds the reader of expressions against expressions
// whose labels are known, right ones and wrong ones.
func TestContractComplains(t *testing.T) {
	c := &contract{
		prometheus: testbed.Prometheus(t, testbed.PrometheusOptions{}),
		metrics: map[string]exporter.Metric{
			"c": {Name: "c", Type: exporter.Counter, Scope: exporter.PerTarget, Labels: []string{"reason"}},
			"h": {Name: "h", Type: exporter.Histogram, Scope: exporter.PerChurn},
			"g": {Name: "g", Type: exporter.Gauge, Scope: exporter.PerProcess},
		},
		foreign:  map[string][]string{"up": nil},
		recorded: map[string]labels{"job:c:rate": {"job": true}},
		values:   map[string]map[string]map[string]bool{"c": {"reason": {"timeout": true, "reset": true}}},
	}
	for _, row := range []struct {
		name, expr string
		labels     string // of the result, in order
		wrong      string // the complaint, empty: none
	}{
		{"a target's", `rate(c[5m])`, "front instance job peer_group reason site target", ""},
		{"a churn's buckets", `h_bucket`, "churn instance job le", ""},
		{"native", `histogram_quantile(0.9, sum by (job) (rate(h[5m])))`, "job", ""},
		{"classic", `histogram_quantile(0.9, sum by (job, le) (rate(h_bucket[5m])))`, "job", ""},
		{"a sum of a counter", `c_sum`, "", "c_sum is no metric"},
		{"a name that is not there", `d`, "", "d is no metric"},
		{"recorded", `job:c:rate`, "job", ""},
		{"recorded, by what it lost", `sum by (target) (job:c:rate)`, "target", "aggregating by the label target"},
		{"a label that is not there", `g{target="a"}`, "instance job", "g has no label target"},
		{"a value that never comes", `sum(c{reason="tmeout"})`, "", `never "tmeout"`},
		{"one of the values never comes", `sum(c{reason=~"timeout|rest"})`, "", `never "rest"`},
		{"a pattern", `sum(c{reason=~"time.*"})`, "", ""},
		{"a value of a user", `sum(c{target="any"})`, "", ""},
		{"without", `sum without (instance, reason) (c)`, "front job peer_group site target", ""},
		{"without what is not there", `sum without (le) (c)`, "front instance job peer_group reason site target", "aggregating without the label le"},
		{"the top", `topk(3, g)`, "instance job", ""},
		{"on", `c / on (job, instance) group_left () g`, "front instance job peer_group reason site target", ""},
		{"on what one side lacks", `c and on (target) g`, "front instance job peer_group reason site target", "matching the right side on the label target"},
		{"one to one", `up * on (job, instance) g`, "instance job", ""},
		{"taking what is not there", `up * on (job) group_left (target) g`, "instance job target", "taking from the right side the label target"},
		{"taking", `up * on (job) group_left (reason) c`, "instance job reason", ""},
		{"a replaced label", `label_replace(g, "who", "$1", "job", "(.*)")`, "instance job who", ""},
		{"absent", `absent(up{job="a"})`, "job", ""},
		{"counted values", `count_values by (job) ("v", g)`, "job v", ""},
		{"either", `sum by (job) (g) or sum by (target) (c)`, "job target", ""},
		{"a subquery", `max_over_time(g[1h:1m])`, "instance job", ""},
		{"a number", `(1 - g) > 2`, "instance job", ""},
	} {
		t.Run(row.name, func(t *testing.T) {
			e, err := c.prometheus.Parse(row.expr)
			if err != nil {
				t.Fatal(err)
			}
			r := &labelReader{contract: c}
			if got := strings.Join(r.labels(e).names(), " "); got != row.labels {
				t.Errorf("labels %q, want %q", got, row.labels)
			}
			wrong := strings.Join(r.wrong, "; ")
			if (row.wrong == "") != (wrong == "") || !strings.Contains(wrong, row.wrong) {
				t.Errorf("complaint %q, want %q", wrong, row.wrong)
			}
		})
	}
}
