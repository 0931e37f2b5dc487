package app

import (
	"context"
	"log/slog"
	"math/rand/v2"
	"runtime"
	"slices"
	"sync"

	"github.com/steadyprobe/steadyprobe/probe"
	"github.com/steadyprobe/steadyprobe/probe/schedule"
)

// pacerRate is how many ticks a second one pacer is given. It can send
// more, but then it is late for others while it sends for one.
const pacerRate = 20_000

// pacing starts and stops the traffic of targets, from as many pacers
// as their rates need and the machine has processors to spare. Its methods may
// be called concurrently.
type pacing struct {
	clock   probe.Clock
	sleeper schedule.Clock
	logger  *slog.Logger
	most    int // precise pacers

	mu      sync.Mutex
	precise []*pacer // the first one is always there
	economy *pacer   // nil before the first target that asks for it
}

// pacer is one that runs.
type pacer struct {
	*schedule.Pacer
	rate    float64 // of its targets, requests per second
	stop    context.CancelFunc
	ended   chan struct{}
	restore func() // GOMAXPROCS
}

// newPacing starts the first pacer.
func newPacing(clock probe.Clock, sleeper schedule.Clock, logger *slog.Logger) *pacing {
	p := &pacing{clock: clock, sleeper: sleeper, logger: logger, most: max(1, runtime.NumCPU()-1)}
	p.precise = []*pacer{p.startPacer(schedule.Options{})}
	return p
}

func (p *pacing) startPacer(o schedule.Options) *pacer {
	o.Clock = p.sleeper
	ctx, cancel := context.WithCancel(context.Background())
	t := &pacer{Pacer: schedule.New(o), stop: cancel, ended: make(chan struct{}), restore: schedule.ReserveProcs(1, p.logger)}
	go func() {
		defer close(t.ended)
		t.Run(ctx)
	}()
	return t
}

// close ends all pacers. All targets must have been removed.
func (p *pacing) close() {
	for _, t := range p.pacers() {
		t.stop()
		<-t.ended
		t.restore()
	}
}

func (p *pacing) pacers() []*pacer {
	p.mu.Lock()
	defer p.mu.Unlock()
	pacers := append([]*pacer(nil), p.precise...)
	if p.economy != nil {
		pacers = append(pacers, p.economy)
	}
	return pacers
}

// woke returns when the pacer that has slept longest last woke up.
func (p *pacing) woke() probe.Instant {
	pacers := p.pacers()
	oldest := pacers[0].Woke()
	for _, t := range pacers {
		oldest = min(oldest, t.Woke())
	}
	return oldest
}

// traffic is what pacing knows of a target, whatever its settings are. It is
// guarded by pacing's mutex.
type traffic struct {
	target   *target           // with the settings that hold; nil before it begins
	latest   *target           // that change was told of; nil: the first ones
	schedule schedule.Schedule // of this process
	paced    []*pacer          // that give its ticks
	left     []*pacer          // that gave them under other settings, and may still have it drain
	load     float64           // requests per second that the pacers were told of, all together
	changed  probe.Instant     // when the schedule did
	removed  bool
}

// add starts the traffic of a target at origin, and ends it at end unless that
// is 0. It returns how many ticks there will be until then. A closed loop
// starts at once and goes on until it is removed; its ticks are not known. It
// does nothing for one that was removed.
func (p *pacing) add(t *target, origin, end probe.Instant) (ticks uint64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.start(t, origin, end)
}

// begin is add without an end, for a target whose settings may have changed
// since. They say its origin.
func (p *pacing) begin(t *target, origin func(*target) probe.Instant) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if latest := t.traffic.latest; latest != nil {
		t = latest
	}
	p.start(t, origin(t), 0)
}

// start is add. It is called with mu held.
func (p *pacing) start(t *target, origin, end probe.Instant) (ticks uint64) {
	if t.traffic.removed {
		return 0
	}
	t.traffic.target = t
	if t.closed() {
		t.prober.Begin()
		return 0
	}
	t.traffic.schedule = p.schedule(t, t.ticks(origin, end))
	pacers := p.assign(t)
	for i, share := range t.traffic.schedule.Split(len(pacers)) {
		ticks += share.Count(end)
		pacers[i].Add(share, t.prober)
	}
	return ticks
}

// ticks returns the schedule of all processes together.
func (t *target) ticks(origin, end probe.Instant) schedule.Schedule {
	s := schedule.Schedule{Origin: origin, Rate: t.rate, End: end}
	if t.config.Arrival == "poisson" {
		s.Poisson, s.Seed = true, rand.Uint64()
	}
	return s
}

// sameTicks reports whether two settings of a target have the same schedule from
// the same pacers.
func (t *target) sameTicks(o *target) bool {
	mine, others := t.part, o.part
	mine.connections, others.connections = 0, 0
	return t.closed() == o.closed() && t.rate == o.rate && mine == others &&
		t.config.Arrival == o.config.Arrival && t.config.Pacing == o.config.Pacing
}

// change gives the ticks of other settings of a target, soon, without a gap and
// without a burst: k is a number of the target's own. Where its traffic has yet
// to begin it does nothing.
func (p *pacing) change(t *target, k uint64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	tr, before := t.traffic, t.traffic.target
	tr.latest = t
	if before == nil || tr.removed {
		return
	}
	tr.target = t
	if t.sameTicks(before) {
		for _, one := range tr.paced {
			one.Wake(t.prober) // the backlog may be another one
		}
		return
	}
	if before.closed() {
		t.prober.Halt()
	}
	at := max(p.clock.Now().Add(schedule.Lead), tr.changed+1)
	tr.changed = at
	old := tr.paced
	var shares []schedule.Schedule
	if t.closed() {
		p.leave(tr)
		tr.paced, tr.schedule = nil, schedule.Schedule{}
		t.prober.Begin()
	} else {
		tr.schedule = p.next(t, at, k)
		shares = tr.schedule.Split(len(p.reassign(t)))
	}
	for i, share := range shares {
		tr.paced[i].Follow(share, at, t.prober)
		tr.paced[i].Wake(t.prober)
	}
	for _, one := range old {
		if !slices.Contains(tr.paced, one) {
			one.Follow(schedule.Schedule{}, at, t.prober)
			tr.left = append(slices.DeleteFunc(tr.left, func(l *pacer) bool { return l == one }), one)
		}
	}
}

// next returns the schedule of a target that follows the present one at an
// instant. That of several processes is the same for all of them, whatever each
// had before. It is called with mu held.
func (p *pacing) next(t *target, at probe.Instant, k uint64) schedule.Schedule {
	if t.part.common {
		return p.schedule(t, t.ticks(at, 0))
	}
	return t.traffic.schedule.Then(t.ticks(at.Add(schedule.Spread(k, t.rate)), 0), at)
}

// leave takes a target's rate off its pacers. It is called with mu held.
func (p *pacing) leave(tr *traffic) {
	for _, one := range tr.paced {
		one.rate -= tr.load / float64(len(tr.paced))
	}
	tr.load = 0
}

// assign chooses the pacers of a target that has none: one, unless its rate is
// more than one pacer is given. It is called with mu held.
func (p *pacing) assign(t *target) []*pacer {
	if len(t.traffic.paced) > 0 {
		return t.traffic.paced // another window of the same traffic
	}
	return p.reassign(t)
}

// reassign chooses the pacers of a target anew: the one that it has, where that
// will do. It is called with mu held.
func (p *pacing) reassign(t *target) []*pacer {
	tr, rate := t.traffic, t.perSecond()
	p.leave(tr)
	switch {
	case t.config.Pacing == "economy":
		if p.economy == nil {
			p.economy = p.startPacer(schedule.Options{Quantum: schedule.Economy})
		}
		tr.paced = []*pacer{p.economy}
	case rate > pacerRate:
		for len(p.precise) < p.most {
			p.precise = append(p.precise, p.startPacer(schedule.Options{}))
		}
		tr.paced = slices.Clone(p.precise)
	case len(tr.paced) == 1 && tr.paced[0] != p.economy && tr.paced[0].rate+rate <= pacerRate:
	default:
		tr.paced = []*pacer{p.leastLoaded(rate)}
	}
	for _, one := range tr.paced {
		one.rate += rate / float64(len(tr.paced))
	}
	tr.load = rate
	return tr.paced
}

// leastLoaded returns the precise pacer with the lowest rate, a new one where
// that would have too much. It is called with mu held.
func (p *pacing) leastLoaded(rate float64) *pacer {
	least := p.precise[0]
	for _, t := range p.precise {
		if t.rate < least.rate {
			least = t
		}
	}
	if least.rate+rate > pacerRate && len(p.precise) < p.most {
		least = p.startPacer(schedule.Options{})
		p.precise = append(p.precise, least)
	}
	return least
}

// remove stops the traffic of targets for good: none of them gets another tick
// when it returns. It may be called for targets that have none.
func (p *pacing) remove(targets []*target) {
	p.mu.Lock()
	for _, t := range targets {
		t.traffic.removed = true
	}
	p.mu.Unlock()
	p.pause(targets)
}

// pause stops the traffic of targets, which may be added again.
func (p *pacing) pause(targets []*target) {
	var removing sync.WaitGroup
	for _, t := range targets {
		p.mu.Lock()
		tr := t.traffic
		p.leave(tr)
		pacers := slices.Concat(tr.paced, tr.left)
		tr.paced, tr.left, tr.target = nil, nil, nil
		p.mu.Unlock()
		if t.closed() {
			t.prober.Halt()
		}
		for _, one := range pacers {
			// Together, because each waits for its pacer to wake up.
			removing.Go(func() { one.Remove(t.prober) })
		}
	}
	removing.Wait()
}
