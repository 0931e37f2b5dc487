package discovery

import (
	"cmp"
	"context"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/prometheus/prometheus/discovery/targetgroup"
)

// restartAfter is how long after a mechanism has given up it is started again.
const restartAfter = 10 * time.Second

// grace is how long after a source began to answer the targets are kept that
// its predecessor had: a mechanism that watches finds them one by one.
const grace = 10 * time.Second

// source is what runs for one entry of a plan. What is not guarded by its own
// mutex is guarded by that of the set.
type source struct {
	entry      *entry
	mechanisms []*running
	complaints *complaints
	poke       func() // something was found
	stop       context.CancelFunc
	running    sync.WaitGroup

	mu       sync.Mutex
	groups   map[groupKey]*targetgroup.Group
	updates  uint64    // that came
	answered time.Time // first and last update
	updated  time.Time

	seen       uint64    // updates that are evaluated
	changed    bool      // the entry has, since then
	due        time.Time // to evaluate again; zero: when something is found
	started    time.Time
	old        []*targetgroup.Group // found by the mechanisms before these; nil: nothing is left of them
	last       []*targetgroup.Group // of which there were targets last
	emptySince time.Time            // zero: there are targets
	state      *evaluation          // now
	held       bool                 // state is of last
	told       string               // of what is refused
	toldAt     time.Time
	base       uint64 // failures of the mechanisms before these, and empty answers
}

// groupKey says which group of targets replaces which.
type groupKey struct {
	mechanism int
	source    string
}

// newSource makes what runs for an entry, and starts nothing. The predecessor
// has the same name; nil: there is none.
func newSource(e *entry, o *Options, poke func()) (*source, error) {
	s := &source{
		entry:      e,
		complaints: newComplaints(o.Logger, e.config.Name),
		poke:       poke,
		changed:    true,
		state:      &evaluation{},
		groups:     map[groupKey]*targetgroup.Group{},
	}
	for _, m := range e.mechanisms {
		r, err := m.build(e.config.Name, o, slog.New(s.complaints))
		if err != nil {
			return nil, err
		}
		s.mechanisms = append(s.mechanisms, r)
	}
	return s, nil
}

// start lets the mechanisms find targets, and takes over what the predecessor
// has found; nil: there is none.
func (s *source) start(now time.Time, before *source) {
	s.started = now
	if before != nil {
		s.old = before.found()
		s.last, s.emptySince = before.last, before.emptySince
		s.base = before.failed()
	}
	ctx, cancel := context.WithCancel(context.Background())
	s.stop = cancel
	for i, m := range s.mechanisms {
		updates := make(chan []*targetgroup.Group)
		s.running.Go(func() { run(ctx, m, updates) })
		s.running.Go(func() { s.receive(ctx, i, updates) })
	}
}

// run keeps a mechanism going: one that cannot watch its files gives up.
func run(ctx context.Context, m *running, updates chan<- []*targetgroup.Group) {
	for {
		m.discoverer.Run(ctx, updates)
		select {
		case <-ctx.Done():
			return
		case <-time.After(restartAfter):
		}
	}
}

func (s *source) receive(ctx context.Context, mechanism int, updates <-chan []*targetgroup.Group) {
	for {
		select {
		case <-ctx.Done():
			return
		case groups := <-updates:
			s.take(mechanism, groups)
			s.poke()
		}
	}
}

// take notes what a mechanism has found, which stands until it finds something
// else under the same name.
func (s *source) take(mechanism int, groups []*targetgroup.Group) {
	now := time.Now()
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, g := range groups {
		if g == nil {
			continue
		}
		at := groupKey{mechanism, g.Source}
		if len(g.Targets) == 0 {
			delete(s.groups, at)
		} else {
			s.groups[at] = g
		}
	}
	if s.updates == 0 {
		s.answered = now
	}
	s.updates++
	s.updated = now
}

// found returns all groups in an order that does not change.
func (s *source) found() []*targetgroup.Group {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.sorted()
}

func (s *source) sorted() []*targetgroup.Group {
	keys := slices.SortedFunc(maps.Keys(s.groups), func(a, b groupKey) int {
		return cmp.Or(cmp.Compare(a.mechanism, b.mechanism), cmp.Compare(a.source, b.source))
	})
	all := make([]*targetgroup.Group, len(keys))
	for i, k := range keys {
		all[i] = s.groups[k]
	}
	return all
}

// failed returns how often the source has failed since the process started.
func (s *source) failed() uint64 {
	n := s.base
	for _, m := range s.mechanisms {
		n += m.failures()
	}
	return n
}

// refresh evaluates what was found, unless it already has, and returns when that
// is to be done again though nothing is found; zero: never. The set's mutex is
// held.
func (s *source) refresh(now time.Time) (again time.Time) {
	s.mu.Lock()
	groups, updates, answered := s.sorted(), s.updates, s.answered
	s.mu.Unlock()
	news := updates != s.seen
	if !news && !s.changed && (s.due.IsZero() || now.Before(s.due)) {
		return s.due
	}
	s.seen, s.changed, s.due = updates, false, time.Time{}
	state := s.entry.evaluate(groups)
	s.succeed(now, answered, state)
	if len(state.candidates) > 0 {
		s.last, s.emptySince, s.held = append(groups, s.old...), time.Time{}, false
		s.state = state
		return s.due
	}
	// There is nothing: is that so, or is the source not itself?
	last := s.entry.evaluate(s.last)
	if s.emptySince.IsZero() {
		s.emptySince = now
	}
	until := s.emptySince.Add(s.entry.config.KeepLast)
	if len(last.candidates) == 0 || !now.Before(until) {
		s.last, s.held, s.state = nil, false, state
		return s.due
	}
	if news {
		s.base++ // an empty answer is a failure until it is believed
	}
	last.refused, last.dropped = state.refused, state.dropped
	s.held, s.state = true, last
	s.wake(until)
	return s.due
}

// succeed adds what the predecessor has found and the source has not yet.
func (s *source) succeed(now, answered time.Time, state *evaluation) {
	if s.old == nil {
		return
	}
	until := s.started.Add(s.entry.config.KeepLast)
	if !answered.IsZero() {
		until = answered.Add(min(grace, s.entry.config.KeepLast))
	}
	if !now.Before(until) {
		s.old = nil
		if answered.IsZero() {
			s.last = nil // they were kept for that long
		}
		return
	}
	s.wake(until)
	state.add(s.entry.evaluate(s.old))
}

// wake has the source evaluated again at this time.
func (s *source) wake(at time.Time) {
	if s.due.IsZero() || at.Before(s.due) {
		s.due = at
	}
}
