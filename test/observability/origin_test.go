package observability

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	"github.com/steadyprobe/steadyprobe/internal/testbed"
)

// origin is a backend behind a real door, which can be made slow, and stopped.
type origin struct {
	t       *testing.T
	address string
	delay   atomic.Int64 // nanoseconds before each answer
	server  *http.Server
	over    chan error
}

func newOrigin(t *testing.T) *origin {
	t.Helper()
	o := &origin{t: t, address: "127.0.0.1:0"}
	o.start()
	t.Cleanup(o.stop)
	return o
}

// start listens, at the same address as before.
func (o *origin) start() {
	o.t.Helper()
	l, err := net.Listen("tcp", o.address)
	if err != nil {
		o.t.Fatalf("starting a backend: %v", err)
	}
	o.address = l.Addr().String()
	o.server = &http.Server{ReadHeaderTimeout: time.Minute, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		select {
		case <-time.After(time.Duration(o.delay.Load())):
		case <-r.Context().Done():
			return
		}
		_, _ = io.WriteString(w, testbed.Body())
	})}
	o.over = make(chan error, 1)
	go func(s *http.Server, over chan error) { over <- s.Serve(l) }(o.server, o.over)
}

// stop ends it: its door's connections to it break, and new ones are refused.
func (o *origin) stop() {
	o.t.Helper()
	if o.server == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	if err := o.server.Shutdown(ctx); err != nil {
		_ = o.server.Close()
	}
	if err := <-o.over; !errors.Is(err, http.ErrServerClosed) {
		o.t.Errorf("a backend ended with %v", err)
	}
	o.server = nil
}

func (o *origin) slow(d time.Duration) { o.delay.Store(int64(d)) }
