package wire

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"strings"
	"testing"
	"testing/iotest"
	"testing/synctest"
	"time"

	door "github.com/steadyprobe/steadyprobe/internal/faultdoor"
	"github.com/steadyprobe/steadyprobe/internal/testcert"
	"github.com/steadyprobe/steadyprobe/probe"
)

func tcpAddr(address string) net.Addr {
	return net.TCPAddrFromAddrPort(netip.MustParseAddrPort(address))
}

func TestProxyHeader(t *testing.T) {
	binaryOf := func(rest string) string {
		b, err := hex.DecodeString(strings.ReplaceAll("0d0a0d0a000d0a515549540a 21"+rest, " ", ""))
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
	var unix net.Addr = &net.UnixAddr{Name: "@", Net: "unix"}
	for _, tc := range []struct {
		name          string
		source        string
		local, remote net.Addr
		text, binary  string
	}{
		{
			name: "IPv4", local: tcpAddr("192.168.0.1:56324"), remote: tcpAddr("192.168.0.11:443"),
			text:   "PROXY TCP4 192.168.0.1 192.168.0.11 56324 443\r\n", // the specification's example
			binary: binaryOf("11 000c c0a80001 c0a8000b dc04 01bb"),     // 56324 = 0xdc04
		},
		{
			name: "IPv6", local: tcpAddr("[2001:db8::1]:1"), remote: tcpAddr("[2001:db8:0:1::2]:65535"),
			text:   "PROXY TCP6 2001:db8::1 2001:db8:0:1::2 1 65535\r\n",
			binary: binaryOf("21 0024 20010db8000000000000000000000001 20010db8000000010000000000000002 0001 ffff"),
		},
		{
			name: "IPv4 as a socket for both shows it", local: tcpAddr("[::ffff:10.0.0.1]:1"), remote: tcpAddr("10.0.0.2:2"),
			text:   "PROXY TCP4 10.0.0.1 10.0.0.2 1 2\r\n",
			binary: binaryOf("11 000c 0a000001 0a000002 0001 0002"),
		},
		{
			name: "zone", local: tcpAddr("[fe80::1%eth0]:1"), remote: tcpAddr("[fe80::2%eth0]:2"),
			text:   "PROXY TCP6 fe80::1 fe80::2 1 2\r\n",
			binary: binaryOf("21 0024 fe800000000000000000000000000001 fe800000000000000000000000000002 0001 0002"),
		},
		{
			name: "source of choice", source: "203.0.113.9:4000", local: tcpAddr("10.0.0.1:1"), remote: tcpAddr("10.0.0.2:2"),
			text:   "PROXY TCP4 203.0.113.9 10.0.0.2 4000 2\r\n",
			binary: binaryOf("11 000c cb007109 0a000002 0fa0 0002"),
		},
		{
			name: "IPv6 source to IPv4", source: "[2001:db8::9]:4000", local: tcpAddr("10.0.0.1:1"), remote: tcpAddr("10.0.0.2:2"),
			text:   "PROXY TCP6 2001:db8::9 0000:0000:0000:0000:0000:ffff:0a00:0002 4000 2\r\n",
			binary: binaryOf("21 0024 20010db8000000000000000000000009 00000000000000000000ffff0a000002 0fa0 0002"),
		},
		{
			name: "IPv4 source to IPv6", source: "203.0.113.9:4000", local: tcpAddr("[::1]:1"), remote: tcpAddr("[::1]:2"),
			text:   "PROXY TCP6 0000:0000:0000:0000:0000:ffff:cb00:7109 ::1 4000 2\r\n",
			binary: binaryOf("21 0024 00000000000000000000ffffcb007109 00000000000000000000000000000001 0fa0 0002"),
		},
		{name: "no TCP", local: unix, remote: unix, text: "PROXY UNKNOWN\r\n", binary: binaryOf("00 0000")},
		{name: "no TCP, source of choice", source: "10.0.0.1:1", local: unix, remote: unix, text: "PROXY UNKNOWN\r\n", binary: binaryOf("00 0000")},
		{name: "no address", local: tcpAddr("10.0.0.1:1"), text: "PROXY UNKNOWN\r\n", binary: binaryOf("00 0000")},
	} {
		t.Run(tc.name, func(t *testing.T) {
			h := ProxyHeader{Version: 1}
			if tc.source != "" {
				h.Source = netip.MustParseAddrPort(tc.source)
			}
			if got := string(h.bytes(tc.local, tc.remote)); got != tc.text {
				t.Errorf("version 1 is %q, want %q", got, tc.text)
			}
			h.Version = 2
			if got := string(h.bytes(tc.local, tc.remote)); got != tc.binary {
				t.Errorf("version 2 is %x, want %x", got, tc.binary)
			}
		})
	}
}

// parseProxy reads a header as a strict receiver does; invalid addresses: it
// says nothing of them.
func parseProxy(r *bufio.Reader) (source, to netip.AddrPort, err error) {
	if start, err := r.Peek(12); err == nil && string(start) == proxySignature {
		return parseProxyBinary(r)
	}
	line, err := r.ReadString('\n')
	if err != nil || len(line) > 107 || !strings.HasSuffix(line, "\r\n") {
		return source, to, fmt.Errorf("line %q: %w", line, err)
	}
	if line == "PROXY UNKNOWN\r\n" {
		return source, to, nil
	}
	var family, from, dest string
	var fromPort, toPort uint16
	if n, err := fmt.Sscanf(line, "PROXY %s %s %s %d %d\r\n", &family, &from, &dest, &fromPort, &toPort); n != 5 || err != nil {
		return source, to, fmt.Errorf("line %q: %w", line, err)
	}
	if again := fmt.Sprintf("PROXY %s %s %s %d %d\r\n", family, from, dest, fromPort, toPort); again != line {
		return source, to, fmt.Errorf("line %q has spaces or zeros too many", line)
	}
	a, err1 := netip.ParseAddr(from)
	b, err2 := netip.ParseAddr(dest)
	if err := errors.Join(err1, err2); err != nil {
		return source, to, err
	}
	four := family == "TCP4"
	if four != a.Is4() || four != b.Is4() || !four && (family != "TCP6" || strings.Contains(from+dest, ".")) {
		return source, to, fmt.Errorf("line %q is not of one family", line)
	}
	return netip.AddrPortFrom(a, fromPort), netip.AddrPortFrom(b, toPort), nil
}

func parseProxyBinary(r *bufio.Reader) (source, to netip.AddrPort, err error) {
	var head [16]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return source, to, err
	}
	body := make([]byte, binary.BigEndian.Uint16(head[14:]))
	if _, err := io.ReadFull(r, body); err != nil {
		return source, to, err
	}
	width := map[byte]int{0x00: 0, 0x11: 4, 0x21: 16}[head[13]]
	switch {
	case head[12] != 0x21:
		return source, to, fmt.Errorf("version and command %#x", head[12])
	case width == 0 && head[13] == 0 && len(body) == 0:
		return source, to, nil
	case width == 0 || len(body) != 2*width+4:
		return source, to, fmt.Errorf("family %#x with %d bytes", head[13], len(body))
	}
	a, _ := netip.AddrFromSlice(body[:width])
	b, _ := netip.AddrFromSlice(body[width : 2*width])
	ports := body[2*width:]
	return netip.AddrPortFrom(a, binary.BigEndian.Uint16(ports)), netip.AddrPortFrom(b, binary.BigEndian.Uint16(ports[2:])), nil
}

// FuzzProxyHeader holds that what is written can be read, says the same
// addresses, and leaves what comes behind it alone.
func FuzzProxyHeader(f *testing.F) {
	f.Add([]byte{10, 0, 0, 1}, uint16(1), []byte{10, 0, 0, 2}, uint16(2), false)
	f.Add([]byte(net.IPv6loopback), uint16(0), []byte{10, 0, 0, 2}, uint16(65535), true)
	f.Add([]byte{10, 0, 0, 1}, uint16(80), []byte(net.IPv6loopback), uint16(2), false)
	f.Add([]byte(net.IPv4(1, 2, 3, 4)), uint16(80), []byte(net.IPv6zero), uint16(2), false)
	f.Fuzz(func(t *testing.T, from []byte, fromPort uint16, dest []byte, toPort uint16, two bool) {
		a, ok1 := netip.AddrFromSlice(from)
		b, ok2 := netip.AddrFromSlice(dest)
		if !ok1 || !ok2 {
			t.Skip()
		}
		h := ProxyHeader{Version: 1, Source: netip.AddrPortFrom(a, fromPort)}
		if two {
			h.Version = 2
		}
		sent := h.bytes(tcpAddr("127.0.0.1:9"), net.TCPAddrFromAddrPort(netip.AddrPortFrom(b, toPort)))
		r := bufio.NewReader(io.MultiReader(bytes.NewReader(sent), strings.NewReader("GET / HTTP/1.1\r\n")))
		source, to, err := parseProxy(r)
		if err != nil {
			t.Fatalf("%q: %v", sent, err)
		}
		if source.Addr().Unmap() != a.Unmap() || to.Addr().Unmap() != b.Unmap() || source.Port() != fromPort || to.Port() != toPort {
			t.Fatalf("%q says %v to %v, want %v:%d to %v:%d", sent, source, to, a, fromPort, b, toPort)
		}
		if rest, _ := io.ReadAll(r); string(rest) != "GET / HTTP/1.1\r\n" {
			t.Fatalf("%q leaves %q", sent, rest)
		}
	})
}

// behindProxy reads a header and tells it, then goes on.
func behindProxy(t *testing.T, headers chan<- [2]netip.AddrPort, then door.Behaviour) door.Behaviour {
	return func(c *door.Conn) {
		// Byte by byte, so that nothing of what comes behind it is read.
		source, to, err := parseProxy(bufio.NewReader(iotest.OneByteReader(c)))
		if err != nil {
			t.Errorf("reading the header: %v", err)
			return
		}
		headers <- [2]netip.AddrPort{source, to}
		then(c)
	}
}

// TestProxyHeaderComesFirst has doors that insist on the header: once on each
// connection, before all else.
func TestProxyHeaderComesFirst(t *testing.T) {
	ca := testcert.NewCA(t, "root", testcert.Options{})
	server := &tls.Config{Certificates: []tls.Certificate{ca.Leaf(t, testcert.Options{})}}
	client := &tls.Config{RootCAs: ca.Pool(), ServerName: "localhost"}
	clock := probe.NewClock()
	chosen := netip.MustParseAddrPort("203.0.113.9:4000")
	for reader, loop := range readers(t, clock) {
		for _, version := range []int{1, 2} {
			for _, secure := range []bool{false, true} {
				for _, source := range []netip.AddrPort{{}, chosen} {
					t.Run(fmt.Sprintf("%s/v%d/tls=%v/source=%v", reader, version, secure, source.IsValid()), func(t *testing.T) {
						then := door.HTTP(door.OK())
						o := Options{Way: Way{Clock: clock, Proxy: ProxyHeader{Version: version, Source: source}}, Loop: loop, Reuse: true}
						if secure {
							then, o.TLSConfig = door.TLS(server, then), fixed(client)
						}
						ends := make(chan [2]netip.AddrPort, 1)
						said := make(chan [2]netip.AddrPort, 1)
						d := door.Listen(t, func(c *door.Conn) {
							ends <- [2]netip.AddrPort{addrPort(c.RemoteAddr()), addrPort(c.LocalAddr())}
							behindProxy(t, said, then)(c)
						})
						r := newRig(t, d.Addr(), o, probe.Target{})
						first := r.send()
						want := <-ends
						if source.IsValid() {
							want[0] = source
						}
						if got := <-said; first.Outcome != probe.Success || got != want {
							t.Fatalf("%v behind a header that says %v, want %v", first.Outcome, got, want)
						}
						second := r.send()
						if second.Outcome != probe.Success {
							t.Errorf("%v on the same connection", second.Outcome)
						}
						header := uint64(len(o.Proxy.bytes(net.TCPAddrFromAddrPort(want[0]), net.TCPAddrFromAddrPort(want[1]))))
						if !secure && first.Bytes.Sent != second.Bytes.Sent+header {
							t.Errorf("sent %d bytes, then %d; the header has %d", first.Bytes.Sent, second.Bytes.Sent, header)
						}
					})
				}
			}
		}
	}
}

func TestProxyFaults(t *testing.T) {
	a := newAuthority(t, testcert.Options{})
	insists := func(then door.Behaviour) door.Behaviour {
		return behindProxy(t, make(chan [2]netip.AddrPort, 10), then)
	}
	for _, tc := range []struct {
		name     string
		behave   door.Behaviour
		tls      *tls.Config
		want, or probe.Outcome
	}{
		{name: "closes behind the header", behave: insists(door.CloseAtOnce()), want: probe.ReadEOF, or: probe.ReadReset},
		{name: "resets behind the header", behave: insists(door.ResetAtOnce()), want: probe.ReadReset, or: probe.WriteReset},
		{name: "closes behind the header, tls", behave: insists(door.TLSEOF()), tls: a.client, want: probe.TLSEOF},
		{name: "knows no header", behave: door.HTTP(door.OK()), want: probe.ReadEOF, or: probe.ReadReset},
		{name: "knows no header, tls", behave: door.TLS(&tls.Config{Certificates: []tls.Certificate{a.leaf}}, door.HTTP(door.OK())), tls: a.client, want: probe.TLSProtocol, or: probe.TLSEOF},
	} {
		t.Run(tc.name, func(t *testing.T) {
			d := door.Listen(t, tc.behave)
			s := newRig(t, d.Addr(), Options{Reuse: true, Way: Way{TLSConfig: fixed(tc.tls), Proxy: ProxyHeader{Version: 1}}}, probe.Target{}).send()
			if s.Outcome != tc.want && (tc.or == probe.Success || s.Outcome != tc.or) {
				t.Errorf("%v, want %v", s.Outcome, tc.want)
			}
		})
	}
}

// TestProxyHeaderThatCannotBeSent has connections that take nothing, as a
// kernel's never are when they are new.
func TestProxyHeaderThatCannotBeSent(t *testing.T) {
	for _, tc := range []struct {
		name  string
		peer  func(net.Conn)
		abort bool // the prober ends meanwhile
		want  probe.Outcome
		after time.Duration
	}{
		{name: "timeout", peer: func(net.Conn) {}, want: probe.ProxyTimeout, after: 2 * time.Second},
		{name: "closed", peer: func(c net.Conn) { c.Close() }, want: probe.ProxyError},
		{name: "shutdown", peer: func(net.Conn) {}, abort: true, want: probe.ScheduleShutdown, after: time.Second},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				dial := func(context.Context, string, string) (net.Conn, error) {
					near, far := net.Pipe()
					tc.peer(far)
					return near, nil
				}
				var told []probe.Outcome
				o := Options{Way: Way{Dial: dial, Timeout: 2 * time.Second, Proxy: ProxyHeader{Version: 2}, TLSConfig: fixed(new(tls.Config)), FirstFailure: func(o probe.Outcome, _ error) { told = append(told, o) }}}
				r := newRig(t, "127.0.0.1:1", o, probe.Target{})
				r.prober.Take(r.clock.Now())
				if tc.abort {
					time.Sleep(time.Second)
					ctx, cancel := context.WithCancel(t.Context())
					cancel()
					r.prober.Close(ctx)
				}
				s := r.next()
				if s.Outcome != tc.want || s.ServiceTime() != tc.after || s.Connect != tc.after || s.Bytes != (probe.Bytes{}) || s.Did.Has(probe.PhaseTLS) {
					t.Errorf("%v after %v, want %v after %v: %+v", s.Outcome, s.ServiceTime(), tc.want, tc.after, s)
				}
				if len(told) != 1 && !tc.abort {
					t.Errorf("told of %v", told)
				}
			})
		})
	}
}
