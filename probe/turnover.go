package probe

import "time"

// dueReason returns why the connection is due by the target's policy, or
// NotClosed. It is called with p.mu held, or for a link that is retired.
func (l *Link) dueReason(now Instant) CloseReason {
	t := &l.p.target
	switch {
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
	if l.replacing || p.closing || !p.target.Reuse || now < p.refill.next || l.dueReason(now) == NotClosed {
		return nil
	}
	l.replacing = true
	r := p.newLink()
	r.replaces = l
	return r
}

// takeOver puts a replacement in the place of the connection that it was
// opened for, and returns that one, and why it must be retired. It is called
// with p.mu held.
func (l *Link) takeOver(now Instant) (*Link, CloseReason) {
	p, old := l.p, l.replaces
	if old == nil {
		return nil, NotClosed
	}
	l.replaces = nil
	old.replacing = false
	why := old.dueReason(now)
	if _, there := p.links[old]; !there || old.retiring {
		old = nil
	} else {
		p.retire(old)
	}
	if p.open < p.target.Connections {
		p.count(l)
	} else {
		p.retire(l)
	}
	return old, why
}
