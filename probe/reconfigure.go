package probe

import (
	"slices"
)

// Reconfigure makes the Prober probe another target of the same name. Counts,
// the backlog and what is in flight stay. Ticks that are due from now on follow
// the new target, and so does the waiting of those in the backlog; the caller
// has their schedule changed, and Drain called where the target's Backlog has
// become shorter.
//
// Without an opener the connections stay, but for those beyond the target's
// Connections. With one all are of settings that no longer hold: each is
// replaced, carries ticks until its replacement is open or has failed, and is
// then closed for the reason [CloseReload], after its request where it carries
// one. Requests in flight on such a connection do not count against the new
// target's Connections, so that a door that has stalled does not hold up the
// one that is probed in its place. Where the target does not reuse connections
// nothing replaces them. Connections that are being opened go on to serve the
// tick that they are bound to, and close.
//
// The addresses of [Prober.SetAddresses] stay; who has other ones calls that
// before, without any. It does nothing to a Prober that was closed.
func (p *Prober) Reconfigure(target Target, opener Opener) {
	now := p.clock.Now()
	p.mu.Lock()
	if p.closing {
		p.mu.Unlock()
		return
	}
	p.target = target
	var links []*Link
	var retired []Conn
	if opener == nil {
		retired = p.withdrawSurplus()
	} else {
		p.opener = opener
		p.refill.succeeded() // what failed belongs to the door of before
		links, retired = p.turnOver()
	}
	p.paceCatchUp(now)
	p.dispatch(now)
	refilled := p.refillLinks(now)
	if opener != nil {
		p.warm.restart(refilled)
	}
	p.mu.Unlock()
	for _, l := range slices.Concat(links, refilled) {
		l.opener.Open(l)
	}
	for _, c := range retired {
		c.Retire(CloseReload)
	}
}

// turnOver has every connection replaced, or withdraws it where nothing is to
// take its place. It returns the links to open and what is to be retired. It
// is called with mu held.
func (p *Prober) turnOver() (links []*Link, retired []Conn) {
	var open []*Link
	for l := range p.links {
		switch {
		case l.retiring:
			if !l.withdrawn {
				p.withdraw(l)
			}
		case l.conn == nil:
			if old := l.replaces; old != nil {
				old.replacing, l.replaces = false, nil
			}
			p.withdraw(l)
		default:
			open = append(open, l)
		}
	}
	for _, l := range open {
		if p.target.Reuse && len(links) < p.target.Connections {
			links = append(links, l.replacement(CloseReload))
			continue
		}
		p.withdraw(l)
		retired = append(retired, l.conn)
	}
	return links, retired
}

// withdrawSurplus withdraws the connections that the target may have no longer,
// idle ones first. It is called with mu held.
func (p *Prober) withdrawSurplus() (retired []Conn) {
	for _, busy := range []bool{false, true} {
		for l := range p.links {
			if p.open <= p.target.Connections {
				return retired
			}
			if !l.counted || l.retiring || l.busy > 0 != busy {
				continue
			}
			p.withdraw(l)
			if l.conn != nil {
				retired = append(retired, l.conn)
			}
		}
	}
	return retired
}

// withdraw retires a link whose settings hold no longer. What it carries has
// its time and is nothing that the target's limit counts. It is called with mu
// held.
func (p *Prober) withdraw(l *Link) {
	p.retire(l)
	l.withdrawn = true
	l.due = CloseReload
	p.leaving += uint64(l.busy)
}

// giveUp ends the wait for a replacement that failed, and returns the
// connection that must be retired without it: the settings of one that a
// reload has replaced hold no longer, whether or not the door of the new ones
// can be reached. It is called with p.mu held.
func (l *Link) giveUp() Conn {
	p, old := l.p, l.replaces
	if old == nil {
		return nil
	}
	l.replaces = nil
	old.replacing = false
	if _, there := p.links[old]; !there || old.retiring || old.due != CloseReload {
		return nil
	}
	p.withdraw(old)
	return old.conn
}

// paceCatchUp lets the backlog leave as fast as the target says from now on. It
// is called with mu held.
func (p *Prober) paceCatchUp(now Instant) {
	if p.target.CatchUp == 0 || p.target.Closed {
		p.catchNext = 0
		return
	}
	p.catchNext = min(p.catchNext, now.Add(p.catchGap()))
	if p.backlog.len() > 0 && p.catchNext > now {
		p.catchUpLater(now)
	}
}

// restart waits for other openings in the place of those that are waited for.
func (w *warmUp) restart(links []*Link) {
	if len(w.waiting) == 0 {
		return
	}
	clear(w.waiting)
	for _, l := range links {
		w.waiting[l] = struct{}{}
	}
	if len(links) == 0 {
		close(w.over)
	}
}
