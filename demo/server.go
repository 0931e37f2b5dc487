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
}

// serve answers the connections of the listener in the background until the
// server is closed. It owns the listener.
func serve(listener net.Listener, handler http.Handler, log *log.Logger) *server {
	ctx, end := context.WithCancel(context.Background())
	s := &server{served: make(chan struct{}), end: end}
	s.http = http.Server{
		Handler:        handler,
		ErrorLog:       log,
		MaxHeaderBytes: 64 << 10,
		Protocols:      new(http.Protocols),
		BaseContext:    func(net.Listener) context.Context { return ctx },
		ConnState: func(_ net.Conn, state http.ConnState) {
			switch state {
			case http.StateNew:
				s.conns.Add(1)
			case http.StateClosed: // no handler of this package takes a connection over
				s.conns.Done()
			}
		},
	}
	s.http.Protocols.SetHTTP1(true)
	go func() {
		defer close(s.served)
		_ = s.http.Serve(listener) // ends with the listener, which is no news
	}()
	return s
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
