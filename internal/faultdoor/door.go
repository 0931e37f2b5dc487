// Package faultdoor is a door for tests that behaves badly in one chosen way.
//
// A [Behaviour] is a script for one connection, a [Handler] one for one
// request; both are composed from the functions of this package. The same
// scripts run on real loopback sockets ([Listen]), on connections in memory
// that behave as TCP does, reset and half-close included ([Door.Dial],
// [Pipe]), and on any other connection ([Door.Serve]). Everything that waits
// uses package time only, so that in a testing/synctest bubble an answer comes
// at the exact virtual time.
package faultdoor

import (
	"context"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
)

// Behaviour is the script of one connection. It runs in a goroutine of that
// connection, and when it returns the connection is closed in an orderly way.
type Behaviour func(*Conn)

// Counts is what a door has counted so far.
type Counts struct {
	Accepted   uint64 // connections
	Handshakes uint64 // TLS handshakes that were completed
	Resumed    uint64 // those of them that resumed a session
	Requests   uint64 // requests whose header was read
	Answers    uint64 // final answers that were wholly written
}

// Door serves connections with a behaviour. All its methods may be called
// concurrently.
type Door struct {
	behaviour Behaviour
	listener  net.Listener // nil: none
	done      chan struct{}
	running   sync.WaitGroup

	mu     sync.Mutex
	conns  map[net.Conn]struct{}
	closed bool

	accepted, handshakes, resumed, requests, answers atomic.Uint64
}

// New returns a door without an address, for Serve and Dial. The caller must
// close it.
func New(b Behaviour) *Door {
	return &Door{behaviour: b, done: make(chan struct{}), conns: map[net.Conn]struct{}{}}
}

// Listen returns a door at a free port of 127.0.0.1. It is closed when the
// test ends.
func Listen(tb testing.TB, b Behaviour) *Door {
	tb.Helper()
	return ListenAt(tb, "127.0.0.1:0", b)
}

// ListenAt returns a door at that address, as a door that was restarted has.
// It is closed when the test ends.
func ListenAt(tb testing.TB, address string, b Behaviour) *Door {
	tb.Helper()
	listener, err := net.Listen("tcp", address)
	if err != nil {
		tb.Fatalf("opening a fault door: %v", err)
	}
	d := New(b)
	d.listener = listener
	d.running.Go(d.accept)
	tb.Cleanup(d.Close)
	return d
}

// Refused returns an address of 127.0.0.1 that nobody listens on.
func Refused(tb testing.TB) string {
	tb.Helper()
	d := Listen(tb, CloseAtOnce())
	d.Close()
	return d.Addr()
}

// Addr returns host and port of a door that listens.
func (d *Door) Addr() string { return d.listener.Addr().String() }

// URL returns scheme and address of a door that listens, without a path.
func (d *Door) URL(scheme string) string { return scheme + "://" + d.Addr() }

// Counts returns the counts of this instant.
func (d *Door) Counts() Counts {
	return Counts{
		Accepted:   d.accepted.Load(),
		Handshakes: d.handshakes.Load(),
		Resumed:    d.resumed.Load(),
		Requests:   d.requests.Load(),
		Answers:    d.answers.Load(),
	}
}

// Dial connects to the door in memory, whatever the address, and serves the
// other end. A closed door refuses.
func (d *Door) Dial(ctx context.Context, _, _ string) (net.Conn, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	client, server := Pipe(pipeBuffer)
	if !d.add(server) {
		err := os.NewSyscallError("connect", syscall.ECONNREFUSED)
		return nil, &net.OpError{Op: "dial", Net: "tcp", Addr: client.RemoteAddr(), Err: err}
	}
	go d.run(server)
	return client, nil
}

// Serve runs the door's behaviour on nc, which it closes, and returns
// afterwards, at the latest when the door is closed.
func (d *Door) Serve(nc net.Conn) {
	if d.add(nc) {
		d.run(nc)
	}
}

// Serve runs b on nc, which it closes, and returns afterwards. A behaviour
// that waits for the peer ends when that closes its end; [NeverReads] does not
// notice, and needs a [Door].
func Serve(nc net.Conn, b Behaviour) {
	d := New(b)
	defer d.Close()
	d.Serve(nc)
}

// Close stops listening, closes every connection and waits until all scripts
// have ended. It may be called again.
func (d *Door) Close() {
	d.mu.Lock()
	if !d.closed {
		d.closed = true
		close(d.done)
		if d.listener != nil {
			_ = d.listener.Close()
		}
		for nc := range d.conns {
			_ = nc.Close()
		}
	}
	d.mu.Unlock()
	d.running.Wait()
}

// CloseConnections closes every connection there is, as a door does whose old
// workers end, and stays open for new ones.
func (d *Door) CloseConnections() {
	d.mu.Lock()
	defer d.mu.Unlock()
	for nc := range d.conns {
		_ = nc.Close()
	}
}

func (d *Door) accept() {
	for {
		nc, err := d.listener.Accept()
		if err != nil {
			return
		}
		if d.add(nc) {
			go d.run(nc)
		}
	}
}

// add registers a connection, or closes it where the door is closed. Each one
// that was added must be run.
func (d *Door) add(nc net.Conn) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed {
		_ = nc.Close()
		return false
	}
	d.conns[nc] = struct{}{}
	d.running.Add(1)
	return true
}

func (d *Door) run(nc net.Conn) {
	defer d.running.Done()
	c := newConn(d, nc, d.accepted.Add(1))
	d.behaviour(c)
	_ = c.Close()
	_ = nc.Close()
	d.mu.Lock()
	delete(d.conns, nc)
	d.mu.Unlock()
}
