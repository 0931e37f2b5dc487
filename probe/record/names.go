package record

import (
	"crypto/tls"
	"strconv"
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

// OtherStatus stands for every status that no standard names.
const OtherStatus = "other"

// Status returns the status of the answers for people: "200", [OtherStatus], or
// the name of a protocol that has none.
func (c ResponseCount) Status() string {
	switch {
	case c.Code != 0:
		return strconv.Itoa(int(c.Code))
	case c.Protocol.Bare():
		return c.Protocol.String()
	}
	return OtherStatus
}

// ByStatus returns how many answers there were of each status, over all
// protocols; those that there were none of are left out.
func ByStatus(counts []ResponseCount) map[string]uint64 {
	by := map[string]uint64{}
	for _, c := range counts {
		if c.Count > 0 {
			by[c.Status()] += c.Count
		}
	}
	return by
}
