package app

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"github.com/steadyprobe/steadyprobe/internal/saturation"
	"github.com/steadyprobe/steadyprobe/probe/record"
)

// recent keeps durations since it was last asked for a quantile of them. It may
// be used concurrently.
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
	watch *saturation.Watch
	self  *recent
	stop  context.CancelFunc
	ended chan struct{}

	mu    sync.Mutex
	all   []*record.Recorder
	paced []*record.Recorder // those whose lateness is a fault

	// Of the watch's goroutine.
	lateness record.Recent
	service  record.Recent
}

func newTrust(logger *slog.Logger) *trust {
	t := &trust{self: newRecent(), ended: make(chan struct{})}
	t.watch = saturation.New(saturation.Options{
		Logger: logger,
		ServiceTime: func() time.Duration {
			all, _ := t.recorders()
			return t.service.ServiceTime(0.5, all)
		},
		Lateness: func() time.Duration {
			_, paced := t.recorders()
			return t.lateness.Lateness(0.99, paced)
		},
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

// watchOver watches what these recorders are given from now on, of which the
// paced ones are those for whose ticks lateness is not intended. The slices must
// not be changed any more.
func (t *trust) watchOver(all, paced []*record.Recorder) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.all, t.paced = all, paced
}

// recorders returns all recorders, and the paced ones of them.
func (t *trust) recorders() (all, paced []*record.Recorder) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.all, t.paced
}

func (t *trust) close() {
	t.stop()
	<-t.ended
}
