package app

import (
	"context"
	"log/slog"
	"math/rand/v2"
	"runtime"
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

// add starts the traffic of a target at origin, and ends it at end unless that
// is 0. It returns how many ticks there will be until then. A closed loop
// starts at once and goes on until it is removed; its ticks are not known.
func (p *pacing) add(t *target, origin, end probe.Instant) (ticks uint64) {
	if t.closed() {
		t.prober.Begin()
		return 0
	}
	s := schedule.Schedule{Origin: origin, Rate: t.rate, End: end}
	if t.config.Arrival == "poisson" {
		s.Poisson, s.Seed = true, rand.Uint64()
	}
	pacers := p.assign(t)
	for _, share := range p.schedule(t, s).Split(len(pacers)) {
		ticks += share.Count(end)
		pacers[0].Add(share, t.prober)
		pacers = pacers[1:]
	}
	return ticks
}

// assign chooses the pacers of a target: one, unless its rate is more than one
// pacer is given.
func (p *pacing) assign(t *target) []*pacer {
	p.mu.Lock()
	defer p.mu.Unlock()
	rate := t.perSecond()
	if len(t.paced) > 0 {
		return t.paced // another window of the same traffic
	}
	switch {
	case t.config.Pacing == "economy":
		if p.economy == nil {
			p.economy = p.startPacer(schedule.Options{Quantum: schedule.Economy})
		}
		t.paced = []*pacer{p.economy}
	case rate > pacerRate:
		for len(p.precise) < p.most {
			p.precise = append(p.precise, p.startPacer(schedule.Options{}))
		}
		t.paced = append([]*pacer(nil), p.precise...)
	default:
		t.paced = []*pacer{p.leastLoaded(rate)}
	}
	for _, one := range t.paced {
		one.rate += rate / float64(len(t.paced))
	}
	return t.paced
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

// remove stops the traffic of targets: none of them gets another tick when it
// returns. It may be called for targets that have none.
func (p *pacing) remove(targets []*target) {
	var removing sync.WaitGroup
	for _, t := range targets {
		if t.closed() {
			t.prober.Halt()
			continue
		}
		p.mu.Lock()
		pacers := t.paced
		t.paced = nil
		for _, one := range pacers {
			one.rate -= t.perSecond() / float64(len(pacers))
		}
		p.mu.Unlock()
		for _, one := range pacers {
			// Together, because each waits for its pacer to wake up.
			removing.Go(func() { one.Remove(t.prober) })
		}
	}
	removing.Wait()
}
