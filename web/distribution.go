package web

import (
	"bytes"
	"fmt"
	"math"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
)

// The geometry of the histogram that cells are put into: nanoseconds up to an
// hour with three significant digits, as latencies are kept.
const (
	highestLatency    = time.Hour
	significantDigits = 3
)

// ticksPerHalfDistance is how many percentiles are listed for each halving of
// the distance to 100 %, as wrk2 and HdrHistogram's own tools do.
const ticksPerHalfDistance = 5

// Distribution is the latency of the requests completed in a window:
// successes, timeouts and expired ones, to three significant digits.
type Distribution struct {
	Target string `json:"target"`
	Window string `json:"window"`
	Count  int64  `json:"count"`
	// Min, Mean and Max are in seconds, and null where Count is 0.
	Min  Number `json:"min"`
	Mean Number `json:"mean"`
	Max  Number `json:"max"`
	// Percentiles ascend; the last one is 100, and there is none where Count is 0.
	Percentiles []Percentile `json:"percentiles"`
}

// Percentile is one point of a distribution.
type Percentile struct {
	Percentile float64 `json:"percentile"` // 0 to 100
	Seconds    Number  `json:"seconds"`
	Count      int64   `json:"count"` // of latencies up to Seconds
}

// histogram puts cells back into a histogram.
func histogram(cells []Cell) (*hdrhistogram.Histogram, error) {
	h := hdrhistogram.New(1, int64(highestLatency), significantDigits)
	for _, c := range cells {
		v := min(int64(c.Highest), h.HighestTrackableValue())
		if err := h.RecordValues(v, int64(min(c.Count, math.MaxInt64))); err != nil {
			return nil, fmt.Errorf("counting %d latencies of %v: %w", c.Count, c.Highest, err)
		}
	}
	return h, nil
}

// writeJSON fills d with what cells hold.
func writeJSON(d *Distribution, cells []Cell) (any, error) {
	h, err := histogram(cells)
	if err != nil {
		return nil, err
	}
	d.Min, d.Mean, d.Max, d.Percentiles = none(), none(), none(), []Percentile{}
	if d.Count = h.TotalCount(); d.Count == 0 {
		return d, nil
	}
	d.Min, d.Max = inSeconds(h.Min()), inSeconds(h.Max())
	d.Mean = Number(h.Mean() / float64(time.Second))
	for _, b := range h.CumulativeDistributionWithTicks(ticksPerHalfDistance) {
		d.Percentiles = append(d.Percentiles, Percentile{b.Quantile, inSeconds(b.ValueAt), b.Count})
	}
	return d, nil
}

// writeHGRM returns HdrHistogram's percentile text, in milliseconds, as wrk2
// prints it and hdrhistogram.github.io/HdrHistogram/plotFiles.html reads it.
func writeHGRM(_ *Distribution, cells []Cell) (any, error) {
	h, err := histogram(cells)
	if err != nil {
		return nil, err
	}
	var text bytes.Buffer
	if _, err := h.PercentilesPrint(&text, ticksPerHalfDistance, float64(time.Millisecond)); err != nil {
		return nil, fmt.Errorf("printing percentiles: %w", err)
	}
	return plainText(text.Bytes()), nil
}

// none is the number that there is not.
func none() Number { return Number(math.NaN()) }

func inSeconds(nanoseconds int64) Number { return Number(float64(nanoseconds) / float64(time.Second)) }
