package testbed

import (
	"math"
	"strings"
	"testing"
)

// account is what a daemon could say of one target: 10 ticks were due, 8
// requests are complete, 1 of which failed, 1 is in flight, 1 in the backlog.
const account = `
# TYPE steadyprobe_requests_scheduled_total counter
steadyprobe_requests_scheduled_total{target="shop"} 10
# TYPE steadyprobe_requests_total counter
steadyprobe_requests_total{target="shop",churn_phase="settled"} 5
steadyprobe_requests_total{target="shop",churn_phase="scaling_up"} 3
steadyprobe_requests_total{target="other",churn_phase="settled"} 100
# TYPE steadyprobe_requests_in_flight gauge
steadyprobe_requests_in_flight{target="shop"} 1
# TYPE steadyprobe_requests_backlog gauge
steadyprobe_requests_backlog{target="shop"} 1
# TYPE steadyprobe_request_failures_total counter
steadyprobe_request_failures_total{target="shop",failure_stage="read",reason="reset",churn_phase="settled"} 1
steadyprobe_request_failures_total{target="shop",failure_stage="read",reason="eof",churn_phase="settled"} 0
# TYPE steadyprobe_latency_seconds histogram
steadyprobe_latency_seconds_bucket{target="shop",outcome="success",le="0.1"} 5
steadyprobe_latency_seconds_bucket{target="shop",outcome="success",le="+Inf"} 7
steadyprobe_latency_seconds_sum{target="shop",outcome="success"} 1
steadyprobe_latency_seconds_count{target="shop",outcome="success"} 7
steadyprobe_latency_seconds_bucket{target="shop",outcome="failure",le="0.1"} 0
steadyprobe_latency_seconds_bucket{target="shop",outcome="failure",le="+Inf"} 1
steadyprobe_latency_seconds_sum{target="shop",outcome="failure"} 1
steadyprobe_latency_seconds_count{target="shop",outcome="failure"} 1
# TYPE steadyprobe_service_time_seconds histogram
steadyprobe_service_time_seconds_bucket{target="shop",outcome="success",le="+Inf"} 7
steadyprobe_service_time_seconds_sum{target="shop",outcome="success"} 1
steadyprobe_service_time_seconds_count{target="shop",outcome="success"} 7
# TYPE steadyprobe_lateness_seconds histogram
steadyprobe_lateness_seconds_bucket{target="shop",le="+Inf"} 8
steadyprobe_lateness_seconds_sum{target="shop"} 1
steadyprobe_lateness_seconds_count{target="shop"} 8
# TYPE steadyprobe_connections_opened_total counter
steadyprobe_connections_opened_total{target="shop"} 4
# TYPE steadyprobe_connections_closed_total counter
steadyprobe_connections_closed_total{target="shop",reason="peer"} 1
# TYPE steadyprobe_connections gauge
steadyprobe_connections{target="shop"} 3
`

// scraped parses what a daemon could say.
func scraped(t *testing.T, text string) Scrape {
	t.Helper()
	s, err := ParseScrape([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestScrape(t *testing.T) {
	s := scraped(t, account)
	if got := s.Sum("steadyprobe_requests_total", "target", "shop"); got != 8 {
		t.Errorf("requests = %v, want 8", got)
	}
	if got := s.Failures("shop"); len(got) != 1 || got["read/reset"] != 1 {
		t.Errorf("failures = %v, want one read/reset", got)
	}
	// Above 100 ms: 7 − 5 successes and 1 − 0 failures.
	if got := s.Above("steadyprobe_latency_seconds", 0.1, "target", "shop"); got != 3 {
		t.Errorf("latencies above 100 ms = %v, want 3", got)
	}
	if got := s.Above("steadyprobe_latency_seconds", 0.2, "target", "shop"); !math.IsNaN(got) {
		t.Errorf("latencies above what is no bound = %v, want NaN", got)
	}
	if _, err := ParseScrape([]byte("no metrics\n")); err == nil {
		t.Error("what is no exposition was read")
	}
}

func TestCheckAccount(t *testing.T) {
	before := scraped(t, account)
	for _, row := range []struct {
		name, old, new string
		want           string // in the error; empty: none
	}{
		{"as it is", "", "", ""},
		{"a request is lost", `backlog{target="shop"} 1`, `backlog{target="shop"} 0`, "10 scheduled, but 8 completed"},
		{"a latency is missing", `latency_seconds_count{target="shop",outcome="success"} 7`, `latency_seconds_count{target="shop",outcome="success"} 6`, "latency of successes"},
		{"a connection is missing", `connections{target="shop"} 3`, `connections{target="shop"} 2`, "4 connections opened, 1 closed, but 2 open"},
		{"a failure without a reason", `reason="reset"`, `reason="error"`, "without a specific reason"},
		{"a counter shrinks", `target="other",churn_phase="settled"} 100`, `target="other",churn_phase="settled"} 99`, "from 100 to 99"},
		{"a target is removed", `steadyprobe_requests_total{target="other",churn_phase="settled"} 100`, "", ""},
		{"a counter is gone, and its target is not", `steadyprobe_requests_total{target="other",churn_phase="settled"} 100`, "# TYPE steadyprobe_target_info gauge\nsteadyprobe_target_info{target=\"other\"} 1", "from 100 to 0"},
	} {
		text := strings.Replace(account, row.old, row.new, 1)
		err := scraped(t, text).CheckAccount("shop", before)
		if row.want == "" && err != nil || row.want != "" && (err == nil || !strings.Contains(err.Error(), row.want)) {
			t.Errorf("%s: error = %v, want %q", row.name, err, row.want)
		}
	}
}
