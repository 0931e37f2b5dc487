package wire

import (
	"context"
	"crypto/tls"
	"io"
	"net"
	"testing"
	"time"

	door "github.com/steadyprobe/steadyprobe/internal/faultdoor"
	"github.com/steadyprobe/steadyprobe/internal/testcert"
	"github.com/steadyprobe/steadyprobe/probe"
)

// TestLongBodyBesideABadRecord has a TLS door that reads nothing of a long body
// and sends a record that the reader wants to answer with an alert, for which it
// needs the lock that the writer holds: the request ends all the same.
func TestLongBodyBesideABadRecord(t *testing.T) {
	certificate := testcert.SelfSigned(t, testcert.Options{})
	d := door.Listen(t, func(c *door.Conn) {
		raw := c.Conn
		_ = raw.(*net.TCPConn).SetReadBuffer(4096)
		if c.StartTLS(&tls.Config{Certificates: []tls.Certificate{certificate}}) != nil {
			return
		}
		if c.Sleep(50*time.Millisecond) != nil { // the writer waits by now
			return
		}
		_, _ = raw.Write(append([]byte{23, 3, 3, 0, 32}, make([]byte, 32)...))
		_ = c.Sleep(time.Minute)
	})
	o := Options{Reuse: true, Way: Way{Timeout: 200 * time.Millisecond, TLSConfig: fixed(&tls.Config{InsecureSkipVerify: true})}}
	o.Request = Request{Method: "POST", Body: longBody}
	r := newRig(t, d.Addr(), o, probe.Target{})
	if s := r.send(); s.Outcome.Stage() != probe.StageWrite && s.Outcome != probe.TLSProtocol {
		t.Errorf("%v, want a failed write or a violation of TLS", s.Outcome)
	}
	ctx, cancel := context.WithCancel(t.Context())
	r.prober.Take(r.clock.Now())
	cancel()
	r.prober.Close(ctx) // returns
}

// TestBodyThatTheEndDelimitsOverTLS ends such a body with and without the
// door's word: without it is not complete (RFC 9112 section 9.8).
func TestBodyThatTheEndDelimitsOverTLS(t *testing.T) {
	certificate := testcert.SelfSigned(t, testcert.Options{})
	for _, tc := range []struct {
		name string
		end  func(*door.Conn, net.Conn)
		want probe.Outcome
	}{
		{"with a close alert", func(c *door.Conn, _ net.Conn) { _ = c.Conn.(*tls.Conn).CloseWrite() }, probe.Success},
		{"cut between records", func(*door.Conn, net.Conn) {}, probe.ReadTruncated},
		{"cut inside a record", func(_ *door.Conn, raw net.Conn) { _, _ = io.WriteString(raw, "\x17\x03\x03\x10\x00abc") }, probe.ReadTruncated},
	} {
		t.Run(tc.name, func(t *testing.T) {
			d := door.Listen(t, func(c *door.Conn) {
				raw := c.Conn
				if c.StartTLS(&tls.Config{Certificates: []tls.Certificate{certificate}}) != nil {
					return
				}
				if _, err := c.ReadRequest(true); err != nil {
					return
				}
				_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\n\r\nhalf of the bo")
				tc.end(c, raw)
				c.CloseWrite()
				_ = c.Wait()
			})
			r := newRig(t, d.Addr(), Options{Reuse: true, Way: Way{TLSConfig: fixed(&tls.Config{InsecureSkipVerify: true})}}, probe.Target{})
			if s := r.send(); s.Outcome != tc.want {
				t.Errorf("%v, want %v", s.Outcome, tc.want)
			}
		})
	}
}

// TestDoorThatTalksOnAfterItsLastWord announces a close and then never stops
// sending: nothing of it is read for long.
func TestDoorThatTalksOnAfterItsLastWord(t *testing.T) {
	d := door.Listen(t, door.HTTP(func(c *door.Conn, _ *door.Request) error {
		_, err := io.WriteString(c, "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 0\r\n\r\n")
		for flood := make([]byte, 64<<10); err == nil; {
			_, err = c.Write(flood)
		}
		return door.ErrEnd
	}))
	r := newRig(t, d.Addr(), Options{Reuse: true}, probe.Target{})
	for range 5 {
		if s := r.send(); s.Outcome != probe.Success {
			t.Errorf("%v, want a success", s.Outcome)
		}
	}
	r.close()
	if l := r.prober.Ledger(); l.Bytes.Received > 5*3*largeBuffer {
		t.Errorf("read %d bytes of five empty answers", l.Bytes.Received)
	}
}

// TestViolationOfTLSAfterTheHandshake is told from an unknown error.
func TestViolationOfTLSAfterTheHandshake(t *testing.T) {
	certificate := testcert.SelfSigned(t, testcert.Options{})
	d := door.Listen(t, func(c *door.Conn) {
		raw := c.Conn
		if c.StartTLS(&tls.Config{Certificates: []tls.Certificate{certificate}}) != nil {
			return
		}
		if _, err := c.ReadRequest(true); err == nil {
			_, _ = raw.Write(append([]byte{23, 3, 3, 0, 32}, make([]byte, 32)...))
			_ = c.Wait()
		}
	})
	r := newRig(t, d.Addr(), Options{Reuse: true, Way: Way{TLSConfig: fixed(&tls.Config{InsecureSkipVerify: true})}}, probe.Target{})
	if s := r.send(); s.Outcome != probe.TLSProtocol {
		t.Errorf("%v, want tls/protocol", s.Outcome)
	}
}
