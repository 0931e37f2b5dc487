package record

import (
	"crypto/tls"
	"strings"
)

// TLSVersion returns the name of the version, as the label tls_version has it:
// TLS1.0 to TLS1.3.
func (h HandshakeCount) TLSVersion() string {
	return strings.ReplaceAll(tls.VersionName(h.Version), " ", "")
}

// CipherName returns the IANA name of the cipher suite, as the label cipher has
// it.
func (h HandshakeCount) CipherName() string { return tls.CipherSuiteName(h.Cipher) }

// KeyExchange returns Go's name of the group, as the label key_exchange has it,
// or "none": a handshake without a group took its keys from RSA or from an
// earlier session.
func (h HandshakeCount) KeyExchange() string {
	if h.Group == 0 {
		return "none"
	}
	return tls.CurveID(h.Group).String()
}
