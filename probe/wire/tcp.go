package wire

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"regexp"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/steadyprobe/steadyprobe/probe"
)

// StreamOptions say how a target is spoken to below HTTP: each tick opens a
// connection, shakes hands where there is a TLS configuration, sends and
// expects what is given, and closes. The answer of such a tick ends with the
// byte that completes the match.
type StreamOptions struct {
	Way

	Send   []byte         // nothing: the door speaks first, if at all
	Expect *regexp.Regexp // that what the door sends must match; nil: nothing is read
	Turns  *Turns         // as that of [Options]

	// MaxBody is how many bytes may come before one of them completes a match.
	// A connection holds so many.
	MaxBody int64

	ResponseTimeout time.Duration // from sending, or from when the door may speak; 0: no limit of its own
}

// ticketFactor times the round trip is how long session tickets are waited for.
const ticketFactor = 10

// Stream opens connections below HTTP for one target, whose connections serve
// one tick each: neither Reuse nor Warm may be set. It implements [probe.Opener]
// and may be used concurrently.
//
// What TLS 1.3 says behind the handshake, the refusal of a client certificate
// for instance, is only seen by a target that expects something.
type Stream struct {
	way
	options  StreamOptions
	protocol probe.Protocol
}

// NewStream returns a Stream.
func NewStream(o StreamOptions) *Stream {
	s := &Stream{
		way: newWay(o.Way),

		options:  o,
		protocol: probe.TCP,
	}
	if o.TLSConfig != nil {
		s.protocol = probe.TLS
	}
	return s
}

// Open begins an opening in a goroutine of its own, which ends with the
// connection.
func (s *Stream) Open(l *probe.Link) { go s.open(l) }

func (s *Stream) open(l *probe.Link) {
	c := &stream{Stream: s, link: l}
	p := s.begin(l, &c.sample)
	if !p.establish() {
		return
	}
	c.socket, c.conn, c.roundTrip, c.resumes = p.socket, p.conn, p.roundTrip, p.resumes
	opening := c.sample
	l.Opened(c, 1, &opening)
	reason := probe.ClosePerRequest
	if _, bound := l.Bound(); bound {
		stop := context.AfterFunc(l.Context(), c.abort)
		reason = c.carry(p)
		c.takeTickets()
		stop()
	} else {
		l.Leave() // a tick that was given to it meanwhile is refused
	}
	// At once: the alert that ends TLS is not sent, as sending it could wait.
	c.socket.Close()
	l.Gone(reason, c.socket.take())
}

// stream is one connection of a Stream. Only its goroutine reads it.
type stream struct {
	*Stream
	link      *probe.Link
	socket    *socket
	conn      net.Conn // the socket, or TLS over it
	roundTrip time.Duration
	resumes   bool // the handshake may be resumed
	sample    probe.Sample
	aborted   atomic.Bool
	deadline  probe.Instant
}

// Send refuses: a connection serves the tick that it was opened for. See
// [probe.Conn].
func (c *stream) Send(probe.Tick) bool {
	c.link.Refuse()
	return false
}

// Retire does nothing: a connection ends by itself, in time. See [probe.Conn].
func (c *stream) Retire(probe.CloseReason) {}

// abort ends the connection whatever it does.
func (c *stream) abort() {
	c.aborted.Store(true)
	c.socket.readBy(past)
	c.socket.writeBy(past)
}

// carry completes the tick of the opening p and returns why the connection
// closes.
func (c *stream) carry(p *opening) probe.CloseReason {
	s := &c.sample
	outcome, reason := probe.Success, probe.ClosePerRequest
	s.End = p.mark
	if len(c.options.Send) > 0 || c.options.Expect != nil {
		outcome, reason = c.exchange()
	}
	if outcome == probe.Success || outcome == probe.ResponseBody {
		s.Protocol = c.protocol
	}
	if c.aborted.Load() && outcome != probe.Success {
		outcome, reason = probe.ScheduleShutdown, probe.CloseShutdown
	}
	s.Outcome, s.Close = outcome, reason
	s.Bytes = c.socket.take()
	c.link.Done(s)
	return reason
}

// exchange sends and waits for what is expected.
func (c *stream) exchange() (probe.Outcome, probe.CloseReason) {
	s := &c.sample
	s.Sent = c.Clock.Now()
	c.deadline = s.Begun.Add(c.Timeout)
	if t := c.options.ResponseTimeout; t > 0 {
		c.deadline = min(c.deadline, s.Sent.Add(t))
	}
	var err error
	if len(c.options.Send) > 0 {
		err = c.write()
	}
	if c.options.Expect != nil {
		return c.await(err)
	}
	s.End = c.Clock.Now()
	if err != nil {
		outcome := writeOutcome(err)
		return outcome, lostReason(outcome, err)
	}
	return probe.Success, probe.ClosePerRequest
}

// write sends. Where nothing is read, being sent is all that can be waited for;
// else the door may answer, or refuse, before it has read everything, and it is
// the reader who ends in time.
func (c *stream) write() error {
	limit, reads := c.deadline, c.options.Expect != nil
	if reads {
		limit = limit.Add(writeGrace)
	}
	c.socket.block(!reads)
	c.socket.writeBy(c.Clock.Time(limit))
	if c.aborted.Load() {
		c.socket.writeBy(past)
	}
	_, err := c.conn.Write(c.options.Send)
	return err
}

// await reads until what came matches. The end of the tick is when the byte
// came that completed the match, however long it took to find it.
func (c *stream) await(writeErr error) (probe.Outcome, probe.CloseReason) {
	s := &c.sample
	var (
		came   []byte
		tried  int // bytes that did not match
		buffer = make([]byte, firstBuffer)
	)
	for {
		limit := c.deadline
		if len(came) > tried {
			limit = min(limit, c.Clock.Now().Add(patience(len(came))))
		}
		c.setDeadline(limit)
		room := c.options.MaxBody - int64(len(came))
		n, err := c.conn.Read(buffer[:min(int64(len(buffer)), room)])
		now := c.Clock.Now()
		if n > 0 {
			if s.FirstByte == 0 {
				s.FirstByte = now
			}
			s.End = now
			came = append(came, buffer[:n]...)
			room -= int64(n)
		}
		if len(came) > tried && (err != nil || room == 0 || worthATry(len(came), tried)) {
			tried = len(came)
			if c.options.Turns.match(c.options.Expect, came) {
				return probe.Success, probe.ClosePerRequest
			}
		}
		switch {
		case err == nil && room > 0:
			continue
		case err == nil:
			return probe.ResponseBody, probe.CloseError
		case isTimeout(err) && !errors.Is(err, syscall.ETIMEDOUT) && now < c.deadline && !c.aborted.Load():
			continue // that was patience
		}
		s.End = now
		return c.lost(err, writeErr, len(came) > 0)
	}
}

// patience is how long matching waits for more to come, once so many bytes are
// there: matching anew for each byte of a door that talks on and on would take
// all of a processor.
func patience(bytes int) time.Duration {
	return time.Millisecond * time.Duration(bytes) / firstBuffer
}

// worthATry reports whether so much has come since matching was tried last
// that it may be tried again without waiting.
func worthATry(came, tried int) bool { return came <= firstBuffer || came-tried >= came/8 }

// setDeadline sets that of reads.
func (c *stream) setDeadline(i probe.Instant) {
	c.socket.readBy(c.Clock.Time(i))
	if c.aborted.Load() {
		c.socket.readBy(past)
	}
}

// lost classifies the end of reading before a match.
func (c *stream) lost(err, writeErr error, started bool) (probe.Outcome, probe.CloseReason) {
	if isTimeout(err) && !errors.Is(err, syscall.ETIMEDOUT) {
		if !started && c.socket.pending() {
			return probe.WriteTimeout, probe.CloseTimeout
		}
		return probe.ReadTimeout, probe.CloseTimeout
	}
	outcome := readOutcome(err, started)
	switch {
	case writeErr != nil && !started && !isAlert(err):
		outcome = writeOutcome(writeErr)
	case outcome == probe.ReadTruncated:
		outcome = probe.ResponseBody // all came that the door had to say
	case isAlert(err):
		c.explain(outcome, err) // TLS 1.3 refuses client certificates here
	}
	return outcome, lostReason(outcome, err)
}

// takeTickets reads the session tickets that TLS 1.3 sends behind a full
// handshake (RFC 8446 section 4.6.1), where nothing else was read: without them
// no later handshake could resume this one. A door that gives none is not waited
// for long, and the tick is complete by then.
func (c *stream) takeTickets() {
	h := &c.sample.Handshake
	if h.Version != tls.VersionTLS13 || h.Resumed || c.sample.FirstByte != 0 || c.sample.Outcome != probe.Success ||
		!c.resumes || !c.link.Linger() {
		return
	}
	c.socket.once = true
	c.setDeadline(c.Clock.Now().Add(min(lingerLimit, ticketFactor*c.roundTrip)))
	var none [1]byte
	_, _ = c.conn.Read(none[:])
}
