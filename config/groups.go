package config

import (
	"crypto/tls"
	"fmt"
	"slices"
	"strings"
)

// Group is a way to exchange keys, an elliptic curve or a hybrid of one with
// ML-KEM, as crypto/tls numbers it; 0 is none.
type Group uint16

// groupNames are the names of a group, that of the configuration first.
type groupNames struct {
	id    tls.CurveID
	names []string
}

// allGroups returns the groups that crypto/tls can speak, with the names that
// the IANA, NIST, OpenSSL and Go have given to them.
func allGroups() []groupNames {
	return []groupNames{
		{tls.X25519, []string{"X25519"}},
		{tls.CurveP256, []string{"P-256", "secp256r1", "prime256v1", "P256", "CurveP256"}},
		{tls.CurveP384, []string{"P-384", "secp384r1", "P384", "CurveP384"}},
		{tls.CurveP521, []string{"P-521", "secp521r1", "P521", "CurveP521"}},
		{tls.X25519MLKEM768, []string{"X25519MLKEM768"}},
		{tls.SecP256r1MLKEM768, []string{"SecP256r1MLKEM768"}},
		{tls.SecP384r1MLKEM1024, []string{"SecP384r1MLKEM1024"}},
	}
}

// String returns the name of the group as the configuration has it, such as
// P-256, or "" where crypto/tls does not speak it.
func (g Group) String() string {
	for _, known := range allGroups() {
		if known.id == tls.CurveID(g) {
			return known.names[0]
		}
	}
	return ""
}

// hybrid reports whether the group is one of TLS 1.3 only.
func (g Group) hybrid() bool { return strings.Contains(g.String(), "MLKEM") }

func (g *Group) parseText(text string) error {
	var names []string
	for _, known := range allGroups() {
		if slices.ContainsFunc(known.names, func(name string) bool { return strings.EqualFold(name, text) }) {
			*g = Group(known.id)
			return nil
		}
		names = append(names, known.names[0])
	}
	return fmt.Errorf("%s is not a group that Go can speak; write one of %s", quote(text), strings.Join(names, ", "))
}
