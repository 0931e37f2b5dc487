package wire

import (
	"context"
	"crypto/tls"
	"net"
	"net/netip"
	"sync/atomic"
	"time"

	"github.com/steadyprobe/steadyprobe/probe"
	"github.com/steadyprobe/steadyprobe/probe/resolve"
)

// DialFunc connects to an address, as [net.Dialer.DialContext] does.
type DialFunc func(ctx context.Context, network, address string) (net.Conn, error)

// TLSConfigFunc returns the configuration of the next handshake. It is called
// at every opening, concurrently, and must be cheap; what it returns is only
// read and must not be changed afterwards. It must name the server. Sessions
// are resumed by what its session cache holds.
type TLSConfigFunc func() *tls.Config

// Way says how the connections of a target are opened, whatever is spoken over
// them. All durations of 0 mean no limit of their own; Timeout must be positive.
type Way struct {
	Clock     probe.Clock
	Resolver  *resolve.Resolver
	Dial      DialFunc // nil: TCP without keep-alive probes
	Proxy     ProxyHeader
	TLSConfig TLSConfigFunc // nil: plain

	Timeout        time.Duration // from begun time to the end of the answer
	ConnectTimeout time.Duration
	TLSTimeout     time.Duration

	// FirstFailure is told why a connection could not be made or secured, or was
	// refused behind the handshake, the first time that one fails with this
	// outcome. It may be called concurrently; nil: nobody is told.
	FirstFailure func(probe.Outcome, error)
}

// way is a Way that is used.
type way struct {
	Way
	failed *[probe.NumOutcomes]atomic.Bool // with this outcome, before
}

// newWay fills in what is not set.
func newWay(w Way) way {
	if w.Dial == nil {
		w.Dial = (&net.Dialer{KeepAlive: -1}).DialContext
	}
	return way{Way: w, failed: new([probe.NumOutcomes]atomic.Bool)}
}

// explain tells why an opening failed, once for each outcome.
func (w *way) explain(outcome probe.Outcome, err error) probe.Outcome {
	if w.FirstFailure != nil && !w.failed[outcome].Swap(true) {
		w.FirstFailure(outcome, err)
	}
	return outcome
}

// opening is one opening and what came of it.
type opening struct {
	*way
	link     *probe.Link
	sample   *probe.Sample
	deadline probe.Instant
	mark     probe.Instant // end of the previous phase

	socket    *socket       // nil: not connected
	conn      net.Conn      // the socket, or TLS over it
	roundTrip time.Duration // as the connect shows it
	resumes   bool          // a later handshake may resume this one
}

// begin begins an opening, whose sample is s.
func (w *way) begin(l *probe.Link, s *probe.Sample) *opening {
	s.Tick, _ = l.Bound()
	s.Begun = w.Clock.Now()
	return &opening{way: w, link: l, sample: s, mark: s.Begun, deadline: s.Begun.Add(w.Timeout)}
}

// establish makes a usable connection. Where it cannot, the link has failed and
// it returns false.
func (p *opening) establish() bool {
	outcome := p.attempt()
	if outcome == probe.Success {
		return true
	}
	if p.link.Context().Err() != nil {
		outcome = probe.ScheduleShutdown
	}
	s := p.sample
	s.Outcome = outcome
	s.End = p.mark
	if p.socket != nil {
		s.Bytes = p.socket.take()
		p.socket.Close()
		s.Bytes.Add(p.socket.take())
	}
	p.link.Failed(s)
	return false
}

// attempt goes through the phases of an opening, until one fails.
func (p *opening) attempt() probe.Outcome {
	ctx, cancel := context.WithDeadline(p.link.Context(), p.Clock.Time(p.deadline))
	defer cancel()
	address, looked, outcome := p.Resolver.Pick(ctx)
	if looked {
		p.sample.Resolve = p.elapsed()
		p.sample.Did = p.sample.Did.With(probe.PhaseResolve)
	}
	switch outcome {
	case probe.Success:
		outcome = p.connect(ctx, address)
	case probe.ScheduleShutdown:
	default:
		if why := p.Resolver.Failure(); why != nil && p.link.Context().Err() == nil {
			p.explain(outcome, why)
		}
	}
	if outcome == probe.Success && p.Proxy.Version != 0 {
		outcome = p.announce(ctx)
	}
	if outcome == probe.Success && p.TLSConfig != nil {
		outcome = p.secure(ctx)
	}
	return outcome
}

// elapsed ends a phase that began when the previous one ended.
func (p *opening) elapsed() time.Duration {
	now := p.Clock.Now()
	d := now.Sub(p.mark)
	p.mark = now
	return d
}

// connect dials the address, and where that fails one of the other family, once
// and within the same opening. The first attempt is left half of the time, so
// that a family that leads nowhere does not use all of it.
func (p *opening) connect(ctx context.Context, address netip.AddrPort) probe.Outcome {
	other, both := p.Resolver.Other(address)
	limit := p.ConnectTimeout
	if both && limit == 0 {
		limit = p.deadline.Sub(p.mark) / 2
	}
	conn, err := p.dialWithin(ctx, address, limit)
	if err != nil && both && ctx.Err() == nil && !localResource(err) {
		if second, err2 := p.dialWithin(ctx, other, p.ConnectTimeout); err2 == nil {
			conn, err = second, nil
		} else {
			p.sample.Address = address.Addr() // that the error is of
		}
	}
	p.sample.Connect = p.elapsed()
	p.sample.Did = p.sample.Did.With(probe.PhaseConnect)
	if err != nil {
		if p.link.Context().Err() != nil {
			return probe.ScheduleShutdown
		}
		return p.explain(connectOutcome(err), err)
	}
	p.socket = newSocket(conn)
	p.conn = p.socket
	p.roundTrip = min(max(p.sample.Connect, leastRoundTrip), mostRoundTrip)
	return probe.Success
}

// dialWithin connects within the limit; 0: there is none. The resolver is told
// what that says of the address.
func (p *opening) dialWithin(ctx context.Context, address netip.AddrPort, limit time.Duration) (net.Conn, error) {
	p.sample.Address = address.Addr()
	if limit > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, limit)
		defer cancel()
	}
	conn, err := p.Dial(ctx, "tcp", address.String())
	switch {
	case err == nil:
		p.Resolver.Connected(address)
	case p.link.Context().Err() == nil && !localResource(err):
		p.Resolver.Failed(address)
	}
	return conn, err
}

// secure shakes hands. Only reads get a deadline: a write that timed out could
// not be told from one that was never begun.
func (p *opening) secure(ctx context.Context) probe.Outcome {
	limit := p.deadline
	if t := p.TLSTimeout; t > 0 {
		limit = min(limit, p.mark.Add(t))
	}
	p.socket.readBy(p.Clock.Time(limit))
	stop := context.AfterFunc(ctx, func() { p.socket.readBy(past) })
	defer stop()
	config := p.TLSConfig()
	p.resumes = config.ClientSessionCache != nil && !config.SessionTicketsDisabled
	conn := tls.Client(p.socket, config)
	err := conn.Handshake()
	p.sample.TLS = p.elapsed()
	p.sample.Did = p.sample.Did.With(probe.PhaseTLS)
	if err != nil {
		if p.link.Context().Err() != nil {
			return probe.ScheduleShutdown
		}
		p.sample.Handshake = refusedCertificate(err)
		return p.explain(tlsOutcome(err), err)
	}
	p.sample.Handshake = handshake(conn.ConnectionState())
	p.conn = conn
	return probe.Success
}
