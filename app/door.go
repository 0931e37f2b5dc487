package app

import (
	"fmt"
	"maps"
	"net"
	"net/netip"
	"slices"
	"strconv"

	"github.com/steadyprobe/steadyprobe/config"
	"github.com/steadyprobe/steadyprobe/probe"
	"github.com/steadyprobe/steadyprobe/probe/record"
	"github.com/steadyprobe/steadyprobe/probe/resolve"
	"github.com/steadyprobe/steadyprobe/probe/wire"
)

// newResolver returns what finds the addresses of a target's door, and tells
// places whenever there are others. It takes the place of the resolver after,
// where that is not nil.
func newResolver(c *config.Target, clock probe.Clock, places *places, after *resolve.Resolver) (*resolve.Resolver, error) {
	host, portText, err := net.SplitHostPort(c.DialAddress())
	if err != nil {
		return nil, err
	}
	port, err := strconv.ParseUint(portText, 10, 16)
	if err != nil {
		return nil, fmt.Errorf("port %q: %w", portText, err)
	}
	var r *resolve.Resolver
	r = resolve.New(resolve.Options{
		Host:    host,
		Port:    uint16(port),
		Refresh: c.DNS.Refresh,
		Clock:   clock,
		Family:  family(c.DNS.Family),
		First:   c.DNS.Spread == "first",
		Server:  c.DNS.ServerAddress(),
		Allow:   reach(c),
		After:   after,
		Changed: func(addresses []netip.Addr) { places.changed(r, addresses) },
	})
	return r, nil
}

func family(word string) resolve.Family {
	switch word {
	case "ipv4":
		return resolve.IPv4
	case "ipv6":
		return resolve.IPv6
	case "prefer_ipv4":
		return resolve.PreferIPv4
	case "prefer_ipv6":
		return resolve.PreferIPv6
	}
	return resolve.Any
}

// newOpener returns what opens the connections of a target. The recorder knows
// its backends.
func (e *engine) newOpener(t *target, version string, base *record.Recorder) probe.Opener {
	c := &t.config
	proxy := wire.ProxyHeader{Source: c.Connection.SourceAddress()}
	switch c.Connection.ProxyProtocol {
	case "v1":
		proxy.Version = 1
	case "v2":
		proxy.Version = 2
	}
	var tlsConfig wire.TLSConfigFunc
	if c.URL.TLS() {
		tlsConfig = newCertificates(c, e.clock, e.logger).config
	}
	way := wire.Way{
		Clock:          e.clock,
		Resolver:       t.resolver,
		Proxy:          proxy,
		TLSConfig:      tlsConfig,
		Timeout:        c.Timeout,
		ConnectTimeout: c.Timeouts.Connect,
		TLSTimeout:     c.Timeouts.TLS,
		FirstFailure:   func(o probe.Outcome, err error) { e.failures.tell(c.Name, o, err) },
	}
	var names *probe.Backends
	if backendsOf(c) > 0 {
		names = base.Backends()
	}
	if !c.URL.HTTP() {
		return wire.NewStream(wire.StreamOptions{
			Way:             way,
			Send:            []byte(c.TCP.Content().Reveal()),
			Expect:          c.TCP.Expect.Regexp(),
			Turns:           e.turns,
			MaxBody:         c.Expect.MaxBody.Bytes(),
			ResponseTimeout: c.Timeouts.Response,
		})
	}
	return wire.NewOpener(wire.Options{
		Way:             way,
		Loop:            e.loop,
		Request:         request(c, version),
		Reuse:           c.Connection.Reuse,
		ResponseTimeout: c.Timeouts.Response,
		Statuses:        statuses(c.Expect),
		Expect:          expected(&c.Expect),
		Turns:           e.turns,
		Backend:         wire.BackendRule{Header: c.Backend.Header, Body: c.Backend.Body.Regexp(), Names: names},
		MaxBody:         c.Expect.MaxBody.Bytes(),
	})
}

// request returns what every tick of the target sends.
func request(c *config.Target, version string) wire.Request {
	r := wire.Request{
		Method: c.HTTP.Method,
		Target: c.URL.RequestURI(),
		Host:   c.HostHeader(),
		// So that logs, firewalls and bills can be filtered.
		UserAgent: fmt.Sprintf("steadyprobe/%s (+%s)", version, c.Name),
		Body:      []byte(c.HTTP.Content().Reveal()),
	}
	for _, h := range c.HeaderFields() {
		r.Headers = append(r.Headers, wire.Header{Name: h.Name, Value: h.Value.Reveal()})
	}
	return r
}

func statuses(e config.Expect) (s wire.Statuses) {
	for code := 100; code <= 599; code++ {
		if e.Accepts(code) {
			s.Add(code, code)
		}
	}
	return s
}

func expected(e *config.Expect) wire.Expect {
	expect := wire.Expect{Body: e.Body.Regexp(), BodyContains: []byte(e.BodyContains)}
	if e.BodySize != nil {
		size := e.BodySize.Bytes()
		expect.BodySize = &size
	}
	if sum, ok := e.BodySum(); ok {
		expect.BodySHA256 = &sum
	}
	for _, name := range slices.Sorted(maps.Keys(e.Headers)) {
		expect.Headers = append(expect.Headers, wire.HeaderExpectation{Name: name, Value: e.Headers[name].Regexp()})
	}
	return expect
}
