package web

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// slowInPhases compares the p99 of the scaling phases with the settled one's, and
// returns those that stand out, the worst first.
func (f *finding) slowInPhases(t *Target) (slow []ChurnPhase) {
	settled, _ := t.phase(phaseSettled)
	usual := settled.Latency.at(0.99)
	for _, p := range t.Phases {
		v := p.Latency.at(0.99)
		if p.Phase != phaseSettled && worse(v, usual) && !late(t, v) {
			slow = append(slow, p)
		}
	}
	if len(slow) == 0 {
		return nil
	}
	slices.SortStableFunc(slow, func(a, b ChurnPhase) int { return cmp.Compare(b.Latency.at(0.99), a.Latency.at(0.99)) })
	f.weigh(weighsSlow, float64(slow[0].Latency.at(0.99)))
	parts := make([]string, len(slow))
	for i, p := range slow {
		parts[i] = fmt.Sprintf("%s while %s", seconds(p.Latency.at(0.99)), words(p.Phase))
	}
	f.say("p99 is %s, %s while settled.", strings.Join(parts, " and "), seconds(usual))
	return slow
}

// late reports whether so much of the lateness is as long as the latency is,
// that this may be the probe's own. Both are since the process started.
func late(t *Target, latency Number) bool { return 2*t.Lateness.at(0.99) > latency }

// failingInPhases says of every churn phase in which share its requests failed,
// and returns those phases, the largest share first.
func (f *finding) failingInPhases(t *Target) (failing []ChurnPhase) {
	for _, p := range t.Phases {
		if p.Failed > 0 {
			failing = append(failing, p)
		}
	}
	if len(failing) == 0 {
		return nil
	}
	slices.SortStableFunc(failing, func(a, b ChurnPhase) int { return cmp.Compare(b.share(), a.share()) })
	f.weigh(weighsFailing, failing[0].share())
	same := !slices.ContainsFunc(failing, func(p ChurnPhase) bool { return mostFrequent(p.Failures) != mostFrequent(failing[0].Failures) })
	var parts []string
	for i, p := range failing {
		part := fmt.Sprintf("%s while %s", percent(p.Failed, p.Completed), words(p.Phase))
		if i == 0 {
			part = fmt.Sprintf("%s of its requests failed while %s", percent(p.Failed, p.Completed), words(p.Phase))
		}
		if !same {
			part += ", " + mostOf(t, p.Failures, p.Failed, totalOf)
		}
		parts = append(parts, part)
	}
	if settled, _ := t.phase(phaseSettled); settled.Completed > 0 && settled.Failed == 0 {
		parts = append(parts, "none while settled")
	}
	recently := ""
	if t.recent() == 0 {
		recently = "; none in the last 5 minutes"
	}
	if same {
		merged, all := merge(failing)
		f.say("%s, %s%s.", strings.Join(parts, ", "), mostOf(t, merged, all, totalOf), recently)
	} else {
		f.say("%s%s.", strings.Join(parts, "; "), recently)
	}
	explained := map[string]bool{}
	for _, p := range failing {
		if name := mostFrequent(p.Failures); !explained[name] {
			explained[name] = true
			f.explain(t, name)
		}
	}
	return failing
}

// merge adds up the failures of churn phases.
func merge(phases []ChurnPhase) (failures []Failure, all uint64) {
	for _, p := range phases {
		all += p.Failed
		for _, one := range p.Failures {
			i := slices.IndexFunc(failures, func(f Failure) bool { return f.name() == one.name() })
			if i < 0 {
				failures = append(failures, one)
				continue
			}
			failures[i].Total += one.Total
		}
	}
	return failures, all
}

// besidePeers names the first target in front of the same backends that does
// not suffer in the same phases, if there is one: then it is not the backends.
// The first in the order of the configuration, so that it stays the same one.
func (f *finding) besidePeers(t *Target, peers []*Target, slow, failing []ChurnPhase) {
	for _, p := range peers {
		if p == t || !sound(p, slow, failing) {
			continue
		}
		var parts []string
		if len(slow) > 0 {
			its, _ := p.phase(slow[0].Phase)
			parts = append(parts, "has a p99 of "+seconds(its.Latency.at(0.99))+" while "+words(slow[0].Phase))
		}
		if len(failing) > 0 {
			parts = append(parts, "failed none")
		}
		f.say("In front of the same backends %s %s: it is this door rather than the backends.", p.Name, strings.Join(parts, " and "))
		return
	}
}

// sound reports whether a target is faster in all of the slow phases and fails
// in none of the failing ones, where at least enough would have, had it failed
// as often: fewer may have been spared by chance.
func sound(p *Target, slow, failing []ChurnPhase) bool {
	for i := range slow {
		its, _ := p.phase(slow[i].Phase)
		if !worse(slow[i].Latency.at(0.99), its.Latency.at(0.99)) {
			return false
		}
	}
	for i := range failing {
		its, _ := p.phase(failing[i].Phase)
		if its.Failed > 0 || float64(its.Completed)*failing[i].share() < enough {
			return false
		}
	}
	return true
}
