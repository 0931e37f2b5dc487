package probe

import (
	"context"
	"net/netip"
)

// Link is the Prober's side of one connection, from the start of its opening
// until it is gone. A connection goes
//
//	opening → busy ⇄ idle → closed, opening → closed, busy → closed
//
// and every change happens under the Prober's mutex. Only the connection's own
// goroutine calls the methods of a Link, but for Refuse, which is for who sends.
type Link struct {
	p *Prober

	// Set before the opening begins, constant from then on.
	opener Opener
	tick   Tick
	bound  bool // the opening belongs to tick

	// Guarded by p.mu. Only Opened sets conn, and who has been given a slot of
	// the link may read it without.
	replaces  *Link // the link that this one is opened for; nil: none
	conn      Conn
	slots     int
	busy      int // slots that carry a tick
	requests  uint64
	opened    Instant
	counted   bool        // in p.open
	retiring  bool        // takes no further tick
	withdrawn bool        // retiring because other settings hold
	lingering bool        // in p.lingering
	replacing bool        // a replacement is being opened
	due       CloseReason // why
	address   netip.Addr  // that it is connected to
	removed   bool        // the target has that address no longer

	// Of the idle list.
	listed     bool
	prev, next *Link
}

// Bound returns the tick that the opening belongs to, if it belongs to one.
func (l *Link) Bound() (Tick, bool) { return l.tick, l.bound }

// Context is done when the connection must end, whatever it is doing: its
// request, if any, then completes as schedule/shutdown.
func (l *Link) Context() context.Context {
	if l.bound || l.conn != nil {
		return l.p.all
	}
	return l.p.unbound
}

// Opened reports that the opening succeeded and that conn carries as many
// requests at once as slots. The caller goes on with the tick that the opening
// was bound to, if it was; conn must be ready for Send and Retire.
func (l *Link) Opened(conn Conn, slots int, s *Sample) {
	p := l.p
	if !l.bound {
		p.recorder.RecordOpening(s)
	}
	now := p.clock.Now()
	p.mu.Lock()
	l.conn, l.slots, l.opened = conn, slots, now
	l.address, l.removed = s.Address, p.elsewhere(s.Address)
	p.slots = max(p.slots, slots)
	p.ledger.Connections++
	p.ledger.Opened++
	p.warm.tried(l)
	if !l.bound {
		p.ledger.Bytes.Add(s.Bytes)
	}
	old, why := l.takeOver()
	if l.withdrawn {
		why = CloseReload
	}
	if p.closing {
		why = CloseShutdown
		p.retire(l)
	}
	if !l.retiring && l.busy < l.slots {
		p.idle.add(l)
	}
	retired := l.retiring
	p.dispatch(now)
	p.mu.Unlock()
	if old != nil {
		old.conn.Retire(why)
	}
	if retired {
		conn.Retire(why)
	}
}

// Failed reports that the opening failed, for good. The sample belongs to the
// tick that the opening was bound to, or to the opening alone.
func (l *Link) Failed(s *Sample) {
	p := l.p
	if l.bound {
		p.recorder.Record(s)
	} else {
		p.recorder.RecordOpening(s)
	}
	p.mu.Lock()
	var old Conn
	if l.bound {
		p.landed(l)
		p.ledger.complete(s, &p.target)
		if p.target.Closed {
			// No schedule paces what comes next: do not hammer a dead door.
			p.refill.failed(s.End)
		}
	} else {
		p.ledger.Bytes.Add(s.Bytes)
		if s.Outcome != ScheduleShutdown {
			p.ledger.OpeningFailures[s.Outcome]++
		}
		old = l.giveUp()
		if !l.withdrawn {
			p.refill.failed(s.End)
		}
		p.warm.tried(l)
	}
	l.uncount()
	p.forget(l)
	p.placeFreed(s.End)
	if old != nil {
		old.Retire(CloseReload)
	}
}

// Done completes the tick that the connection carries. Unless the sample says
// that the connection closes, it may return the next tick, which the caller
// sends itself; without one the connection is idle, or has been told to
// retire.
func (l *Link) Done(s *Sample) (next Tick, more bool) {
	p := l.p
	p.recorder.Record(s)
	p.mu.Lock()
	p.landed(l)
	p.ledger.complete(s, &p.target)
	l.judge(s)
	if s.Close != NotClosed {
		l.busy--
		p.retire(l)
		p.placeFreed(s.End)
		return Tick{}, false
	}
	// The slot stays busy until its fate is known: expire releases the mutex.
	before := l.withdrawn
	p.expire(s.End)
	l.busy--
	if l.withdrawn && !before {
		p.leaving-- // it was counted among those in flight
	}
	var replacement *Link
	if !l.retiring {
		replacement = l.replaceIfDue(s.End)
		if p.mayLeave(s.End) {
			l.busy++
			l.requests++
			p.ledger.InFlight++
			next, more = p.leave(s.End), true
		} else {
			p.idle.add(l)
			if p.backlog.len() > 0 && p.catchNext > s.End {
				p.catchUpLater(s.End)
			}
		}
	}
	p.mu.Unlock()
	if replacement != nil {
		replacement.opener.Open(replacement)
	}
	return next, more
}

// Refuse takes a connection out of service that was given a tick and turns out
// to have ended. Send calls it before it returns false.
func (l *Link) Refuse() {
	p := l.p
	p.mu.Lock()
	defer p.mu.Unlock()
	l.busy--
	l.requests--
	if l.withdrawn {
		p.leaving--
	}
	p.refused++
	p.retire(l)
}

// HandOn gives a tick that Done returned and Send refused to another
// connection.
func (l *Link) HandOn(t Tick) { l.p.start(l.p.instead(&t), t) }

// Leave takes an idle connection out of service, because it has ended or must
// close. It returns false when the connection was given a tick in the
// meantime, which then must be completed first.
func (l *Link) Leave() bool {
	p := l.p
	p.mu.Lock()
	defer p.mu.Unlock()
	if l.busy > 0 {
		return false
	}
	p.retire(l)
	return true
}

// Gone reports, as the last of all, that the connection is closed, and what it
// sent and received since its last sample. It carries no tick.
func (l *Link) Gone(reason CloseReason, b Bytes) {
	p := l.p
	now := p.clock.Now()
	p.mu.Lock()
	p.retire(l)
	if l.lingering {
		p.lingering--
	}
	if reason == ClosePeer && l.requests == 0 && now.Sub(l.opened) < refillIdle {
		p.refill.failed(now) // the door takes connections only to close them
	}
	p.ledger.Connections--
	p.ledger.Closed[reason]++
	p.ledger.Bytes.Add(b)
	p.forget(l)
	p.placeFreed(now)
}

// Linger reports whether a connection that carries no further request may wait
// for the door to close it. At most as many as the target has connections may.
func (l *Link) Linger() bool {
	p := l.p
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closing || p.lingering >= p.target.Connections {
		return false
	}
	p.lingering++
	l.lingering = true
	return true
}

// landed takes a tick that its link has completed off the flight. It is called
// with mu held.
func (p *Prober) landed(l *Link) {
	p.ledger.InFlight--
	if l.withdrawn {
		p.leaving--
	}
}

// retire takes a link out of service. It is called with mu held.
func (p *Prober) retire(l *Link) {
	l.retiring = true
	p.idle.drop(l)
	l.uncount()
}

// uncount gives up the link's place among the target's connections. It is
// called with p.mu held.
func (l *Link) uncount() {
	if l.counted {
		l.counted = false
		l.p.open--
	}
}

// placeFreed uses the place that a link has given up: for the oldest tick of
// the backlog, else for a new connection where warm is on. It is called with
// mu held and releases it.
func (p *Prober) placeFreed(now Instant) {
	p.dispatch(now)
	links := p.refillLinks(now)
	p.mu.Unlock()
	for _, l := range links {
		l.opener.Open(l)
	}
}

// count gives the link a place among the target's connections. It is called
// with mu held.
func (p *Prober) count(l *Link) {
	p.open++
	l.counted = true
}
