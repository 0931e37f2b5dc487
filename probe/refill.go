package probe

import (
	"context"
	"time"
)

// Openings that belong to no tick are tried again after this, doubled with
// each failure up to the most.
const (
	refillFirst = 100 * time.Millisecond
	refillMost  = 5 * time.Second

	// A connection that the door closes unused within this time counts as an
	// opening that failed.
	refillIdle = time.Second
)

// refill paces the openings that belong to no tick, and those of a closed
// loop, so that a door is not hammered that is dead or ends every connection.
// It is guarded by the Prober's mutex.
type refill struct {
	delay time.Duration // 0: the last opening did not fail
	next  Instant       // none before
	timer *time.Timer
}

func (r *refill) succeeded() { r.delay, r.next = 0, 0 }

func (r *refill) failed(now Instant) {
	if now < r.next {
		return // one of several that failed together
	}
	r.delay = min(max(2*r.delay, refillFirst), refillMost)
	r.next = now.Add(r.delay)
}

// judge tells by a completed tick whether opening connections is of use. It is
// called with p.mu held.
func (l *Link) judge(s *Sample) {
	switch {
	case s.Outcome == Success:
		// In an open loop a success says nothing of the openings that fail beside
		// it: they must have ceased to for a while.
		if r := &l.p.refill; l.p.target.Closed || s.End.Sub(r.next) >= r.delay {
			r.succeeded()
		}
	case s.Close == NotClosed || l.requests > 1:
	case l.p.target.Closed && s.Protocol != NoProtocol:
		// An answer is an answer: the loop shows how many such a door gives.
	default:
		l.p.refill.failed(s.End) // not even the first request got through
	}
}

func (r *refill) stop() {
	if r.timer != nil {
		r.timer.Stop()
	}
}

// refillLinks returns the links that must be opened to keep a warm target's
// connections, or sets a timer where it is too early, for them or for the
// ticks of a closed loop. It is called with mu
// held; the links must be opened.
func (p *Prober) refillLinks(now Instant) (links []*Link) {
	if p.closing || !p.target.Warm && !p.target.Closed {
		return nil
	}
	if now < p.refill.next {
		// A closed loop waits for the timer whatever is open, running or not: it
		// gives out no tick before.
		if p.target.Closed || p.open < p.target.Connections {
			p.refillLater(now)
		}
		return nil
	}
	if !p.target.Warm {
		return nil // the ticks of the closed loop open them
	}
	for p.open < p.target.Connections {
		l := p.newLink()
		p.count(l)
		links = append(links, l)
	}
	return links
}

func (p *Prober) refillLater(now Instant) {
	delay := p.refill.next.Sub(now)
	if p.refill.timer == nil {
		p.refill.timer = time.AfterFunc(delay, p.fill)
		return
	}
	p.refill.timer.Reset(delay)
}

// fill opens what is missing of the target's connections.
func (p *Prober) fill() {
	p.mu.Lock()
	p.dispatch(p.clock.Now())
	links := p.refillLinks(p.clock.Now())
	p.mu.Unlock()
	for _, l := range links {
		l.opener.Open(l)
	}
}

// warmUp waits for the first openings of a warm target. It is guarded by the
// Prober's mutex.
type warmUp struct {
	waiting map[*Link]struct{}
	over    chan struct{}
}

// tried notes that an opening has succeeded or failed.
func (w *warmUp) tried(l *Link) {
	if _, waited := w.waiting[l]; !waited {
		return
	}
	delete(w.waiting, l)
	if len(w.waiting) == 0 {
		close(w.over)
	}
}

// WarmUp opens the connections of a warm target and returns when each has been
// opened or has failed once, or when ctx is done. It does nothing for other
// targets. It is to be called once, before the first tick.
func (p *Prober) WarmUp(ctx context.Context) {
	p.mu.Lock()
	links := p.refillLinks(p.clock.Now())
	over := make(chan struct{})
	p.warm = warmUp{waiting: map[*Link]struct{}{}, over: over}
	for _, l := range links {
		p.warm.waiting[l] = struct{}{}
	}
	p.mu.Unlock()
	for _, l := range links {
		l.opener.Open(l)
	}
	if len(links) == 0 {
		return
	}
	select {
	case <-over:
	case <-ctx.Done():
	}
}
