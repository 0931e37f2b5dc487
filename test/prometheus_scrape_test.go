package test

import (
	"bytes"
	"math"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	dto "github.com/prometheus/client_model/go"

	"github.com/steadyprobe/steadyprobe/internal/faultdoor"
	"github.com/steadyprobe/steadyprobe/internal/testbed"
)

// TestPrometheus lets a real Prometheus scrape a daemon that probes doors over
// HTTP and HTTPS, one of which refuses.
func TestPrometheus(t *testing.T) {
	checkLeaks(t)
	nginx := startNGINX(t, 0, true)
	refusing := &realDoor{http: faultdoor.Refused(t)}
	d := startDaemon(t, "targets:"+
		nginx.targetConfiguration("plain", profile{rate: 100, connections: 10})+
		nginx.targetConfiguration("secure", profile{tls: true, rate: 50, connections: 10})+
		refusing.targetConfiguration("refusing", profile{rate: 10, connections: 2}))
	p := testbed.Prometheus(t, testbed.PrometheusOptions{ScrapeConfigs: testbed.ScrapeJob("steadyprobe", d.address)})

	text, err := d.get("/metrics")
	if err != nil {
		t.Fatal(err)
	}
	if out, err := testbed.Promtool(t, bytes.NewReader(text), "check", "metrics"); err != nil || strings.TrimSpace(out) != "" {
		t.Errorf("promtool check metrics complains: %v: %s", err, out)
	}

	t.Run("both kinds of histograms", func(t *testing.T) {
		s, err := d.scrape()
		if err != nil {
			t.Fatal(err)
		}
		// Rates over the same scrapes, some seconds of them.
		p.WaitForQuery(`count_over_time(steadyprobe_requests_total{target="secure"}[20s]) >= 8`, time.Minute)
		for _, family := range []string{
			"steadyprobe_latency_seconds", "steadyprobe_service_time_seconds", "steadyprobe_phase_seconds",
			"steadyprobe_lateness_seconds", "steadyprobe_self_latency_seconds",
		} {
			compareHistograms(t, p, family, bounds(s[family]))
		}
	})
	t.Run("counters", func(t *testing.T) {
		for expr, want := range map[string]float64{
			`up{job="steadyprobe"}`:                                                      1,
			`steadyprobe_target_requests_per_second{target="plain"}`:                     100,
			`count(steadyprobe_target_info)`:                                             3,
			`steadyprobe_config_last_reload_successful`:                                  1,
			`steadyprobe_connections{target="secure"}`:                                   10,
			`sum(steadyprobe_request_failures_total{target="plain"})`:                    0,
			`steadyprobe_tls_certificate_verified{target="secure"}`:                      1,
			`count(rate(steadyprobe_request_failures_total{reason="refused"}[20s]) > 0)`: 1,
			`count(steadyprobe_saturated)`:                                               4,
			`sum(steadyprobe_requests_scheduled_total - on(target, instance, job) sum by (target, instance, job) (steadyprobe_requests_total) - steadyprobe_requests_in_flight - steadyprobe_requests_backlog)`: 0,
		} {
			if got := value(t, p, expr); got != want {
				t.Errorf("%s is %v, want %v", expr, got, want)
			}
		}
		// 100 requests/s are due whatever the machine does; rate() extrapolates
		// from scrapes that are not exactly a second apart.
		if got := value(t, p, `rate(steadyprobe_requests_scheduled_total{target="plain"}[5s])`); math.Abs(got-100) > 30 {
			t.Errorf("%v requests/s scheduled, want 100", got)
		}
	})
	t.Run("no scrape complains", func(t *testing.T) {
		for _, name := range []string{
			"prometheus_target_scrapes_sample_out_of_order_total", "prometheus_target_scrapes_sample_out_of_bounds_total",
			"prometheus_target_scrapes_sample_duplicate_timestamp_total", "prometheus_target_scrapes_exceeded_sample_limit_total",
			"prometheus_target_scrapes_exceeded_native_histogram_bucket_limit_total",
			"prometheus_target_scrapes_exceeded_body_size_limit_total",
		} {
			if got := prometheusCounter(t, p, name); got != 0 {
				t.Errorf("%s is %v, want 0", name, got)
			}
		}
		if got := value(t, p, `min_over_time(up{job="steadyprobe"}[1m])`); got != 1 {
			t.Errorf("up was %v, want always 1", got)
		}
	})
}

// compareHistograms holds the p99 of native histograms against that of the
// classic buckets: they may differ by the width of a classic bucket.
func compareHistograms(t *testing.T, p *testbed.PrometheusServer, family string, bounds []float64) {
	t.Helper()
	matcher := ""
	switch family {
	case "steadyprobe_latency_seconds", "steadyprobe_service_time_seconds":
		matcher = `{target="plain", outcome="success"}`
	case "steadyprobe_phase_seconds":
		matcher = `{target="plain", phase="processing"}`
	case "steadyprobe_lateness_seconds":
		matcher = `{target="plain"}`
	}
	native := value(t, p, `histogram_quantile(0.99, rate(`+family+matcher+`[20s]))`)
	classic := value(t, p, `histogram_quantile(0.99, rate(`+family+"_bucket"+matcher+`[20s]))`)
	// Above the largest bound the classic form can only say that bound.
	native = min(native, bounds[len(bounds)-1])
	// The two queries are not of the same instant: a neighbour is near enough.
	if d := bucket(bounds, native) - bucket(bounds, classic); d < -1 || d > 1 {
		t.Errorf("%s: p99 is %v by native and %v by classic buckets %v", family, native, classic, bounds)
	}
	count := value(t, p, `histogram_count(`+family+matcher+`)`)
	if got := value(t, p, family+"_count"+matcher); got < count {
		t.Errorf("%s: %v observations in the native histogram, then %v in the classic one", family, count, got)
	}
}

// bucket returns the index of the classic bucket that a value falls into.
func bucket(bounds []float64, v float64) int {
	i, _ := slices.BinarySearch(bounds, v)
	return i
}

// bounds returns the finite boundaries of a family's classic buckets.
func bounds(f *dto.MetricFamily) []float64 {
	var all []float64
	for _, b := range f.GetMetric()[0].GetHistogram().GetBucket() {
		if !math.IsInf(b.GetUpperBound(), 1) {
			all = append(all, b.GetUpperBound())
		}
	}
	return all
}

// value returns the only value of an expression, which must be a number and
// come without a remark.
func value(t *testing.T, p *testbed.PrometheusServer, expr string) float64 {
	t.Helper()
	result, remarks := p.Query(expr)
	if len(remarks) != 0 {
		t.Errorf("Prometheus remarks on %s: %v", expr, remarks)
	}
	if len(result) != 1 || math.IsNaN(float64(result[0].Value)) {
		t.Errorf("%s is %v, want one number", expr, result)
		return math.NaN()
	}
	return float64(result[0].Value)
}

// prometheusCounter returns a counter of the Prometheus itself.
func prometheusCounter(t *testing.T, p *testbed.PrometheusServer, name string) float64 {
	t.Helper()
	own := &daemon{t: t, address: p.Address, client: &http.Client{Timeout: 30 * time.Second}}
	defer own.client.CloseIdleConnections()
	s, err := own.scrape()
	if err != nil {
		t.Fatal(err)
	}
	if s[name] == nil {
		t.Fatalf("Prometheus has no %s", name)
	}
	return s.sum(name)
}
