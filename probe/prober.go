package probe

import (
	"context"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"
)

// Conn is a connection that carries ticks. Neither method blocks, and the
// Prober calls neither with its mutex held.
type Conn interface {
	// Send begins one tick and is followed by exactly one Link.Done, from its
	// reader, which may be before Send returns. It returns false when it
	// finds that the connection has ended and nothing was sent: then it has
	// called Link.Refuse, no Done follows, and the tick is the caller's again.
	Send(Tick) bool
	// Retire closes the connection for the reason: at once when it is idle,
	// after its last request when it is busy.
	Retire(CloseReason)
}

// Opener opens connections.
type Opener interface {
	// Open returns at once. It is followed by exactly one Link.Opened or
	// Link.Failed, from another goroutine.
	Open(*Link)
}

// Recorder keeps what the figures of a target are made of. Its methods are
// called concurrently and do not keep the sample.
type Recorder interface {
	// Record takes a completed tick.
	Record(*Sample)
	// RecordOpening takes an opening that belonged to no tick.
	RecordOpening(*Sample)
}

// Prober sends the ticks of one target over its connections and accounts for
// them. All its methods may be called concurrently, but only pacers call Take.
type Prober struct {
	clock    Clock
	recorder Recorder

	churn atomic.Uint32

	all      context.Context // ends when what is in flight must end
	abort    context.CancelFunc
	unbound  context.Context // ends when openings without a tick must end
	stopOpen context.CancelFunc

	mu        sync.Mutex
	target    Target // until Reconfigure gives another one
	opener    Opener // of new links
	ledger    Ledger
	backlog   backlog
	expiring  uint64 // left the backlog, about to be completed without a connection
	leaving   uint64 // ticks in flight on links that were withdrawn
	refused   int    // ticks in flight that look for another connection
	idle      idleList
	links     map[*Link]struct{}
	open      int // links that may carry ticks, or are being opened to
	lingering int // links that wait for the door to close them
	slots     int // most slots of any connection so far
	links0    chan struct{}
	catchNext Instant // when the next tick may leave the backlog, under CatchUp
	catchUp   *time.Timer
	running   bool                    // a closed loop, between Begin and Halt
	addresses map[netip.Addr]struct{} // of the target; none: any will do
	refill    refill
	warm      warmUp
	closing   bool
}

// New returns a Prober without connections. The target must be valid: a
// positive rate and at least one connection.
func New(target Target, clock Clock, opener Opener, recorder Recorder) *Prober {
	p := &Prober{
		target:   target,
		clock:    clock,
		opener:   opener,
		recorder: recorder,
		links:    map[*Link]struct{}{},
		slots:    1,
		links0:   make(chan struct{}),
	}
	p.all, p.abort = context.WithCancel(context.Background())
	p.unbound, p.stopOpen = context.WithCancel(p.all)
	return p
}

// SetChurn sets the churn phase of all ticks from now on.
func (p *Prober) SetChurn(c ChurnPhase) { p.churn.Store(uint32(c)) }

// Ledger returns the account of this instant.
func (p *Prober) Ledger() Ledger {
	p.mu.Lock()
	defer p.mu.Unlock()
	l := p.ledger
	l.Backlog = uint64(p.backlog.len()) + p.expiring
	return l
}

// Take accepts the tick that was due at intended. It never blocks: the tick
// goes to a connection at once, or into the backlog. It returns when the pacer
// must call Drain, or 0 for not at all.
func (p *Prober) Take(intended Instant) (wake Instant) {
	now := p.clock.Now()
	tick := Tick{Intended: intended, Churn: ChurnPhase(p.churn.Load())}
	p.mu.Lock()
	p.ledger.Scheduled++
	if p.closing {
		p.expiring++
		p.mu.Unlock()
		p.drop(Tick{Intended: intended, Taken: now, Churn: tick.Churn}, ScheduleShutdown)
		return 0
	}
	if p.backlog.len() == 0 {
		if l := p.place(); l != nil {
			p.mu.Unlock()
			p.start(l, tick)
			return 0
		}
	}
	tick.Taken = now
	p.backlog.push(tick)
	return p.drain(now)
}

// Begin starts a closed loop: from now on every free connection carries a
// tick. It is for targets that are Closed, and those get no ticks by Take.
func (p *Prober) Begin() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.running = true
	p.dispatch(p.clock.Now())
}

// Halt ends a closed loop: what is in flight goes on to its end.
func (p *Prober) Halt() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.running = false
}

// Drain moves on what waits in the backlog: ticks that expired are completed,
// and others sent where a connection is free. It returns as Take does.
func (p *Prober) Drain() (wake Instant) {
	p.mu.Lock()
	return p.drain(p.clock.Now())
}

// drain is called with mu held and releases it.
func (p *Prober) drain(now Instant) (wake Instant) {
	p.dispatch(now)
	if p.backlog.len() > 0 {
		wake = p.backlog.oldest().Taken.Add(p.target.Backlog)
		if p.catchNext > now { // only under CatchUp
			wake = min(wake, p.catchNext)
		}
	}
	p.mu.Unlock()
	return wake
}

// dispatch completes the ticks that have waited too long and starts as many of
// the others as there are places for. It is called with mu held, and releases
// it while a tick is recorded or started.
func (p *Prober) dispatch(now Instant) {
	p.expire(now)
	for p.mayLeave(now) {
		l := p.place()
		if l == nil {
			return
		}
		tick := p.leave(now)
		p.mu.Unlock()
		p.start(l, tick)
		p.mu.Lock()
	}
}

// start gives a tick that is counted as in flight to its link, and to another
// one where that turns out to have ended. It is called without mu.
func (p *Prober) start(l *Link, t Tick) {
	for l != nil {
		if l.conn == nil {
			l.tick, l.bound = t, true
			l.opener.Open(l)
			return
		}
		if l.conn.Send(t) {
			return
		}
		l = p.instead(&t)
	}
}

// instead finds another place for a tick that was refused, or puts it back
// where the oldest of the backlog wait and returns nil. It is called without
// mu.
func (p *Prober) instead(t *Tick) *Link {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.ledger.InFlight--
	l := p.place()
	switch {
	case l != nil:
	case p.closing:
		p.expiring++
		p.mu.Unlock()
		p.drop(*t, ScheduleShutdown)
		p.mu.Lock()
	default:
		if t.Taken == 0 {
			t.Taken = p.clock.Now()
		}
		p.backlog.pushFront(*t)
		// The pacer does not know of it, and may have nothing else to do.
		time.AfterFunc(t.Taken.Add(p.target.Backlog).Sub(p.clock.Now()), func() { p.Drain() })
	}
	p.refused--
	p.ended()
	return l
}

// place finds the connection for one tick and counts the tick as in flight,
// or returns nil. It is called with mu held; the tick must be started.
func (p *Prober) place() *Link {
	if p.ledger.InFlight-p.leaving >= uint64(p.target.Connections*p.slots) || p.closing {
		return nil
	}
	if l := p.idle.oldest(); l != nil && p.open >= p.target.ramp() {
		p.idle.take(l)
		l.busy++
		l.requests++
		p.ledger.InFlight++
		return l
	}
	if p.open < p.target.Connections {
		l := p.newLink()
		p.count(l)
		l.busy, l.requests = 1, 1
		p.ledger.InFlight++
		return l
	}
	return nil
}

// newLink is called with mu held.
func (p *Prober) newLink() *Link {
	l := &Link{p: p, opener: p.opener}
	p.links[l] = struct{}{}
	return l
}

// forget ends a link. It is called with mu held.
func (p *Prober) forget(l *Link) {
	delete(p.links, l)
	p.ended()
}

// ended lets Close return when nothing is left. It is called with mu held,
// after each change that may have been the last.
func (p *Prober) ended() {
	if p.closing && len(p.links) == 0 && p.refused == 0 {
		close(p.links0)
	}
}

// catchGap is the least time between two ticks that leave the backlog.
func (p *Prober) catchGap() time.Duration {
	return time.Duration(float64(time.Second) / (p.target.Rate * p.target.CatchUp))
}

// mayLeave reports whether a tick may leave the backlog now. In a closed loop
// there is always one that may, unless openings have just failed.
func (p *Prober) mayLeave(now Instant) bool {
	if p.closing {
		return false
	}
	if p.target.Closed {
		return (p.running || p.backlog.len() > 0) && now >= p.refill.next
	}
	return p.backlog.len() > 0 && (p.target.CatchUp == 0 || now >= p.catchNext)
}

// leave takes the oldest tick out of the backlog. In a closed loop that holds
// only ticks whose connection turned out to have ended; any other is due by
// being taken.
func (p *Prober) leave(now Instant) Tick {
	if p.target.Closed && p.backlog.len() == 0 {
		p.ledger.Scheduled++
		return Tick{Intended: now, Churn: ChurnPhase(p.churn.Load()), Closed: true}
	}
	if p.target.CatchUp > 0 {
		p.catchNext = max(p.catchNext, now).Add(p.catchGap())
	}
	return p.backlog.pop()
}

// catchUpLater drains the backlog when the next tick may leave it, for a place
// that was freed before. It is called with mu held.
func (p *Prober) catchUpLater(now Instant) {
	delay := p.catchNext.Sub(now)
	if p.catchUp == nil {
		p.catchUp = time.AfterFunc(delay, func() { p.Drain() })
		return
	}
	p.catchUp.Reset(delay)
}

// expire completes the ticks that have waited too long. It is called with mu
// held, and releases it while a tick is recorded.
func (p *Prober) expire(now Instant) {
	for p.backlog.len() > 0 && now.Sub(p.backlog.oldest().Taken) >= p.target.Backlog {
		tick := p.backlog.pop()
		p.expiring++
		p.mu.Unlock()
		p.drop(tick, ScheduleExpired)
		p.mu.Lock()
	}
}

// drop completes a tick that left the backlog without a connection and was
// counted in expiring. It is called without mu.
func (p *Prober) drop(t Tick, o Outcome) {
	s := Sample{Tick: t, End: p.clock.Now(), Outcome: o}
	p.recorder.Record(&s)
	p.mu.Lock()
	p.expiring--
	p.ledger.complete(&s, &p.target)
	p.mu.Unlock()
}

// Close ends the Prober: the backlog completes as schedule/shutdown, idle
// connections close, and what is in flight gets its time until ctx is done,
// when it completes as schedule/shutdown too. The schedule must have been
// removed from its pacer before. Close returns when every connection is gone,
// and may be called again.
func (p *Prober) Close(ctx context.Context) {
	p.mu.Lock()
	if !p.closing {
		p.closing = true
		p.refill.stop()
		if p.catchUp != nil {
			p.catchUp.Stop()
		}
		p.ended()
	}
	p.stopOpen()
	for p.backlog.len() > 0 {
		tick := p.backlog.pop()
		p.expiring++
		p.mu.Unlock()
		p.drop(tick, ScheduleShutdown)
		p.mu.Lock()
	}
	var conns []Conn
	for l := range p.links {
		if l.conn != nil && !l.retiring {
			p.retire(l)
			conns = append(conns, l.conn)
		}
	}
	p.mu.Unlock()
	for _, c := range conns {
		c.Retire(CloseShutdown)
	}
	select {
	case <-p.links0:
	case <-ctx.Done():
	}
	p.abort()
	<-p.links0
}
