package wire

import (
	"errors"
	"io"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/steadyprobe/steadyprobe/probe"
)

// socket is a TCP connection that counts its bytes and whose writes never
// block: what the kernel does not take at once is written by a goroutine of
// its own. Where the connection offers no raw access, writes block.
type socket struct {
	net.Conn
	raw    syscall.RawConn
	looped *looped // the connection, where a Loop reads it; nil: it is any other

	sent, received atomic.Uint64
	taken          probe.Bytes // of the reader: what the last sample told
	atEnd          bool        // of the reader: the peer has closed its side
	once           bool        // of the reader: one more read that brings bytes
	had            bool        // of the reader: and that was it

	mu       sync.Mutex
	blocking bool // a goroutine of its own is writing
	rest     []byte
	flushing chan struct{} // closed when rest is written; nil: there is none
	attempt  func(fd uintptr) bool
	buf      []byte // of attempt
	n        int    // of attempt
	err      error  // of attempt

	look  func(fd uintptr) // of came
	over  bool             // of look
	bytes bool             // of look
}

func newSocket(c net.Conn) *socket {
	s := &socket{Conn: c}
	if l, ok := c.(*looped); ok {
		s.looped = l
		return s
	}
	if sc, ok := c.(syscall.Conn); ok && rawWrites {
		if raw, err := sc.SyscallConn(); err == nil {
			s.raw = raw
		}
	}
	// Made once, so that a write allocates nothing.
	s.attempt = func(fd uintptr) bool {
		s.n, s.err = writeOnce(fd, s.buf)
		return true
	}
	s.look = func(fd uintptr) { s.over, s.bytes = whatCame(fd) }
	return s
}

// came says what the peer has done since its last answer was read: whether it
// has ended the connection, and whether bytes came. It says nothing where that
// cannot be told. Only who may send calls it.
func (s *socket) came() (ended, bytes bool) {
	if s.looped != nil {
		return s.looped.came()
	}
	if s.raw == nil {
		return false, false
	}
	s.over, s.bytes = false, false
	// A connection that this side has closed is its reader's business.
	_ = s.raw.Control(s.look)
	return s.over, s.bytes
}

// Read counts what it reads.
func (s *socket) Read(p []byte) (int, error) {
	if s.had {
		return 0, os.ErrDeadlineExceeded
	}
	n, err := s.Conn.Read(p)
	s.received.Add(uint64(n))
	s.had = s.once && n > 0
	if errors.Is(err, io.EOF) {
		s.atEnd = true
	}
	return n, err
}

// Write hands p to the kernel, or keeps what the kernel does not take for a
// goroutine that waits. It counts before it writes, because the answer may be
// read before the write returns.
func (s *socket) Write(p []byte) (int, error) {
	s.sent.Add(uint64(len(p)))
	s.mu.Lock()
	if s.flushing != nil {
		s.rest = append(s.rest, p...)
		s.mu.Unlock()
		return len(p), nil
	}
	if s.raw == nil || s.blocking {
		s.mu.Unlock()
		n, err := s.Conn.Write(p)
		s.uncount(len(p) - n)
		return n, err
	}
	defer s.mu.Unlock()
	s.buf, s.n, s.err = p, 0, nil
	err := s.raw.Write(s.attempt)
	s.buf = nil
	if err == nil {
		err = s.err
	}
	if err != nil {
		s.uncount(len(p))
		return 0, &net.OpError{Op: "write", Net: "tcp", Err: err}
	}
	if s.n < len(p) {
		s.rest = append(s.rest[:0], p[s.n:]...)
		s.flushing = make(chan struct{})
		go s.flush()
	}
	return len(p), nil
}

func (s *socket) uncount(n int) {
	if n > 0 {
		s.sent.Add(-uint64(n))
	}
}

// flush writes the rest, and what is added to it meanwhile.
func (s *socket) flush() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for len(s.rest) > 0 {
		rest := s.rest
		s.rest = nil
		s.mu.Unlock()
		n, err := s.Conn.Write(rest)
		s.mu.Lock()
		if err != nil {
			// The reader learns of it by the connection's end.
			s.uncount(len(rest) - n + len(s.rest))
			break
		}
	}
	s.rest = nil
	close(s.flushing)
	s.flushing = nil
}

// block makes writes wait, for a goroutine that writes a long body.
func (s *socket) block(on bool) {
	s.mu.Lock()
	s.blocking = on
	s.mu.Unlock()
}

// pending reports whether bytes wait to be handed to the kernel.
func (s *socket) pending() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.flushing != nil || s.looped != nil && s.looped.pending()
}

// cut ends the connection while its reader still uses it.
func (s *socket) cut() {
	if s.looped != nil {
		s.looped.cut()
		return
	}
	_ = s.Conn.Close()
}

// Close closes the connection and waits for the end of a flush.
func (s *socket) Close() error {
	err := s.Conn.Close()
	s.mu.Lock()
	flushing := s.flushing
	s.mu.Unlock()
	if flushing != nil {
		<-flushing
	}
	return err
}

// readBy sets the deadline of reads; the zero time is none. It fails only on a
// closed connection, where reads end by themselves.
func (s *socket) readBy(t time.Time) { _ = s.SetReadDeadline(t) }

// writeBy sets the deadline of writes that wait, as readBy does that of reads.
func (s *socket) writeBy(t time.Time) { _ = s.SetWriteDeadline(t) }

// take returns the bytes since it was called last. Only the connection's
// goroutine calls it.
func (s *socket) take() probe.Bytes {
	now := probe.Bytes{Sent: s.sent.Load(), Received: s.received.Load()}
	b := probe.Bytes{Sent: now.Sent - s.taken.Sent, Received: now.Received - s.taken.Received}
	s.taken = now
	return b
}
