package probe

import (
	"net/netip"
	"time"
)

// dueReason returns why the connection is due by the target's policy, or
// NotClosed. It is called with p.mu held, or for a link that is retired.
func (l *Link) dueReason(now Instant) CloseReason {
	t := &l.p.target
	switch {
	case l.removed:
		return CloseAddressRemoved
	case t.MaxRequests > 0 && l.requests >= t.MaxRequests:
		return CloseMaxRequests
	case t.MaxAge > 0 && now.Sub(l.opened) >= l.ageLimit():
		return CloseMaxAge
	}
	return NotClosed
}

// ageLimit is between 90 and 100 percent of max_age, so that connections which
// were opened together are not replaced together.
func (l *Link) ageLimit() time.Duration {
	limit := l.p.target.MaxAge
	return limit - limit*time.Duration(uint64(l.opened)%97)/970
}

// replaceIfDue returns the link to open in the place of one that is due, or
// nil. It is called with p.mu held.
func (l *Link) replaceIfDue(now Instant) *Link {
	p := l.p
	if l.replacing || p.closing || !p.target.Reuse || now < p.refill.next {
		return nil
	}
	why := l.dueReason(now)
	if why == NotClosed {
		return nil
	}
	return l.replacement(why)
}

// replacement returns the link to open in the place of l. It is called with
// p.mu held.
func (l *Link) replacement(why CloseReason) *Link {
	l.due, l.replacing = why, true
	r := l.p.newLink()
	r.replaces = l
	return r
}

// takeOver puts a replacement in the place of the connection that it was
// opened for, and returns that one, and why it must be retired. It is called
// with p.mu held.
func (l *Link) takeOver() (*Link, CloseReason) {
	p, old := l.p, l.replaces
	if old == nil {
		return nil, NotClosed
	}
	l.replaces = nil
	old.replacing = false
	p.refill.delay = 0 // some openings lead somewhere: the next wait is a short one
	why := old.due
	switch _, there := p.links[old]; {
	case !there || old.retiring:
		old = nil
	case why == CloseReload:
		p.withdraw(old)
	default:
		p.retire(old)
	}
	if p.open < p.target.Connections {
		p.count(l)
	} else {
		p.retire(l)
	}
	return old, why
}

// SetAddresses says which addresses the target has from now on. Connections to
// others are due: each is replaced, at once where it is idle, else after its
// request, and then closed. A new address ends the wait of openings that failed
// at the old ones. Until it is called every address will do.
func (p *Prober) SetAddresses(addresses []netip.Addr) {
	now := p.clock.Now()
	set := make(map[netip.Addr]struct{}, len(addresses))
	for _, a := range addresses {
		set[a] = struct{}{}
	}
	p.mu.Lock()
	moved := p.gains(set)
	p.addresses = set
	var links []*Link
	if moved && now < p.refill.next {
		p.refill.next = 0
		p.dispatch(now)
		links = p.refillLinks(now)
	}
	for l := range p.links {
		if l.conn == nil || l.retiring {
			continue
		}
		l.removed = p.elsewhere(l.address)
		if l.removed && l.busy == 0 {
			if r := l.replaceIfDue(now); r != nil {
				links = append(links, r)
			}
		}
	}
	p.mu.Unlock()
	for _, l := range links {
		l.opener.Open(l)
	}
}

// gains reports whether an address of the set is new. It is called with p.mu
// held.
func (p *Prober) gains(set map[netip.Addr]struct{}) bool {
	for a := range set {
		if _, known := p.addresses[a]; !known {
			return true
		}
	}
	return false
}

// elsewhere reports whether a is no address of the target. It is called with
// p.mu held.
func (p *Prober) elsewhere(a netip.Addr) bool {
	_, there := p.addresses[a]
	return len(p.addresses) > 0 && a.IsValid() && !there
}
