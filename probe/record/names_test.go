package record

import (
	"crypto/tls"
	"maps"
	"testing"

	"github.com/steadyprobe/steadyprobe/probe"
)

func TestHandshakeNames(t *testing.T) {
	for _, row := range []struct {
		name  string
		count HandshakeCount
		want  [3]string // version, cipher, key exchange
	}{
		{"TLS 1.3", HandshakeCount{Version: tls.VersionTLS13, Cipher: tls.TLS_AES_128_GCM_SHA256, Group: uint16(tls.X25519)},
			[3]string{"TLS1.3", "TLS_AES_128_GCM_SHA256", "X25519"}},
		{"RSA key exchange", HandshakeCount{Version: tls.VersionTLS12, Cipher: tls.TLS_RSA_WITH_AES_128_CBC_SHA},
			[3]string{"TLS1.2", "TLS_RSA_WITH_AES_128_CBC_SHA", "none"}},
		{"unknown", HandshakeCount{Version: 0x0305, Cipher: 0xfafa, Group: 0xfafa},
			[3]string{"0x0305", "0xFAFA", "CurveID(64250)"}},
	} {
		t.Run(row.name, func(t *testing.T) {
			got := [3]string{row.count.TLSVersion(), row.count.CipherName(), row.count.KeyExchange()}
			if got != row.want {
				t.Errorf("got %q, want %q", got, row.want)
			}
		})
	}
}

// Answers are counted over all protocols, those that no standard names together,
// and those without a status by their protocol.
func TestByStatus(t *testing.T) {
	for _, row := range []struct {
		name   string
		counts []ResponseCount
		want   map[string]uint64
	}{
		{"statuses", []ResponseCount{
			{Code: 200, Protocol: probe.HTTP11, Count: 7}, {Code: 200, Count: 2}, {Code: 0, Count: 3}, {Code: 502, Count: 1},
		}, map[string]uint64{"200": 9, "other": 3, "502": 1}},
		{"without a status", []ResponseCount{
			{Code: 200, Protocol: probe.HTTP10, Count: 1}, {Code: 200, Protocol: probe.HTTP11, Count: 2},
			{Protocol: probe.HTTP11, Count: 3}, {Protocol: probe.TCP, Count: 4}, {Protocol: probe.TLS, Count: 5}, {Code: 404},
		}, map[string]uint64{"200": 3, "other": 3, "tcp": 4, "tls": 5}},
		{"none", nil, map[string]uint64{}},
	} {
		if got := ByStatus(row.counts); got == nil || !maps.Equal(got, row.want) {
			t.Errorf("%s: %v, want %v", row.name, got, row.want)
		}
	}
}
