package probe

import (
	"net/netip"
	"time"
)

// ChurnPhase is what the backend of a target was doing at a tick's intended
// time.
type ChurnPhase uint8

// The churn phases.
const (
	NoChurn ChurnPhase = iota // no churn is tied to the target
	Settled
	ScalingUp
	ScalingDown

	// NumChurnPhases is the number of phases, NoChurn included.
	NumChurnPhases = int(iota)
)

// String returns the churn_phase label.
func (c ChurnPhase) String() string {
	return [NumChurnPhases]string{"", "settled", "scaling_up", "scaling_down"}[c]
}

// Phase is one part of a tick's way. A tick's service time is the sum of
// resolve to transfer.
type Phase uint8

// The phases in their order.
const (
	PhaseWait       Phase = iota // in the backlog
	PhaseResolve                 // looking the name up
	PhaseConnect                 // opening the connection
	PhaseTLS                     // the TLS handshake
	PhaseProcessing              // from a usable connection to the first byte of the answer
	PhaseTransfer                // from the first to the last byte of the answer

	// NumPhases is the number of phases.
	NumPhases = int(iota)
)

// String returns the phase label.
func (p Phase) String() string {
	return [NumPhases]string{"wait", "resolve", "connect", "tls", "processing", "transfer"}[p]
}

// Protocol is what an answer was spoken in.
type Protocol uint8

// The protocols.
const (
	NoProtocol Protocol = iota
	HTTP10
	HTTP11
	HTTP2
	HTTP3
	WebSocket
	GRPC
	TCP
	TLS

	// NumProtocols is the number of protocols, NoProtocol included.
	NumProtocols = int(iota)
)

// String returns the protocol label.
func (p Protocol) String() string {
	return [NumProtocols]string{"", "http1.0", "http1.1", "http2", "http3", "websocket", "grpc", "tcp", "tls"}[p]
}

// Bare reports whether answers in p have no status.
func (p Protocol) Bare() bool { return p == TCP || p == TLS }

// Tick is one due request.
type Tick struct {
	Intended Instant    // when the schedule says that it starts
	Taken    Instant    // when it entered the backlog; never, when a slot took it at once
	Churn    ChurnPhase // at Intended
	Closed   bool       // of a closed loop: no schedule says when it starts
}

// Handshake is what a TLS handshake came to. Without a version none was
// completed; NotAfter then is that of a certificate that was not trusted, if
// one was shown.
type Handshake struct {
	Version   uint16 // as in crypto/tls; 0: no handshake
	Cipher    uint16 // as in crypto/tls
	Group     uint16 // key exchange, a crypto/tls CurveID; 0 where there was none
	Resumed   bool
	Verified  bool  // the chain was verified
	Stapled   bool  // an OCSP response was stapled
	NotBefore int64 // latest of the chain, seconds since the Unix epoch
	NotAfter  int64 // earliest of the chain, seconds since the Unix epoch; 0: no certificate was seen
}

// Bytes counts what went over a connection above TCP.
type Bytes struct{ Sent, Received uint64 }

// Add adds o to b.
func (b *Bytes) Add(o Bytes) { b.Sent += o.Sent; b.Received += o.Received }

// Sample is what came of one tick, or of one opening that belongs to no tick.
// It lives in its connection and is valid only while it is handed over.
//
// A tick that never got a connection has no Begun, and so no service time.
type Sample struct {
	Tick
	Begun     Instant // a connection was given to it, or its opening began
	Sent      Instant // just before its first byte was handed to the kernel
	FirstByte Instant // of the answer
	End       Instant // last byte of the answer, or when it failed

	Resolve, Connect, TLS time.Duration // valid where Did says so
	Did                   PhaseSet      // of resolve, connect and tls: those that were begun

	Outcome   Outcome
	Close     CloseReason // why the connection takes no further request
	Protocol  Protocol    // of the answer, if one came
	Code      uint16      // status of the answer, 0 if none came
	Address   netip.Addr  // that was connected to, or that the outcome is of; zero: none was tried
	Backend   *Backend    // who answered; nil: nobody, or nothing tells
	Bytes     Bytes       // since the connection's previous sample
	Handshake Handshake
}

// PhaseSet is a set of phases.
type PhaseSet uint8

// With returns the set with p added.
func (s PhaseSet) With(p Phase) PhaseSet { return s | 1<<p }

// Has reports whether p is in the set.
func (s PhaseSet) Has(p Phase) bool { return s&(1<<p) != 0 }

// Latency is the time from the intended time to the end:
// lateness + wait + service time.
func (s *Sample) Latency() time.Duration { return s.End.Sub(s.Intended) }

// ServiceTime is the time from the begun time to the end, 0 for a tick that
// was never begun.
func (s *Sample) ServiceTime() time.Duration {
	if s.Begun == 0 {
		return 0
	}
	return s.End.Sub(s.Begun)
}

// dealt is when the probe first dealt with the tick.
func (s *Sample) dealt() Instant {
	switch {
	case s.Taken != 0:
		return s.Taken
	case s.Begun != 0:
		return s.Begun
	}
	return s.End
}

// Lateness is how late the probe dealt with the tick: the probe's own fault.
func (s *Sample) Lateness() time.Duration { return s.dealt().Sub(s.Intended) }

// Wait is the time that the tick spent in the backlog.
func (s *Sample) Wait() time.Duration {
	if s.Begun == 0 {
		return s.End.Sub(s.dealt())
	}
	return s.Begun.Sub(s.dealt())
}

// Opening is the part of the service time before the connection was usable.
func (s *Sample) Opening() time.Duration { return s.Resolve + s.Connect + s.TLS }

// Processing is the time from a usable connection to the first byte of the
// answer, or to the end when no byte came. It happened only where Sent is set.
func (s *Sample) Processing() time.Duration {
	until := s.FirstByte
	if until == 0 {
		until = s.End
	}
	return until.Sub(s.Begun) - s.Opening()
}

// Transfer is the time from the first byte of the answer to the end. It
// happened only where FirstByte is set.
func (s *Sample) Transfer() time.Duration {
	if s.FirstByte == 0 {
		return 0
	}
	return s.End.Sub(s.FirstByte)
}
