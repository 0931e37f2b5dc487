package demo

import (
	"context"
	"log"
	"net"
	"net/http"
	"sync"
)

// server is an HTTP/1.1 server that leaves nothing behind when it is closed.
type server struct {
	http   http.Server
	served chan struct{}
	conns  sync.WaitGroup
	end    context.CancelFunc

	mu   sync.Mutex
	open map[net.Conn]bool
}

// serve answers the connections of the listener in the background until the
// server is closed. It owns the listener.
func serve(listener net.Listener, handler http.Handler, log *log.Logger) *server {
	ctx, end := context.WithCancel(context.Background())
	s := &server{served: make(chan struct{}), end: end, open: map[net.Conn]bool{}}
	s.http = http.Server{
		Handler:        handler,
		ErrorLog:       log,
		MaxHeaderBytes: 64 << 10,
		Protocols:      new(http.Protocols),
		BaseContext:    func(net.Listener) context.Context { return ctx },
		ConnState:      s.track,
	}
	s.http.Protocols.SetHTTP1(true)
	go func() {
		defer close(s.served)
		_ = s.http.Serve(listener) // ends with the listener, which is no news
	}()
	return s
}

// track knows the connections that are open.
func (s *server) track(conn net.Conn, state http.ConnState) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch state {
	case http.StateNew:
		s.conns.Add(1)
		s.open[conn] = true
	case http.StateClosed: // no handler of this package takes a connection over
		s.conns.Done()
		delete(s.open, conn)
	}
}

// reset makes the connections end with a reset when they are closed.
func (s *server) reset() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for conn := range s.open {
		if c, ok := conn.(*net.TCPConn); ok {
			_ = c.SetLinger(0) // it may have ended
		}
	}
}

// close closes the listener and all connections at once, also those in the
// middle of an answer, and returns when their goroutines have ended.
func (s *server) close() {
	_ = s.http.Close()
	<-s.served
	// A connection that was accepted while the others were closed is known to
	// the server only now.
	_ = s.http.Close()
	// net/http does not see the end of a connection whose request has a body
	// that was not read, and a handler may wait for it.
	s.end()
	s.conns.Wait()
}
