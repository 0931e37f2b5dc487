package schedule

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/steadyprobe/steadyprobe/probe"
)

// Lead is how far ahead of the present a new schedule should start, so that
// the pacer has seen it when its first tick is due.
const Lead = 100 * time.Millisecond

// maxSleep is how long a pacer does not look for changes: short enough that
// it has seen a schedule well within its lead.
const maxSleep = Lead / 2

// Taker takes the ticks of one schedule. Pacers call its methods, each from
// one goroutine, and they must not block, for they hold up every other
// target. Both return the instant at which the pacer must call Drain, 0 for
// not at all; it replaces the one that was returned before. The value must be
// comparable, such as a pointer.
type Taker interface {
	// Take is called once for each tick, at its intended time or later.
	Take(intended probe.Instant) (wake probe.Instant)
	// Drain is called at the wake instant or later.
	Drain() (wake probe.Instant)
}

// Options is what a pacer is made of.
type Options struct {
	Clock Clock // [Precise] for real traffic; required
	// Quantum makes the pacer wake up only at multiples of it and give all that
	// became due since: less CPU for lateness, half of it on the average. 0: it
	// wakes up for each tick.
	Quantum time.Duration
}

// Economy is the quantum of economical pacing.
const Economy = time.Millisecond

// Pacer gives the ticks of many schedules to their takers, from one goroutine.
//
// No tick is ever skipped, merged or given early. When the pacer is late,
// every overdue tick is given with its own intended time, the oldest of all
// targets first, and changes are still seen between any two of them. All
// methods may be called concurrently.
type Pacer struct {
	clock   Clock
	quantum time.Duration
	woke    atomic.Int64

	mu      sync.Mutex
	running bool
	changes []change
	changed atomic.Bool // there are changes; spares the loop the mutex

	// Owned by Run while running, guarded by mu otherwise.
	agenda agenda
	yield  probe.Yield
}

// change is one call of Add, Follow, Wake or Remove that Run has not seen yet.
type change struct {
	what     what
	taker    Taker
	schedule Schedule
	at       probe.Instant // of Follow
	removed  chan struct{} // of Remove
}

type what uint8

const (
	added what = iota
	followed
	woken
	removed
)

// mostChanges is how many changes are made between two ticks: finding a target
// takes some microseconds where there are thousands.
const mostChanges = 16

// New returns a pacer without schedules. It does nothing until Run is called.
func New(o Options) *Pacer {
	return &Pacer{clock: o.Clock, quantum: o.Quantum, agenda: newAgenda()}
}

// Run gives ticks until ctx is done, which it sees within 100 ms. Schedules stay when it returns: a later Run gives
// what became overdue in between. It panics when the pacer already runs.
func (p *Pacer) Run(ctx context.Context) {
	p.begin()
	defer p.end()
	done := ctx.Done()
	for {
		select {
		case <-done:
			return
		default:
			p.turn()
		}
	}
}

// Add gives the ticks of s to t from now on. A new schedule should start at
// least [Lead] ahead; ticks of one that starts earlier, even in the past, are
// overdue and all given. A taker has one schedule: a second one replaces the
// first, whose further ticks are not given. Add does not wait for the pacer.
func (p *Pacer) Add(s Schedule, t Taker) {
	p.change(change{what: added, schedule: s, taker: t})
}

// Follow gives t the ticks of the schedule that it has as far as they are
// intended before at, and those of s from then on. S should have none before
// at, and at should lie [Lead] ahead: a tick that was given before the pacer
// came to know of the change is not taken back, and none of s that is intended
// at the same instant or earlier is given. Several changes follow one another
// in the order of the calls, and each at must be later than the one before. For
// a taker that was not added it is Add. Follow does not wait for the pacer.
func (p *Pacer) Follow(s Schedule, at probe.Instant, t Taker) {
	p.change(change{what: followed, schedule: s, at: at, taker: t})
}

// Wake has Drain of t called soon, because what it returned last no longer
// holds. It does nothing for a taker that was not added, and does not wait for
// the pacer.
func (p *Pacer) Wake(t Taker) { p.change(change{what: woken, taker: t}) }

// change makes a change, or has Run make it.
func (p *Pacer) change(c change) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.changes = append(p.changes, c)
	if p.running {
		p.changed.Store(true)
		return
	}
	p.apply(len(p.changes))
}

// Remove returns when the pacer does not call t and never will again, which
// takes up to 100 ms while it runs. Ticks that are overdue by then are not
// given. It does nothing for a taker that was not added, and must not be
// called from a taker.
func (p *Pacer) Remove(t Taker) {
	over := make(chan struct{})
	p.change(change{what: removed, taker: t, removed: over})
	<-over
}

// Woke returns when the pacer last woke up, 0 before it first did. While it
// runs and its takers do not block, that is less than 100 ms ago, unless the
// machine starves it.
func (p *Pacer) Woke() probe.Instant { return probe.Instant(p.woke.Load()) }

func (p *Pacer) begin() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.running {
		panic("schedule: Run called while the pacer runs")
	}
	p.running = true
	p.woke.Store(int64(p.clock.Now()))
}

func (p *Pacer) end() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.running = false
	p.apply(len(p.changes))
}

// turn gives one tick, or one wake, or sleeps until the next. It does one
// thing only, so that changes are seen between any two ticks of a burst.
func (p *Pacer) turn() {
	more := p.changed.Load()
	if more {
		p.mu.Lock()
		p.apply(mostChanges)
		more = len(p.changes) > 0
		p.mu.Unlock()
	}
	now := p.clock.Now()
	p.woke.Store(int64(now))
	if next := p.agenda.next(); next > now {
		if more {
			return
		}
		p.yield.Now(now)
		p.clock.SleepUntil(min(p.rounded(next), now.Add(maxSleep)))
		return
	}
	p.agenda.give(now)
}

// rounded returns when the pacer wakes up for what is due then.
func (p *Pacer) rounded(due probe.Instant) probe.Instant {
	if p.quantum == 0 || due == never {
		return due
	}
	quantum := probe.Instant(p.quantum)
	return (due + quantum - 1) / quantum * quantum
}

// apply makes the changes that were asked for, so many of them at most. It is
// called with mu held.
func (p *Pacer) apply(most int) {
	n := min(most, len(p.changes))
	for _, c := range p.changes[:n] {
		switch c.what {
		case added:
			p.agenda.add(c.schedule, c.taker)
		case followed:
			p.agenda.follow(c.schedule, c.at, c.taker)
		case woken:
			p.agenda.wake(c.taker, p.clock.Now())
		case removed:
			p.agenda.remove(c.taker)
			close(c.removed)
		}
	}
	clear(p.changes[:n]) // keeps no taker alive
	if n < len(p.changes) {
		p.changes = p.changes[n:]
		return
	}
	p.changes = p.changes[:0]
	p.changed.Store(false)
}
