package resolve

import (
	"net/netip"
	"slices"
	"sort"
	"time"

	"github.com/steadyprobe/steadyprobe/probe"
)

// Family says which addresses of a name are looked up, and of which of them
// connections are made where there are both. It says nothing of a host that is
// an address itself.
type Family uint8

// The families.
const (
	Any        Family = iota // both; preferred is what this host reaches best (RFC 6724)
	IPv4                     // only A records: a name without any is not found
	IPv6                     // only AAAA records
	PreferIPv4               // both, IPv4 preferred
	PreferIPv6               // both, IPv6 preferred
)

// network returns what is asked for.
func (f Family) network() string {
	switch f {
	case IPv4:
		return "ip4"
	case IPv6:
		return "ip6"
	}
	return "ip"
}

// admits reports whether an address is of a family that may be used.
func (f Family) admits(a netip.Addr) bool {
	return f == IPv4 && a.Is4() || f == IPv6 && a.Is6() || f != IPv4 && f != IPv6
}

// preferred returns the version of which connections are made first, where the
// best address that the lookup found is that one.
func (f Family) preferred(best netip.Addr) version {
	switch f {
	case PreferIPv4:
		return four
	case PreferIPv6:
		return six
	}
	return versionOf(best)
}

// version of the Internet protocol.
type version uint8

const (
	four version = iota
	six
	versions // how many there are
)

func versionOf(a netip.Addr) version {
	if a.Is4() {
		return four
	}
	return six
}

// other returns the version that is not v.
func (v version) other() version { return six - v }

// network returns what is asked for where only that version is.
func (v version) network() string { return [versions]string{"ip4", "ip6"}[v] }

// dealer deals addresses to openings. It is not locked.
//
// Connections are made to one version, the preferred one. Only where none of
// its addresses can be connected to, those of the other version are dealt, and
// one opening in each Refresh then tries the preferred one, until it connects.
// A dead address beside one that lives is dealt its share all the same: what
// fails of a door is to be seen, not avoided.
type dealer struct {
	first   bool
	refresh time.Duration

	addresses [versions][]netip.Addr // sorted, so that the order of answers does not matter
	preferred version
	last      [versions]netip.Addr // dealt last, or kept to if first
	failing   map[netip.Addr]struct{}
	trial     probe.Instant // when the preferred version is tried again
}

// take puts other addresses in the place of those that are known: found has
// at least one, is free of duplicates, and is in the order of the lookup.
func (d *dealer) take(found []netip.Addr, preferred version) {
	d.preferred = preferred
	for v := range versions {
		var of []netip.Addr
		for _, a := range found {
			if versionOf(a) == v {
				of = append(of, a)
			}
		}
		if d.first && len(of) > 0 && !slices.Contains(of, d.last[v]) {
			d.last[v] = of[0]
		}
		slices.SortFunc(of, netip.Addr.Compare)
		d.addresses[v] = of
	}
	for a := range d.failing {
		if !d.knows(a) {
			delete(d.failing, a)
		}
	}
}

// all returns the addresses, IPv4 before IPv6, each in ascending order.
func (d *dealer) all() []netip.Addr { return slices.Concat(d.addresses[four], d.addresses[six]) }

// knows reports whether a is in the answer.
func (d *dealer) knows(a netip.Addr) bool {
	return slices.Contains(d.addresses[versionOf(a)], a)
}

// deal returns the address for the next opening; it is not valid if none is
// known.
func (d *dealer) deal(now probe.Instant) netip.Addr {
	v := d.version(now)
	of := d.addresses[v]
	if len(of) == 0 {
		return netip.Addr{}
	}
	if !d.first {
		// By address, not by index: what comes and goes beside it changes
		// nobody's turn.
		next := sort.Search(len(of), func(i int) bool { return d.last[v].Less(of[i]) })
		d.last[v] = of[next%len(of)]
	}
	return d.last[v]
}

// version returns the one that is dealt now.
func (d *dealer) version(now probe.Instant) version {
	v := d.preferred
	switch {
	case len(d.addresses[v.other()]) == 0:
		return v
	case len(d.addresses[v]) == 0:
		return v.other()
	case !d.leadsNowhere(v) || d.leadsNowhere(v.other()):
		return v
	case now >= d.trial:
		d.trial = now.Add(d.refresh)
		return v
	}
	return v.other()
}

// leadsNowhere reports whether no address that is dealt of that version could
// be connected to when that was last tried.
func (d *dealer) leadsNowhere(v version) bool {
	if d.first {
		_, failing := d.failing[d.last[v]]
		return failing
	}
	for _, a := range d.addresses[v] {
		if _, failing := d.failing[a]; !failing {
			return false
		}
	}
	return true
}

// failed notes that a could not be connected to.
func (d *dealer) failed(a netip.Addr, now probe.Instant) {
	v := versionOf(a)
	before := d.leadsNowhere(v)
	d.failing[a] = struct{}{}
	if v == d.preferred && !before && d.leadsNowhere(v) {
		d.trial = now.Add(d.refresh)
	}
}
