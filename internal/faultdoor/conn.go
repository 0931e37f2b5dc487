package faultdoor

import (
	"bufio"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/http"
	"time"
)

// ErrEnd is what a [Handler] returns to end its connection, and what waiting
// returns when the door is closed.
var ErrEnd = errors.New("ending the connection")

// Conn is the door's end of one connection. Only its script may use it.
type Conn struct {
	net.Conn        // what is spoken on: raw, or TLS over it
	N        uint64 // it was the N-th that the door accepted, from 1

	raw      net.Conn
	in       *bufio.Reader // of Conn
	door     *Door
	requests int
}

func newConn(d *Door, nc net.Conn, n uint64) *Conn {
	return &Conn{Conn: nc, N: n, raw: nc, in: bufio.NewReader(nc), door: d}
}

// Read reads what the peer sent.
func (c *Conn) Read(p []byte) (int, error) { return c.in.Read(p) }

// Sleep waits for d and returns nil, or ErrEnd as soon as the door is closed.
// It does not notice that the peer has gone.
func (c *Conn) Sleep(d time.Duration) error {
	if d <= 0 {
		return nil
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-c.door.done:
		return ErrEnd
	}
}

// Wait reads and forgets what the peer sends until it closes, or the door is
// closed. It always returns ErrEnd.
func (c *Conn) Wait() error {
	_, _ = io.Copy(io.Discard, c.in)
	return ErrEnd
}

// Linger shuts the sending side down and waits: the peer can read what was
// written before, which a close with unread data would destroy. It always
// returns ErrEnd.
func (c *Conn) Linger() error {
	c.CloseWrite()
	return c.Wait()
}

// Reset closes the connection so that the peer sees a reset (RST), below TLS
// where there is any. It always returns ErrEnd.
func (c *Conn) Reset() error {
	if l, ok := c.raw.(interface{ SetLinger(int) error }); ok {
		_ = l.SetLinger(0)
	}
	_ = c.raw.Close()
	return ErrEnd
}

// CloseWrite ends what the door sends (FIN, below TLS), while it can still
// read. A connection that cannot is closed.
func (c *Conn) CloseWrite() {
	if h, ok := c.raw.(interface{ CloseWrite() error }); ok {
		_ = h.CloseWrite()
		return
	}
	_ = c.raw.Close()
}

// StartTLS speaks TLS from here on. When the handshake fails the alert has
// been sent.
func (c *Conn) StartTLS(config *tls.Config) error {
	return c.startTLS(&bufferedConn{Conn: c.raw, in: c.in}, config)
}

func (c *Conn) startTLS(below net.Conn, config *tls.Config) error {
	t := tls.Server(below, config)
	if err := t.Handshake(); err != nil {
		return err
	}
	c.door.handshakes.Add(1)
	if t.ConnectionState().DidResume {
		c.door.resumed.Add(1)
	}
	c.Conn, c.in = t, bufio.NewReader(t)
	return nil
}

// Request is a request that the door has read.
type Request struct {
	*http.Request
	N     int       // it was the N-th of its connection, from 1
	Total uint64    // and of the door
	Read  time.Time // when it was read: its header, or all of it
}

// ReadRequest reads the header of the next request, and with drain its body
// too, which it forgets. An error is also that there is none.
func (c *Conn) ReadRequest(drain bool) (*Request, error) {
	r, err := http.ReadRequest(c.in)
	if err != nil {
		return nil, err
	}
	c.requests++
	request := &Request{Request: r, N: c.requests, Total: c.door.requests.Add(1)}
	if drain {
		if err := request.Drain(); err != nil {
			return nil, err
		}
	}
	request.Read = time.Now()
	return request, nil
}

// Drain reads and forgets what is left of the body.
func (r *Request) Drain() error {
	_, err := io.Copy(io.Discard, r.Body)
	return err
}

// bufferedConn is a connection of which something was read ahead.
type bufferedConn struct {
	net.Conn
	in *bufio.Reader
}

func (b *bufferedConn) Read(p []byte) (int, error) { return b.in.Read(p) }
