package record

import (
	"time"

	"github.com/steadyprobe/steadyprobe/probe"
)

// Windows are the spans that latency quantiles are kept for.
var Windows = [NumWindows]time.Duration{time.Minute, 5 * time.Minute, time.Hour}

// Quantiles are the quantiles that are kept for each window.
var Quantiles = [NumQuantiles]float64{0.5, 0.9, 0.99, 0.999, 0.9999, 0.99999, 1}

// NumWindows and NumQuantiles are the lengths of [Windows] and [Quantiles].
const (
	NumWindows   = 3
	NumQuantiles = 7
)

// NativeSchema is the schema of the native buckets in a [Distribution]: 32
// buckets an octave, bucket i holds values in (2^((i-1)/32), 2^(i/32)] seconds.
const NativeSchema = 5

// Bucket is one populated native bucket.
type Bucket struct {
	Index int32
	Count uint64
}

// Distribution is a copy of a cumulative histogram.
type Distribution struct {
	Count   uint64
	Sum     float64  // seconds
	Zero    uint64   // observations of 0
	Classic []uint64 // observations in each classic bucket and, last, above all; not cumulative
	Native  []Bucket // ascending, counts not cumulative
}

// Indexes of the arrays of a [Snapshot].
const (
	Succeeded = 0
	Failed    = 1

	Full    = 0
	Resumed = 1
)

// HandshakeCount counts completed TLS handshakes of one kind.
type HandshakeCount struct {
	Version, Cipher, Group uint16 // as in crypto/tls
	Resumed                bool
	Count                  uint64
}

// ResponseCount counts answers of one status.
type ResponseCount struct {
	Code     uint16 // 0 for those that no standard names, and for protocols without any
	Protocol probe.Protocol
	Count    uint64
}

// Certificate is what the last handshakes showed of the door's chain.
type Certificate struct {
	Seen      bool
	Verified  bool
	Stapled   bool
	NotBefore int64 // latest of the chain, seconds since the Unix epoch
	NotAfter  int64 // earliest of the chain, seconds since the Unix epoch
}

// Snapshot is a copy of all that a [Recorder] keeps, consistent in itself. The
// first index of Latency and ServiceTime is Succeeded or Failed, the second of
// Latency and that of SlowFailures the churn phase; HandshakeTime is indexed by
// Full or Resumed. What a user of the door felt is Latency[Succeeded] with
// SlowFailures added (see [probe.Outcome.Slow]).
type Snapshot struct {
	Latency       [2][probe.NumChurnPhases]Distribution
	SlowFailures  [probe.NumChurnPhases]Distribution // latencies of timeouts and expired ticks, which Latency[Failed] has too
	ServiceTime   [2]Distribution
	Phases        [probe.NumPhases]Distribution
	Lateness      Distribution
	HandshakeTime [2]Distribution
	Handshakes    []HandshakeCount
	Responses     []ResponseCount
	Addresses     []AddressCount // in their order; none where they are not asked for
	AddressRoom   int            // how many addresses more would have a place of their own
	Backends      []BackendCount // by name, without those silent for an hour
	Certificate   Certificate
	Clamped       uint64                            // latencies above the recordable range
	Windows       [NumWindows][NumQuantiles]float64 // latency in seconds, NaN where there are too few

	view *view // room that is used again
}
