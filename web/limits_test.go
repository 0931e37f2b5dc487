package web

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// TestClientThatDoesNotReadIsCutOff serves an endless answer to a client that
// reads none of it: a write fails when the client has read nothing for the
// limit, and not before.
func TestClientThatDoesNotReadIsCutOff(t *testing.T) {
	cutOffAfter(t, func(net.Conn) {}, stallLimit)
}

// One that reads a little now and then, and so never stalls, is cut off in the
// end.
func TestClientThatReadsSlowlyIsCutOff(t *testing.T) {
	cutOffAfter(t, func(conn net.Conn) {
		for {
			time.Sleep(7 * time.Second) // never at the limit itself
			if _, err := io.ReadFull(conn, make([]byte, 128<<10)); err != nil {
				return
			}
		}
	}, writeTimeout)
}

// cutOffAfter serves an endless answer to a client that reads it in some way, and
// compares when writing fails.
func cutOffAfter(t *testing.T, reads func(net.Conn), want time.Duration) {
	synctest.Test(t, func(t *testing.T) {
		ended := make(chan error, 1)
		h := stalling(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			var err error
			for piece := make([]byte, 64<<10); err == nil; {
				_, err = w.Write(piece)
			}
			ended <- err
		}))
		near, far := net.Pipe()
		defer near.Close()
		server := Server(h, slog.New(slog.DiscardHandler))
		go func() { _ = server.Serve(&oneConn{conn: far, closed: make(chan struct{})}) }()
		if _, err := near.Write([]byte("GET / HTTP/1.1\r\nHost: a\r\n\r\n")); err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		reading := make(chan struct{})
		go func() { defer close(reading); reads(near) }()
		if err := <-ended; err == nil {
			t.Error("the answer never failed")
		}
		if took := time.Since(began); took != want {
			t.Errorf("cut off after %v, want %v", took, want)
		}
		_ = server.Shutdown(context.Background())
		_ = near.Close()
		<-reading
	})
}

// oneConn is a listener with one connection.
type oneConn struct {
	conn   net.Conn
	closed chan struct{}
}

func (l *oneConn) Accept() (net.Conn, error) {
	if c := l.conn; c != nil {
		l.conn = nil
		return c, nil
	}
	<-l.closed
	return nil, errors.New("closed")
}

func (l *oneConn) Close() error {
	select {
	case <-l.closed:
	default:
		close(l.closed)
	}
	return nil
}

func (l *oneConn) Addr() net.Addr { return &net.TCPAddr{} }

func TestLimited(t *testing.T) {
	entered, leave := make(chan struct{}), make(chan struct{})
	h := limited(2, tooMany, http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		entered <- struct{}{}
		<-leave
	}))
	ask := func() int {
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/", nil))
		return w.Code
	}
	codes := make(chan int)
	for range 2 {
		go func() { codes <- ask() }()
		<-entered
	}
	if got := ask(); got != http.StatusServiceUnavailable {
		t.Errorf("a third request got %d", got)
	}
	close(leave)
	for range 2 {
		if got := <-codes; got != http.StatusOK {
			t.Errorf("one of two requests got %d", got)
		}
	}
	go func() { codes <- ask() }()
	<-entered
	if got := <-codes; got != http.StatusOK {
		t.Errorf("a later request got %d", got)
	}
}

func TestQuietLog(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		q := &quietLog{logger: slog.New(slog.NewTextHandler(&log, nil)), message: "A scrape was not answered in full"}
		for range 25 {
			q.Println("error encoding", "broken pipe")
		}
		time.Sleep(time.Second)
		q.Println("again")
		time.Sleep(time.Second)
		if n, err := q.Write([]byte("http: TLS handshake error\n")); n != 26 || err != nil {
			t.Errorf("wrote %d bytes (%v)", n, err)
		}
		_, _ = q.Write([]byte("http: TLS handshake error\n"))
		if n := strings.Count(log.String(), "\n"); n != 3 || !strings.Contains(log.String(), "lines_dropped_before=24") ||
			!strings.HasSuffix(log.String(), "level=WARN msg=\"A scrape was not answered in full\" err=\"http: TLS handshake error\" lines_dropped_before=0\n") {
			t.Errorf("logged %d lines, want 3 of 28:\n%s", n, &log)
		}
	})
}
