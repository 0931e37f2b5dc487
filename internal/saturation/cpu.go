package saturation

import (
	"fmt"
	"math"
	"runtime/metrics"
	"slices"
	"time"
)

// What the probe adds to a figure counts as too much above both of these.
const (
	disturbanceTime  = time.Millisecond
	disturbanceShare = 20 // one of so many parts of the median service time
)

// Limit returns what the probe may add to the figures of a door with the given
// median service time (0: unknown) before they are not to be trusted.
func Limit(serviceTime time.Duration) time.Duration {
	return max(disturbanceTime, serviceTime/disturbanceShare)
}

// cpuCause says why the CPU is too busy; empty: it is not.
func (w *Watch) cpuCause() string {
	// All are read before the first is judged, so that differences go from
	// sample to sample.
	waited := w.scheduling.p99(w.options.Readers.SchedulingLatency())
	throttled := uint64(0)
	if n, err := w.options.Readers.Throttled(); w.readable("cpu throttling", err) {
		throttled = w.throttled.since(n)
	}
	limit := Limit(w.options.ServiceTime())
	for _, own := range []struct {
		name string
		p99  time.Duration
	}{
		{"scheduling latency", waited},
		{"lateness", w.options.Lateness()},
		{"self latency", w.options.SelfLatency()},
	} {
		if own.p99 > limit {
			return fmt.Sprintf("%s p99 is %v, above %v", own.name, own.p99, limit)
		}
	}
	if throttled > 0 {
		return fmt.Sprintf("the CPU limit stopped the process %d times", throttled)
	}
	return ""
}

// counter turns a count into its growth.
type counter struct {
	last  uint64
	known bool
}

// since returns the growth since the call before, 0 at the first call and when
// the count started anew.
func (c *counter) since(n uint64) uint64 {
	grown := uint64(0)
	if c.known && n > c.last {
		grown = n - c.last
	}
	c.last, c.known = n, true
	return grown
}

// schedulingLatency turns the runtime's cumulative histogram into the p99 of
// what was added to it.
type schedulingLatency struct {
	base []uint64 // counts of the sample before
}

// p99 returns the p99 of what was added since the call before, 0 at the first
// call. The runtime measures every eighth wait only, and a starved process has
// few: with less than 200 values it is the second largest, so that a single
// one never decides. It is the lower end of a bucket, never more than the
// truth.
func (s *schedulingLatency) p99(h *metrics.Float64Histogram) time.Duration {
	if h == nil {
		return 0
	}
	if len(s.base) != len(h.Counts) {
		s.base = slices.Clone(h.Counts)
		return 0
	}
	var added uint64
	for i, n := range h.Counts {
		added += n - s.base[i]
	}
	larger := max(1, added/100) // values that may be larger than the p99
	p99 := 0.0
	for i := len(h.Counts) - 1; i >= 0; i-- {
		n := h.Counts[i] - s.base[i]
		if n > larger {
			p99 = h.Buckets[i]
			break
		}
		larger -= n
	}
	copy(s.base, h.Counts)
	if p99 <= 0 { // the first bucket begins at -Inf
		return 0
	}
	return time.Duration(math.Round(p99 * 1e9))
}

// readSchedulingLatency returns the reader of the Go runtime's histogram. The
// histogram is valid until the next call.
func readSchedulingLatency() func() *metrics.Float64Histogram {
	sample := []metrics.Sample{{Name: "/sched/latencies:seconds"}}
	return func() *metrics.Float64Histogram {
		metrics.Read(sample)
		if sample[0].Value.Kind() != metrics.KindFloat64Histogram {
			return nil
		}
		return sample[0].Value.Float64Histogram()
	}
}
