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

// Options say how a target is spoken to. All durations of 0 mean no limit of
// their own; Timeout must be positive.
type Options struct {
	Clock    probe.Clock
	Resolver *resolve.Resolver
	Dial     DialFunc // nil: TCP without keep-alive probes
	TLS      *tls.Config
	Loop     *Loop // reads plain connections; nil: goroutines do
	Request  Request
	Reuse    bool

	Timeout         time.Duration // from begun time to the last byte of the answer
	ConnectTimeout  time.Duration
	TLSTimeout      time.Duration
	ResponseTimeout time.Duration // from sending the request

	Statuses  Statuses // that are a success
	MaxHeader int      // bytes of the answer's header
	MaxBody   int64    // bytes of the answer's body

	// FirstFailure is told why a connection could not be made or secured, the
	// first time that one fails with this outcome. It may be called concurrently; nil: nobody is told.
	FirstFailure func(probe.Outcome, error)
}

// DefaultMaxHeader is the most bytes that an answer's header may have.
const DefaultMaxHeader = 64 << 10

// Opener opens HTTP/1.1 connections for one target. It implements
// [probe.Opener] and may be used concurrently.
type Opener struct {
	options Options
	clock   probe.Clock
	request []byte
	head    bool
	failed  [probe.NumOutcomes]atomic.Bool // with this outcome, before
}

// NewOpener returns an Opener. The TLS configuration, if any, must name the
// server; it is cloned.
func NewOpener(o Options) *Opener {
	if o.Dial == nil {
		o.Dial = (&net.Dialer{KeepAlive: -1}).DialContext
	}
	if o.TLS != nil {
		o.TLS = o.TLS.Clone()
	}
	if o.MaxHeader == 0 {
		o.MaxHeader = DefaultMaxHeader
	}
	return &Opener{
		options: o,
		clock:   o.Clock,
		request: o.Request.bytes(!o.Reuse),
		head:    o.Request.Method == "HEAD",
	}
}

// shortest returns the shortest limit that a request can have.
func (o *Opener) shortest() time.Duration {
	if t := o.options.ResponseTimeout; t > 0 {
		return min(t, o.options.Timeout)
	}
	return o.options.Timeout
}

// Open begins an opening in a goroutine of its own.
func (o *Opener) Open(l *probe.Link) { go o.open(l) }

// explain tells why an opening failed, once for each outcome.
func (o *Opener) explain(outcome probe.Outcome, err error) probe.Outcome {
	if o.options.FirstFailure != nil && !o.failed[outcome].Swap(true) {
		o.options.FirstFailure(outcome, err)
	}
	return outcome
}

// opening is the state of one opening.
type opening struct {
	*Opener
	link     *probe.Link
	sample   *probe.Sample
	deadline probe.Instant
	mark     probe.Instant // end of the previous phase
}

func (o *Opener) open(l *probe.Link) {
	c := &http1{opener: o, clock: o.clock, link: l}
	s := &c.sample
	s.Tick, _ = l.Bound()
	s.Begun = o.clock.Now()
	p := opening{Opener: o, link: l, sample: s, mark: s.Begun, deadline: s.Begun.Add(o.options.Timeout)}
	if outcome := p.establish(c); outcome != probe.Success {
		s.Outcome = outcome
		s.End = p.mark
		if c.socket != nil {
			s.Bytes = c.socket.take()
			c.socket.Close()
			s.Bytes.Add(c.socket.take())
		}
		l.Failed(s)
		return
	}
	c.run()
}

// establish gives c a usable connection.
func (p *opening) establish(c *http1) probe.Outcome {
	ctx, cancel := context.WithDeadline(p.link.Context(), p.clock.Time(p.deadline))
	defer cancel()
	address, looked, outcome := p.options.Resolver.Pick(ctx)
	if looked {
		p.sample.Resolve = p.elapsed()
		p.sample.Did = p.sample.Did.With(probe.PhaseResolve)
	}
	if outcome == probe.Success {
		outcome = p.connect(ctx, c, address)
	}
	if outcome == probe.Success && p.options.TLS != nil {
		outcome = p.secure(ctx, c)
	}
	if outcome == probe.Success {
		p.giveToLoop(c)
	}
	if outcome != probe.Success && p.link.Context().Err() != nil {
		return probe.ScheduleShutdown
	}
	return outcome
}

// elapsed ends a phase that began when the previous one ended.
func (p *opening) elapsed() time.Duration {
	now := p.clock.Now()
	d := now.Sub(p.mark)
	p.mark = now
	return d
}

// connect dials the address, and where that fails one of the other family, once
// and within the same opening. The first attempt is left half of the time, so
// that a family that leads nowhere does not use all of it.
func (p *opening) connect(ctx context.Context, c *http1, address netip.AddrPort) probe.Outcome {
	other, both := p.options.Resolver.Other(address)
	limit := p.options.ConnectTimeout
	if both && limit == 0 {
		limit = p.deadline.Sub(p.mark) / 2
	}
	conn, err := p.dial(ctx, address, limit)
	if err != nil && both && ctx.Err() == nil && !localResource(err) {
		if second, err2 := p.dial(ctx, other, p.options.ConnectTimeout); err2 == nil {
			conn, err = second, nil
			p.options.Resolver.Prefer(other)
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
	c.socket = newSocket(conn)
	c.conn = c.socket
	c.roundTrip = min(max(p.sample.Connect, leastRoundTrip), mostRoundTrip)
	return probe.Success
}

// giveToLoop lets the loop read a connection that it can read: TLS, requests
// that take a writer of their own, and connections for one request stay with
// their goroutine.
func (p *opening) giveToLoop(c *http1) {
	loop := p.options.Loop
	if loop == nil || p.options.TLS != nil || !p.options.Reuse || len(p.request) > inlineLimit {
		return
	}
	if conn, ok := loop.adopt(c.socket.Conn); ok {
		c.socket = newSocket(conn)
		c.conn = c.socket
		c.loop = loop
	}
}

// dial connects within the limit; 0: there is none.
func (p *opening) dial(ctx context.Context, address netip.AddrPort, limit time.Duration) (net.Conn, error) {
	if limit > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, limit)
		defer cancel()
	}
	return p.options.Dial(ctx, "tcp", address.String())
}

// secure shakes hands. Only reads get a deadline: a write that timed out could
// not be told from one that was never begun.
func (p *opening) secure(ctx context.Context, c *http1) probe.Outcome {
	limit := p.deadline
	if t := p.options.TLSTimeout; t > 0 {
		limit = min(limit, p.mark.Add(t))
	}
	c.socket.readBy(p.clock.Time(limit))
	stop := context.AfterFunc(ctx, func() { c.socket.readBy(past) })
	defer stop()
	conn := tls.Client(c.socket, p.options.TLS)
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
	c.conn = conn
	return probe.Success
}
