package wire

import (
	"context"
	"net"
	"net/netip"
	"sync/atomic"
	"time"

	"github.com/steadyprobe/steadyprobe/probe"
)

const (
	// inlineLimit is the longest request that the sender writes itself.
	inlineLimit = 16 << 10
	// leastRoundTrip is the least time in which a close can have crossed a
	// request.
	leastRoundTrip = time.Millisecond
	// writeGrace is how long after the request's deadline a write may go on: the
	// reader, where it can, ends the request in time and with it the write.
	writeGrace = 100 * time.Millisecond
	// mostRoundTrip is less than what the loss of the first packet adds to a
	// connect, which says nothing of the round trip.
	mostRoundTrip = 900 * time.Millisecond
)

// past is a deadline that wakes a reader at once.
var past = time.Unix(1, 0)

// The states of an http1. It is busy from Send until its reader has completed
// the request; dying, when its reader has seen the end of an idle connection
// to which the Prober has just given a tick; refused, when Send has found that
// it has ended and has sent nothing.
const (
	idle uint32 = iota
	busy
	dying
	refused
)

// http1 is one HTTP/1.1 connection (RFC 9112). Its reader, a goroutine of its
// own or a Loop, is the only one and completes every request. Who sends sets the fields of the request,
// publishes them by state, and touches none of them afterwards: a fast answer
// is completed before the write returns.
type http1 struct {
	opener    *Opener
	clock     probe.Clock
	link      *probe.Link
	loop      *Loop // that reads; nil: a goroutine does
	socket    *socket
	conn      net.Conn // the socket, or TLS over it
	address   netip.Addr
	roundTrip time.Duration

	state    atomic.Uint32
	retired  atomic.Uint32 // the probe.CloseReason of Retire
	aborted  atomic.Bool
	writing  atomic.Bool // a goroutine writes the request
	written  chan struct{}
	writeErr atomic.Pointer[error]

	// Of the request; published by state.
	sample   probe.Sample
	deadline probe.Instant

	// Of the reader.
	response  response
	buffer    []byte            // of a goroutine
	reused    bool              // it has carried a request before
	lingering probe.CloseReason // waits for the door to close it, until the deadline
	sent      chan struct{}     // closed by Send when state was dying
	forget    func() bool       // no longer abort when the link's context is done
}

// run carries requests from the end of the opening until the connection is
// closed, or until a loop does.
func (c *http1) run() {
	c.response.evidence = newEvidence(c.opener.judge)
	c.resetResponse()
	opening := c.sample
	_, bound := c.link.Bound()
	if bound {
		c.state.Store(busy)
	}
	c.link.Opened(c, 1, &opening)
	c.forget = context.AfterFunc(c.link.Context(), c.abort)
	if bound && !c.sendFirst() {
		return
	}
	if c.loop != nil {
		c.loop.add(c)
		return
	}
	if !bound && c.closeIfRetired() {
		return
	}
	c.buffer = make([]byte, firstBuffer)
	for c.read() {
	}
}

// sendFirst sends the request that the connection was opened for, unless the
// door has spoken before: its words would pass for the answer.
func (c *http1) sendFirst() bool {
	c.sample.Sent = c.clock.Now()
	if _, bytes := c.socket.came(); bytes && !c.secure() {
		return c.complete(probe.ResponseProtocol, probe.ClosePeer, c.clock.Now())
	}
	request := c.prepare()
	c.transmit(request, c.deadline)
	return true
}

// secure reports whether bytes on the socket are TLS records, which may come at
// any time and mean nothing to HTTP.
func (c *http1) secure() bool { return c.conn != net.Conn(c.socket) }

func (c *http1) resetResponse() {
	c.response.reset(c.opener.head, c.opener.options.MaxHeader, c.opener.options.MaxBody)
	if e := c.response.evidence; e != nil {
		e.reset()
	}
}

// Send begins a request on an idle connection. See [probe.Conn]. The reader may
// not have had the time to see that the door has closed the connection, or has
// sent what nobody asked for, so that Send asks the kernel: such a request would
// be lost through no fault of the door, or get a wrong answer.
func (c *http1) Send(t probe.Tick) bool {
	if ended, bytes := c.socket.came(); ended || bytes && !c.secure() {
		c.refuse()
		return false
	}
	now := c.clock.Now()
	c.sample = probe.Sample{Tick: t, Begun: now, Sent: now, Address: c.address}
	request := c.prepare()
	deadline := c.deadline
	if !c.state.CompareAndSwap(idle, busy) {
		c.writing.Store(false)
		c.written = nil
		c.state.Store(busy)
		close(c.sent)
		return true
	}
	c.transmit(request, deadline)
	return true
}

// refuse leaves a connection that has ended to its reader.
func (c *http1) refuse() {
	c.link.Refuse()
	if !c.state.CompareAndSwap(idle, refused) {
		c.state.Store(refused)
		close(c.sent)
	}
}

// prepare sets what the reader must know of the request, and returns it.
func (c *http1) prepare() (request []byte) {
	request = c.opener.text()
	c.deadline = c.sample.Begun.Add(c.opener.Timeout)
	if t := c.opener.options.ResponseTimeout; t > 0 {
		c.deadline = min(c.deadline, c.sample.Sent.Add(t))
	}
	if long(request) {
		c.written = make(chan struct{})
		c.writing.Store(true)
	}
	return request
}

// long reports whether a request takes a writer of its own.
func long(request []byte) bool { return len(request) > inlineLimit }

// transmit writes the request of a busy connection. The deadline is set after
// the state, so that the reader, which clears an old one and then looks at the
// state, cannot clear the new one for good. It is handed over, because the
// fields of the request are the reader's as soon as an answer may come.
func (c *http1) transmit(request []byte, deadline probe.Instant) {
	c.setDeadline(deadline)
	if long(request) {
		go c.writeLong(request, deadline)
		return
	}
	if _, err := c.conn.Write(request); err != nil {
		c.writeFailed(err)
	}
}

// writeLong writes a request in a goroutine of its own while the reader reads
// on: the door may answer before it has read everything. It has a deadline, a
// little after the request's, because it holds a lock of TLS that the reader may need, to answer
// a record or to send an alert: without one a door that reads nothing could hang
// both. A write that timed out is final, and so is the request's timeout.
func (c *http1) writeLong(request []byte, deadline probe.Instant) {
	defer close(c.written)
	c.socket.block(true)
	c.socket.writeBy(c.clock.Time(deadline.Add(writeGrace)))
	if c.aborted.Load() {
		c.socket.writeBy(past)
	}
	_, err := c.conn.Write(request)
	c.socket.writeBy(time.Time{})
	c.socket.block(false)
	if err != nil {
		c.writeFailed(err)
		return
	}
	c.writing.Store(false)
}

// writeFailed leaves the request to the reader. A connection that the peer has
// ended may hold its last words, and reading ends by itself; any other must be
// cut, and never a tls.Conn here, because its Close may wait.
func (c *http1) writeFailed(err error) {
	c.writeErr.Store(&err)
	if !isReset(err) {
		c.socket.cut()
	}
}

// setDeadline makes a goroutine wake up then. A loop looks at the deadlines of
// its connections itself.
func (c *http1) setDeadline(i probe.Instant) {
	if c.loop != nil {
		return
	}
	c.socket.readBy(c.clock.Time(i))
	if c.aborted.Load() {
		c.socket.readBy(past)
	}
}

// wake makes the reader look at what was asked of it.
func (c *http1) wake() {
	if c.loop != nil {
		c.loop.wake(c)
		return
	}
	c.socket.readBy(past)
}

// Retire closes the connection when it is idle. See [probe.Conn].
func (c *http1) Retire(reason probe.CloseReason) {
	c.retired.Store(uint32(reason))
	c.wake()
}

// abort ends the connection whatever it does.
func (c *http1) abort() {
	c.aborted.Store(true)
	if c.writing.Load() {
		c.socket.writeBy(past)
	}
	c.wake()
}
