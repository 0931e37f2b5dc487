package app

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"github.com/steadyprobe/steadyprobe/probe"
	"github.com/steadyprobe/steadyprobe/probe/record"
	"github.com/steadyprobe/steadyprobe/probe/schedule"
	"github.com/steadyprobe/steadyprobe/probe/wire"
)

// engine is what all targets of a process share: the clock, the pacers, the
// loop that reads plain connections, and the canaries that measure what the
// process adds to every figure, one for each way in which connections are read.
type engine struct {
	clock    probe.Clock
	logger   *slog.Logger
	shard    Shard
	pacing   *pacing
	loop     *wire.Loop // nil where the system has none
	turns    *wire.Turns
	self     *selfLatency
	failures *firstFailures
	trust    *trust
	cleanUps []func() // in the order of what they undo
}

// newEngine starts everything but targets.
func newEngine(logger *slog.Logger, bounds *record.Bounds) (*engine, error) {
	e := &engine{clock: probe.NewClock(), turns: wire.NewTurns(), logger: logger, self: newSelfLatency(bounds.Lateness)}
	e.failures = &firstFailures{logger: logger, clock: e.clock}
	if err := e.start(); err != nil {
		e.close()
		return nil, err
	}
	return e, nil
}

func (e *engine) start() error {
	e.trust = newTrust(e.logger)
	e.later(e.trust.close)
	loop, err := wire.NewLoop(e.clock)
	switch {
	case err == nil:
		e.loop = loop
		e.later(loop.Close)
		e.later(schedule.ReserveProcs(1, e.logger))
	case !errors.Is(err, errors.ErrUnsupported):
		return err
	}
	sleeper := schedule.Precise(e.clock, e.logger)
	e.pacing = newPacing(e.clock, sleeper, e.logger)
	e.later(e.pacing.close)
	if err := e.measureSelf(sleeper, nil); err != nil || e.loop == nil {
		return err
	}
	return e.measureSelf(sleeper, e.loop.Watch)
}

// measureSelf starts a canary that is read in one of the ways in which
// connections are.
func (e *engine) measureSelf(clock schedule.Clock, reader schedule.Reader) error {
	canary, err := schedule.NewCanary(clock, reader, func(d time.Duration) {
		e.self.observe(d)
		e.trust.self.observe(d)
	})
	if err != nil {
		return fmt.Errorf("starting the self-latency canary: %w", err)
	}
	first := e.pacing.precise[0]
	phase := time.Duration(len(e.cleanUps)) * time.Millisecond // so that two do not meet
	first.Add(canary.Schedule(e.clock.Now().Add(schedule.Lead+phase)), canary)
	e.later(func() {
		first.Remove(canary)
		canary.Close()
	})
	return nil
}

func (e *engine) later(cleanUp func()) { e.cleanUps = append(e.cleanUps, cleanUp) }

// close ends the engine. All targets must have been removed and drained.
func (e *engine) close() {
	for _, cleanUp := range slices.Backward(e.cleanUps) {
		cleanUp()
	}
}

// drain closes the probers of targets whose schedules are removed. Requests in
// flight get their time until ctx is done.
func drain(ctx context.Context, targets []*target) {
	var closing sync.WaitGroup
	for _, t := range targets {
		closing.Go(func() {
			t.prober.Close(ctx)
			t.resolver.Close()
		})
	}
	closing.Wait()
}

// selfLatency keeps what the canaries measure. It may be used concurrently.
type selfLatency struct {
	mu        sync.Mutex
	histogram *record.Histogram
	window    *hdrhistogram.Histogram // of a run with an end; nil: there is none
}

func newSelfLatency(b *record.Boundaries) *selfLatency {
	return &selfLatency{histogram: record.NewHistogram(b)}
}

func (s *selfLatency) observe(d time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.histogram.Observe(d)
	if s.window != nil {
		// A value above the range is one of a process that stood still for an hour.
		_ = s.window.RecordValue(min(max(int64(d), 0), int64(time.Hour)))
	}
}

func (s *selfLatency) snapshot(d *record.Distribution) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.histogram.Snapshot(d)
}

// take returns what was observed since it was called last, nil at first.
func (s *selfLatency) take() *hdrhistogram.Histogram {
	s.mu.Lock()
	defer s.mu.Unlock()
	taken := s.window
	s.window = hdrhistogram.New(1, int64(time.Hour), 3)
	return taken
}
