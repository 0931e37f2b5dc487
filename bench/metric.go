package main

import (
	"fmt"
	"math"

	"github.com/steadyprobe/steadyprobe/bench/peer"
)

// metric is a figure of a run, by its title in the table.
type metric string

// The figures. Latencies are what the tool calls so; the door's figures, CPU
// and memory are measured from outside.
const (
	doorRequests  metric = "requests at the door"
	toldRequests  metric = "as it says"
	failures      metric = "failures it says"
	doorRate      metric = "requests/s"
	handshakeRate metric = "handshakes/s"
	resumedShare  metric = "resumed"
	cpu           metric = "CPU per request"
	memory        metric = "memory"
	p50           metric = "p50"
	p95           metric = "p95"
	p99           metric = "p99"
	p999          metric = "p99.9"
	largest       metric = "max"
	latenessP50   metric = "lateness p50"
	latenessP99   metric = "lateness p99"
	p95Error      metric = "p95 / exact"
)

// of returns the figure of a run, or NaN where it has none.
func (m metric) of(r *result) float64 {
	switch m {
	case doorRequests:
		return float64(r.Door.Requests)
	case toldRequests:
		return told(r, float64(r.Report.Requests))
	case failures:
		return told(r, float64(r.Report.Failures))
	case doorRate:
		return r.perSecond(r.Middle.Requests)
	case handshakeRate:
		return r.perSecond(r.Middle.Full + r.Middle.Resumed)
	case resumedShare:
		return float64(r.Door.Resumed) / float64(r.Door.Full+r.Door.Resumed)
	case cpu:
		return (r.User + r.System) / float64(r.Door.Requests)
	case memory:
		return r.memory()
	case latenessP50:
		return quantile(r.Report.Lateness, peer.P50)
	case latenessP99:
		return quantile(r.Report.Lateness, peer.P99)
	case p95Error:
		return quantile(r.Report.Latency, peer.P95) / exactP95
	}
	return quantile(r.Report.Latency, peer.Quantile(m))
}

// show returns a value of the figure with its unit.
func (m metric) show(v float64) string {
	switch m {
	case doorRequests, toldRequests, failures, doorRate, handshakeRate:
		return grouped(int64(math.Round(v)))
	case resumedShare:
		return fmt.Sprintf("%.0f %%", 100*v)
	case memory:
		return significant(v/(1<<20)) + " MiB"
	case p95Error:
		return significant(v)
	}
	return duration(v)
}

func quantile(q peer.Quantiles, name peer.Quantile) float64 {
	if v, ok := q[name]; ok {
		return v
	}
	return math.NaN()
}

// told is a figure that the tool says, if it said anything.
func told(r *result, v float64) float64 {
	if r.Silent {
		return math.NaN()
	}
	return v
}

// duration shows seconds in the unit that fits.
func duration(v float64) string {
	switch {
	case v < 1e-3:
		return significant(1e6*v) + " us"
	case v < 1:
		return significant(1e3*v) + " ms"
	}
	return significant(v) + " s"
}

// significant shows three digits, and all of those before the point.
func significant(v float64) string {
	switch a := math.Abs(v); {
	case a >= 99.95:
		return fmt.Sprintf("%.0f", v)
	case a >= 9.995:
		return fmt.Sprintf("%.1f", v)
	case a >= 0.9995:
		return fmt.Sprintf("%.2f", v)
	}
	return fmt.Sprintf("%.3g", v)
}

// grouped shows a number with commas between its thousands.
func grouped(n int64) string {
	s := fmt.Sprint(n)
	for i := len(s) - 3; i > 0 && s[i-1] != '-'; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}
