package churn

import (
	"slices"
	"time"
)

// silence is after how many times the mean time between two answers of one
// backend it is taken for gone. Should answers be spread evenly by chance, one
// that is there is silent for so long once in half a billion times; should one
// have only half of its share, once in 20,000 times.
const silence = 20

// Sighting is what was seen of one backend, by its answers.
type Sighting struct {
	Name    string
	First   time.Time // end of its first answer since the latest mark; zero: there is none since
	Last    time.Time // end of its latest answer, also of one before the mark
	Answers uint64    // since the latest mark
}

// answers finds out when a step was felt: with the first answer of a new
// backend, or the last one of a removed one. It knows backends by their answers
// alone, and says nothing where those are too few to be sure:
//
//   - Before the call exactly as many backends as there were replicas must have
//     answered since the call before, none of them silent for 20 times the mean
//     time between two answers of one. Otherwise nothing is known of the step.
//   - New is who answers after the call and is none of those. There must not be
//     more than were added.
//   - Removed is who of those has been silent for 20 times that mean time when
//     the next call comes. There must be exactly as many as were taken away.
type answers struct {
	backends func(mark bool) []Sighting // nil: nothing is known

	marked   time.Time
	from, to int
	called   time.Time // when the call that was accepted was made; zero: no step is watched
	before   []string  // who was there
	interval time.Duration
	first    bool // is known
}

// felt is what is known of a step: times from its call on, below 0 where not.
type felt struct{ first, last time.Duration }

var unfelt = felt{-1, -1}

// begin begins to count.
func (a *answers) begin(now time.Time) {
	a.called = time.Time{}
	if a.backends != nil {
		a.backends(true)
		a.marked = now
	}
}

// mark is to be called just before the first call of a step or of a restore. It
// returns what is known of the step before.
func (a *answers) mark(now time.Time, from, to int) felt {
	if a.backends == nil {
		return unfelt
	}
	seen := a.backends(true)
	f := felt{a.firstOf(seen), a.lastOf(seen, now)}
	a.from, a.to, a.called, a.first = from, to, time.Time{}, false
	a.interval = a.intervalOf(seen, now)
	a.before = a.before[:0]
	quiet := silence * a.interval
	if from == 0 { // nobody is there to compare with
		quiet = now.Sub(a.marked) / 2
	}
	for _, s := range seen {
		if s.Answers > 0 && now.Sub(s.Last) < quiet {
			a.before = append(a.before, s.Name)
		}
	}
	a.marked = now
	return f
}

// intervalOf returns the mean time between two answers of one of the backends.
func (a *answers) intervalOf(seen []Sighting, now time.Time) time.Duration {
	var all uint64
	for _, s := range seen {
		all += s.Answers
	}
	if all == 0 {
		return 0
	}
	return time.Duration(float64(now.Sub(a.marked)) * float64(a.from) / float64(all))
}

// watch is to be called when the call of a step, made at a time, was accepted.
func (a *answers) watch(called time.Time) {
	if len(a.before) == a.from {
		a.called = called
	}
}

// settled is to be called when the step has settled.
func (a *answers) settled() felt {
	if a.backends == nil {
		return unfelt
	}
	return felt{a.firstOf(a.backends(false)), -1}
}

// firstOf returns when a new backend first answered, once.
func (a *answers) firstOf(seen []Sighting) time.Duration {
	if a.called.IsZero() || a.first || a.to <= a.from {
		return -1
	}
	added, first := 0, time.Time{}
	for _, s := range seen {
		if s.Answers == 0 || slices.Contains(a.before, s.Name) {
			continue
		}
		added++
		if first.IsZero() || s.First.Before(first) {
			first = s.First
		}
	}
	if added == 0 || added > a.to-a.from || first.Before(a.called) {
		return -1
	}
	a.first = true
	return first.Sub(a.called)
}

// lastOf returns when a removed backend last answered.
func (a *answers) lastOf(seen []Sighting, now time.Time) time.Duration {
	if a.called.IsZero() || a.to >= a.from {
		return -1
	}
	removed, last := 0, a.called
	for _, s := range seen {
		if !slices.Contains(a.before, s.Name) {
			continue
		}
		answered := s.Last
		if answered.Before(a.called) {
			answered = a.called
		}
		if now.Sub(answered) < silence*a.interval {
			continue
		}
		removed++
		if answered.After(last) {
			last = answered
		}
	}
	if removed != a.from-a.to {
		return -1
	}
	return last.Sub(a.called)
}
