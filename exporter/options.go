package exporter

import (
	"errors"
	"fmt"
	"net/netip"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/steadyprobe/steadyprobe/probe"
	"github.com/steadyprobe/steadyprobe/probe/record"
)

// Options is what the figures of the process come from. The functions are
// called at every scrape, concurrently with each other; the series of one that
// is nil are left out.
type Options struct {
	Start       time.Time // of the process, the created timestamp of its series
	Histograms  Histograms
	Shard       Shard
	SelfLatency func(*record.Distribution) // fills it, and may use its slices again
	Saturation  func() []Saturation
	Reload      func() Reload
	// HistoryFailures returns how often writing to the history failed.
	HistoryFailures func() uint64
	// Discovery returns what is known of each source of targets.
	Discovery func() []Source
}

// Saturation says whether the probe lacks one resource, and for how many
// seconds it has since it started.
type Saturation struct {
	Resource  string // cpu, file_descriptors, ports or memory
	Saturated bool
	Seconds   float64
}

// Shard says which of how many processes with the same configuration this is.
type Shard struct {
	Index int // from 0
	Count int // 0 is 1
}

// Reload says how the last attempt to load the configuration ended and when
// the last good one was.
type Reload struct {
	Successful bool
	Success    time.Time
}

// Histograms says how histograms are exposed: as classic buckets, as native
// ones, or as both under one name.
type Histograms struct {
	Classic bool
	Native  bool
	// Schema is the resolution of native buckets, from 0 (one an octave) to 5
	// (32 an octave).
	Schema int
	// MaxBuckets is the most populated native buckets of one histogram. Where
	// there are more, that histogram goes to a coarser schema. At least 10.
	MaxBuckets int
	// ZeroThreshold is the width of the native zero bucket in seconds, rounded
	// up to a power of two, which is a bucket boundary in every schema. At
	// least 2^-128.
	ZeroThreshold float64
	// Bounds are the classic boundaries that the recorders and the churns count
	// with. Those of lateness hold for self latency too.
	Bounds *record.Bounds
}

// minBuckets is more than any duration needs in the coarsest schema, where a
// bucket spans 16 octaves.
const minBuckets = 10

// DefaultHistograms returns the settings that hold where nothing is set.
func DefaultHistograms() Histograms {
	return Histograms{
		Classic:       true,
		Native:        true,
		Schema:        3,
		MaxBuckets:    160,
		ZeroThreshold: prometheus.DefNativeHistogramZeroThreshold,
		Bounds:        record.DefaultBounds(),
	}
}

func (h *Histograms) validate() error {
	if !h.Classic && !h.Native {
		return errors.New("neither classic nor native histograms are on: turn one of them on")
	}
	if h.Schema < 0 || h.Schema > record.NativeSchema {
		return fmt.Errorf("native schema %d is out of range: choose 0 to %d", h.Schema, record.NativeSchema)
	}
	if h.MaxBuckets < minBuckets {
		return fmt.Errorf("at most %d native buckets are too few: allow %d or more", h.MaxBuckets, minBuckets)
	}
	if !(h.ZeroThreshold >= prometheus.DefNativeHistogramZeroThreshold && h.ZeroThreshold <= 1) {
		return fmt.Errorf("zero threshold %g is out of range: choose 2^-128 to 1 second", h.ZeroThreshold)
	}
	if h.Bounds == nil {
		return errors.New("there are no classic boundaries: take those of the recorders")
	}
	return nil
}

// bounds returns the classic boundaries of a histogram family.
func (h *Histograms) bounds(f family) *record.Boundaries {
	switch f {
	case latency, addressLatency:
		return h.Bounds.Latency
	case serviceTime:
		return h.Bounds.ServiceTime
	case phaseTime:
		return h.Bounds.Phase
	case handshakeTime:
		return h.Bounds.Handshake
	case churnConvergence, churnFirstResponse, churnLastResponse, churnFailover:
		return h.Bounds.Convergence
	default:
		return h.Bounds.Lateness
	}
}

// Target is one target as its series show it. Ledger and Snapshot are needed,
// and called at every scrape, concurrently with each other.
type Target struct {
	Name        string
	Labels      map[string]string // set by the user
	URL         string            // without user info and query
	Rate        float64           // requests per second, this process's share; of no meaning in a closed loop
	Connections int               // most at once
	Loop        string            // open or closed; a closed one has no series of what counts from an intended time
	Pacing      string            // precise or economy
	Arrival     string            // uniform or poisson
	Reuse       bool

	Objective      time.Duration // latency objective; 0: none
	ObjectiveRatio float64       // 0: none

	// What the target can meet; it decides which series exist from the start.
	Bare    bool // connections below HTTP, one for each request
	TLS     bool // TLS handshakes
	Named   bool // the host is a name, so that lookups happen
	Proxy   bool // a PROXY header is sent
	Churned bool // a churn is tied to it

	Created  time.Time // when counting began under this name
	Ledger   func() probe.Ledger
	Snapshot func(*record.Snapshot)
	Resolver func() ResolverStats // nil: the target has no addresses of its own to show
}

// ResolverStats is what became of a target's name so far.
type ResolverStats struct {
	Lookups                    uint64
	NotFound, TimedOut, Failed uint64 // lookups that failed, by reason; Failed is all other
	Addresses                  int    // now
	Added, Removed             uint64 // addresses
	// Present are the addresses of now, where series of each are asked for, as
	// far as the snapshot has a place for them; else none.
	Present []netip.Addr
}

// meets reports whether the target can complete a request with o.
func (t *Target) meets(o probe.Outcome) bool {
	switch o.Stage() {
	case "":
		return false // a success
	case probe.StageResolve:
		return t.Named
	case probe.StageProxy:
		return t.Proxy
	case probe.StageTLS:
		return t.TLS
	}
	switch o {
	case probe.ScheduleExpired:
		return !t.closed()
	case probe.ReadStale, probe.WriteStale, probe.ReadTruncated, probe.ResponseStatus, probe.ResponseSize, probe.ResponseHeader, probe.ResponseProtocol:
		return !t.Bare
	}
	return true
}

// opens reports whether o is a way in which opening a connection fails.
func opens(o probe.Outcome) bool {
	switch o.Stage() {
	case probe.StageResolve, probe.StageConnect, probe.StageProxy, probe.StageTLS:
		return true
	}
	return false
}

// hasChurn reports whether requests of the target can carry c.
func (t *Target) hasChurn(c probe.ChurnPhase) bool { return t.Churned == (c != probe.NoChurn) }

// passes reports whether requests or openings of the target have the phase.
func (t *Target) passes(p probe.Phase) bool {
	switch p {
	case probe.PhaseResolve:
		return t.Named
	case probe.PhaseTLS:
		return t.TLS
	case probe.PhaseWait:
		return !t.closed()
	}
	return true
}

// closed reports whether the target is probed in a closed loop. Nothing of it
// has an intended time: no latency, lateness, wait, rate and objective.
func (t *Target) closed() bool { return t.Loop == "closed" }
