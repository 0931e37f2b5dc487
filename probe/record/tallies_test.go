package record

import (
	"crypto/tls"
	"net/http"
	"slices"
	"testing"

	"github.com/steadyprobe/steadyprobe/probe"
)

func TestResponses(t *testing.T) {
	var r responses
	for _, code := range []uint16{200, 200, 503, 299, 777, 65535, 200} {
		r.count(code, probe.HTTP11)
	}
	r.count(200, probe.HTTP2)
	want := responses{{200, probe.HTTP11, 3}, {503, probe.HTTP11, 1}, {0, probe.HTTP11, 3}, {200, probe.HTTP2, 1}}
	if !slices.Equal(r, want) {
		t.Errorf("responses %v, want %v", r, want)
	}
}

// A door that answers with every status there is cannot make us hold more than
// the known ones.
func TestResponsesAreBounded(t *testing.T) {
	known := 1 // the others
	var r responses
	for code := range uint16(65535) {
		r.count(code+1, probe.HTTP11)
		if http.StatusText(int(code+1)) != "" {
			known++
		}
	}
	if len(r) != known {
		t.Errorf("%d kinds of responses, want %d", len(r), known)
	}
}

func TestHandshakes(t *testing.T) {
	kind := func(version, cipher uint16, group tls.CurveID, resumed bool) *probe.Handshake {
		return &probe.Handshake{Version: version, Cipher: cipher, Group: uint16(group), Resumed: resumed}
	}
	const rsa, aes = tls.TLS_RSA_WITH_AES_128_CBC_SHA, tls.TLS_AES_128_GCM_SHA256
	var h handshakes
	for _, hs := range []*probe.Handshake{
		kind(tls.VersionTLS13, aes, tls.X25519MLKEM768, false),
		kind(tls.VersionTLS13, aes, tls.X25519MLKEM768, true),
		kind(tls.VersionTLS13, aes, tls.X25519MLKEM768, true),
		kind(tls.VersionTLS12, rsa, 0, false), // no key exchange by curve
		kind(tls.VersionTLS13, aes, 4711, false),
		kind(tls.VersionTLS13, aes, 4712, false),
		kind(1, 2, 3, false),
	} {
		h.count(hs)
	}
	want := handshakes{
		{tls.VersionTLS13, aes, uint16(tls.X25519MLKEM768), false, 1},
		{tls.VersionTLS13, aes, uint16(tls.X25519MLKEM768), true, 2},
		{tls.VersionTLS12, rsa, 0, false, 1},
		{tls.VersionTLS13, aes, 0, false, 2},
		{0, 0, 0, false, 1},
	}
	if !slices.Equal(h, want) {
		t.Errorf("handshakes %v, want %v", h, want)
	}
}

func TestCertificate(t *testing.T) {
	const minute = 60 * second
	old := probe.Handshake{Verified: true, Stapled: true, NotBefore: 100, NotAfter: 200}
	renewed := probe.Handshake{Verified: true, NotBefore: 150, NotAfter: 300}
	for _, tc := range []struct {
		name string
		seen []probe.Handshake
		at   []probe.Instant
		want Certificate
	}{
		{name: "none"},
		{"one", []probe.Handshake{old}, []probe.Instant{minute}, Certificate{true, true, true, 100, 200}},
		{"two addresses differ", []probe.Handshake{old, renewed}, []probe.Instant{minute, 2 * minute},
			Certificate{true, true, false, 150, 200}},
		{"one is not verified", []probe.Handshake{old, {NotBefore: 1, NotAfter: 2}}, []probe.Instant{minute, 2 * minute},
			Certificate{true, false, false, 100, 2}},
		{"still shown", []probe.Handshake{old, renewed, old}, []probe.Instant{minute, 9 * minute, 11 * minute},
			Certificate{true, true, false, 150, 200}},
		{"replaced everywhere", []probe.Handshake{old, renewed}, []probe.Instant{minute, 11*minute + 1},
			Certificate{true, true, false, 150, 300}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			var c chains
			for i := range tc.seen {
				c.saw(&tc.seen[i], tc.at[i])
			}
			if got := c.certificate(); got != tc.want {
				t.Errorf("certificate %v, want %v", got, tc.want)
			}
		})
	}
}

// A door that makes a new certificate for every handshake takes no more room,
// and the last are those that count.
func TestChainsAreBounded(t *testing.T) {
	var c chains
	for i := range int64(1000) {
		c.saw(&probe.Handshake{NotBefore: i, NotAfter: 5000 + i}, probe.Instant(i+1))
	}
	// The last 16 end at 5,984 to 5,999.
	if got := c.certificate(); len(c) != maxChains || got.NotAfter != 5984 || got.NotBefore != 999 {
		t.Errorf("%d chains, certificate %v", len(c), got)
	}
}
