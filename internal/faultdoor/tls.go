package faultdoor

import (
	"crypto/tls"
	"encoding/binary"
	"errors"
	"io"
	"net"
)

// TLS shakes hands, then goes on with a behaviour. With a bad certificate the
// peer refuses; with ClientAuth in the configuration the door does, in TLS 1.3
// after the handshake as the peer sees it. A door that refuses lets the peer
// read its alert. Sessions are resumed where the same configuration is used.
func TLS(config *tls.Config, then Behaviour) Behaviour {
	return func(c *Conn) {
		if c.StartTLS(config) != nil {
			_ = c.Linger()
			return
		}
		then(c)
	}
}

// TLSAlert answers the client's hello with a fatal alert, 40 for instance:
// handshake_failure (RFC 8446 section 6).
func TLSAlert(description byte) Behaviour {
	return TLSRaw(string([]byte{21, 3, 3, 0, 2, 2, description}))
}

// TLSGarbage answers the client's hello with what is not TLS.
func TLSGarbage() Behaviour {
	return TLSRaw("\x00\x01garbage, and more than a record header of it\xff")
}

// TLSPlain answers the client's hello with plain HTTP, as a door does whose
// port does not speak TLS.
func TLSPlain() Behaviour { return TLSRaw("HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n") }

// TLSRaw answers the client's hello with those bytes and closes.
func TLSRaw(answer string) Behaviour {
	return afterHello(func(c *Conn) {
		_, _ = io.WriteString(c, answer)
		_ = c.Linger()
	})
}

// TLSEOF closes behind the client's hello.
func TLSEOF() Behaviour { return afterHello(CloseAtOnce()) }

// TLSReset resets behind the client's hello.
func TLSReset() Behaviour { return afterHello(ResetAtOnce()) }

// TLSUntilFlight shakes hands up to the end of the door's first flight, then
// goes on below TLS. In TLS 1.2 that is the middle of the handshake; in TLS
// 1.3 the peer has done all of its part.
func TLSUntilFlight(config *tls.Config, then Behaviour) Behaviour {
	return func(c *Conn) {
		_ = c.startTLS(&flightConn{Conn: c.raw, in: c.in}, config)
		then(c)
	}
}

// afterHello reads the client's hello, then goes on below TLS.
func afterHello(then Behaviour) Behaviour {
	return func(c *Conn) {
		var header [5]byte // RFC 8446 section 5.1
		if _, err := io.ReadFull(c, header[:]); err != nil {
			return
		}
		if _, err := c.in.Discard(int(binary.BigEndian.Uint16(header[3:]))); err != nil {
			return
		}
		then(c)
	}
}

// flightConn reads nothing more once something was written.
type flightConn struct {
	net.Conn
	in      io.Reader
	written bool
}

func (f *flightConn) Read(p []byte) (int, error) {
	if f.written {
		return 0, errors.New("stopping behind the first flight")
	}
	return f.in.Read(p)
}

func (f *flightConn) Write(p []byte) (int, error) {
	f.written = true
	return f.Conn.Write(p)
}
