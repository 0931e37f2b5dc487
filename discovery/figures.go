package discovery

import (
	"log/slog"
	"slices"
	"time"
)

// Source is one source as metrics and the API show it.
type Source struct {
	Name       string
	Mechanisms []string // file, http, dns, kubernetes; in the order of the file
	Profile    string
	Targets    int // admitted
	Pending    int // whose names are being looked up before they are
	Dropped    int // by relabel rules
	// Held says that the source has no targets now, and that those are its last
	// ones, until keep_last has passed.
	Held bool
	// Refused counts the targets that are not probed, by reason, and Listed says
	// more of some of them.
	Refused [NumReasons]int
	Listed  []Refused
	// Failures counts what has failed since the process started: answers that
	// could not be had or read, and empty ones while targets are held.
	Failures    uint64
	LastFailure string    // as it was logged; empty: there was none
	FailedAt    time.Time // when that was; zero: never
	Updated     time.Time // when the source has last said something; zero: never
}

// Sources returns what is known of each source, in the order of the file.
func (s *Set) Sources() []Source {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := make([]Source, len(s.sources))
	for i, one := range s.sources {
		v := Source{
			Name:     one.view.entry.config.Name,
			Profile:  one.view.entry.config.Profile,
			Dropped:  one.view.state.dropped,
			Held:     one.view.held,
			Failures: one.failed(),
		}
		for _, m := range one.mechanisms {
			v.Mechanisms = append(v.Mechanisms, m.name)
		}
		f := &s.figures[i]
		v.Targets, v.Pending, v.Refused, v.Listed = f.admitted, f.pending, f.refused, slices.Clone(f.listed)
		v.LastFailure, v.FailedAt = one.complaints.kept.lastError()
		one.mu.Lock()
		v.Updated = one.has.updated
		one.mu.Unlock()
		all[i] = v
	}
	return all
}

// tellAgain is how often what is refused of a source is logged at most.
const tellAgain = time.Minute

// tell logs that the source began or ended to hold its last targets. The view of
// before is given.
func (s *source) tell(logger *slog.Logger, before *view) {
	v, name := &s.view, s.view.entry.config.Name
	switch {
	case v.held && !before.held:
		logger.Warn("A source has no targets any more; its last ones are kept for a time", "discovery", name, "targets", len(v.state.candidates), "until", v.due)
	case !v.held && before.held && v.last == nil:
		logger.Warn("A source has had no targets for keep_last; its last ones are removed", "discovery", name)
	case !v.held && before.held:
		logger.Info("A source has targets again", "discovery", name)
	case before.last != nil && v.last == nil:
		logger.Warn("A source has no targets any more; its last ones are removed", "discovery", name)
	}
}

// tellTargets logs how many targets came and went, and what is refused when that
// has changed.
func (s *source) tellTargets(logger *slog.Logger, f *figures, before, after map[string]admitted, now time.Time) {
	name := s.view.entry.config.Name
	if added, removed := others(name, after, before), others(name, before, after); added > 0 || removed > 0 {
		logger.Info("Discovered targets have changed", "discovery", name, "targets", f.admitted, "added", added, "removed", removed)
	}
	refused := summary(&f.refused)
	if refused == s.told || f.pending > 0 || now.Sub(s.toldAt) < tellAgain {
		return
	}
	s.told, s.toldAt = refused, now
	if refused == "" {
		logger.Info("No target of a source is refused any more", "discovery", name)
		return
	}
	first := f.listed[0]
	logger.Warn("Targets of a source are refused", "discovery", name, "refused", refused, "first", first.Target, "why", first.Text)
}

// others counts the targets of a source that are in a and not in b.
func others(source string, a, b map[string]admitted) (n int) {
	for name, t := range a {
		if t.source == source && b[name].source != source {
			n++
		}
	}
	return n
}
