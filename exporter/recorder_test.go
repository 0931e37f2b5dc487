package exporter

import (
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/steadyprobe/steadyprobe/probe"
	"github.com/steadyprobe/steadyprobe/probe/record"
)

// TestWithRecorder exposes what a real recorder keeps, with a classic boundary
// that a user added.
func TestWithRecorder(t *testing.T) {
	bounds, err := record.NewBounds(record.Additional{Lateness: []float64{0.002}})
	if err != nil {
		t.Fatal(err)
	}
	clock := probe.NewClock()
	recorder := record.New(record.Options{Clock: clock, Bounds: bounds})
	now := clock.Now()
	for i := range 2 {
		intended := now + probe.Instant(i)
		begun := intended.Add(1500 * time.Microsecond)
		recorder.Record(&probe.Sample{
			Tick:  probe.Tick{Intended: intended},
			Begun: begun, Sent: begun, FirstByte: begun.Add(time.Millisecond), End: begun.Add(2 * time.Millisecond),
			Protocol: probe.HTTP11, Code: 200,
		})
	}
	target := plainTarget()
	target.Snapshot = recorder.Snapshot
	o := Options{Histograms: DefaultHistograms()}
	o.Histograms.Bounds = bounds
	e := newExporter(t, o, target)
	const want = `# HELP steadyprobe_lateness_seconds Time from a request's intended time until the probe dealt with it: the probe's own fault.
# TYPE steadyprobe_lateness_seconds histogram
steadyprobe_lateness_seconds_bucket{target="plain",le="5e-05"} 0
steadyprobe_lateness_seconds_bucket{target="plain",le="0.0001"} 0
steadyprobe_lateness_seconds_bucket{target="plain",le="0.00025"} 0
steadyprobe_lateness_seconds_bucket{target="plain",le="0.0005"} 0
steadyprobe_lateness_seconds_bucket{target="plain",le="0.001"} 0
steadyprobe_lateness_seconds_bucket{target="plain",le="0.002"} 2
steadyprobe_lateness_seconds_bucket{target="plain",le="0.0025"} 2
steadyprobe_lateness_seconds_bucket{target="plain",le="0.01"} 2
steadyprobe_lateness_seconds_bucket{target="plain",le="0.1"} 2
steadyprobe_lateness_seconds_bucket{target="plain",le="1"} 2
steadyprobe_lateness_seconds_bucket{target="plain",le="+Inf"} 2
steadyprobe_lateness_seconds_sum{target="plain"} 0.003
steadyprobe_lateness_seconds_count{target="plain"} 2
# HELP steadyprobe_responses_total Answers by exact status code, unknown ones as "other", and protocol.
# TYPE steadyprobe_responses_total counter
steadyprobe_responses_total{code="200",protocol="http1.1",target="plain"} 2
`
	for range 2 {
		if err := testutil.GatherAndCompare(checked(e), strings.NewReader(want),
			catalogue[lateness].Name, catalogue[responses].Name); err != nil {
			t.Fatal(err)
		}
	}
}
