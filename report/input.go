package report

import (
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"github.com/steadyprobe/steadyprobe/probe"
	"github.com/steadyprobe/steadyprobe/probe/record"
)

// Input is what the run of one target left behind. [New] keeps no reference
// to anything in it, and changes nothing of it.
type Input struct {
	Target      string  // name of the target; empty: its URL
	URL         string  // user info, query and fragment are taken out before it is shown
	Rate        float64 // configured, requests per second; of no meaning in a closed loop
	RateText    string  // the rate as the user wrote it; empty: formatted from Rate
	Connections int     // most at once

	// Closed says that a tick was due whenever a connection was free: there was
	// no rate and no intended time, and so neither latency nor lateness.
	Closed bool
	// Economy says that due ticks were sent once a millisecond.
	Economy bool
	// Poisson says that ticks came at random, Rate a second on average.
	Poisson bool

	// Duration is the measured window: the warm-up is not part of it, nor is
	// the time that the last requests took after the last tick was due.
	Duration time.Duration

	// Interrupted says that the run was ended before all that was asked for:
	// the window may be shorter, and its last requests were not waited for.
	Interrupted bool

	// Ledger is the account of the measured window after everything in it has
	// ended, as [Difference] makes it where there was a warm-up. AtEnd is the
	// same account at the end of the window, before the last requests were
	// waited for; the zero value stands for the same as Ledger.
	Ledger probe.Ledger
	AtEnd  probe.Ledger

	// Histograms in nanoseconds; nil stands for an empty one. SelfLatency
	// belongs to the process, not to the target.
	Latency     *hdrhistogram.Histogram
	ServiceTime *hdrhistogram.Histogram
	Lateness    *hdrhistogram.Histogram
	SelfLatency *hdrhistogram.Histogram

	Responses  []record.ResponseCount
	Handshakes []record.HandshakeCount
	Clamped    uint64 // latencies above the recordable range

	Saturated []string // resources that were saturated during the window
	Warnings  []string // anything else that the reader must know
}

// Difference returns the account of the time from start to end, two ledgers of
// the same target. Ticks that had no outcome at start belong to it, so that
// Scheduled = Done() + InFlight + Backlog holds for it as well and Done counts
// what histograms emptied at start have seen. Gauges are those of end.
func Difference(start, end probe.Ledger) probe.Ledger {
	d := end
	d.Scheduled += start.InFlight + start.Backlog
	d.Scheduled -= start.Scheduled
	for c := range d.Completed {
		for o := range d.Completed[c] {
			d.Completed[c][o] -= start.Completed[c][o]
		}
		d.WithinObjective[c] -= start.WithinObjective[c]
	}
	d.Bytes.Sent -= start.Bytes.Sent
	d.Bytes.Received -= start.Bytes.Received
	d.Opened -= start.Opened
	for r := range d.Closed {
		d.Closed[r] -= start.Closed[r]
	}
	for o := range d.OpeningFailures {
		d.OpeningFailures[o] -= start.OpeningFailures[o]
	}
	return d
}
