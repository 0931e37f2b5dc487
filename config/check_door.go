package config

import (
	"crypto/tls"
	"errors"
	"net/netip"
	"strconv"
	"strings"
)

// dnsPort is where a DNS server listens (RFC 1035, section 4.2).
const dnsPort = 53

func (c *checker) dns(d *DNS) {
	c.between("dns.refresh", d.Refresh, leastRefresh, mostDuration)
	c.oneOf("dns.family", d.Family, "any", "ipv4", "ipv6", "prefer_ipv4", "prefer_ipv6")
	c.oneOf("dns.spread", d.Spread, "all", "first")
	if d.Server != "" && c.good("dns.server") {
		server, err := parseServer(d.Server)
		c.failed("dns.server", err)
		if err == nil {
			d.Server = server.String()
		}
	}
}

// parseServer returns the address of a DNS server, with the usual port where
// none is written.
func parseServer(text string) (netip.AddrPort, error) {
	server, err := netip.ParseAddrPort(text)
	if err != nil {
		address, err := netip.ParseAddr(strings.TrimSuffix(strings.TrimPrefix(text, "["), "]"))
		if err != nil {
			return server, errors.New("is not IP or IP:PORT, and a name would itself have to be looked up; write for example 10.0.0.2, 10.0.0.2:53 or [2001:db8::1]:53")
		}
		server = netip.AddrPortFrom(address, dnsPort)
	}
	if server.Port() == 0 {
		return server, errors.New("has a port that does not exist; write one from 1 to 65535")
	}
	return server, nil
}

// addressOf returns the address that a checked setting holds, one that is not
// valid where it is empty.
func addressOf(text string) netip.AddrPort {
	address, err := netip.ParseAddrPort(text)
	if err != nil {
		return netip.AddrPort{}
	}
	return address
}

func (c *checker) connection(n *Connection) {
	c.between("connection.max_age", n.MaxAge, 0, mostAge)
	c.oneOf("connection.proxy_protocol", n.ProxyProtocol, "none", "v1", "v2")
	if n.ProxySource == "" || !c.good("connection.proxy_source") {
		return
	}
	source, err := netip.ParseAddrPort(n.ProxySource)
	switch {
	case err != nil:
		c.fail("connection.proxy_source", "is not IP:PORT, which is what a PROXY header carries; write for example 203.0.113.7:40000 or [2001:db8::7]:40000")
	case source.Addr().Zone() != "":
		c.fail("connection.proxy_source", "has a zone, which a PROXY header cannot carry; write the address without %% and what follows it")
	case source.Port() == 0:
		c.fail("connection.proxy_source", "has a port that does not exist; write one from 1 to 65535")
	default:
		n.ProxySource = netip.AddrPortFrom(source.Addr().Unmap(), source.Port()).String()
	}
}

func (c *checker) tls(t *TLS) {
	for _, v := range []struct {
		path    string
		version TLSVersion
	}{{"tls.min_version", t.MinVersion}, {"tls.max_version", t.MaxVersion}} {
		if v.version != 0 && v.version.String() == "" {
			c.fail(v.path, "is not a version of TLS; write TLS10, TLS11, TLS12 or TLS13")
		}
	}
	if t.ServerName != "" {
		c.failed("tls.server_name", checkHost(t.ServerName))
	}
	if t.CA != "" && t.CAFile != "" && c.good("tls.ca", "tls.ca_file") {
		c.fail(c.first("tls.ca_file", "tls.ca"), "the authorities are there twice; write ca or ca_file")
	} else if _, err := authorities(NewSecret(t.CA)); t.CA != "" && err != nil {
		c.fail("tls.ca", "%s; write the certificates of the authorities in PEM", err)
	}
	c.ciphers(t.Ciphers)
	c.groups(t.Groups)
}

func (c *checker) ciphers(suites []CipherSuite) {
	first := map[CipherSuite]int{}
	for i, suite := range suites {
		at := "tls.ciphers[" + strconv.Itoa(i) + "]"
		before, twice := first[suite]
		switch {
		case !c.good(at):
		case suite.suite() == nil:
			c.fail(at, "%d is not the number of a cipher suite that Go can speak; write one of those of crypto/tls", suite)
		case !suite.speaks(tls.VersionTLS12):
			c.fail(at, "%s is one of TLS 1.3, where Go offers its own suites and lets nobody choose; remove it (max_version: TLS12 keeps TLS 1.3 out)", suite)
		case twice:
			c.fail(at, "%s is there twice, first as entry %d; remove one", suite, before)
		default:
			first[suite] = i
		}
	}
}

func (c *checker) groups(groups []Group) {
	first := map[Group]int{}
	for i, group := range groups {
		at := "tls.groups[" + strconv.Itoa(i) + "]"
		before, twice := first[group]
		switch {
		case !c.good(at):
		case group.String() == "":
			c.fail(at, "%d is not the number of a group that Go can speak; write one of those of crypto/tls", group)
		case twice:
			c.fail(at, "%s is there twice, first as entry %d; remove one", group, before)
		default:
			first[group] = i
		}
	}
}

// tlsTogether checks settings of TLS against each other.
func (c *checker) tlsTogether(t *TLS) {
	if !c.good("tls.min_version", "tls.max_version") {
		return
	}
	if t.MaxVersion != 0 && t.MaxVersion < t.MinVersion {
		c.fail(c.first("tls.max_version", "tls.min_version"), "%s as max_version is below %s as min_version; write a higher max_version or a lower min_version", t.MaxVersion, t.MinVersion)
		return
	}
	if len(t.Ciphers) > 0 && c.goodList("tls.ciphers", len(t.Ciphers)) {
		c.ciphersOf(t)
	}
	if len(t.Groups) == 0 || !c.goodList("tls.groups", len(t.Groups)) || t.MaxVersion == 0 || t.MaxVersion == tls.VersionTLS13 {
		return
	}
	for _, group := range t.Groups {
		if !group.hybrid() {
			return
		}
	}
	c.fail(c.first("tls.groups", "tls.max_version"), "groups has hybrids only, which are of TLS 1.3, above %s as max_version; add for example X25519, or write a higher max_version", t.MaxVersion)
}

// ciphersOf refuses suites that no version which may be spoken has.
func (c *checker) ciphersOf(t *TLS) {
	if t.MinVersion == tls.VersionTLS13 {
		c.fail(c.first("tls.ciphers", "tls.min_version"), "ciphers choose nothing above TLS 1.2, where Go offers its own suites, and min_version is TLS13; remove them, or write min_version: TLS12 and max_version: TLS12")
		return
	}
	most := t.MaxVersion
	if most == 0 || most > tls.VersionTLS12 {
		most = tls.VersionTLS12
	}
	for _, suite := range t.Ciphers {
		if suite.speaks(most) {
			return
		}
	}
	c.fail(c.first("tls.ciphers", "tls.max_version"), "ciphers has suites of TLS 1.2 only, above %s as max_version; add for example ECDHE-RSA-AES128-SHA, or write a higher max_version", most)
}
