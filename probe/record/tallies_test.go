package record

import (
	"crypto/tls"
	"net/http"
	"net/netip"
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
	resumed := old
	resumed.Resumed = true
	for _, tc := range []struct {
		name string
		seen []probe.Handshake
		by   []string // addresses
		at   []probe.Instant
		want Certificate
	}{
		{name: "none"},
		{"one", []probe.Handshake{old}, []string{"10.0.0.1"}, []probe.Instant{minute}, Certificate{true, true, true, 100, 200}},
		{"two addresses differ", []probe.Handshake{old, renewed}, []string{"10.0.0.1", "10.0.0.2"}, []probe.Instant{minute, 2 * minute},
			Certificate{true, true, false, 150, 200}},
		{"one is not verified", []probe.Handshake{old, {NotBefore: 1, NotAfter: 2}}, []string{"10.0.0.1", "10.0.0.2"}, []probe.Instant{minute, 2 * minute},
			Certificate{true, false, false, 100, 2}},
		{"renewed", []probe.Handshake{old, renewed}, []string{"10.0.0.1", "10.0.0.1"}, []probe.Instant{minute, minute + 1},
			Certificate{true, true, false, 150, 300}},
		{"recorded in another order", []probe.Handshake{renewed, old}, []string{"10.0.0.1", "10.0.0.1"}, []probe.Instant{minute + 1, minute},
			Certificate{true, true, false, 150, 300}},
		{"resumed after it was renewed", []probe.Handshake{old, renewed, resumed}, []string{"10.0.0.1", "10.0.0.1", "10.0.0.1"}, []probe.Instant{minute, 2 * minute, 3 * minute},
			Certificate{true, true, false, 150, 300}},
		{"resumed alone", []probe.Handshake{resumed}, []string{"10.0.0.1"}, []probe.Instant{minute}, Certificate{true, true, true, 100, 200}},
		{"renewed at one of two", []probe.Handshake{old, old, renewed}, []string{"10.0.0.1", "10.0.0.2", "10.0.0.1"}, []probe.Instant{minute, minute, 2 * minute},
			Certificate{true, true, false, 150, 200}},
		{"not seen for long", []probe.Handshake{old, renewed}, []string{"10.0.0.1", "10.0.0.2"}, []probe.Instant{minute, 11*minute + 1},
			Certificate{true, true, false, 150, 300}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			var c chains
			for i := range tc.seen {
				c.saw(netip.MustParseAddr(tc.by[i]), &tc.seen[i], tc.at[i])
			}
			if got := c.certificate(); got != tc.want {
				t.Errorf("certificate %v, want %v", got, tc.want)
			}
		})
	}
}

func TestChainsOfAddressesThatHaveGone(t *testing.T) {
	gone, stays := netip.MustParseAddr("10.0.0.1"), netip.MustParseAddr("10.0.0.2")
	var c chains
	c.saw(gone, &probe.Handshake{NotBefore: 1, NotAfter: 2}, 1)
	c.saw(stays, &probe.Handshake{NotBefore: 3, NotAfter: 4}, 2)
	c.keep([]netip.Addr{stays})
	if got := c.certificate(); got.NotAfter != 4 || len(c) != 1 {
		t.Errorf("%d chains, certificate %v; want that of the address that stays", len(c), got)
	}
}

// A door with more addresses than are kept takes no more room, and the last are
// those that count.
func TestChainsAreBounded(t *testing.T) {
	var c chains
	for i := range int64(1000) {
		at := netip.AddrFrom4([4]byte{10, 0, byte(i >> 8), byte(i)})
		c.saw(at, &probe.Handshake{NotBefore: i, NotAfter: 5000 + i}, probe.Instant(i+1))
	}
	// The last 100 end at 5,900 to 5,999.
	if got := c.certificate(); len(c) != maxChains || got.NotAfter != 5900 || got.NotBefore != 999 {
		t.Errorf("%d chains, certificate %v", len(c), got)
	}
}
