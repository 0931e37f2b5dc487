package wire

import (
	"crypto/tls"
	"crypto/x509"
	"errors"

	"github.com/steadyprobe/steadyprobe/probe"
)

// handshake describes a completed handshake.
func handshake(state tls.ConnectionState) probe.Handshake {
	h := probe.Handshake{
		Version:  state.Version,
		Cipher:   state.CipherSuite,
		Group:    uint16(state.CurveID),
		Resumed:  state.DidResume,
		Verified: len(state.VerifiedChains) > 0,
		Stapled:  len(state.OCSPResponse) > 0,
	}
	chain := longestLived(state.VerifiedChains)
	if chain == nil && len(state.PeerCertificates) > 0 {
		// Nothing was verified: only the door's own certificate says anything.
		chain = state.PeerCertificates[:1]
	}
	for i, c := range chain {
		if after := c.NotAfter.Unix(); i == 0 || after < h.NotAfter {
			h.NotAfter = after
		}
		if before := c.NotBefore.Unix(); i == 0 || before > h.NotBefore {
			h.NotBefore = before
		}
	}
	return h
}

// refusedCertificate returns what is known of a certificate that was not
// trusted, so that one that has expired can be seen; zero where err is anything
// else. No handshake was completed.
func refusedCertificate(err error) probe.Handshake {
	var refused *tls.CertificateVerificationError
	if !errors.As(err, &refused) || len(refused.UnverifiedCertificates) == 0 {
		return probe.Handshake{}
	}
	leaf := refused.UnverifiedCertificates[0]
	return probe.Handshake{NotBefore: leaf.NotBefore.Unix(), NotAfter: leaf.NotAfter.Unix()}
}

// longestLived returns the chain that expires last: while it holds, the door
// is trusted, whatever the other chains do.
func longestLived(chains [][]*x509.Certificate) (best []*x509.Certificate) {
	var most int64
	for _, chain := range chains {
		expires := chain[0].NotAfter.Unix()
		for _, c := range chain {
			expires = min(expires, c.NotAfter.Unix())
		}
		if best == nil || expires > most {
			best, most = chain, expires
		}
	}
	return best
}
