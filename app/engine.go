package app

import (
	"context"
	"errors"
	"os"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"github.com/steadyprobe/steadyprobe/probe"
	"github.com/steadyprobe/steadyprobe/probe/record"
	"github.com/steadyprobe/steadyprobe/probe/schedule"
	"github.com/steadyprobe/steadyprobe/probe/wire"
)

// engine is what all targets of a process share: the clock, the pacer's thread
// and the canary that measures what the process adds to every figure.
type engine struct {
	clock  probe.Clock
	pacer  *schedule.Pacer
	loop   *wire.Loop // reads plain connections; nil where the system has none
	canary *schedule.Canary
	self   *selfLatency
	trust  *trust

	stop    context.CancelFunc
	ended   chan struct{} // closed when the pacer has returned
	restore func()        // GOMAXPROCS
}

// newEngine starts the pacer.
func newEngine(logger *slog.Logger, bounds *record.Bounds) (*engine, error) {
	e := &engine{clock: probe.NewClock(), self: newSelfLatency(bounds.Lateness), ended: make(chan struct{})}
	e.trust = newTrust(logger)
	sleeper := schedule.Precise(e.clock, logger)
	canary, err := schedule.NewCanary(sleeper, func(d time.Duration) {
		e.self.observe(d)
		e.trust.self.observe(d)
	})
	if err != nil {
		e.trust.close()
		return nil, fmt.Errorf("starting the self-latency canary: %w", err)
	}
	e.canary = canary
	threads := 1
	e.loop, err = wire.NewLoop(e.clock)
	switch {
	case err == nil:
		threads++
	case !errors.Is(err, errors.ErrUnsupported):
		canary.Close()
		e.trust.close()
		return nil, err
	}
	if os.Getenv("NOLOOP") != "" { e.loop.Close(); e.loop = nil; threads-- }
	e.pacer = schedule.New(schedule.Options{Clock: sleeper})
	e.restore = schedule.ReserveProcs(threads, logger)
	ctx, cancel := context.WithCancel(context.Background())
	e.stop = cancel
	go func() {
		defer close(e.ended)
		e.pacer.Run(ctx)
	}()
	e.pacer.Add(e.canary.Schedule(e.clock.Now().Add(schedule.Lead)), e.canary)
	return e, nil
}

// close ends the pacer. All targets must have been removed.
func (e *engine) close() {
	e.pacer.Remove(e.canary)
	e.canary.Close()
	e.stop()
	<-e.ended
	if e.loop != nil {
		e.loop.Close()
	}
	e.trust.close()
	e.restore()
}

// remove takes the schedules of targets from the pacer: none of them gets
// another tick when it returns.
func (e *engine) remove(targets []*target) {
	var removing sync.WaitGroup
	for _, t := range targets {
		// Together, because each waits for the pacer to wake up.
		removing.Go(func() { e.pacer.Remove(t.prober) })
	}
	removing.Wait()
}

// drain closes the probers of targets whose schedules are removed. Requests in
// flight get their time until ctx is done.
func drain(ctx context.Context, targets []*target) {
	var closing sync.WaitGroup
	for _, t := range targets {
		closing.Go(func() { t.prober.Close(ctx) })
	}
	closing.Wait()
}

// selfLatency keeps what the canary measures. It may be used concurrently.
type selfLatency struct {
	mu        sync.Mutex
	histogram *record.Histogram
	recent    *hdrhistogram.Histogram // since it was last taken
}

func newSelfLatency(b *record.Boundaries) *selfLatency {
	return &selfLatency{histogram: record.NewHistogram(b), recent: newHDR()}
}

// newHDR returns a histogram of nanoseconds up to an hour with three digits.
func newHDR() *hdrhistogram.Histogram {
	return hdrhistogram.New(1, int64(time.Hour), 3)
}

func (s *selfLatency) observe(d time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.histogram.Observe(d)
	// A value above the range is one of a process that stood still for an hour.
	_ = s.recent.RecordValue(min(int64(d), int64(time.Hour)))
}

func (s *selfLatency) snapshot(d *record.Distribution) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.histogram.Snapshot(d)
}

// take returns what was observed since it was called last.
func (s *selfLatency) take() *hdrhistogram.Histogram {
	s.mu.Lock()
	defer s.mu.Unlock()
	taken := s.recent
	s.recent = newHDR()
	return taken
}
