package app

import (
	"slices"
	"sync"
	"time"

	"github.com/steadyprobe/steadyprobe/churn"
	"github.com/steadyprobe/steadyprobe/probe"
	"github.com/steadyprobe/steadyprobe/probe/record"
)

// tied is the targets that name a churn: those whose ticks count for its phase,
// and whose requests tell what it does to them. Targets may come and go. Its
// methods may be called concurrently.
type tied struct {
	churn string
	clock probe.Clock

	mu      sync.Mutex
	phase   probe.ChurnPhase
	all     []tiedTarget
	gone    churn.Traffic // of those that were tied
	failure time.Time     // the latest of those
	seen    []record.Sighting
}

// tiedTarget is a target, and what it had done when it was tied.
type tiedTarget struct {
	*probed
	before churn.Traffic
}

// keep ends the tie of all targets but those that name the churn: they are in no
// churn phase from now on.
func (t *tied) keep(all []*probed) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.all = slices.DeleteFunc(t.all, func(one tiedTarget) bool {
		if slices.ContainsFunc(all, func(p *probed) bool { return p.prober == one.prober && p.config.Churn == t.churn }) {
			return false
		}
		one.prober.SetChurn(probe.NoChurn)
		t.gone = plus(t.gone, one.traffic())
		t.failure = t.latest(one)
		return true
	})
}

// set makes those targets the tied ones that name the churn. All others must
// have been left out by keep. A target whose settings have changed stays tied.
func (t *tied) set(all []*probed) {
	t.mu.Lock()
	defer t.mu.Unlock()
	var next []tiedTarget
	for _, p := range all {
		if p.config.Churn != t.churn {
			continue
		}
		if i := slices.IndexFunc(t.all, func(one tiedTarget) bool { return one.prober == p.prober }); i >= 0 {
			next = append(next, tiedTarget{p, t.all[i].before})
			continue
		}
		p.prober.SetChurn(t.phase)
		next = append(next, tiedTarget{p, trafficOf(p.prober)})
	}
	t.all = next
}

// names returns the names of the targets, in the order of the configuration.
func (t *tied) names() []string {
	t.mu.Lock()
	defer t.mu.Unlock()
	names := make([]string, len(t.all))
	for i, one := range t.all {
		names[i] = one.config.Name
	}
	return names
}

// setPhase tells the targets the churn's phase.
func (t *tied) setPhase(p probe.ChurnPhase) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.phase = p
	for _, one := range t.all {
		one.prober.SetChurn(p)
	}
}

// traffic returns what the targets have done while they were tied, without what
// the probe itself is to blame for. It never shrinks.
func (t *tied) traffic() churn.Traffic {
	t.mu.Lock()
	defer t.mu.Unlock()
	sum := t.gone
	for _, one := range t.all {
		sum = plus(sum, one.traffic())
	}
	return sum
}

func (t *tiedTarget) traffic() churn.Traffic {
	now := trafficOf(t.prober)
	return churn.Traffic{Completed: now.Completed - t.before.Completed, Failed: now.Failed - t.before.Failed}
}

func plus(a, b churn.Traffic) churn.Traffic {
	return churn.Traffic{Completed: a.Completed + b.Completed, Failed: a.Failed + b.Failed}
}

// trafficOf returns what a target has done since it began.
func trafficOf(p *probe.Prober) churn.Traffic {
	l := p.Ledger()
	return trafficIn(&l)
}

// trafficIn returns what a ledger says without what the probe itself is to
// blame for.
func trafficIn(l *probe.Ledger) (sum churn.Traffic) {
	for phase := range l.Completed {
		for i, n := range l.Completed[phase] {
			switch o := probe.Outcome(i); {
			case o.Own():
			case o == probe.Success:
				sum.Completed += n
			default:
				sum.Completed += n
				sum.Failed += n
			}
		}
	}
	return sum
}

// backends returns who has answered the targets, one that answered several of
// them once, and begins to count anew where mark is set.
func (t *tied) backends(mark bool) []churn.Sighting {
	t.mu.Lock()
	defer t.mu.Unlock()
	now, instant := time.Now(), t.clock.Now()
	when := func(i probe.Instant) time.Time {
		if i == 0 {
			return time.Time{}
		}
		return now.Add(i.Sub(instant))
	}
	var all []churn.Sighting
	for _, one := range t.all {
		t.seen = one.recorder.Sightings(t.seen, mark)
		for _, s := range t.seen {
			all = merged(all, churn.Sighting{Name: s.Name, First: when(s.First), Last: when(max(s.Last, s.Before)), Answers: s.Answers})
		}
	}
	return all
}

// merged adds what was seen of a backend through one door to what was seen of
// it through others.
func merged(all []churn.Sighting, s churn.Sighting) []churn.Sighting {
	i := slices.IndexFunc(all, func(one churn.Sighting) bool { return one.Name == s.Name })
	if i < 0 {
		return append(all, s)
	}
	to := &all[i]
	if to.First.IsZero() || !s.First.IsZero() && s.First.Before(to.First) {
		to.First = s.First
	}
	if s.Last.After(to.Last) {
		to.Last = s.Last
	}
	to.Answers += s.Answers
	return all
}

// lastFailure returns when the latest request of the targets ended that failed,
// zero where none has.
func (t *tied) lastFailure() time.Time {
	t.mu.Lock()
	defer t.mu.Unlock()
	latest := t.failure
	for _, one := range t.all {
		if at := t.latest(one); at.After(latest) {
			latest = at
		}
	}
	return latest
}

// latest returns the later one of a target's last failure and those of targets
// that are gone. It is called with mu held.
func (t *tied) latest(one tiedTarget) time.Time {
	i := one.recorder.LastFailure()
	if i == 0 {
		return t.failure
	}
	if at := time.Now().Add(i.Sub(t.clock.Now())); at.After(t.failure) {
		return at
	}
	return t.failure
}
