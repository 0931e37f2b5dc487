package record

import (
	"sync"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"github.com/steadyprobe/steadyprobe/probe"
)

// Dense is a [Recorder] for a run with an end. Besides what that keeps it holds
// whole HDR histograms, from 1 ns to 1 h with three significant digits, about
// 270 KB each. Longer durations count as 1 h.
//
// It is a [probe.Recorder]; all its methods may be called concurrently.
type Dense struct {
	*Recorder

	mu          sync.Mutex
	latency     *hdrhistogram.Histogram
	serviceTime *hdrhistogram.Histogram
	lateness    *hdrhistogram.Histogram
}

// NewDense returns an empty Dense.
func NewDense(o Options) *Dense {
	return &Dense{
		Recorder:    New(o),
		latency:     newHDR(),
		serviceTime: newHDR(),
		lateness:    newHDR(),
	}
}

func newHDR() *hdrhistogram.Histogram { return hdrhistogram.New(1, int64(highest), 3) }

// Record takes a completed tick.
func (d *Dense) Record(s *probe.Sample) {
	d.Recorder.Record(s)
	d.mu.Lock()
	defer d.mu.Unlock()
	if !s.Closed {
		recordHDR(d.lateness, s.Lateness())
	}
	if !s.Outcome.Slow() {
		return
	}
	if !s.Closed {
		recordHDR(d.latency, s.Latency())
	}
	if s.Begun != 0 {
		recordHDR(d.serviceTime, s.ServiceTime())
	}
}

// recordHDR cannot fail: the value is within the range.
func recordHDR(h *hdrhistogram.Histogram, v time.Duration) {
	_ = h.RecordValue(int64(min(max(v, 0), highest)))
}

// Latency returns a copy of the latencies, in nanoseconds, of successes,
// timeouts and expired ticks (see [probe.Outcome.Slow]): a fast failure must
// not make an outage look fast. It is empty for a closed loop.
func (d *Dense) Latency() *hdrhistogram.Histogram { return d.copy(d.latency) }

// ServiceTime returns a copy of the service times, in nanoseconds, of successes
// and of timeouts that were begun: what a closed-loop tool would report.
func (d *Dense) ServiceTime() *hdrhistogram.Histogram { return d.copy(d.serviceTime) }

// Lateness returns a copy of the latenesses, in nanoseconds, of all ticks. It is
// empty for a closed loop.
func (d *Dense) Lateness() *hdrhistogram.Histogram { return d.copy(d.lateness) }

func (d *Dense) copy(h *hdrhistogram.Histogram) *hdrhistogram.Histogram {
	d.mu.Lock()
	defer d.mu.Unlock()
	return h.Clone()
}
