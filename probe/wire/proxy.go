package wire

import (
	"context"
	"encoding/binary"
	"net"
	"net/netip"
	"strconv"
	"time"

	"github.com/steadyprobe/steadyprobe/probe"
)

// ProxyHeader is the header of the PROXY protocol that is sent first on every
// connection, before TLS (HAProxy's doc/proxy-protocol.txt, version 2020/03/05,
// sections 2.1 and 2.2): it tells a door behind a balancer who the client is.
type ProxyHeader struct {
	Version int            // 0: none is sent; 1: a line of text; 2: binary
	Source  netip.AddrPort // that the header says; invalid: the connection's own
}

// The first bytes of version 2, and the two behind them: version 2 with
// command PROXY, then family and protocol.
const (
	proxySignature = "\r\n\r\n\x00\r\nQUIT\n"
	proxyCommand   = 0x21
	proxyUnknown   = 0x00
	proxyTCP4      = 0x11
	proxyTCP6      = 0x21
)

// announce sends the header. Its time is part of the connect phase: a
// connection is of no use without it.
func (p *opening) announce(ctx context.Context) probe.Outcome {
	p.socket.writeBy(p.Clock.Time(p.deadline))
	stop := context.AfterFunc(ctx, func() { p.socket.writeBy(past) })
	_, err := p.socket.Write(p.Proxy.bytes(p.socket.LocalAddr(), p.socket.RemoteAddr()))
	if stop() {
		p.socket.writeBy(time.Time{})
	}
	p.sample.Connect += p.elapsed()
	switch {
	case err == nil:
		return probe.Success
	case p.link.Context().Err() != nil:
		return probe.ScheduleShutdown
	case isTimeout(err):
		return p.explain(probe.ProxyTimeout, err)
	}
	return p.explain(probe.ProxyError, err)
}

// bytes returns the header for a connection between those addresses. Both
// addresses of a header must be of one family. Where they are not, because the
// source was chosen, the IPv4 one is written as an IPv6 address (RFC 4291
// section 2.5.5.2); the specification keeps UNKNOWN for what cannot be said, as
// some doors refuse it, and that is what is not TCP over IP at all.
func (h ProxyHeader) bytes(local, remote net.Addr) []byte {
	source := h.Source
	if !source.IsValid() {
		source = addrPort(local)
	}
	to := addrPort(remote)
	source, to = sameFamily(source), sameFamily(to)
	if source.Addr().Is4() != to.Addr().Is4() {
		source, to = mapped(source), mapped(to)
	}
	if h.Version == 2 {
		return proxyBinary(source, to)
	}
	return proxyText(source, to)
}

// addrPort returns the address of a TCP connection's end; invalid: it has none.
func addrPort(a net.Addr) netip.AddrPort {
	if tcp, ok := a.(*net.TCPAddr); ok {
		return tcp.AddrPort()
	}
	return netip.AddrPort{}
}

// sameFamily returns the address as it is: without a zone, which means
// something on this machine only, and IPv4 as such.
func sameFamily(a netip.AddrPort) netip.AddrPort {
	return netip.AddrPortFrom(a.Addr().Unmap().WithZone(""), a.Port())
}

// mapped returns the address as one of IPv6.
func mapped(a netip.AddrPort) netip.AddrPort {
	if !a.IsValid() {
		return a
	}
	return netip.AddrPortFrom(netip.AddrFrom16(a.Addr().As16()), a.Port())
}

// proxyText returns a header of version 1.
func proxyText(source, to netip.AddrPort) []byte {
	b := []byte("PROXY ")
	switch {
	case !source.IsValid() || !to.IsValid():
		return append(b, "UNKNOWN\r\n"...)
	case source.Addr().Is4():
		b = append(b, "TCP4 "...)
	default:
		b = append(b, "TCP6 "...)
	}
	for _, a := range []netip.Addr{source.Addr(), to.Addr()} {
		if a.Is4In6() {
			// Dots are not for IPv6 here.
			b = append(b, a.StringExpanded()...)
		} else {
			b = a.AppendTo(b)
		}
		b = append(b, ' ')
	}
	b = strconv.AppendUint(b, uint64(source.Port()), 10)
	b = append(b, ' ')
	b = strconv.AppendUint(b, uint64(to.Port()), 10)
	return append(b, "\r\n"...)
}

// proxyBinary returns a header of version 2.
func proxyBinary(source, to netip.AddrPort) []byte {
	b := append([]byte(proxySignature), proxyCommand)
	switch {
	case !source.IsValid() || !to.IsValid():
		return append(b, proxyUnknown, 0, 0)
	case source.Addr().Is4():
		b = append(b, proxyTCP4, 0, 2*(4+2))
	default:
		b = append(b, proxyTCP6, 0, 2*(16+2))
	}
	b = append(b, source.Addr().AsSlice()...)
	b = append(b, to.Addr().AsSlice()...)
	b = binary.BigEndian.AppendUint16(b, source.Port())
	return binary.BigEndian.AppendUint16(b, to.Port())
}
