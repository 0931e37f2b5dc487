package testbed

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

func TestPrometheusScrapesAndAnswers(t *testing.T) {
	address := freeAddress(t)
	p := Prometheus(t, PrometheusOptions{
		Global:        "evaluation_interval: 1s",
		ScrapeConfigs: ScrapeJob("door", address),
		Rules:         "groups: [{name: g, rules: [{record: two, expr: vector(2)}]}]",
	})
	// Nothing listens there: the scrape fails, and says so.
	got := p.WaitForQuery(`up{job="door"}`, 20*time.Second)
	if len(got) != 1 || got[0].Value != 0 || string(got[0].Metric["instance"]) != address {
		t.Errorf("up = %v, want 0 for %q", got, address)
	}
	if got := p.WaitForQuery("two", 20*time.Second); got[0].Value != 2 {
		t.Errorf("recorded = %v, want 2", got)
	}
	WaitFor(t, "a remark on the rate of a gauge", 20*time.Second, func() bool {
		_, warnings := p.Query("rate(up[1m])")
		return len(warnings) == 1
	})
}

func TestPrometheusKnowsThePast(t *testing.T) {
	yesterday := time.Now().Add(-24 * time.Hour)
	p := Prometheus(t, PrometheusOptions{
		Past: fmt.Sprintf("# TYPE job:a gauge\njob:a{job=\"b\"} 7 %d\n", yesterday.Unix()),
	})
	if got, _ := p.Query(`last_over_time(job:a{job="b"}[5m] offset 1d)`); len(got) != 1 || got[0].Value != 7 {
		t.Errorf("yesterday it was %v, want 7", got)
	}
}

func TestPromtoolComplains(t *testing.T) {
	for _, row := range []struct {
		name, text string
		good       bool
	}{
		{"a counter as it should be", "# HELP a_total Of a.\n# TYPE a_total counter\na_total 1\n", true},
		{"a counter without total", "# HELP a Of a.\n# TYPE a counter\na 1\n", false},
		{"no metric at all", "}{", false},
	} {
		t.Run(row.name, func(t *testing.T) {
			out, err := Promtool(t, strings.NewReader(row.text), "check", "metrics")
			if good := err == nil; good != row.good {
				t.Errorf("promtool said %q (%v), want good = %v", out, err, row.good)
			}
		})
	}
}
