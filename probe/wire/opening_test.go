package wire

import (
	"context"
	"crypto/tls"
	"net"
	"net/netip"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	door "github.com/steadyprobe/steadyprobe/internal/faultdoor"
	"github.com/steadyprobe/steadyprobe/internal/testcert"
	"github.com/steadyprobe/steadyprobe/probe"
	"github.com/steadyprobe/steadyprobe/probe/resolve"
)

// TestAddress holds that every sample says which address it concerns.
func TestAddress(t *testing.T) {
	clock := probe.NewClock()
	four, six := netip.MustParseAddr("127.0.0.1"), netip.MustParseAddr("::1")
	d := door.Listen(t, door.HTTP(door.OK()))
	port := netip.MustParseAddrPort(d.Addr()).Port()
	fails := func(context.Context, string, string) (net.Conn, error) { return nil, syscall.ECONNREFUSED }
	only4 := func(ctx context.Context, network, address string) (net.Conn, error) {
		if strings.HasPrefix(address, "[") {
			return nil, syscall.ENETUNREACH
		}
		return new(net.Dialer).DialContext(ctx, network, address)
	}
	for _, tc := range []struct {
		name  string
		found []netip.Addr
		dial  DialFunc
		want  netip.Addr
	}{
		{"one", []netip.Addr{four}, nil, four},
		{"the other family", []netip.Addr{six, four}, only4, four},
		{"the other family, in vain", []netip.Addr{six, four}, fails, six}, // whose error it is
		{"refused", []netip.Addr{six}, fails, six},
		{"no address", nil, nil, netip.Addr{}},
	} {
		for reader, loop := range readers(t, clock) {
			t.Run(tc.name+"/"+reader, func(t *testing.T) {
				o := Options{Way: Way{Clock: clock, Dial: tc.dial}, Loop: loop, Reuse: true}
				o.Resolver = resolve.New(resolve.Options{Host: "door.test", Port: port, Clock: clock, Refresh: time.Minute,
					Lookup: func(context.Context, string, string) ([]netip.Addr, error) { return tc.found, nil }})
				r := newRig(t, d.Addr(), o, probe.Target{})
				for i := range 3 { // the first on a new connection
					if s := r.send(); s.Address != tc.want && (i == 0 || s.Outcome == probe.Success) {
						t.Errorf("tick %d: address %v, want %v", i, s.Address, tc.want)
					}
				}
			})
		}
	}
}

// TestTLSConfigOfEachOpening changes what is trusted between two openings.
func TestTLSConfigOfEachOpening(t *testing.T) {
	good, bad := newAuthority(t, testcert.Options{}), newAuthority(t, testcert.Options{})
	d := door.Listen(t, door.TLS(&tls.Config{Certificates: []tls.Certificate{good.leaf}}, door.HTTP(door.OK())))
	var now atomic.Pointer[tls.Config]
	r := newRig(t, d.Addr(), Options{Way: Way{TLSConfig: now.Load}}, probe.Target{})
	for _, tc := range []struct {
		config *tls.Config
		want   probe.Outcome
	}{{good.client, probe.Success}, {bad.client, probe.TLSCertificate}, {good.client, probe.Success}} {
		now.Store(tc.config)
		if s := r.send(); s.Outcome != tc.want {
			t.Errorf("%v, want %v", s.Outcome, tc.want)
		}
	}
}

// TestHandshakes holds what is told of full and of resumed ones, on connections
// for one request each: the ticket of TLS 1.3 comes before the answer.
func TestHandshakes(t *testing.T) {
	for _, tc := range []struct {
		name    string
		version uint16
		group   tls.CurveID
		cipher  uint16
		cache   bool
	}{
		{"tls 1.3", tls.VersionTLS13, tls.X25519, 0, true},
		{"tls 1.3, hybrid", tls.VersionTLS13, tls.X25519MLKEM768, 0, true},
		{"tls 1.2", tls.VersionTLS12, tls.CurveP256, tls.TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384, true},
		{"no resumption", tls.VersionTLS13, tls.X25519, 0, false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			a := newAuthority(t, testcert.Options{})
			d := door.Listen(t, door.TLS(&tls.Config{Certificates: []tls.Certificate{a.leaf}}, door.HTTP(door.OK())))
			c := a.client
			c.MinVersion, c.MaxVersion, c.CurvePreferences = tc.version, tc.version, []tls.CurveID{tc.group}
			if tc.cipher != 0 {
				c.CipherSuites = []uint16{tc.cipher}
			}
			if tc.cache {
				c.ClientSessionCache = tls.NewLRUClientSessionCache(0)
			}
			r := newRig(t, d.Addr(), Options{Way: Way{TLSConfig: fixed(c)}}, probe.Target{})
			for i := range 3 {
				s := r.send()
				h := s.Handshake
				if s.Outcome != probe.Success || h.Version != tc.version || h.Group != uint16(tc.group) || h.Resumed != (tc.cache && i > 0) || s.TLS <= 0 {
					t.Errorf("handshake %d: %v, %+v in %v", i, s.Outcome, h, s.TLS)
				}
				if h.Cipher == 0 || tc.cipher != 0 && h.Cipher != tc.cipher || !h.Verified || h.NotAfter != a.leaf.Leaf.NotAfter.Unix() {
					t.Errorf("handshake %d: %+v", i, h)
				}
			}
			counts := d.Counts()
			if want := map[bool]uint64{true: 2}[tc.cache]; counts.Resumed != want || counts.Handshakes != 3 {
				t.Errorf("the door counts %d handshakes, %d of them resumed; want 3, %d", counts.Handshakes, counts.Resumed, want)
			}
		})
	}
}
