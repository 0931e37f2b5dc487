package record

import (
	"crypto/tls"
	"testing"
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
