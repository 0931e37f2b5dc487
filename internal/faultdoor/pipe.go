package faultdoor

import (
	"io"
	"net"
	"net/netip"
	"os"
	"sync"
	"syscall"
	"time"
)

// pipeBuffer is how many bytes [Door.Dial] lets each end be ahead of the
// other.
const pipeBuffer = 64 << 10

// PipeConn is one end of a connection in memory. Its methods may be called
// concurrently.
type PipeConn struct {
	local, remote net.Addr
	peer          *PipeConn
	buffer        int
	shared        *pipeShared

	// Guarded by shared.mu.
	received      []byte // and not yet read
	fin           bool   // the peer sends nothing more
	reset         bool   // the peer reset the connection
	shut          bool   // this end sends nothing more
	closed        bool
	abortive      bool // closing resets
	reads, writes pipeDeadline
}

// pipeShared is what both ends have in common. Every change is broadcast.
type pipeShared struct {
	mu      sync.Mutex
	changed *sync.Cond
}

type pipeDeadline struct {
	at    time.Time // zero: none
	timer *time.Timer
}

// Pipe returns the two ends of a connection in memory that behaves as a TCP
// connection without any delay: each end may write so many bytes ahead of the
// other's reading; it may be shut down in one direction; an end that is closed
// with SetLinger(0), or with something unread, resets it (RFC 2525 section
// 2.17), and a write to a closed end does too. What was received before can
// still be read. Errors are those of the net package, so that errors.Is and
// errors.As find ECONNRESET, EPIPE, net.ErrClosed and os.ErrDeadlineExceeded.
func Pipe(buffer int) (client, server *PipeConn) {
	shared := new(pipeShared)
	shared.changed = sync.NewCond(&shared.mu)
	// TEST-NET-1 (RFC 5737) is nobody's.
	a := net.TCPAddrFromAddrPort(netip.MustParseAddrPort("192.0.2.1:50000"))
	b := net.TCPAddrFromAddrPort(netip.MustParseAddrPort("192.0.2.2:443"))
	client = &PipeConn{local: a, remote: b, buffer: buffer, shared: shared}
	server = &PipeConn{local: b, remote: a, buffer: buffer, shared: shared, peer: client}
	client.peer = server
	return client, server
}

// Read implements net.Conn.
func (c *PipeConn) Read(p []byte) (int, error) {
	c.shared.mu.Lock()
	defer c.shared.mu.Unlock()
	for {
		switch {
		case c.closed:
			return 0, c.failed("read", net.ErrClosed)
		case c.reads.passed():
			return 0, c.failed("read", os.ErrDeadlineExceeded)
		case len(c.received) > 0:
			n := copy(p, c.received)
			c.received = c.received[n:]
			c.shared.changed.Broadcast()
			return n, nil
		case c.fin:
			return 0, io.EOF
		case c.reset:
			return 0, c.failed("read", os.NewSyscallError("read", syscall.ECONNRESET))
		case len(p) == 0:
			return 0, nil
		}
		c.shared.changed.Wait()
	}
}

// Write implements net.Conn.
func (c *PipeConn) Write(p []byte) (n int, err error) {
	c.shared.mu.Lock()
	defer c.shared.mu.Unlock()
	for {
		switch {
		case c.closed:
			return n, c.failed("write", net.ErrClosed)
		case c.writes.passed():
			return n, c.failed("write", os.ErrDeadlineExceeded)
		case c.shut || c.reset && c.fin:
			return n, c.failed("write", os.NewSyscallError("write", syscall.EPIPE))
		case c.reset:
			return n, c.failed("write", os.NewSyscallError("write", syscall.ECONNRESET))
		case c.peer.closed:
			c.reset = true
			c.shared.changed.Broadcast()
			return len(p), nil
		}
		if room := min(c.buffer-len(c.peer.received), len(p)-n); room > 0 {
			c.peer.received = append(c.peer.received, p[n:n+room]...)
			n += room
			c.shared.changed.Broadcast()
		}
		if n == len(p) {
			return n, nil
		}
		c.shared.changed.Wait()
	}
}

// Close implements net.Conn.
func (c *PipeConn) Close() error {
	c.shared.mu.Lock()
	defer c.shared.mu.Unlock()
	if c.closed {
		return c.failed("close", net.ErrClosed)
	}
	c.closed = true
	if c.abortive || len(c.received) > 0 {
		c.peer.reset = true
	} else {
		c.peer.fin = true
	}
	c.reads.stop()
	c.writes.stop()
	c.shared.changed.Broadcast()
	return nil
}

// CloseWrite shuts the sending side down.
func (c *PipeConn) CloseWrite() error {
	c.shared.mu.Lock()
	defer c.shared.mu.Unlock()
	if c.closed {
		return c.failed("close", net.ErrClosed)
	}
	c.shut, c.peer.fin = true, true
	c.shared.changed.Broadcast()
	return nil
}

// SetLinger makes Close reset the connection when sec is 0.
func (c *PipeConn) SetLinger(sec int) error {
	c.shared.mu.Lock()
	defer c.shared.mu.Unlock()
	c.abortive = sec == 0
	return nil
}

// LocalAddr implements net.Conn.
func (c *PipeConn) LocalAddr() net.Addr { return c.local }

// RemoteAddr implements net.Conn.
func (c *PipeConn) RemoteAddr() net.Addr { return c.remote }

// SetDeadline implements net.Conn.
func (c *PipeConn) SetDeadline(t time.Time) error { return c.setDeadline(t, &c.reads, &c.writes) }

// SetReadDeadline implements net.Conn.
func (c *PipeConn) SetReadDeadline(t time.Time) error { return c.setDeadline(t, &c.reads) }

// SetWriteDeadline implements net.Conn.
func (c *PipeConn) SetWriteDeadline(t time.Time) error { return c.setDeadline(t, &c.writes) }

func (c *PipeConn) setDeadline(t time.Time, deadlines ...*pipeDeadline) error {
	c.shared.mu.Lock()
	defer c.shared.mu.Unlock()
	if c.closed {
		return c.failed("set", net.ErrClosed)
	}
	for _, d := range deadlines {
		d.stop()
		d.at = t
		if !t.IsZero() {
			d.timer = time.AfterFunc(time.Until(t), c.wake)
		}
	}
	c.shared.changed.Broadcast()
	return nil
}

// wake lets everybody look at the deadlines again. Without the mutex it could
// come between the look and the wait of somebody, who would then sleep on.
func (c *PipeConn) wake() {
	c.shared.mu.Lock()
	defer c.shared.mu.Unlock()
	c.shared.changed.Broadcast()
}

func (d *pipeDeadline) passed() bool { return !d.at.IsZero() && !time.Now().Before(d.at) }

func (d *pipeDeadline) stop() {
	if d.timer != nil {
		d.timer.Stop()
	}
}

func (c *PipeConn) failed(op string, err error) error {
	return &net.OpError{Op: op, Net: "tcp", Source: c.local, Addr: c.remote, Err: err}
}
