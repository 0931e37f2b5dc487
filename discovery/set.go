package discovery

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"maps"
	"net/netip"
	"slices"
	"sync"
	"time"

	"github.com/steadyprobe/steadyprobe/config"
)

// Options are what a [Set] needs.
type Options struct {
	Logger *slog.Logger
	Agent  string // User-Agent of requests to sources over HTTP
	// Lookup asks for the addresses of a name. It may be called concurrently,
	// and must return soon when its context is done.
	Lookup func(context.Context, Question) ([]netip.Addr, error)

	// MostConnections is how many connections the process can have open; 0: any
	// number.
	MostConnections int
	// Apart is how long after a change of the targets the next one may come; 0:
	// 5 s.
	Apart time.Duration

	mostAnswer int // instead of the usual one, for tests; 0: that
}

// How soon what was found becomes targets: when nothing more was found for
// quiet, and not before apart has passed since the last time.
const (
	quiet = 500 * time.Millisecond
	apart = 5 * time.Second
)

// Bounds of the lookups before targets are admitted.
const (
	lookupLimit = 5 * time.Second
	mostLookups = 16 // at once
)

// Set runs the sources of a plan, and knows which of the targets that they find
// are admitted. Its methods may be called concurrently, but for Build and Apply,
// which belong together. It must be closed.
type Set struct {
	options      Options
	quiet, apart time.Duration
	changed      chan struct{}
	poked        chan struct{}
	open         context.Context // until Close
	cancel       context.CancelFunc
	working      sync.WaitGroup

	mu      sync.Mutex
	plan    *Plan
	sources []*source
	figures []figures           // by source
	running map[string]admitted // by name
	answers map[Question]answer
	targets []config.Target
	again   time.Time // when to decide though nothing is found; zero: never
}

// New returns a Set without sources.
func New(o Options) (*Set, error) {
	if o.Logger == nil || o.Lookup == nil {
		return nil, errors.New("setting up discovery: there is no logger, or nobody to ask for addresses")
	}
	return newSet(o, quiet, cmp.Or(o.Apart, apart)), nil
}

func newSet(o Options, quiet, apart time.Duration) *Set {
	s := &Set{
		options: o, quiet: quiet, apart: apart,
		changed: make(chan struct{}, 1),
		poked:   make(chan struct{}, 1),
		plan:    &Plan{config: &config.Config{}},
		answers: map[Question]answer{},
	}
	s.open, s.cancel = context.WithCancel(context.Background())
	s.working.Go(s.work)
	return s
}

// Build is what a plan needs to run.
type Build struct {
	plan    *Plan
	sources []*source
	views   []view
	targets []config.Target
}

// Targets returns those that would be admitted at once if the build were
// applied.
func (b *Build) Targets() []config.Target { return slices.Clone(b.targets) }

// Build makes what a plan needs that does not run yet, and starts and changes
// nothing. It fails where a source cannot be asked as its settings say: a file
// that they name cannot be read, or there is no cluster around.
func (s *Set) Build(p *Plan) (*Build, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	p.mostConnections = s.options.MostConnections
	running := map[string]*source{}
	for _, one := range s.sources {
		running[one.view.entry.config.Name] = one
	}
	b := &Build{plan: p}
	var failed []error
	now := time.Now()
	for _, e := range p.entries {
		one := running[e.config.Name]
		if one == nil || !one.view.entry.same(e) {
			var err error
			if one, err = newSource(e, &s.options, s.poke, one); err != nil {
				failed = append(failed, err)
				continue
			}
		}
		v := one.view
		v.entry, v.changed = e, true
		v.refresh(now, one)
		b.sources, b.views = append(b.sources, one), append(b.views, v)
	}
	if len(failed) > 0 {
		return nil, errors.Join(failed...)
	}
	b.targets = admit(p, b.views, s.running, s.answers, now).targets(b.views)
	return b, nil
}

// Apply runs what was built instead of what runs. Sources that find the same go
// on; one whose mechanisms are others keeps the targets of before until these
// have answered. No other build may have been applied since.
func (s *Set) Apply(b *Build) {
	now := time.Now()
	s.mu.Lock()
	defer s.mu.Unlock()
	before := s.sources
	s.plan, s.sources = b.plan, b.sources
	for i, one := range s.sources {
		one.view.entry, one.view.changed = b.plan.entries[i], true
		if !slices.Contains(before, one) {
			one.start()
		}
	}
	for _, one := range before {
		if slices.Contains(s.sources, one) {
			continue
		}
		one.stop()
		s.working.Go(one.running.Wait)
		for _, heir := range s.sources {
			if heir.view.entry.config.Name == one.view.entry.config.Name {
				heir.view.base += one.failed()
			}
		}
	}
	s.decide(now)
	s.poke()
}

// Changed returns the channel on which it is said that the targets may be
// others.
func (s *Set) Changed() <-chan struct{} { return s.changed }

// Targets returns all that are admitted, in the order of the sources and by
// name. Those that the configuration itself has are not among them.
func (s *Set) Targets() []config.Target {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.targets)
}

// Close stops all sources and waits for them. It may be called again.
func (s *Set) Close() {
	s.cancel()
	s.mu.Lock()
	for _, one := range s.sources {
		one.stop()
	}
	sources := s.sources
	s.mu.Unlock()
	for _, one := range sources {
		one.running.Wait()
	}
	s.working.Wait()
}

func (s *Set) poke() {
	select {
	case s.poked <- struct{}{}:
	default: // it has yet to notice the last one
	}
}

// work decides whenever something was found, or when it is time to.
func (s *Set) work() {
	timer := time.NewTimer(0)
	defer timer.Stop()
	<-timer.C
	var last time.Time
	for {
		select {
		case <-s.open.Done():
			return
		case <-timer.C:
		case <-s.poked:
			if !s.settle(max(s.quiet, time.Until(last.Add(s.apart)))) {
				return
			}
		}
		if !s.catchUp() {
			return
		}
		last = time.Now()
		s.mu.Lock()
		again := s.again
		s.mu.Unlock()
		timer.Stop()
		if !again.IsZero() {
			timer.Reset(max(time.Until(again), s.quiet))
		}
	}
}

// settle waits for d, and reports whether the set is open.
func (s *Set) settle(d time.Duration) bool {
	select {
	case <-s.open.Done():
		return false
	case <-time.After(d):
		return true
	}
}

// catchUp decides, and looks up what it must know to decide more. It reports
// whether the set is open.
func (s *Set) catchUp() bool {
	for {
		s.mu.Lock()
		questions := s.decide(time.Now())
		s.mu.Unlock()
		if len(questions) == 0 {
			return true
		}
		said := s.ask(questions[:min(len(questions), 4*mostLookups)])
		if s.open.Err() != nil {
			return false
		}
		s.mu.Lock()
		for q, a := range said {
			s.answers[q] = a
		}
		s.mu.Unlock()
	}
}

// ask looks names up.
func (s *Set) ask(questions []Question) map[Question]answer {
	var (
		mu     sync.Mutex
		asking sync.WaitGroup
		said   = map[Question]answer{}
		places = make(chan struct{}, mostLookups)
	)
	for _, q := range questions {
		places <- struct{}{}
		asking.Go(func() {
			defer func() { <-places }()
			ctx, cancel := context.WithTimeout(s.open, lookupLimit)
			defer cancel()
			addresses, err := s.options.Lookup(ctx, q)
			if err != nil {
				addresses = nil // the target will show it
			}
			mu.Lock()
			defer mu.Unlock()
			said[q] = answer{addresses: addresses, at: time.Now()}
		})
	}
	asking.Wait()
	return said
}

// decide evaluates what was found, and admits targets. It returns the names that
// it would have to know more of. It is called with mu held.
func (s *Set) decide(now time.Time) []Question {
	s.again = time.Time{}
	views := make([]view, len(s.sources))
	for i, one := range s.sources {
		before := one.view
		one.view.refresh(now, one)
		if due := one.view.due; !due.IsZero() {
			s.wake(due)
		}
		one.tell(s.options.Logger, &before)
		views[i] = one.view
	}
	a := admit(s.plan, views, s.running, s.answers, now)
	if !a.again.IsZero() {
		s.wake(a.again)
	}
	for q := range s.answers {
		if !a.used[q] {
			delete(s.answers, q)
		}
	}
	for i, one := range s.sources {
		one.tellTargets(s.options.Logger, &a.figures[i], s.running, a.admitted, now)
	}
	targets := a.targets(views)
	same := slices.EqualFunc(s.targets, targets, func(x, y config.Target) bool { return x.Equal(&y) })
	s.figures, s.running, s.targets = a.figures, a.admitted, targets
	if !same {
		select {
		case s.changed <- struct{}{}:
		default: // who is told has yet to ask
		}
	}
	return slices.Collect(maps.Keys(a.questions))
}

func (s *Set) wake(at time.Time) {
	if s.again.IsZero() || at.Before(s.again) {
		s.again = at
	}
}
