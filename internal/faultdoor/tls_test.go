package faultdoor

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"net"
	"testing"

	"github.com/steadyprobe/steadyprobe/internal/testcert"
)

// tlsWord is word for a TLS client.
func tlsWord(err error) string {
	var alert tls.AlertError
	var record tls.RecordHeaderError
	var certificate *tls.CertificateVerificationError
	switch {
	case err == nil:
		return "ok"
	case errors.As(err, &certificate):
		return "certificate"
	case errors.As(err, &record):
		return "protocol"
	case errors.As(err, &alert), isRemoteAlert(err):
		return "alert"
	}
	return word(err)
}

// isRemoteAlert reports whether the peer sent an alert, for which crypto/tls
// has no type but that of the operation.
func isRemoteAlert(err error) bool {
	var op *net.OpError
	return errors.As(err, &op) && op.Op == "remote error"
}

func TestTLS(t *testing.T) {
	for _, row := range []struct {
		name      string
		b         func(t *testing.T, ca *testcert.CA) Behaviour
		most      uint16 // highest version of the client
		handshake string
		exchange  string // where the handshake is ok
	}{
		{"good", func(t *testing.T, ca *testcert.CA) Behaviour {
			return TLS(serving(ca.Leaf(t, testcert.Options{})), HTTP(OK()))
		}, tls.VersionTLS13, "ok", "200 3"},
		{"good TLS 1.2", func(t *testing.T, ca *testcert.CA) Behaviour {
			return TLS(serving(ca.Leaf(t, testcert.Options{})), HTTP(OK()))
		}, tls.VersionTLS12, "ok", "200 3"},
		{"expired", func(t *testing.T, ca *testcert.CA) Behaviour {
			return TLS(serving(ca.Leaf(t, testcert.Expired())), HTTP(OK()))
		}, tls.VersionTLS13, "certificate", ""},
		{"wrong name", func(t *testing.T, ca *testcert.CA) Behaviour {
			return TLS(serving(ca.Leaf(t, testcert.WrongName())), HTTP(OK()))
		}, tls.VersionTLS13, "certificate", ""},
		{"self-signed", func(t *testing.T, ca *testcert.CA) Behaviour {
			return TLS(serving(testcert.SelfSigned(t, testcert.Options{})), HTTP(OK()))
		}, tls.VersionTLS13, "certificate", ""},
		{"unknown authority", func(t *testing.T, ca *testcert.CA) Behaviour {
			return TLS(serving(testcert.NewCA(t, "other", testcert.Options{}).Leaf(t, testcert.Options{})), HTTP(OK()))
		}, tls.VersionTLS13, "certificate", ""},
		{"alert", func(*testing.T, *testcert.CA) Behaviour { return TLSAlert(40) }, tls.VersionTLS13, "alert", ""},
		{"garbage", func(*testing.T, *testcert.CA) Behaviour { return TLSGarbage() }, tls.VersionTLS13, "protocol", ""},
		{"plain", func(*testing.T, *testcert.CA) Behaviour { return TLSPlain() }, tls.VersionTLS13, "protocol", ""},
		{"eof", func(*testing.T, *testcert.CA) Behaviour { return TLSEOF() }, tls.VersionTLS13, "eof", ""},
		{"reset", func(*testing.T, *testcert.CA) Behaviour { return TLSReset() }, tls.VersionTLS13, "reset", ""},
		{"eof in the middle", func(t *testing.T, ca *testcert.CA) Behaviour {
			return TLSUntilFlight(serving(ca.Leaf(t, testcert.Options{})), func(c *Conn) { c.Linger() })
		}, tls.VersionTLS12, "eof", ""},
		{"eof behind the client's part", func(t *testing.T, ca *testcert.CA) Behaviour {
			return TLSUntilFlight(serving(ca.Leaf(t, testcert.Options{})), func(c *Conn) { c.Linger() })
		}, tls.VersionTLS13, "ok", "eof"},
		{"client certificate TLS 1.2", demandCertificate, tls.VersionTLS12, "alert", ""},
		{"client certificate TLS 1.3", demandCertificate, tls.VersionTLS13, "ok", "alert"},
		{"reset inside TLS", func(t *testing.T, ca *testcert.CA) Behaviour {
			return TLS(serving(ca.Leaf(t, testcert.Options{})), HTTP(Reset()))
		}, tls.VersionTLS13, "ok", "reset"},
		{"half-close inside TLS", func(t *testing.T, ca *testcert.CA) Behaviour {
			return TLS(serving(ca.Leaf(t, testcert.Options{})), HalfClose(0, OK()))
		}, tls.VersionTLS13, "ok", "eof"},
	} {
		t.Run(row.name, func(t *testing.T) {
			// Each door has its own, because those of virtual time have expired.
			var ca *testcert.CA
			b := func() Behaviour {
				ca = testcert.NewCA(t, "root", testcert.Options{})
				return row.b(t, ca)
			}
			overBoth(t, b, func(t *testing.T, d *Door, dial func() net.Conn) {
				nc := tls.Client(dial(), &tls.Config{RootCAs: ca.Pool(), ServerName: "localhost", MaxVersion: row.most})
				defer nc.NetConn().Close()
				err := nc.Handshake()
				if got := tlsWord(err); got != row.handshake {
					t.Fatalf("handshake: got %q (%v), want %q", got, err, row.handshake)
				}
				if err != nil {
					return
				}
				io.WriteString(nc, get)
				in := reader(nc)
				if _, err := in.Peek(1); err != nil {
					if got := tlsWord(err); got != row.exchange {
						t.Errorf("exchange: got %q (%v), want %q", got, err, row.exchange)
					}
					return
				}
				if got := answer(in); got != row.exchange {
					t.Errorf("exchange: got %q, want %q", got, row.exchange)
				}
			})
		})
	}
}

func serving(c tls.Certificate) *tls.Config { return &tls.Config{Certificates: []tls.Certificate{c}} }

func demandCertificate(t *testing.T, ca *testcert.CA) Behaviour {
	config := serving(ca.Leaf(t, testcert.Options{}))
	config.ClientAuth, config.ClientCAs = tls.RequireAndVerifyClientCert, ca.Pool()
	return TLS(config, HTTP(OK()))
}

func TestTLSCountsResumption(t *testing.T) {
	ca := testcert.NewCA(t, "root", testcert.Options{})
	d := Listen(t, TLS(serving(ca.Leaf(t, testcert.Options{})), HTTP(OK())))
	defer d.Close()
	config := &tls.Config{RootCAs: ca.Pool(), ServerName: "localhost", ClientSessionCache: tls.NewLRUClientSessionCache(1)}
	for range 3 {
		nc, err := tls.Dial("tcp", d.Addr(), config)
		if err != nil {
			t.Fatal(err)
		}
		if got := exchange(nc, reader(nc), get); got != "200 3" {
			t.Errorf("got %q", got)
		}
		nc.Close()
	}
	d.Close()
	want := Counts{Accepted: 3, Handshakes: 3, Resumed: 2, Requests: 3, Answers: 3}
	if got := d.Counts(); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
}

func TestTLSAcceptsAClientCertificate(t *testing.T) {
	ca := testcert.NewCA(t, "root", testcert.Options{})
	d := Listen(t, demandCertificate(t, ca))
	defer d.Close()
	nc, err := tls.Dial("tcp", d.Addr(), &tls.Config{
		RootCAs: ca.Pool(), ServerName: "localhost",
		Certificates: []tls.Certificate{ca.Leaf(t, testcert.Options{Client: true})},
	})
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	if got := exchange(nc, reader(nc), get); got != "200 3" {
		t.Errorf("got %q", got)
	}
	if nc.ConnectionState().PeerCertificates[0].PublicKeyAlgorithm != x509.ECDSA {
		t.Error("not the key that was asked for")
	}
}
