package config

import (
	"crypto/tls"
	"fmt"
	"slices"
	"strings"
)

// CipherSuite is a cipher suite as crypto/tls numbers it; 0 is none.
type CipherSuite uint16

// String returns the name that the IANA has given to the suite, or "" where
// crypto/tls does not speak it.
func (s CipherSuite) String() string {
	if suite := s.suite(); suite != nil {
		return suite.Name
	}
	return ""
}

// suite returns what crypto/tls says of the suite, nil where it does not speak
// it.
func (s CipherSuite) suite() *tls.CipherSuite {
	all := allSuites()
	if i := slices.IndexFunc(all, func(x *tls.CipherSuite) bool { return x.ID == uint16(s) }); i >= 0 {
		return all[i]
	}
	return nil
}

// insecure reports whether crypto/tls speaks the suite only when asked to.
func (s CipherSuite) insecure() bool { suite := s.suite(); return suite != nil && suite.Insecure }

// speaks reports whether the suite is one of this version of TLS.
func (s CipherSuite) speaks(version TLSVersion) bool {
	suite := s.suite()
	return suite != nil && slices.Contains(suite.SupportedVersions, uint16(version))
}

func allSuites() []*tls.CipherSuite {
	return slices.Concat(tls.CipherSuites(), tls.InsecureCipherSuites())
}

// mayChoose returns the suites that may be written: those below TLS 1.3, secure
// ones first.
func mayChoose() []*tls.CipherSuite {
	return slices.DeleteFunc(allSuites(), func(s *tls.CipherSuite) bool { return !slices.Contains(s.SupportedVersions, tls.VersionTLS12) })
}

func (s *CipherSuite) parseText(text string) error {
	upper := strings.ToUpper(text)
	for _, suite := range allSuites() {
		if upper != "" && (upper == suite.Name || upper == openSSLName(suite.ID)) {
			*s = CipherSuite(suite.ID)
			return nil
		}
	}
	return fmt.Errorf("%s is not a cipher suite that Go can speak; write %s", quote(text), suiteHint(upper))
}

// suiteHint names suites that may be meant by a name that is none: the nearest
// in the notation that was used, then the other ones in their short form.
func suiteHint(name string) string {
	const near, longest = 3, 64
	name = name[:min(len(name), longest)]
	notation := func(s *tls.CipherSuite) string { return openSSLName(s.ID) }
	if strings.HasPrefix(name, "TLS_") {
		notation = func(s *tls.CipherSuite) string { return s.Name }
	}
	suites := mayChoose()
	slices.SortStableFunc(suites, func(a, b *tls.CipherSuite) int {
		return distance(name, notation(a)) - distance(name, notation(b))
	})
	var nearest, others []string
	for i, s := range suites {
		switch {
		case i < near:
			nearest = append(nearest, notation(s))
		default:
			others = append(others, openSSLName(s.ID))
		}
	}
	slices.Sort(others)
	return strings.Join(nearest, ", ") + ", or one of " + strings.Join(others, ", ")
}

// openSSLName returns the name that OpenSSL has given to a suite of crypto/tls
// ("openssl ciphers -stdname"). TLS 1.3 has no names of OpenSSL's own.
func openSSLName(id uint16) string {
	switch id {
	case tls.TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256:
		return "ECDHE-ECDSA-AES128-GCM-SHA256"
	case tls.TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384:
		return "ECDHE-ECDSA-AES256-GCM-SHA384"
	case tls.TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256:
		return "ECDHE-ECDSA-CHACHA20-POLY1305"
	case tls.TLS_ECDHE_ECDSA_WITH_AES_128_CBC_SHA:
		return "ECDHE-ECDSA-AES128-SHA"
	case tls.TLS_ECDHE_ECDSA_WITH_AES_256_CBC_SHA:
		return "ECDHE-ECDSA-AES256-SHA"
	case tls.TLS_ECDHE_ECDSA_WITH_AES_128_CBC_SHA256:
		return "ECDHE-ECDSA-AES128-SHA256"
	case tls.TLS_ECDHE_ECDSA_WITH_RC4_128_SHA:
		return "ECDHE-ECDSA-RC4-SHA"
	case tls.TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256:
		return "ECDHE-RSA-AES128-GCM-SHA256"
	case tls.TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384:
		return "ECDHE-RSA-AES256-GCM-SHA384"
	case tls.TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256:
		return "ECDHE-RSA-CHACHA20-POLY1305"
	case tls.TLS_ECDHE_RSA_WITH_AES_128_CBC_SHA:
		return "ECDHE-RSA-AES128-SHA"
	case tls.TLS_ECDHE_RSA_WITH_AES_256_CBC_SHA:
		return "ECDHE-RSA-AES256-SHA"
	case tls.TLS_ECDHE_RSA_WITH_AES_128_CBC_SHA256:
		return "ECDHE-RSA-AES128-SHA256"
	case tls.TLS_ECDHE_RSA_WITH_3DES_EDE_CBC_SHA:
		return "ECDHE-RSA-DES-CBC3-SHA"
	case tls.TLS_ECDHE_RSA_WITH_RC4_128_SHA:
		return "ECDHE-RSA-RC4-SHA"
	case tls.TLS_RSA_WITH_AES_128_GCM_SHA256:
		return "AES128-GCM-SHA256"
	case tls.TLS_RSA_WITH_AES_256_GCM_SHA384:
		return "AES256-GCM-SHA384"
	case tls.TLS_RSA_WITH_AES_128_CBC_SHA:
		return "AES128-SHA"
	case tls.TLS_RSA_WITH_AES_256_CBC_SHA:
		return "AES256-SHA"
	case tls.TLS_RSA_WITH_AES_128_CBC_SHA256:
		return "AES128-SHA256"
	case tls.TLS_RSA_WITH_3DES_EDE_CBC_SHA:
		return "DES-CBC3-SHA"
	case tls.TLS_RSA_WITH_RC4_128_SHA:
		return "RC4-SHA"
	}
	return ""
}
