package testcert_test

import (
	"crypto/ecdsa"
	"crypto/rsa"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"os"
	"testing"
	"testing/synctest"
	"time"

	"github.com/steadyprobe/steadyprobe/internal/testcert"
)

// verify checks a certificate as a client of that host would.
func verify(c tls.Certificate, roots *x509.CertPool, host string, use x509.ExtKeyUsage) error {
	intermediates := x509.NewCertPool()
	for _, der := range c.Certificate[1:] {
		parent, err := x509.ParseCertificate(der)
		if err != nil {
			return err
		}
		intermediates.AddCert(parent)
	}
	_, err := c.Leaf.Verify(x509.VerifyOptions{
		DNSName: host, Roots: roots, Intermediates: intermediates, CurrentTime: time.Now(), KeyUsages: []x509.ExtKeyUsage{use},
	})
	return err
}

func TestCertificates(t *testing.T) {
	ca := testcert.NewCA(t, "root", testcert.Options{})
	other := testcert.NewCA(t, "other root", testcert.Options{})
	below := ca.Intermediate(t, "below", testcert.Options{}).Intermediate(t, "far below", testcert.Options{})

	var unknown x509.UnknownAuthorityError
	var name x509.HostnameError
	var invalid x509.CertificateInvalidError
	server, client := x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth
	for _, row := range []struct {
		test string
		cert tls.Certificate
		host string
		use  x509.ExtKeyUsage
		want any // target of errors.As; nil: valid
	}{
		{"good", ca.Leaf(t, testcert.Options{}), "localhost", server, nil},
		{"good by address", ca.Leaf(t, testcert.Options{}), "127.0.0.1", server, nil},
		{"good by IPv6 address", ca.Leaf(t, testcert.Options{}), "::1", server, nil},
		{"own name", ca.Leaf(t, testcert.Options{Names: []string{"shop.example"}}), "shop.example", server, nil},
		{"RSA", ca.Leaf(t, testcert.Options{RSA: true}), "localhost", server, nil},
		{"below two intermediates", below.Leaf(t, testcert.Options{}), "localhost", server, nil},
		{"client", ca.Leaf(t, testcert.Options{Client: true}), "", client, nil},
		{"expired", ca.Leaf(t, testcert.Expired()), "localhost", server, &invalid},
		{"not yet valid", ca.Leaf(t, testcert.NotYetValid()), "localhost", server, &invalid},
		{"wrong name", ca.Leaf(t, testcert.WrongName()), "localhost", server, &name},
		{"unknown authority", other.Leaf(t, testcert.Options{}), "localhost", server, &unknown},
		{"self-signed", testcert.SelfSigned(t, testcert.Options{}), "localhost", server, &unknown},
		{"client as server", ca.Leaf(t, testcert.Options{Client: true}), "localhost", server, &invalid},
	} {
		t.Run(row.test, func(t *testing.T) {
			err := verify(row.cert, ca.Pool(), row.host, row.use)
			if row.want == nil && err != nil || row.want != nil && !errors.As(err, row.want) {
				t.Errorf("got %v, want %T", err, row.want)
			}
		})
	}
}

func TestKeys(t *testing.T) {
	if key, ok := testcert.SelfSigned(t, testcert.Options{RSA: true}).PrivateKey.(*rsa.PrivateKey); !ok || key.N.BitLen() != 2048 {
		t.Error("no RSA-2048 key")
	}
	if key, ok := testcert.SelfSigned(t, testcert.Options{}).PrivateKey.(*ecdsa.PrivateKey); !ok || key.Curve.Params().Name != "P-256" {
		t.Error("no ECDSA P-256 key")
	}
}

func TestWrite(t *testing.T) {
	ca := testcert.NewCA(t, "root", testcert.Options{})
	below := ca.Intermediate(t, "below", testcert.Options{})
	for name, leaf := range map[string]tls.Certificate{
		"ECDSA": below.Leaf(t, testcert.Options{}),
		"RSA":   below.Leaf(t, testcert.Options{RSA: true}),
	} {
		loaded, err := tls.LoadX509KeyPair(testcert.Write(t, leaf))
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if len(loaded.Certificate) != 2 {
			t.Errorf("%s: %d certificates, want leaf and intermediate", name, len(loaded.Certificate))
		}
	}
	data, err := os.ReadFile(ca.WriteCA(t))
	if err != nil {
		t.Fatal(err)
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(data) || !pool.Equal(ca.Pool()) {
		t.Error("the written authority is another one")
	}
}

// TestVirtualTime makes certificates where the year is 2000.
func TestVirtualTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ca := testcert.NewCA(t, "root", testcert.Options{})
		leaf := ca.Leaf(t, testcert.Options{})
		if err := verify(leaf, ca.Pool(), "localhost", x509.ExtKeyUsageServerAuth); err != nil {
			t.Error(err)
		}
		time.Sleep(25 * time.Hour)
		if err := verify(leaf, ca.Pool(), "localhost", x509.ExtKeyUsageServerAuth); err == nil {
			t.Error("still valid after 25 hours")
		}
	})
}
