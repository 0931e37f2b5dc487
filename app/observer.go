package app

import (
	"context"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/steadyprobe/steadyprobe/probe"
)

// observer looks at every target once a second, knows how it fares and since
// when, and logs when that changes. Its methods may be called concurrently.
type observer struct {
	clock   probe.Clock
	notices notices
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
	flaps  flaps
}

func newObserver(clock probe.Clock, logger *slog.Logger) *observer {
	return &observer{clock: clock, notices: notices{logger: logger}}
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
	var came []notice
	for prober, s := range seen {
		l := prober.Ledger()
		now := o.clock.Now()
		o.mu.Lock()
		was, since := s.state, s.since
		s.observe(now, time.Now(), &l, s.target.config.Timeout)
		n := s.notice(now, was, s.since.Sub(since))
		o.mu.Unlock()
		if n.kind != nothing {
			came = append(came, n)
		}
	}
	slices.SortFunc(came, func(a, b notice) int { return strings.Compare(a.target, b.target) })
	o.notices.tell(o.clock.Now(), came)
}

func (s *observed) observe(now probe.Instant, wall time.Time, l *probe.Ledger, timeout time.Duration) {
	s.past.observe(now, l)
	s.reason = s.past.recent(failuresOf(l), pastSeconds/spanOfPast).top()
	if state := s.past.state(s.state, timeout); state != s.state {
		s.state, s.since = state, wall
	}
}

// notice returns what is to be told of the target.
func (s *observed) notice(now probe.Instant, was string, lasted time.Duration) notice {
	n := notice{target: s.target.config.Name, was: was, is: s.state, lasted: lasted}
	n.kind, n.changes = s.flaps.look(now, s.state != was)
	switch {
	case s.state == up:
	case s.reason != probe.Success:
		n.failure = s.reason.String()
	default:
		n.failure = "none, but nothing is answered"
	}
	return n
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
