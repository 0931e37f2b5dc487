package app

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"github.com/steadyprobe/steadyprobe/internal/saturation"
	"github.com/steadyprobe/steadyprobe/probe"
)

// recent keeps durations, over all targets, since it was last asked for a
// quantile of them. It may be used concurrently.
type recent struct {
	mu        sync.Mutex
	durations *hdrhistogram.Histogram
}

func newRecent() *recent {
	// Two digits will do for a verdict, and it is emptied every second.
	return &recent{durations: hdrhistogram.New(1, int64(time.Hour), 2)}
}

func (r *recent) observe(d time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	_ = r.durations.RecordValue(min(max(int64(d), 0), int64(time.Hour)))
}

// take returns the quantile (in percent) and begins anew; 0: nothing came.
func (r *recent) take(percent float64) time.Duration {
	r.mu.Lock()
	defer r.mu.Unlock()
	d := time.Duration(r.durations.ValueAtQuantile(percent))
	r.durations.Reset()
	return d
}

// trust watches whether the figures of this process can be trusted.
type trust struct {
	watch    *saturation.Watch
	lateness *recent
	service  *recent
	self     *recent
	stop     context.CancelFunc
	ended    chan struct{}
}

func newTrust(logger *slog.Logger) *trust {
	t := &trust{lateness: newRecent(), service: newRecent(), self: newRecent(), ended: make(chan struct{})}
	t.watch = saturation.New(saturation.Options{
		Logger:      logger,
		ServiceTime: func() time.Duration { return t.service.take(50) },
		Lateness:    func() time.Duration { return t.lateness.take(99) },
		SelfLatency: func() time.Duration { return t.self.take(99) },
	})
	ctx, cancel := context.WithCancel(context.Background())
	t.stop = cancel
	go func() {
		defer close(t.ended)
		t.watch.Run(ctx)
	}()
	return t
}

func (t *trust) close() {
	t.stop()
	<-t.ended
}

// watched is a recorder that also tells what trust must know.
type watched struct {
	probe.Recorder
	trust   *trust
	unpaced bool // its lateness is intended, or has no meaning
}

// Record takes a completed tick.
func (w watched) Record(s *probe.Sample) {
	w.Recorder.Record(s)
	if !w.unpaced {
		w.trust.lateness.observe(s.Lateness())
	}
	if s.Begun != 0 {
		w.trust.service.observe(s.ServiceTime())
	}
}
