package exporter

import (
	"strings"
	"testing"

	dto "github.com/prometheus/client_model/go"

	"github.com/steadyprobe/steadyprobe/probe/record"
)

// TestExpose changes targets, churns and the form of histograms together, or
// nothing of it.
func TestExpose(t *testing.T) {
	e := newExporter(t, testOptions(), plainTarget())
	h := testOptions().Histograms
	h.Bounds = e.options.Histograms.Bounds
	shown := func() (targets, churns int, histogram *dto.Histogram) {
		t.Helper()
		families, done, err := e.Gather()
		defer done()
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range families {
			switch f.GetName() {
			case catalogue[targetInfo].Name:
				targets = len(f.GetMetric())
			case catalogue[churnSteps].Name:
				churns = len(f.GetMetric()) / 2 // up and down
			case catalogue[latency].Name:
				histogram = f.GetMetric()[0].GetHistogram()
			}
		}
		return targets, churns, histogram
	}
	others, err := record.NewBounds(record.Additional{Latency: []float64{0.42}})
	if err != nil {
		t.Fatal(err)
	}
	h.Classic, h.Schema = false, 1
	if err := e.Expose(h, []Target{plainTarget(), fullTarget()}, []Churn{testChurn()}); err != nil {
		t.Fatal(err)
	}
	targets, churns, histogram := shown()
	if targets != 2 || churns != 1 || len(histogram.GetBucket()) != 0 || histogram.GetSchema() != 1 {
		t.Errorf("%d targets, %d churns, %d classic buckets, schema %d; want 2, 1, 0, 1", targets, churns, len(histogram.GetBucket()), histogram.GetSchema())
	}
	for _, row := range []struct {
		name    string
		change  func(*Histograms)
		targets []Target
		churns  []Churn
		want    string
	}{
		{"no buckets", func(h *Histograms) { h.Classic, h.Native = false, false }, nil, nil, "neither classic nor native"},
		{"other boundaries", func(h *Histograms) { h.Bounds = others }, nil, nil, "boundaries cannot change"},
		{"two of a name", func(*Histograms) {}, []Target{plainTarget(), plainTarget()}, nil, "two of that name"},
		{"two churns of a name", func(*Histograms) {}, nil, []Churn{testChurn(), testChurn()}, "two of that name"},
	} {
		t.Run(row.name, func(t *testing.T) {
			other := h
			other.Schema = 3
			row.change(&other)
			if err := e.Expose(other, row.targets, row.churns); err == nil || !strings.Contains(err.Error(), row.want) {
				t.Fatalf("got %v, want %s", err, row.want)
			}
			if targets, churns, histogram := shown(); targets != 2 || churns != 1 || histogram.GetSchema() != 1 {
				t.Errorf("%d targets, %d churns, schema %d; want those of before", targets, churns, histogram.GetSchema())
			}
		})
	}
	h.Classic, h.Native = true, false
	if err := e.Expose(h, nil, nil); err != nil {
		t.Fatal(err)
	}
	if targets, churns, _ := shown(); targets != 0 || churns != 0 {
		t.Errorf("%d targets and %d churns, want none", targets, churns)
	}
}
