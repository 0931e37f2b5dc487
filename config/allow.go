package config

import (
	"errors"
	"fmt"
	"net/netip"
	"strings"
)

// Allow says where discovered targets may lead. A discovered name is one that
// somebody else has written, so that nothing is reached which is not named
// here: hosts, networks, or both, each of which a target must then be in.
type Allow struct {
	Hosts          []HostSuffix `yaml:"hosts"`                     // names that are reached, and all below them; empty: any name
	Networks       []Network    `yaml:"networks"`                  // that are reached; empty: any but the special ones
	MaxRate        Rate         `yaml:"max_rate,omitempty"`        // most that a label may ask for; 0: what the profile has
	MaxConnections int          `yaml:"max_connections,omitempty"` // the same
}

// AdmitsName reports whether a name, or an IP address in the place of one, may
// be reached as far as that can be told without looking it up.
func (a *Allow) AdmitsName(host string) bool {
	if address, err := netip.ParseAddr(host); err == nil {
		return len(a.Networks) > 0 && a.AdmitsAddress(address)
	}
	if len(a.Hosts) == 0 {
		return len(a.Networks) > 0
	}
	for _, suffix := range a.Hosts {
		if suffix.holds(host) {
			return true
		}
	}
	return false
}

// AdmitsAddress reports whether an address may be connected to, whatever name
// has led to it. An address of a special range, which no door of others has, is
// only admitted by a network within that range: 0.0.0.0/0 does not open the
// way to 127.0.0.1 and 169.254.169.254.
func (a *Allow) AdmitsAddress(address netip.Addr) bool {
	address = address.Unmap().WithZone("")
	if !address.IsValid() {
		return false
	}
	special, kind := specialRange(address)
	if len(a.Networks) == 0 {
		return !special
	}
	for _, n := range a.Networks {
		if n.prefix.Contains(address) && (!special || kind.Bits() <= n.prefix.Bits()) {
			return true
		}
	}
	return false
}

// specialRange returns the range of addresses that address belongs to, if it is
// one that only a network within it admits.
func specialRange(address netip.Addr) (special bool, of netip.Prefix) {
	for _, text := range specialRanges() {
		if p := netip.MustParsePrefix(text); p.Contains(address) {
			return true, p
		}
	}
	if inner, wraps := embedded(address); wraps {
		if special, _ := specialRange(inner); special {
			return true, netip.PrefixFrom(address, address.BitLen())
		}
	}
	return false, netip.Prefix{}
}

// specialRanges returns the ranges in which there is this machine, its links,
// nobody or everybody (RFC 6890 and the registries that it began), and the
// addresses at which clouds give secrets to who asks.
func specialRanges() []string {
	return []string{
		"0.0.0.0/8",          // this network; Linux connects to itself
		"127.0.0.0/8",        // loopback
		"169.254.0.0/16",     // link-local, metadata of most clouds
		"224.0.0.0/4",        // multicast
		"240.0.0.0/4",        // reserved, broadcast
		"100.100.100.200/32", // metadata of Alibaba Cloud
		"168.63.129.16/32",   // metadata of Azure
		"192.0.0.192/32",     // metadata of Oracle Cloud
		"::/127",             // unspecified, loopback
		"fe80::/10",          // link-local
		"fec0::/10",          // site-local
		"ff00::/8",           // multicast
		"fd00:ec2::/32",      // metadata of AWS
		"fd20:ce::254/128",   // metadata of Google Cloud
	}
}

// embedded returns the IPv4 address that a translator or tunnel would make of an
// IPv6 one (RFC 6052, section 2.1; RFC 3056, section 2; RFC 4291, section
// 2.5.5.1).
func embedded(address netip.Addr) (inner netip.Addr, ok bool) {
	if !address.Is6() {
		return netip.Addr{}, false
	}
	b := address.As16()
	for _, wrap := range []struct {
		prefix string
		at     int // where the IPv4 address begins
	}{{"64:ff9b::/96", 12}, {"64:ff9b:1::/48", 12}, {"2002::/16", 2}, {"::/96", 12}} {
		if netip.MustParsePrefix(wrap.prefix).Contains(address) {
			return netip.AddrFrom4([4]byte(b[wrap.at : wrap.at+4])), true
		}
	}
	return netip.Addr{}, false
}

// HostSuffix is a name that is allowed, and all names below it.
type HostSuffix struct{ name string } // in lower case, without dots at its ends

// String returns the name.
func (h HostSuffix) String() string { return h.name }

// MarshalText returns the same as String.
func (h HostSuffix) MarshalText() ([]byte, error) { return []byte(h.name), nil }

func (h *HostSuffix) parseText(text string) error {
	name := strings.TrimSuffix(strings.TrimPrefix(strings.TrimPrefix(text, "*"), "."), ".")
	if _, err := netip.ParseAddr(name); err == nil {
		return fmt.Errorf("%s is an address; write it below networks", quote(text))
	}
	if name == "" || strings.ContainsAny(name, "*:") || checkHost(name) != nil {
		return fmt.Errorf("%s is not a name; write one such as example.com, which stands for all names below it too", quote(text))
	}
	h.name = strings.ToLower(name)
	return nil
}

func (h HostSuffix) holds(host string) bool {
	host = strings.ToLower(strings.TrimSuffix(host, "."))
	return host == h.name || strings.HasSuffix(host, "."+h.name)
}

// Network is a range of addresses.
type Network struct{ prefix netip.Prefix }

// String returns the network as ADDRESS/BITS.
func (n Network) String() string { return n.prefix.String() }

// MarshalText returns the same as String.
func (n Network) MarshalText() ([]byte, error) { return []byte(n.String()), nil }

func (n *Network) parseText(text string) error {
	if address, err := netip.ParseAddr(text); err == nil {
		text = netip.PrefixFrom(address, address.BitLen()).String()
	}
	prefix, err := netip.ParsePrefix(text)
	switch {
	case err != nil:
		return fmt.Errorf("%s is not a network; write one such as 10.0.0.0/8 or 2001:db8::/32", quote(text))
	case prefix.Addr().Is4In6():
		return errors.New("is an IPv4 address in the form of an IPv6 one; write it as IPv4, such as 10.0.0.0/8")
	case prefix != prefix.Masked():
		return fmt.Errorf("%s has address bits behind its length; write %s", quote(text), prefix.Masked())
	}
	n.prefix = prefix
	return nil
}
