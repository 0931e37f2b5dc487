package config

import (
	"math/big"
	"net"
	"net/netip"
	"os"
	"reflect"
	"strconv"
	"strings"
)

// portHold is for how long a closed connection may hold its local port, in
// seconds (TIME_WAIT of Linux).
const portHold = 60

// warnings reports what works and is probably not meant.
func (c *checker) warnings(t *Target) {
	if t.TLS.InsecureSkipVerify && (t.URL.TLS() || t.URL.IsZero()) {
		c.warn("tls.insecure_skip_verify", "any certificate is accepted, so that nobody knows who answers; write ca_file with the door's authority instead")
	}
	c.tlsWithoutTLS(t)
	c.tlsChoices(t)
	c.nothingToLookUp(t)
	c.keptBodies(t)
	if b := &t.Backend; b.Header == "" && b.Body.IsZero() && b.Most != builtInTarget().Backend.Most && !c.inherited("backend.most") && c.good("backend") {
		c.warn("backend.most", "limits nothing, as nothing says who answered; write backend.header or backend.body too, or remove it")
	}
	if !c.good("timeout") {
		return
	}
	for _, limit := range []struct {
		path string
		long bool
	}{
		{"timeouts.connect", t.Timeouts.Connect > t.Timeout},
		{"timeouts.tls", t.Timeouts.TLS > t.Timeout},
		{"timeouts.response", t.Timeouts.Response > t.Timeout},
	} {
		if limit.long {
			c.warn(limit.path, "is longer than timeout (%s), which ends the request before; write less, or a longer timeout", durationText(t.Timeout))
		}
	}
}

// tlsWithoutTLS warns about settings of TLS for a door that is spoken to
// without. The defaults may have them, for other targets.
func (c *checker) tlsWithoutTLS(t *Target) {
	if t.URL.IsZero() || t.URL.TLS() {
		return
	}
	settings, silent := reflect.ValueOf(t.TLS), reflect.ValueOf(builtInTarget().TLS)
	for i, name := range fieldsOf(settings.Type()) {
		path := join("tls", name)
		if !c.inherited(path) && !reflect.DeepEqual(settings.Field(i).Interface(), silent.Field(i).Interface()) {
			c.warn(path, "has no effect on a door whose URL begins with %s://; write %s://, or remove it", t.URL.Scheme(), overTLS(t.URL))
		}
	}
}

// overTLS returns the scheme that speaks to the door over TLS.
func overTLS(u URL) string {
	if u.HTTP() {
		return "https"
	}
	return "tls"
}

// tlsChoices warns about handshakes that are not those that are meant.
func (c *checker) tlsChoices(t *Target) {
	if t.URL.IsZero() || !t.URL.TLS() {
		return
	}
	if !t.Connection.Reuse && t.TLS.Resumption && !c.written("tls.resumption") && !c.inherited("tls.resumption") {
		c.warn("tls.resumption", "is true where nothing is written, so that a new connection per request measures resumed handshakes where the door offers them; write false for full ones, or true if that is meant")
	}
	if len(t.TLS.Ciphers) == 0 || !c.goodList("tls.ciphers", len(t.TLS.Ciphers)) {
		return
	}
	if t.TLS.MaxVersion == 0 {
		c.warn("tls.ciphers", "choose nothing when the door speaks TLS 1.3; write max_version: TLS12 to insist on them, or max_version: TLS13 if that is meant")
	}
	for i, suite := range t.TLS.Ciphers {
		if suite.insecure() {
			c.warn("tls.ciphers["+strconv.Itoa(i)+"]", "%s is not secure, and is offered only because it is written; write ECDHE-RSA-AES128-GCM-SHA256, unless the door insists", suite)
		}
	}
}

// nothingToLookUp warns about settings of lookups for a door whose address is
// written. The defaults may have them, for other targets.
func (c *checker) nothingToLookUp(t *Target) {
	host, _, err := net.SplitHostPort(t.DialAddress())
	if err != nil {
		return
	}
	if _, err := netip.ParseAddr(host); err != nil {
		return
	}
	from := "url"
	if t.ConnectTo != "" {
		from = "connect_to"
	}
	silent := builtInTarget()
	for _, path := range []string{"dns.refresh", "dns.family", "dns.spread", "dns.server"} {
		if !c.inherited(path) && settingAt(t, path).Interface() != settingAt(&silent, path).Interface() {
			c.warn(path, "has no effect, as the address in %s is dialled and nothing is looked up; write a name there, or remove it", from)
		}
	}
}

// mostKept is how much the bodies that a target's connections keep may come to
// before that is warned about.
const mostKept = Size(1) << 30

// keptBodies warns about memory that a door may fill.
func (c *checker) keptBodies(t *Target) {
	e := &t.Expect
	keeps := !e.Body.IsZero() || e.BodyContains != "" || !t.Backend.Body.IsZero() || !t.TCP.Expect.IsZero()
	if !keeps || !c.good("expect", "connections") {
		return
	}
	if e.MaxBody > mostKept/Size(t.Connections) {
		c.warn("expect.max_body", "%d connections that may each keep a body of %s until it is whole may take more than %s of memory; write a smaller max_body, or fewer connections",
			t.Connections, e.MaxBody, mostKept)
	}
}

// warnPorts warns about doors whose new connections per request may take more
// local ports than there are, at the target that is too much.
func warnPorts(targets []Target, checkers []*checker, ports int) {
	type sum struct {
		rate   *big.Rat
		warned bool
	}
	doors := map[string]*sum{}
	most := new(big.Rat).SetInt64(int64(ports))
	for i := range targets {
		t := &targets[i]
		if t.Connection.Reuse || t.URL.IsZero() {
			continue
		}
		path, meant, or := "connection.reuse", "false", ", or reuse: true"
		if !t.URL.HTTP() {
			path, meant, or = "rate", "a connection per tick", ""
		}
		if t.Rate.Max() {
			checkers[i].warn(path, "%s in a closed loop may hold all %d local ports (%d s each) that there are per address of the door, and then requests fail; write a rate of at most %d%s",
				meant, ports, portHold, ports/portHold, or)
			continue
		}
		door := doors[t.DialAddress()]
		if door == nil {
			door = &sum{rate: new(big.Rat)}
			doors[t.DialAddress()] = door
		}
		door.rate.Add(door.rate, t.Rate.Rat())
		held := new(big.Rat).Mul(door.rate, new(big.Rat).SetInt64(portHold))
		if held.Cmp(most) <= 0 || door.warned {
			continue
		}
		door.warned = true
		checkers[i].warn(path, "%s at %s requests/s may hold %s local ports (%d s each), above the %d that there are per address of the door; write a rate of at most %d%s",
			meant, decimalText(door.rate), decimalText(held), portHold, ports, ports/portHold, or)
	}
}

// Local ports of a machine that does not say otherwise (Linux, ip(7)).
const (
	firstPort = 32768
	lastPort  = 60999
)

// localPorts returns how many local ports there are for connections to one
// address.
func localPorts() int {
	data, err := os.ReadFile("/proc/sys/net/ipv4/ip_local_port_range")
	if err != nil {
		return lastPort - firstPort + 1
	}
	return portsIn(string(data))
}

func portsIn(text string) int {
	if ends := strings.Fields(text); len(ends) == 2 {
		first, err1 := strconv.Atoi(ends[0])
		last, err2 := strconv.Atoi(ends[1])
		if err1 == nil && err2 == nil && first <= last {
			return last - first + 1
		}
	}
	return lastPort - firstPort + 1
}
