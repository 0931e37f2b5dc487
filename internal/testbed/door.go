package testbed

import "strings"

// Body is what a door answers: 1 KB of text in one line.
func Body() string { return strings.Repeat("0123456789abcdef", 64) }

// TLSVersions says which versions of TLS a door speaks.
type TLSVersions uint8

// The versions a door can be made to speak.
const (
	TLSBoth TLSVersions = iota
	TLS12
	TLS13
)

// names returns the versions as nginx and HAProxy call them, lowest first.
func (v TLSVersions) names() []string {
	return [][]string{{"TLSv1.2", "TLSv1.3"}, {"TLSv1.2"}, {"TLSv1.3"}}[v]
}
