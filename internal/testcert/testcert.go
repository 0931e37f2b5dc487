// Package testcert makes certificates for tests: authorities, and leaves that
// are good or bad in one chosen way. Keys are ECDSA P-256, because they are
// quick to make, or RSA-2048 on request.
//
// Validity is counted from time.Now, so that certificates made inside a
// testing/synctest bubble are valid there.
package testcert

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"time"
)

// Options says what is special about a certificate. The zero value is a
// server's, valid for localhost, 127.0.0.1 and ::1 from an hour ago until in a
// day, with an ECDSA P-256 key.
type Options struct {
	Names     []string  // DNS names and IP addresses; none: localhost, 127.0.0.1 and ::1
	NotBefore time.Time // zero: an hour ago
	NotAfter  time.Time // zero: in 24 hours
	RSA       bool      // an RSA-2048 key, as in study one
	Client    bool      // for clients instead of servers
}

// Expired returns options for a certificate that ended an hour ago.
func Expired() Options {
	now := time.Now()
	return Options{NotBefore: now.Add(-2 * time.Hour), NotAfter: now.Add(-time.Hour)}
}

// NotYetValid returns options for a certificate that begins in an hour.
func NotYetValid() Options { return Options{NotBefore: time.Now().Add(time.Hour)} }

// WrongName returns options for a certificate of another host.
func WrongName() Options { return Options{Names: []string{"elsewhere.invalid"}} }

// CA is a certificate authority. It may be used concurrently.
type CA struct {
	certificate *x509.Certificate
	key         crypto.Signer
	chain       [][]byte // its own certificate and those above it but the root, DER
	root        *x509.Certificate
}

// NewCA makes a root authority of that common name. Only NotBefore, NotAfter
// and RSA of the options count.
func NewCA(tb Owner, name string, o Options) *CA {
	tb.Helper()
	key := newKey(tb, o)
	certificate := sign(tb, authority(name, o), nil, key.Public(), key)
	return &CA{certificate: certificate, key: key, root: certificate}
}

// Intermediate makes an authority below ca. Leaves of it carry its
// certificate.
func (ca *CA) Intermediate(tb Owner, name string, o Options) *CA {
	tb.Helper()
	key := newKey(tb, o)
	certificate := sign(tb, authority(name, o), ca.certificate, key.Public(), ca.key)
	return &CA{
		certificate: certificate,
		key:         key,
		chain:       append([][]byte{certificate.Raw}, ca.chain...),
		root:        ca.root,
	}
}

// Leaf makes a certificate with its key and the chain below the root.
func (ca *CA) Leaf(tb Owner, o Options) tls.Certificate {
	tb.Helper()
	key := newKey(tb, o)
	leaf := sign(tb, template(o), ca.certificate, key.Public(), ca.key)
	return tls.Certificate{
		Certificate: append([][]byte{leaf.Raw}, ca.chain...),
		PrivateKey:  key,
		Leaf:        leaf,
	}
}

// SelfSigned makes a certificate that no authority signed.
func SelfSigned(tb Owner, o Options) tls.Certificate {
	tb.Helper()
	key := newKey(tb, o)
	leaf := sign(tb, template(o), nil, key.Public(), key)
	return tls.Certificate{Certificate: [][]byte{leaf.Raw}, PrivateKey: key, Leaf: leaf}
}

// Pool returns a pool that holds the root of ca.
func (ca *CA) Pool() *x509.CertPool {
	pool := x509.NewCertPool()
	pool.AddCert(ca.root)
	return pool
}

// PEM returns the root of ca as a ca_file holds it.
func (ca *CA) PEM() []byte { return encode("CERTIFICATE", ca.root.Raw) }

// WriteCA writes the root of ca into a temporary folder of the test and
// returns the file.
func (ca *CA) WriteCA(tb Owner) (file string) {
	tb.Helper()
	return write(tb, "ca.pem", ca.PEM())
}

// Write writes a certificate with its chain, and its key in PKCS #8, into a
// temporary folder of the test and returns the two files.
func Write(tb Owner, c tls.Certificate) (certFile, keyFile string) {
	tb.Helper()
	var chain []byte
	for _, der := range c.Certificate {
		chain = append(chain, encode("CERTIFICATE", der)...)
	}
	key, err := x509.MarshalPKCS8PrivateKey(c.PrivateKey)
	if err != nil {
		tb.Fatalf("encoding a private key: %v", err)
	}
	return write(tb, "cert.pem", chain), write(tb, "key.pem", encode("PRIVATE KEY", key))
}

func write(tb Owner, name string, data []byte) string {
	tb.Helper()
	file := filepath.Join(tb.TempDir(), name)
	if err := os.WriteFile(file, data, 0o600); err != nil {
		tb.Fatal(err)
	}
	return file
}

func encode(kind string, der []byte) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der})
}

func authority(name string, o Options) *x509.Certificate {
	c := template(o)
	c.Subject = pkix.Name{CommonName: name}
	c.DNSNames, c.IPAddresses, c.ExtKeyUsage = nil, nil, nil
	c.IsCA = true
	c.KeyUsage = x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature
	return c
}

func template(o Options) *x509.Certificate {
	now := time.Now()
	c := &x509.Certificate{
		NotBefore:             now.Add(-time.Hour),
		NotAfter:              now.Add(24 * time.Hour),
		BasicConstraintsValid: true,
		KeyUsage:              x509.KeyUsageDigitalSignature,
		ExtKeyUsage:           []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	if !o.NotBefore.IsZero() {
		c.NotBefore = o.NotBefore
	}
	if !o.NotAfter.IsZero() {
		c.NotAfter = o.NotAfter
	}
	if o.RSA {
		c.KeyUsage |= x509.KeyUsageKeyEncipherment
	}
	if o.Client {
		c.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}
	}
	names := o.Names
	if len(names) == 0 {
		names = []string{"localhost", "127.0.0.1", "::1"}
	}
	c.Subject = pkix.Name{CommonName: names[0]}
	for _, name := range names {
		if ip := net.ParseIP(name); ip != nil {
			c.IPAddresses = append(c.IPAddresses, ip)
		} else {
			c.DNSNames = append(c.DNSNames, name)
		}
	}
	return c
}

func newKey(tb Owner, o Options) crypto.Signer {
	tb.Helper()
	var key crypto.Signer
	var err error
	if o.RSA {
		key, err = rsa.GenerateKey(rand.Reader, 2048)
	} else {
		key, err = ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	}
	if err != nil {
		tb.Fatalf("making a private key: %v", err)
	}
	return key
}

// sign makes the certificate of template, self-signed without a parent.
func sign(tb Owner, template, parent *x509.Certificate, public crypto.PublicKey, key crypto.Signer) *x509.Certificate {
	tb.Helper()
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 120))
	if err != nil {
		tb.Fatalf("choosing a serial number: %v", err)
	}
	template.SerialNumber = serial
	if parent == nil {
		parent = template
	}
	der, err := x509.CreateCertificate(rand.Reader, template, parent, public, key)
	if err != nil {
		tb.Fatalf("signing the certificate of %q: %v", template.Subject.CommonName, err)
	}
	c, err := x509.ParseCertificate(der)
	if err != nil {
		tb.Fatalf("reading the certificate of %q: %v", template.Subject.CommonName, err)
	}
	return c
}
