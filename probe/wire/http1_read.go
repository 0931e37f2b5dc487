package wire

import (
	"errors"
	"syscall"
	"time"

	"github.com/steadyprobe/steadyprobe/probe"
)

const (
	// lingerLimit is how long a connection waits for the door to close it.
	lingerLimit = time.Second

	firstBuffer = 4 << 10
	largeBuffer = 64 << 10
)

// read waits for bytes and reports whether the connection lives on.
func (c *http1) read() bool {
	n, err := c.conn.Read(c.buffer)
	alive := c.got(c.buffer[:n], err)
	if n == len(c.buffer) && n < largeBuffer {
		c.buffer = make([]byte, largeBuffer)
	}
	return alive
}

// got takes what a read has brought and reports whether the connection lives
// on.
func (c *http1) got(p []byte, err error) bool {
	now := c.clock.Now()
	if len(p) > 0 && !c.received(p, now) {
		return false
	}
	switch {
	case err == nil:
		return true
	case isTimeout(err) && !errors.Is(err, syscall.ETIMEDOUT): // that is the end of the connection
		return c.timedOut(now)
	}
	return c.ended(err, now)
}

// received takes bytes of the answer.
func (c *http1) received(p []byte, now probe.Instant) bool {
	if c.lingering != probe.NotClosed {
		c.close(c.lingering) // it was to close, not to talk on
		return false
	}
	if c.state.Load() != busy {
		// An answer that nobody asked for, so that no later one can be trusted.
		return c.endIdle(probe.ClosePeer)
	}
	if c.sample.FirstByte == 0 {
		c.sample.FirstByte = now
	}
	n, done, outcome := c.response.feed(p)
	switch {
	case outcome != probe.Success:
		return c.complete(outcome, probe.CloseError, now)
	case !done:
		return true
	}
	return c.answered(n < len(p), now)
}

// answered completes a request whose answer is complete. More says that the
// door went on talking.
func (c *http1) answered(more bool, now probe.Instant) bool {
	c.sample.Code, c.sample.Protocol = c.response.code, c.response.proto
	outcome := c.judge()
	reason := probe.NotClosed
	switch {
	case !c.opener.options.Reuse:
		reason = probe.ClosePerRequest
	case c.response.closes:
		reason = probe.CloseAnnounced
	case more:
		reason = probe.ClosePeer
	case !c.whollySent():
		reason = probe.CloseError
	}
	return c.complete(outcome, reason, now)
}

// judge holds a complete answer against what is expected, and notes who gave
// it.
func (c *http1) judge() probe.Outcome {
	e := c.response.evidence
	if e != nil {
		c.sample.Backend = e.who()
	}
	switch {
	case !c.opener.options.Statuses.Has(c.response.code):
		return probe.ResponseStatus
	case e != nil:
		return e.outcome(c.response.body)
	}
	return probe.Success
}

// whollySent reports whether the request was handed to the kernel to its last
// byte. A door's answer can outrun the writer's return, so that the writer is
// given a round trip to say so.
func (c *http1) whollySent() bool {
	if c.writing.Load() {
		late := time.NewTimer(c.roundTrip)
		defer late.Stop()
		select {
		case <-c.written:
		case <-late.C:
		}
	}
	return !c.unsent()
}

// unsent reports whether some of the request waits to be handed to the kernel.
func (c *http1) unsent() bool { return c.writing.Load() || c.socket.pending() }

// complete hands the request's sample over and goes on with the next one. The
// sample is the sender's again as soon as Done has been called.
func (c *http1) complete(o probe.Outcome, reason probe.CloseReason, now probe.Instant) bool {
	s := &c.sample
	s.Outcome, s.Close, s.End = o, reason, now
	s.Bytes = c.socket.take()
	c.resetResponse()
	c.reused = true
	c.state.Store(idle)
	next, more := c.link.Done(s)
	switch {
	case reason == probe.ClosePerRequest, reason == probe.CloseAnnounced:
		return c.linger(reason)
	case reason != probe.NotClosed:
		c.close(reason)
		return false
	case more:
		if !c.Send(next) {
			c.link.HandOn(next)
		}
		return true
	}
	return !c.closeIfRetired()
}

// closeIfRetired closes an idle connection that was told to retire. One that
// was given its last request in the meantime lives until that is completed.
func (c *http1) closeIfRetired() bool {
	reason := probe.CloseReason(c.retired.Load())
	if reason == probe.NotClosed || c.state.Load() == busy || !c.link.Leave() {
		return false
	}
	c.close(reason)
	return true
}

// timedOut handles a read that hit its deadline: the request's, an old one of
// an idle connection, or one that was set to wake the reader.
func (c *http1) timedOut(now probe.Instant) bool {
	if c.lingering != probe.NotClosed {
		c.close(c.lingering)
		return false
	}
	if c.aborted.Load() {
		if c.state.Load() == busy {
			return c.complete(probe.ScheduleShutdown, probe.CloseShutdown, now)
		}
		return c.endIdle(probe.CloseShutdown)
	}
	if c.state.Load() == busy && now >= c.deadline {
		outcome := probe.ReadTimeout
		if !c.response.started() && c.unsent() {
			outcome = probe.WriteTimeout
		}
		return c.complete(outcome, probe.CloseTimeout, now)
	}
	if c.loop == nil {
		c.socket.readBy(time.Time{})
	}
	if c.closeIfRetired() {
		return false
	}
	if c.state.Load() == busy {
		c.setDeadline(c.deadline)
	}
	return true
}

// ended handles the end of the connection.
func (c *http1) ended(err error, now probe.Instant) bool {
	if c.lingering != probe.NotClosed {
		c.close(c.lingering)
		return false
	}
	if c.state.Load() != busy {
		return c.endIdle(probe.ClosePeer)
	}
	if isEOF(err) && !c.cutOff() {
		if done, _ := c.response.eof(); done {
			return c.answered(false, now)
		}
	}
	outcome := c.lostOutcome(err, now)
	if isAlert(err) {
		c.opener.explain(outcome, err) // TLS 1.3 refuses client certificates here
	}
	return c.complete(outcome, lostReason(outcome, err), now)
}

// cutOff reports whether TLS ended without the door saying so: then a body that
// only the end delimits is not complete (RFC 9112 section 9.8). Behind the
// door's own word, an alert, nothing more is read from the socket.
func (c *http1) cutOff() bool { return c.secure() && c.socket.atEnd }

// lostOutcome classifies a request whose connection ended before its answer
// was complete. One that was not wholly written was lost in writing, whichever
// side of the connection noticed it first.
func (c *http1) lostOutcome(err error, now probe.Instant) probe.Outcome {
	started := c.response.started()
	cause := err
	if written := c.writeErr.Load(); written != nil {
		cause = *written
	}
	// An alert tells more than the write that ran into it.
	inWrite := !started && !isAlert(err) && (c.writeErr.Load() != nil || c.unsent())
	crossed := c.reused && !started && now.Sub(c.sample.Sent) <= c.roundTrip && (isEOF(err) || isReset(err))
	switch {
	case inWrite && crossed:
		return probe.WriteStale
	case inWrite:
		return writeOutcome(cause)
	case crossed:
		return probe.ReadStale
	}
	return readOutcome(err, started)
}

func lostReason(o probe.Outcome, err error) probe.CloseReason {
	switch {
	case o == probe.WriteTimeout:
		return probe.CloseTimeout
	case isEOF(err), isReset(err), isAlert(err):
		return probe.ClosePeer
	}
	return probe.CloseError
}

// endIdle ends an idle connection. When the Prober has just given it a tick,
// that tick's request crossed the end: it is stale, unless it was refused.
func (c *http1) endIdle(reason probe.CloseReason) bool {
	if c.link.Leave() {
		c.close(reason)
		return false
	}
	c.sent = make(chan struct{})
	if c.state.CompareAndSwap(idle, dying) {
		<-c.sent
	}
	if c.state.Load() == refused {
		c.close(reason)
		return false
	}
	outcome := probe.ReadStale
	if reason == probe.CloseShutdown {
		outcome = probe.ScheduleShutdown
	}
	return c.complete(outcome, reason, c.clock.Now())
}

// linger lets the door close first, so that the door, not the probe, keeps the
// port in TIME_WAIT.
func (c *http1) linger(reason probe.CloseReason) bool {
	if !c.link.Linger() {
		c.close(reason)
		return false
	}
	c.lingering = reason
	c.deadline = c.clock.Now().Add(lingerLimit)
	c.setDeadline(c.deadline)
	return true
}

// due returns when the reader must look at the connection at the latest, 0 for
// never.
func (c *http1) due() probe.Instant {
	if c.lingering != probe.NotClosed || c.state.Load() == busy {
		return c.deadline
	}
	return 0
}

// close ends a connection that carries no request.
func (c *http1) close(reason probe.CloseReason) {
	c.shut()
	c.link.Gone(reason, c.socket.take())
}

// shut closes the connection and waits for a goroutine that still writes. The
// close alert of TLS is sent where the kernel takes it at once.
func (c *http1) shut() {
	c.forget()
	if c.writing.Load() {
		c.socket.cut()
	} else {
		c.conn.Close()
	}
	c.socket.Close()
	if c.written != nil {
		<-c.written
	}
}
