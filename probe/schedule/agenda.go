package schedule

import "github.com/steadyprobe/steadyprobe/probe"

// agenda is what a pacer has to do: a binary heap of its targets with the one
// that is due first at the root. It is written out because container/heap
// boxes what it moves. It is not safe for concurrent use.
type agenda struct {
	due     []due
	entries map[Taker]*entry
	added   uint64
}

// entry is one target of the agenda.
type entry struct {
	series // its next tick
	taker  Taker
	then   []Schedule    // each follows when the one before has ended
	given  probe.Instant // the last tick that was
	wake   probe.Instant // when Drain must be called, or never
}

// next goes on to the next tick.
func (e *entry) next() {
	e.given = e.tick
	e.advance()
	e.proceed()
}

// proceed goes on to the schedule that follows, where one has ended. What a
// late change finds given already by the one before is not given again.
func (e *entry) proceed() {
	for e.tick == never && len(e.then) > 0 {
		e.series = e.then[0].series()
		e.then = e.then[1:]
		for e.tick <= e.given {
			e.advance()
		}
	}
}

// due is when an entry is due. It lies in the heap itself, so that comparing
// two does not touch their entries.
type due struct {
	at    probe.Instant
	order uint64 // of being added, for those due at the same instant
	entry *entry
}

func (d *due) before(o *due) bool {
	return d.at < o.at || d.at == o.at && d.order < o.order
}

func newAgenda() agenda { return agenda{entries: map[Taker]*entry{}} }

// next returns when the agenda is due, or never.
func (a *agenda) next() probe.Instant {
	if len(a.due) == 0 {
		return never
	}
	return a.due[0].at
}

// give does the one thing of an agenda that is due and has waited longest.
func (a *agenda) give(now probe.Instant) {
	e := a.due[0].entry
	var wake probe.Instant
	// A taker that takes a tick drains too, so a wake of the same instant is
	// done with by the tick.
	if e.tick <= e.wake {
		wake = e.taker.Take(e.tick)
		e.next()
	} else {
		wake = e.taker.Drain()
	}
	e.wake = never
	if wake != 0 {
		// A wake that has passed waits its turn behind what is overdue.
		e.wake = max(wake, now)
	}
	a.due[0].at = min(e.tick, e.wake)
	a.down(0)
}

func (a *agenda) add(s Schedule, t Taker) {
	e := a.entries[t]
	if e == nil {
		e = &entry{taker: t, wake: never}
		a.entries[t] = e
		a.due = append(a.due, due{order: a.added, entry: e})
		a.added++
	}
	e.series, e.then = s.series(), nil
	a.moved(e)
}

// follow ends what a taker has at an instant, and gives it s from then on.
func (a *agenda) follow(s Schedule, at probe.Instant, t Taker) {
	e := a.entries[t]
	if e == nil {
		a.add(s, t)
		return
	}
	last := &e.schedule
	if n := len(e.then); n > 0 {
		last = &e.then[n-1]
	}
	if last.End == 0 || at < last.End {
		last.End = at
	}
	e.then = append(e.then, s)
	e.tick = e.within(e.tick)
	e.proceed()
	a.moved(e)
}

// wake has a taker drain.
func (a *agenda) wake(t Taker, now probe.Instant) {
	if e := a.entries[t]; e != nil {
		e.wake = min(e.wake, now)
		a.moved(e)
	}
}

// moved puts an entry in its place whose next instant has changed.
func (a *agenda) moved(e *entry) {
	k := a.find(e)
	a.due[k].at = min(e.tick, e.wake)
	a.up(k)
	a.down(k)
}

func (a *agenda) remove(t Taker) {
	e := a.entries[t]
	if e == nil {
		return
	}
	delete(a.entries, t)
	k, last := a.find(e), len(a.due)-1
	a.due[k] = a.due[last]
	a.due[last] = due{} // keeps no taker alive
	a.due = a.due[:last]
	if k < last {
		a.up(k)
		a.down(k)
	}
}

// find returns the place of an entry that is there. New ones are at the end.
func (a *agenda) find(e *entry) int {
	k := len(a.due) - 1
	for a.due[k].entry != e {
		k--
	}
	return k
}

// up moves the element at k towards the root until its parent is before it.
func (a *agenda) up(k int) {
	for k > 0 {
		parent := (k - 1) / 2
		if !a.due[k].before(&a.due[parent]) {
			return
		}
		a.due[k], a.due[parent] = a.due[parent], a.due[k]
		k = parent
	}
}

// down moves the element at k towards the leaves until it is before both its
// children.
func (a *agenda) down(k int) {
	for {
		first := 2*k + 1
		if first >= len(a.due) {
			return
		}
		if r := first + 1; r < len(a.due) && a.due[r].before(&a.due[first]) {
			first = r
		}
		if !a.due[first].before(&a.due[k]) {
			return
		}
		a.due[k], a.due[first] = a.due[first], a.due[k]
		k = first
	}
}
