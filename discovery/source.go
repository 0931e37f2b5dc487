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

// source is what runs for one entry of a plan.
type source struct {
	mechanisms []*running
	complaints *complaints
	poke       func() // something was found
	stop       context.CancelFunc
	running    sync.WaitGroup
	view       view // guarded by the set's mutex
	told       string
	toldAt     time.Time

	mu  sync.Mutex
	has findings
}

// findings are what the mechanisms of a source have found.
type findings struct {
	groups   map[groupKey]*targetgroup.Group
	updates  uint64    // that came
	answered time.Time // first and last update
	updated  time.Time
}

// view is what is made of the findings of a source. It is a value: what a copy
// becomes does not change the original.
type view struct {
	entry      *entry
	seen       uint64    // updates that are evaluated
	changed    bool      // the entry has, since then
	due        time.Time // to evaluate again; zero: when something is found
	started    time.Time
	old        []*targetgroup.Group // found by the mechanisms before these; nil: nothing is left of them
	last       []*targetgroup.Group // of which there were targets last
	emptySince time.Time            // zero: there are targets
	state      *evaluation          // now
	held       bool                 // state is of last
	base       uint64               // failures of the mechanisms before these, and empty answers
}

// groupKey says which group of targets replaces which.
type groupKey struct {
	mechanism int
	source    string
}

// newSource makes what runs for an entry, and starts nothing. It takes over what
// the predecessor, which has the same name, has found; nil: there is none.
func newSource(e *entry, o *Options, poke func(), before *source) (*source, error) {
	s := &source{
		complaints: newComplaints(o.Logger.With("discovery", e.config.Name)),
		poke:       poke,
		has:        findings{groups: map[groupKey]*targetgroup.Group{}},
		view:       view{entry: e, changed: true, started: time.Now(), state: &evaluation{}},
	}
	if before != nil {
		s.view.old = before.found()
		s.view.last, s.view.emptySince = before.view.last, before.view.emptySince
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

// start lets the mechanisms find targets.
func (s *source) start() {
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
			delete(s.has.groups, at)
		} else {
			s.has.groups[at] = g
		}
	}
	if s.has.updates == 0 {
		s.has.answered = now
	}
	s.has.updates++
	s.has.updated = now
}

// found returns all groups in an order that does not change.
func (s *source) found() []*targetgroup.Group {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.has.sorted()
}

// latest returns what the source has found, with all groups in an order that
// does not change.
func (s *source) latest() (findings, []*targetgroup.Group) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return findings{updates: s.has.updates, answered: s.has.answered, updated: s.has.updated}, s.has.sorted()
}

func (f *findings) sorted() []*targetgroup.Group {
	keys := slices.SortedFunc(maps.Keys(f.groups), func(a, b groupKey) int {
		return cmp.Or(cmp.Compare(a.mechanism, b.mechanism), cmp.Compare(a.source, b.source))
	})
	all := make([]*targetgroup.Group, len(keys))
	for i, k := range keys {
		all[i] = f.groups[k]
	}
	return all
}

// failed returns how often the source has failed since the process started. The
// set's mutex is held.
func (s *source) failed() uint64 {
	n := s.view.base
	for _, m := range s.mechanisms {
		n += m.failures()
	}
	return n
}

// refresh evaluates what was found, unless it already is.
func (v *view) refresh(now time.Time, s *source) {
	has, groups := s.latest()
	news := has.updates != v.seen
	if !news && !v.changed && (v.due.IsZero() || now.Before(v.due)) {
		return
	}
	v.seen, v.changed, v.due = has.updates, false, time.Time{}
	state := v.entry.evaluate(groups)
	v.succeed(now, has.answered, state)
	if len(state.candidates) > 0 {
		v.last, v.emptySince, v.held = slices.Concat(groups, v.old), time.Time{}, false
		v.state = state
		return
	}
	// There is nothing: is that so, or is the source not itself?
	last := v.entry.evaluate(v.last)
	if v.emptySince.IsZero() {
		v.emptySince = now
	}
	until := v.emptySince.Add(v.entry.config.KeepLast)
	if len(last.candidates) == 0 || !now.Before(until) {
		v.last, v.held, v.state = nil, false, state
		return
	}
	if news {
		v.base++ // an empty answer is a failure until it is believed
	}
	last.refused, last.dropped = state.refused, state.dropped
	v.held, v.state = true, last
	v.wake(until)
}

// succeed adds what the predecessor has found and the source has not yet.
func (v *view) succeed(now, answered time.Time, state *evaluation) {
	if v.old == nil {
		return
	}
	until := v.started.Add(v.entry.config.KeepLast)
	if !answered.IsZero() {
		until = answered.Add(min(grace, v.entry.config.KeepLast))
	}
	if !now.Before(until) {
		v.old = nil
		if answered.IsZero() {
			v.last = nil // they were kept for that long
		}
		return
	}
	v.wake(until)
	state.add(v.entry.evaluate(v.old))
}

// wake has the view evaluated again at this time.
func (v *view) wake(at time.Time) {
	if v.due.IsZero() || at.Before(v.due) {
		v.due = at
	}
}
