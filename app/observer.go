package app

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/steadyprobe/steadyprobe/probe"
)

// observer looks at every target once a second, knows how it fares and since
// when, and logs when that changes. Its methods may be called concurrently.
type observer struct {
	clock   probe.Clock
	logger  *slog.Logger
	stop    context.CancelFunc
	running sync.WaitGroup

	mu   sync.Mutex
	seen map[*probe.Prober]*observed
}

// observed is what is known of one target.
type observed struct {
	target *target
	past   past
	state  string
	since  time.Time
	reason probe.Outcome // of the last minute's failures the most frequent
}

func newObserver(clock probe.Clock, logger *slog.Logger) *observer {
	return &observer{clock: clock, logger: logger}
}

// watch observes these targets from now on, and keeps what is known of them.
func (o *observer) watch(targets []*target) {
	o.mu.Lock()
	defer o.mu.Unlock()
	seen := make(map[*probe.Prober]*observed, len(targets))
	for _, t := range targets {
		one := o.seen[t.prober]
		if one == nil {
			one = &observed{state: starting, since: t.created}
		}
		one.target = t
		seen[t.prober] = one
	}
	o.seen = seen
}

// start begins to observe. That must be before there is traffic, or what failed
// until then would be of no time.
func (o *observer) start() {
	ctx, cancel := context.WithCancel(context.Background())
	o.stop = cancel
	o.running.Go(func() { o.run(ctx) })
}

// close ends what start began.
func (o *observer) close() {
	o.stop()
	o.running.Wait()
}

// run observes until ctx is done.
func (o *observer) run(ctx context.Context) {
	o.observe()
	everySecond(ctx, o.observe)
}

// everySecond calls do once a second until ctx is done.
func everySecond(ctx context.Context, do func()) {
	second := time.NewTicker(time.Second)
	defer second.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-second.C:
			do()
		}
	}
}

func (o *observer) observe() {
	o.mu.Lock()
	seen := o.seen // the map itself does not change
	o.mu.Unlock()
	for prober, s := range seen {
		l := prober.Ledger()
		o.mu.Lock()
		t, before := s.target, s.state
		s.observe(o.clock.Now(), time.Now(), &l, t.config.Timeout)
		after, reason := s.state, s.reason
		o.mu.Unlock()
		if after != before {
			o.tell(t.config.Name, before, after, reason)
		}
	}
}

func (s *observed) observe(now probe.Instant, wall time.Time, l *probe.Ledger, timeout time.Duration) {
	s.past.observe(now, l)
	s.reason = s.past.recent(failuresOf(l), pastSeconds/spanOfPast).top()
	if state := s.past.state(s.state, timeout); state != s.state {
		s.state, s.since = state, wall
	}
}

// tell logs a change. A failure of the last minute keeps a target from being up,
// and those of the last 10 s make it down, so that one which flaps is a line
// every 10 s at most, as long as it does.
func (o *observer) tell(name, before, after string, reason probe.Outcome) {
	switch after {
	case up:
		o.logger.Info("Target is up", "target", name, "was", before)
	case degraded, down:
		failure := "none, but nothing is answered"
		if reason != probe.Success {
			failure = reason.String()
		}
		o.logger.Warn("Target is "+after, "target", name, "was", before, "failure", failure)
	}
}

// of returns what is known of a target, nothing where it was removed.
func (o *observer) of(t *target) observed {
	o.mu.Lock()
	defer o.mu.Unlock()
	if one := o.seen[t.prober]; one != nil {
		return *one
	}
	return observed{target: t, state: starting, since: t.created}
}
