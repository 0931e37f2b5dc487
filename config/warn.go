package config

import (
	"math/big"
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
			c.warn(path, "has no effect on a door whose URL begins with http://; write https://, or remove it")
		}
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
		if t.Rate.Max() {
			checkers[i].warn("connection.reuse", "false in a closed loop may hold all %d local ports (%d s each) that there are per address of the door, and then requests fail; write a rate of at most %d, or reuse: true",
				ports, portHold, ports/portHold)
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
		checkers[i].warn("connection.reuse", "false at %s requests/s may hold %s local ports (%d s each), above the %d that there are per address of the door; write a rate of at most %d, or reuse: true",
			decimalText(door.rate), decimalText(held), portHold, ports, ports/portHold)
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
