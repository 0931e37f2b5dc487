// Package peer knows the tools that steadyprobe is held against, and
// steadyprobe itself as one of them: how each is told to do a piece of work,
// and what it then says came of it.
package peer

import (
	"errors"
	"fmt"
	"math"
	"time"
)

// ErrUnfit says that a tool cannot do a piece of work.
var ErrUnfit = errors.New("the tool cannot do this work")

// Work is what a tool is asked to do.
type Work struct {
	URL            string
	Rate           int // requests per second; 0: as many as the connections carry
	Connections    int // at most one request at a time on each
	Duration       time.Duration
	NewConnections bool   // each request on a connection of its own
	TLS            string // "1.2" or "1.3", for tools that have to be told; empty: none
	Scratch        string // an empty folder, for files of the tool
}

// seconds returns the duration in whole seconds, as most tools want it.
func (w Work) seconds() int { return max(1, int(w.Duration.Seconds())) }

// threads returns how many threads tools use that have to be told: two, as in
// the studies that the project repeats, or one for a single connection.
func (w Work) threads() int { return min(2, w.Connections) }

// Call is one run of a tool.
type Call struct {
	Args    []string
	Stdin   string
	Endless bool // does not end by itself, and reports nothing when it is stopped
	// Read returns what the tool says, from what it printed or wrote. Not
	// called where Endless is true.
	Read func(program string, stdout []byte) (Report, error)
}

// Tool is a way to call a program: one row of the table.
type Tool struct {
	Name     string        // of the row
	Program  string        // its name, or its path
	Version  []string      // arguments that make it tell its version
	Shortest time.Duration // of a run, where shorter ones say nothing
	// Call returns how the tool is told to do the work, or ErrUnfit.
	Call func(Work) (Call, error)
}

// Quantile names a quantile that a tool reports.
type Quantile string

// The quantiles that are compared. Max is the largest value.
const (
	P50  Quantile = "p50"
	P95  Quantile = "p95"
	P99  Quantile = "p99"
	P999 Quantile = "p99.9"
	Max  Quantile = "max"
)

// shares has the share of all values that each quantile is not below.
func shares() map[Quantile]float64 {
	return map[Quantile]float64{P50: 0.5, P95: 0.95, P99: 0.99, P999: 0.999, Max: 1}
}

// Quantiles holds a distribution in seconds. What a tool does not say is absent.
type Quantiles map[Quantile]float64

// Report is what a tool says came of its work.
type Report struct {
	Requests uint64    `json:"requests"`           // answered, in the tool's own count
	Failures uint64    `json:"failures"`           // among them or besides, as the tool counts
	Latency  Quantiles `json:"latency,omitempty"`  // whatever the tool calls latency
	Lateness Quantiles `json:"lateness,omitempty"` // only steadyprobe measures it
}

// All returns every tool, steadyprobe first: path is its program.
func All(path string) []Tool {
	return []Tool{
		steadyprobe("steadyprobe", path),
		steadyprobe("steadyprobe economy", path, "--pacing=economy"),
		wrk2(), wrk(), ab(), h2load(),
		vegeta("vegeta", false), vegeta("vegeta capped", true),
		fortio(), bombardier(), k6(), oha(),
	}
}

// exact returns the quantiles of sorted values by the nearest rank: the
// smallest value that at least the share of all values does not exceed.
func exact(sorted []float64) Quantiles {
	if len(sorted) == 0 {
		return nil
	}
	q := Quantiles{}
	for name, share := range shares() {
		rank := int(math.Ceil(share * float64(len(sorted))))
		q[name] = sorted[max(1, rank)-1]
	}
	return q
}

// reading wraps what is wrong with what a tool printed.
func reading(tool string, err error) error {
	return fmt.Errorf("reading what %s says: %w", tool, err)
}
