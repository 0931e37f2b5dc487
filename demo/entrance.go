package demo

import (
	"fmt"
	"log/slog"
	"net"
	"sync"
	"time"
)

// acceptPause is waited after a connection could not be accepted, which is
// mostly for want of file descriptors.
const acceptPause = 10 * time.Millisecond

// entrance is the socket of a door. It outlives the workers that take
// connections from it, as the socket does that a proxy's master process shares
// with its workers: while there is no worker, connections wait in the kernel's
// queue and are not refused.
type entrance struct {
	socket      net.Listener
	connections chan net.Conn
	done        chan struct{}
	ended       chan struct{}
	logger      *slog.Logger
}

func newEntrance(listen func() (net.Listener, error), logger *slog.Logger) (*entrance, error) {
	socket, err := listen()
	if err != nil {
		return nil, noPort(err)
	}
	e := &entrance{
		socket:      socket,
		connections: make(chan net.Conn),
		done:        make(chan struct{}),
		ended:       make(chan struct{}),
		logger:      logger,
	}
	go e.accept()
	return e, nil
}

// noPort says what to do where a listener could not be had.
func noPort(err error) error {
	return fmt.Errorf("finding a free port on 127.0.0.1: %w; the demo needs seven ports there and about 300 file descriptors", err)
}

func (e *entrance) address() string { return e.socket.Addr().String() }

// accept passes connections on, one at a time: it takes none while nobody
// wants the last.
func (e *entrance) accept() {
	defer close(e.ended)
	told := false
	for {
		connection, err := e.socket.Accept()
		if err != nil {
			select {
			case <-e.done:
				return
			case <-time.After(acceptPause):
			}
			if !told {
				e.logger.Warn("a connection cannot be accepted; trying on", "error", err)
			}
			told = true
			continue
		}
		told = false
		select {
		case e.connections <- connection:
		case <-e.done:
			_ = connection.Close()
			return
		}
	}
}

// close closes the socket, with what waits in its queue. Listeners must have
// been closed before.
func (e *entrance) close() {
	close(e.done)
	_ = e.socket.Close()
	<-e.ended
}

// listener returns a listener for one worker. Closing it leaves the socket
// open.
func (e *entrance) listener() net.Listener { return &handoff{entrance: e, closed: make(chan struct{})} }

type handoff struct {
	entrance *entrance
	closing  sync.Once
	closed   chan struct{}
}

func (h *handoff) Accept() (net.Conn, error) {
	select {
	case <-h.closed:
		return nil, net.ErrClosed
	case connection := <-h.entrance.connections:
		return connection, nil
	}
}

func (h *handoff) Close() error {
	h.closing.Do(func() { close(h.closed) })
	return nil
}

func (h *handoff) Addr() net.Addr { return h.entrance.socket.Addr() }
