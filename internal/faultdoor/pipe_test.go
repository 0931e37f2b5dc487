package faultdoor

import (
	"errors"
	"io"
	"net"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// closer is what a TCP connection and a Pipe have beyond net.Conn.
type closer interface {
	net.Conn
	CloseWrite() error
	SetLinger(int) error
}

// tcpPair returns both ends of a real connection.
func tcpPair(t *testing.T) (client, server closer) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	c, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	s, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	return c.(*net.TCPConn), s.(*net.TCPConn)
}

// TestPipeIsLikeTCP does the same to a Pipe and to a real connection.
func TestPipeIsLikeTCP(t *testing.T) {
	for _, row := range []struct {
		name string
		do   func(a, b closer) string
		want string
	}{
		{"bytes in order", func(a, b closer) string {
			io.WriteString(a, "hel")
			io.WriteString(a, "lo")
			return read(b, 5)
		}, "hello"},
		{"close then read", func(a, b closer) string {
			io.WriteString(a, "x")
			a.Close()
			return read(b, 1) + read(b, 1)
		}, "x eof"},
		{"half-close", func(a, b closer) string {
			a.CloseWrite()
			got := read(b, 1)
			io.WriteString(b, "y")
			return got + read(a, 1)
		}, " eofy"},
		{"write behind half-close", func(a, b closer) string {
			a.CloseWrite()
			return write(a)
		}, " broken"},
		{"reset keeps what came before", func(a, b closer) string {
			io.WriteString(a, "x")
			a.SetLinger(0)
			a.Close()
			return read(b, 1) + read(b, 1)
		}, "x reset"},
		{"close with unread data resets", func(a, b closer) string {
			io.WriteString(b, "unread")
			read(a, 1)
			a.Close()
			return read(b, 1)
		}, " reset"},
		{"write to closed end", func(a, b closer) string {
			a.Close()
			read(b, 1)
			return write(b)
		}, " ok"},
		{"read of own closed end", func(a, b closer) string {
			a.Close()
			_, err := a.Read(make([]byte, 1))
			_, again := a.Write([]byte("x"))
			if errors.Is(err, net.ErrClosed) && errors.Is(again, net.ErrClosed) && errors.Is(a.SetDeadline(time.Time{}), net.ErrClosed) &&
				errors.Is(a.Close(), net.ErrClosed) && errors.Is(a.CloseWrite(), net.ErrClosed) {
				return "closed"
			}
			return "open"
		}, "closed"},
		{"old deadline", func(a, b closer) string {
			io.WriteString(b, "x")
			a.SetReadDeadline(time.Now().Add(-1))
			got := read(a, 1)
			a.SetReadDeadline(time.Time{})
			return got + read(a, 1)
		}, " timeoutx"},
		{"old write deadline", func(a, b closer) string {
			a.SetWriteDeadline(time.Now().Add(-1))
			return write(a)
		}, " timeout"},
	} {
		t.Run(row.name, func(t *testing.T) {
			a, b := tcpPair(t)
			defer a.Close()
			defer b.Close()
			if got := row.do(a, b); got != row.want {
				t.Errorf("TCP: %q, want %q", got, row.want)
			}
			c, d := Pipe(1024)
			if got := row.do(c, d); got != row.want {
				t.Errorf("client end: %q, want %q", got, row.want)
			}
			c, d = Pipe(1024)
			if got := row.do(d, c); got != row.want {
				t.Errorf("server end: %q, want %q", got, row.want)
			}
		})
	}
}

func read(c net.Conn, n int) string {
	b := make([]byte, n)
	if _, err := io.ReadFull(c, b); err != nil {
		return " " + word(err)
	}
	return string(b)
}

func write(c net.Conn) string {
	if _, err := c.Write([]byte("x")); err != nil {
		return " " + word(err)
	}
	return " ok"
}

func TestPipeWriterWaitsForRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := Pipe(10)
		start := time.Now()
		go func() {
			time.Sleep(time.Second)
			read(b, 25)
		}()
		if n, err := a.Write([]byte(strings.Repeat("x", 35))); n != 35 || err != nil {
			t.Errorf("wrote %d: %v", n, err)
		}
		if took := time.Since(start); took != time.Second {
			t.Errorf("took %v, want 1s", took)
		}
		// 10 are still unread, so that there is no room.
		a.SetWriteDeadline(time.Now().Add(time.Second))
		if n, err := a.Write([]byte("x")); n != 0 || !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("wrote %d: %v", n, err)
		}
		if took := time.Since(start); took != 2*time.Second {
			t.Errorf("took %v, want 2s", took)
		}
	})
}

func TestPipeDeadlineWakesAReader(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := Pipe(10)
		defer b.Close()
		start := time.Now()
		a.SetReadDeadline(start.Add(time.Hour))
		go func() {
			time.Sleep(time.Second)
			a.SetReadDeadline(start.Add(2 * time.Second))
		}()
		_, err := a.Read(make([]byte, 1))
		var ne net.Error
		if !errors.As(err, &ne) || !ne.Timeout() || !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("got %v", err)
		}
		if took := time.Since(start); took != 2*time.Second {
			t.Errorf("took %v, want 2s", took)
		}
		go func() {
			time.Sleep(time.Second)
			a.Close()
		}()
		a.SetReadDeadline(time.Time{})
		if _, err := a.Read(make([]byte, 1)); !errors.Is(err, net.ErrClosed) {
			t.Errorf("got %v", err)
		}
	})
}
