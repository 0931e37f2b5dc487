package demo

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"time"
)

// validity of the demo's certificates. It is as long as that of the usual free
// ones, so that a demo shows what people know.
const validity = 90 * 24 * time.Hour

// identity is the certificate of the door that speaks TLS, and that of its
// authority.
type identity struct {
	config    *tls.Config
	authority string // PEM
}

// newIdentity makes a fresh authority and a certificate by it for 127.0.0.1
// and localhost. The key of the authority is forgotten, and that of the door
// stays in memory.
func newIdentity() (*identity, error) {
	authority, leaf, err := certificates(time.Now())
	if err != nil {
		return nil, fmt.Errorf("making a certificate: %w", err)
	}
	return &identity{
		authority: string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: authority})),
		config: &tls.Config{
			MinVersion:   tls.VersionTLS12,
			Certificates: []tls.Certificate{*leaf},
			NextProtos:   []string{"http/1.1"},
		},
	}, nil
}

// over returns a listener that speaks TLS on the connections of inner.
func (i *identity) over(inner net.Listener) net.Listener { return tls.NewListener(inner, i.config) }

// certificates returns the certificate of a new authority, as DER, and one
// that it signed.
func certificates(now time.Time) ([]byte, *tls.Certificate, error) {
	authorityKey, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, nil, err
	}
	leafKey, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, nil, err
	}
	authority, err := template("steadyprobe demo authority", now)
	if err != nil {
		return nil, nil, err
	}
	authority.IsCA = true
	authority.KeyUsage = x509.KeyUsageCertSign
	authorityDER, err := x509.CreateCertificate(rand.Reader, authority, authority, authorityKey.Public(), authorityKey)
	if err != nil {
		return nil, nil, err
	}
	leaf, err := template("steadyprobe demo door", now)
	if err != nil {
		return nil, nil, err
	}
	leaf.KeyUsage = x509.KeyUsageDigitalSignature
	leaf.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}
	leaf.DNSNames = []string{"localhost"}
	leaf.IPAddresses = []net.IP{net.IPv4(127, 0, 0, 1)}
	leafDER, err := x509.CreateCertificate(rand.Reader, leaf, authority, leafKey.Public(), authorityKey)
	if err != nil {
		return nil, nil, err
	}
	return authorityDER, &tls.Certificate{Certificate: [][]byte{leafDER}, PrivateKey: leafKey}, nil
}

func template(name string, now time.Time) (*x509.Certificate, error) {
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 120))
	if err != nil {
		return nil, err
	}
	return &x509.Certificate{
		SerialNumber:          serial,
		Subject:               pkix.Name{CommonName: name},
		NotBefore:             now.Add(-time.Minute),
		NotAfter:              now.Add(validity),
		BasicConstraintsValid: true,
	}, nil
}
