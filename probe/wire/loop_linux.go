package wire

import (
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/steadyprobe/steadyprobe/probe"
)

// loopEvents is how many connections a Loop takes from the kernel at once.
const loopEvents = 256

// Loop reads many plain connections in one goroutine, by epoll(7): that
// costs one read an answer, where a goroutine for each connection pays for a
// second, fruitless one and for being scheduled. It completes requests as a
// connection's goroutine does. It is made by [NewLoop] and must be closed, after
// all its connections.
type Loop struct {
	clock probe.Clock
	epoll int
	bell  int // an eventfd that wakes the goroutine
	ended chan struct{}

	mu      sync.Mutex
	conns   map[int]*http1
	watched map[int]*watched
	rung    []*http1 // to be looked at
	closed  bool

	// Of the goroutine.
	buffer  []byte
	ready   []*http1
	heard   []*watched
	overdue []*http1
	next    probe.Instant // when deadlines must be looked at; 0: never
	yield   probe.Yield
}

// NewLoop returns a Loop that runs. It fails where the system gives no
// descriptors.
func NewLoop(clock probe.Clock) (*Loop, error) {
	epoll, err := unix.EpollCreate1(unix.EPOLL_CLOEXEC)
	if err != nil {
		return nil, fmt.Errorf("making an event loop: %w", err)
	}
	bell, err := unix.Eventfd(0, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK)
	if err == nil {
		err = unix.EpollCtl(epoll, unix.EPOLL_CTL_ADD, bell, &unix.EpollEvent{Events: unix.EPOLLIN, Fd: int32(bell)})
	}
	if err != nil {
		unix.Close(epoll)
		return nil, fmt.Errorf("making an event loop: %w", err)
	}
	l := &Loop{clock: clock, epoll: epoll, bell: bell, ended: make(chan struct{}), conns: map[int]*http1{}, watched: map[int]*watched{}, buffer: make([]byte, largeBuffer)}
	go l.run()
	return l, nil
}

// Close ends the goroutine and waits for it.
func (l *Loop) Close() {
	l.mu.Lock()
	l.closed = true
	l.ring()
	l.mu.Unlock()
	<-l.ended
	unix.Close(l.bell)
	unix.Close(l.epoll)
}

// ring wakes the goroutine.
func (l *Loop) ring() {
	_, _ = unix.Write(l.bell, []byte{1, 0, 0, 0, 0, 0, 0, 0})
}

// wake makes the goroutine look at a connection, if it reads it.
func (l *Loop) wake(c *http1) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return // and with it the descriptor of the bell
	}
	l.rung = append(l.rung, c)
	l.ring()
}

// add begins to read a connection, and looks at it at once: it may have been
// told something before.
func (l *Loop) add(c *http1) {
	l.mu.Lock()
	l.conns[c.socket.looped.fd] = c
	l.mu.Unlock()
	c.socket.looped.begin()
	l.wake(c)
}

// remove ceases to read a connection.
func (l *Loop) remove(fd int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.conns, fd)
	_ = unix.EpollCtl(l.epoll, unix.EPOLL_CTL_DEL, fd, nil)
}

// run is the goroutine.
func (l *Loop) run() {
	defer close(l.ended)
	events := make([]unix.EpollEvent, loopEvents)
	for {
		n, err := unix.EpollWait(l.epoll, events, l.patience())
		if err != nil && !errors.Is(err, unix.EINTR) {
			panic("wire: waiting for events: " + err.Error()) // the loop's own descriptor is bad
		}
		if !l.collect(events[:max(n, 0)]) {
			return
		}
		for _, w := range l.heard {
			w.serve(l.buffer)
		}
		for _, c := range l.ready {
			l.serve(c)
		}
		l.lookAtDeadlines()
		l.yield.Now(l.clock.Now())
	}
}

// patience returns how many milliseconds the goroutine may sleep.
func (l *Loop) patience() int {
	if l.next == 0 {
		return -1
	}
	left := l.next.Sub(l.clock.Now())
	return int(max(0, (left+time.Millisecond-1)/time.Millisecond))
}

// collect finds the connections of the events and those that were rung for. It
// reports false when the loop is closed.
func (l *Loop) collect(events []unix.EpollEvent) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.ready, l.heard = l.ready[:0], l.heard[:0]
	for _, e := range events {
		if int(e.Fd) == l.bell {
			var count [8]byte
			_, _ = unix.Read(l.bell, count[:])
			continue
		}
		if c := l.conns[int(e.Fd)]; c != nil {
			l.ready = append(l.ready, c)
		} else if w := l.watched[int(e.Fd)]; w != nil {
			l.heard = append(l.heard, w)
		}
	}
	for _, c := range l.rung {
		if l.conns[c.socket.looped.fd] == c {
			l.overdue = append(l.overdue, c)
		}
	}
	l.rung = l.rung[:0]
	return !l.closed
}

// serve reads once from a connection that is ready.
func (l *Loop) serve(c *http1) {
	if c.socket.looped.gone() {
		return // by an event before
	}
	c.socket.looped.flush()
	n, err := c.conn.Read(l.buffer)
	if errors.Is(err, unix.EAGAIN) || errors.Is(err, unix.EINTR) {
		return
	}
	c.got(l.buffer[:n], err)
}

// lookAtDeadlines serves the connections that were rung for and those whose
// deadline has passed. It looks at all of them only when the first one that it
// knew of is due, or the shortest limit that a new request can have.
func (l *Loop) lookAtDeadlines() {
	now := l.clock.Now()
	if l.next == 0 || now >= l.next {
		l.next = now.Add(lingerLimit)
		l.mu.Lock()
		for _, c := range l.conns {
			due := c.due()
			switch {
			case due != 0 && due <= now:
				l.overdue = append(l.overdue, c)
			case due != 0:
				l.next = min(l.next, due)
			}
			l.next = min(l.next, now.Add(c.opener.shortest()))
		}
		l.mu.Unlock()
	}
	for _, c := range l.overdue {
		if !c.socket.looped.gone() {
			c.timedOut(l.clock.Now())
		}
	}
	clear(l.overdue)
	l.overdue = l.overdue[:0]
}

// looped is a connection whose descriptor belongs to a Loop and no longer to
// Go's own poller. The mutex is held across each use of the descriptor but
// reads, so that nobody uses one that was closed and given to another file.
type looped struct {
	net.Conn // as it was dialled, closed: for its addresses
	loop     *Loop
	fd       int

	mu     sync.Mutex
	closed bool
	rest   []byte // what the kernel did not take
}

// adopt takes a connection over. It returns false, and leaves the connection
// as it is, where that cannot be.
func (l *Loop) adopt(c net.Conn) (*looped, bool) {
	sc, ok := c.(syscall.Conn)
	if !ok {
		return nil, false
	}
	raw, err := sc.SyscallConn()
	if err != nil {
		return nil, false
	}
	fd := -1
	if e := raw.Control(func(old uintptr) {
		// The copy shares the connection and its non-blocking mode. Closing the
		// original takes it out of Go's poller.
		fd, err = unix.FcntlInt(old, unix.F_DUPFD_CLOEXEC, 0)
	}); e != nil || err != nil {
		return nil, false
	}
	// Without events until the loop begins to read it.
	if unix.EpollCtl(l.epoll, unix.EPOLL_CTL_ADD, fd, &unix.EpollEvent{Fd: int32(fd)}) != nil {
		_ = unix.Close(fd)
		return nil, false
	}
	_ = c.Close()
	return &looped{Conn: c, loop: l, fd: fd}, true
}

// Read reads what is there, or returns EAGAIN.
func (c *looped) Read(p []byte) (int, error) {
	n, err := syscall.Read(c.fd, p)
	switch {
	case err != nil:
		return 0, err
	case n == 0 && len(p) > 0:
		return 0, io.EOF
	}
	return n, nil
}

// Write hands p to the kernel, and keeps what that does not take for the
// goroutine.
func (c *looped) Write(p []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return 0, net.ErrClosed
	}
	n, err := writeOnce(uintptr(c.fd), p)
	if err != nil {
		return n, &net.OpError{Op: "write", Net: "tcp", Err: err}
	}
	if n < len(p) {
		c.rest = append(c.rest[:0], p[n:]...)
		c.watch(unix.EPOLLIN | unix.EPOLLRDHUP | unix.EPOLLOUT)
	}
	return len(p), nil
}

// begin makes the loop read the connection.
func (c *looped) begin() {
	c.mu.Lock()
	defer c.mu.Unlock()
	events := uint32(unix.EPOLLIN | unix.EPOLLRDHUP)
	if len(c.rest) > 0 {
		events |= unix.EPOLLOUT
	}
	c.watch(events)
}

// watch is called with mu held.
func (c *looped) watch(events uint32) {
	_ = unix.EpollCtl(c.loop.epoll, unix.EPOLL_CTL_MOD, c.fd, &unix.EpollEvent{Events: events, Fd: int32(c.fd)})
}

// flush writes what is left.
func (c *looped) flush() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.rest) == 0 {
		return
	}
	n, err := writeOnce(uintptr(c.fd), c.rest)
	c.rest = c.rest[n:]
	if err != nil || len(c.rest) == 0 {
		// The end of the connection is seen by reading.
		c.rest = nil
		c.watch(unix.EPOLLIN | unix.EPOLLRDHUP)
	}
}

func (c *looped) pending() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.rest) > 0
}

// came is as that of a socket.
func (c *looped) came() (ended, bytes bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return false, false
	}
	return whatCame(uintptr(c.fd))
}

// gone reports whether the descriptor was given back.
func (c *looped) gone() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.closed
}

// cut ends the connection and leaves its descriptor to the goroutine.
func (c *looped) cut() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.closed {
		_ = unix.Shutdown(c.fd, unix.SHUT_RDWR)
	}
}

// Close gives the descriptor back. Only who reads calls it.
func (c *looped) Close() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return net.ErrClosed
	}
	c.closed = true
	c.loop.remove(c.fd)
	return unix.Close(c.fd)
}
