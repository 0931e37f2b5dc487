package wire

import (
	"context"
	"crypto/tls"
	"io"
	"net"
	"testing"
	"time"

	"github.com/steadyprobe/steadyprobe/internal/faultdoor"
	"github.com/steadyprobe/steadyprobe/internal/testcert"
	"github.com/steadyprobe/steadyprobe/probe"
)

// TestNothingIsSentOnWhatTheDoorHasClosed closes all idle connections and sends
// a request at once, before readers have had the time to see it. On loopback
// the close has arrived when it returns, so that the request would be lost
// through no fault of the door.
func TestNothingIsSentOnWhatTheDoorHasClosed(t *testing.T) {
	ca := testcert.NewCA(t, "root", testcert.Options{})
	server := &tls.Config{Certificates: []tls.Certificate{ca.Leaf(t, testcert.Options{})}}
	client := &tls.Config{RootCAs: ca.Pool(), ServerName: "localhost"}
	for _, tc := range []struct {
		name      string
		behaviour faultdoor.Behaviour
		tls       *tls.Config
	}{
		{"plain", faultdoor.HTTP(faultdoor.OK()), nil},
		{"tls", faultdoor.TLS(server, faultdoor.HTTP(faultdoor.OK())), client},
	} {
		t.Run(tc.name, func(t *testing.T) {
			d := faultdoor.Listen(t, tc.behaviour)
			r := newRig(t, d.Addr(), Options{Reuse: true, Way: Way{TLSConfig: fixed(tc.tls)}}, probe.Target{Connections: 4, Warm: true})
			r.prober.WarmUp(context.Background())
			for range 50 {
				for range 4 {
					if s := r.send(); s.Outcome != probe.Success {
						t.Fatalf("outcome %v, want success", s.Outcome)
					}
				}
				d.CloseConnections()
			}
		})
	}
}

func TestWhatCame(t *testing.T) {
	for _, tc := range []struct {
		name string
		do   func(*net.TCPConn) error
		// What came says.
		ended, bytes bool
	}{
		{"open", func(*net.TCPConn) error { return nil }, false, false},
		{"bytes to read", func(c *net.TCPConn) error { _, err := io.WriteString(c, "x"); return err }, false, true},
		{"closed", func(c *net.TCPConn) error { return c.Close() }, true, false},
		{"closed for sending", (*net.TCPConn).CloseWrite, true, false},
		{"reset", func(c *net.TCPConn) error { _ = c.SetLinger(0); return c.Close() }, true, false},
		{"closed after bytes to read", func(c *net.TCPConn) error {
			if _, err := io.WriteString(c, "x"); err != nil {
				return err
			}
			return c.Close()
		}, true, true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			l, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			defer l.Close()
			near, err := net.Dial("tcp", l.Addr().String())
			if err != nil {
				t.Fatal(err)
			}
			s := newSocket(near)
			defer s.Close()
			far, err := l.Accept()
			if err != nil {
				t.Fatal(err)
			}
			defer far.Close()
			if err := tc.do(far.(*net.TCPConn)); err != nil {
				t.Fatal(err)
			}
			// Loopback delivers in the other side's call, but promises nothing.
			said := func() bool {
				ended, bytes := s.came()
				return ended == tc.ended && bytes == tc.bytes
			}
			for end := time.Now().Add(10 * time.Millisecond); !said() && time.Now().Before(end); {
				time.Sleep(100 * time.Microsecond)
			}
			if ended, bytes := s.came(); ended != tc.ended || bytes != tc.bytes {
				t.Errorf("ended %v, bytes %v; want %v, %v", ended, bytes, tc.ended, tc.bytes)
			}
			if n := testing.AllocsPerRun(100, func() { s.came() }); n != 0 && !tc.ended && !tc.bytes {
				t.Errorf("%v allocations, want none", n)
			}
		})
	}
}
