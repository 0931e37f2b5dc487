package observability

import (
	"fmt"
	"io"
	"math"
	"os"
	"testing"
	"time"

	"github.com/prometheus/common/model"

	"github.com/steadyprobe/steadyprobe/internal/plot"
)

// drawPercentiles draws the latencies of the target that becomes slow, and of
// its peer, before and during the regression: the buckets of the native
// histograms that Prometheus stored.
func (s *stand) drawPercentiles(t *testing.T, file string) {
	var series []plot.Series
	for _, of := range []struct {
		target string
		during part
		name   string
	}{
		{"slow", s.parts[0], "HAProxy"},
		{"calm", s.parts[0], "nginx"},
		{"slow", s.parts[1], "HAProxy, slow"},
		{"calm", s.parts[1], "nginx, meanwhile"},
	} {
		cells := s.cells(t, of.target, of.during)
		if len(cells) == 0 {
			t.Errorf("%s has no latencies while %s", of.target, of.during.name)
		}
		series = append(series, plot.Series{Name: of.name, Cells: cells})
	}
	write(t, file, func(w io.Writer) error {
		return plot.Percentiles(w, plot.Look{}, "Latency by percentile, before and while HAProxy is slow", series)
	})
}

// cells returns the latencies of all requests of a target in a part of the
// scenario.
func (s *stand) cells(t *testing.T, target string, p part) []plot.Cell {
	t.Helper()
	// What began in the part before ends within a moment.
	over := int(p.to.Sub(p.from).Seconds()) - 2
	expr := fmt.Sprintf(`increase(steadyprobe_latency_seconds{job="steadyprobe", target=%q, outcome="success"}[%ds])`, target, over)
	answer := s.prometheus.Instant(expr, p.to)
	if answer.Err != nil {
		t.Fatal(answer.Err)
	}
	var cells []plot.Cell
	for _, sample := range answer.Value.(model.Vector) {
		for _, b := range sample.Histogram.Buckets {
			cells = append(cells, plot.Cell{Highest: seconds(float64(b.Upper)), Count: uint64(math.Round(float64(b.Count)))})
		}
	}
	return cells
}

// drawTimeline draws the p99 over the whole scenario, and the failures below.
func (s *stand) drawTimeline(t *testing.T, file string) {
	ended := s.parts[len(s.parts)-1].to
	// The last stretch is mostly waiting for the long windows.
	if shown := s.parts[len(s.parts)-1].from.Add(30 * time.Second); shown.Before(ended) {
		ended = shown
	}
	var lines []plot.Line
	for _, of := range []struct{ target, name string }{{"slow", "HAProxy"}, {"calm", "nginx"}, {"resetting", "nginx, TLS"}} {
		line := plot.Line{Name: of.name}
		for _, p := range s.samples(t, fmt.Sprintf(`histogram_quantile(0.99, rate(steadyprobe_latency_seconds{job="steadyprobe", target=%q, outcome="success"}[3s]))`, of.target), ended) {
			line.Points = append(line.Points, plot.Point{At: p.Timestamp.Time(), Value: seconds(float64(p.Value))})
		}
		for _, p := range s.samples(t, fmt.Sprintf(`sum(increase(steadyprobe_request_failures_total{job="steadyprobe", target=%q}[2s])) / 2`, of.target), ended) {
			line.Failures = append(line.Failures, plot.Failure{At: p.Timestamp.Time(), Count: uint64(math.Round(float64(p.Value)))})
		}
		if len(line.Points) == 0 {
			t.Errorf("%s has no latencies", of.target)
		}
		lines = append(lines, line)
	}
	write(t, file, func(w io.Writer) error {
		return plot.Timelines(w, plot.Look{}, "p99 latency: a slow HAProxy, a starved probe, a backend that is gone", s.began.UTC(), ended.UTC(), lines, nil)
	})
}

// samples evaluates an expression of one series each second of the scenario.
func (s *stand) samples(t *testing.T, expr string, ended time.Time) []model.SamplePair {
	t.Helper()
	answer := s.prometheus.Range(expr, s.began, ended, time.Second)
	if answer.Err != nil {
		t.Fatal(answer.Err)
	}
	matrix := answer.Value.(model.Matrix)
	if len(matrix) != 1 {
		t.Fatalf("%d series of %s, want 1", len(matrix), expr)
	}
	return matrix[0].Values
}

// seconds returns a duration; none for what is no number.
func seconds(s float64) time.Duration {
	if math.IsNaN(s) || math.IsInf(s, 0) {
		return 0
	}
	return time.Duration(s * float64(time.Second))
}

func write(t *testing.T, file string, draw func(io.Writer) error) {
	t.Helper()
	f, err := os.Create(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if err := draw(f); err != nil {
		t.Fatal(err)
	}
}
