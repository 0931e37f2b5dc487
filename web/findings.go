package web

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
)

// What stands out: a p99 is worse than another one when it is so many times as
// long and by so much longer, and both are of enough requests to have one (the
// quantile is null otherwise). Anything less may be chance, or nobody feels it.
const (
	worseRatio   = 2
	worseSeconds = 0.005
)

// keptShare is the share of a rate that may be missed, and keptSigmas how many
// standard deviations of a random arrival, before a rate counts as not kept.
const (
	keptShare  = 0.95
	keptSigmas = 4
)

// maxFindings is how many targets are said to stand out at most.
const maxFindings = 8

// Weights of what stands out; the heaviest comes first.
const (
	weighsSlow = iota
	weighsFailing
	weighsDown
)

// finding is what stands out of one target, in sentences.
type finding struct {
	Target    string
	Sentences []string
	weight    int
	measure   float64 // within the weight: share that failed, or seconds
}

// find returns what stands out, the worst first, and nothing where all is well.
func find(targets []Target) []finding {
	peers := map[string][]*Target{}
	for i := range targets {
		if churn := targets[i].Churn; churn != "" {
			peers[churn] = append(peers[churn], &targets[i])
		}
	}
	var all []finding
	for i := range targets {
		if f := findOf(&targets[i], peers[targets[i].Churn]); len(f.Sentences) > 0 {
			all = append(all, f)
		}
	}
	slices.SortStableFunc(all, func(a, b finding) int {
		return cmp.Or(cmp.Compare(b.weight, a.weight), cmp.Compare(b.measure, a.measure))
	})
	return all
}

// findOf returns what stands out of t, which may be one of several targets
// before the same backends.
func findOf(t *Target, peers []*Target) finding {
	f := finding{Target: t.Name}
	if t.Condition.State == stateDown {
		f.weight = weighsDown
		f.say("It has been down since %s%s.", clock(t.Condition.Since), reasonOf(t.Condition))
	}
	slow, failing := f.slowInPhase(t), f.failingInPhase(t)
	if slow != "" || failing != "" {
		f.besidePeers(t, peers, slow, failing)
	}
	if failing == "" {
		f.failing(t)
	}
	if slow == "" && !f.slowBesidePeers(t, peers) {
		f.slowNow(t)
	}
	f.rateMissed(t)
	return f
}

func (f *finding) say(format string, v ...any) {
	f.Sentences = append(f.Sentences, fmt.Sprintf(format, v...))
}

// weigh makes f at least as heavy as this.
func (f *finding) weigh(weight int, measure float64) {
	if weight > f.weight {
		f.weight, f.measure = weight, measure
	} else if weight == f.weight {
		f.measure = max(f.measure, measure)
	}
}

// slowInPhase compares the p99 of the scaling phases with the settled one's, and
// returns the phase that is worst, if any stands out.
func (f *finding) slowInPhase(t *Target) (phase string) {
	settled, _ := t.phase(phaseSettled)
	usual, worst := settled.Latency.at(0.99), Number(0)
	for _, p := range t.Phases {
		if v := p.Latency.at(0.99); p.Phase != phaseSettled && worse(v, usual) && v > worst {
			worst, phase = v, p.Phase
		}
	}
	if phase != "" {
		f.weigh(weighsSlow, float64(worst))
		f.say("p99 is %s while %s, %s while settled.", seconds(worst), words(phase), seconds(usual))
	}
	return phase
}

// failingInPhase returns the churn phase in which the largest share of requests
// fails, if any.
func (f *finding) failingInPhase(t *Target) (phase string) {
	var worst ChurnPhase
	for _, p := range t.Phases {
		if p.Failed > 0 && p.share() > worst.share() {
			worst = p
		}
	}
	if worst.Failed == 0 {
		return ""
	}
	f.weigh(weighsFailing, worst.share())
	settled, _ := t.phase(phaseSettled)
	sentence := fmt.Sprintf("%s of its requests failed while %s", percent(worst.Failed, worst.Completed), words(worst.Phase))
	switch {
	case worst.Phase != phaseSettled && settled.Completed > 0 && settled.Failed == 0:
		sentence += ", none while settled"
	case worst.Phase != phaseSettled && settled.Completed > 0:
		sentence += fmt.Sprintf(", %s while settled", percent(settled.Failed, settled.Completed))
	}
	sentence += ", " + mostOf(worst.Failures, worst.Failed, func(f Failure) uint64 { return f.Total })
	if t.recent() == 0 {
		sentence += "; none in the last 5 minutes"
	}
	f.say("%s.", sentence)
	return worst.Phase
}

// besidePeers says of the best target before the same backends that it does not
// suffer in the same phases, where that is so: then it is not the backends.
func (f *finding) besidePeers(t *Target, peers []*Target, slow, failing string) {
	inSlow, _ := t.phase(slow)
	inFailing, _ := t.phase(failing)
	best, p99 := (*Target)(nil), none()
	for _, p := range peers {
		itsSlow, _ := p.phase(slow)
		itsFailing, _ := p.phase(failing)
		v := itsSlow.Latency.at(0.99)
		faster := slow == "" || worse(inSlow.Latency.at(0.99), v)
		// Of far fewer requests none may have failed by chance.
		sound := failing == "" || itsFailing.Failed == 0 && itsFailing.Completed >= inFailing.Completed/2
		if p != t && faster && sound && (best == nil || v < p99) {
			best, p99 = p, v
		}
	}
	if best == nil {
		return
	}
	var parts []string
	if slow != "" {
		parts = append(parts, "has a p99 of "+seconds(p99)+" then")
	}
	if failing != "" {
		parts = append(parts, "failed none")
	}
	f.say("Before the same backends %s %s: it is this door rather than the backends.", best.Name, strings.Join(parts, " and "))
}

// failing says what failed of late, where no churn explains it.
func (f *finding) failing(t *Target) {
	recent := t.recent()
	if recent == 0 {
		return
	}
	f.weigh(weighsFailing, 0)
	noun := "requests"
	if recent == 1 {
		noun = "request"
	}
	f.say("%s %s failed in the last 5 minutes, %s.", count(recent), noun,
		mostOf(t.Failures, recent, func(f Failure) uint64 { return f.Recent }))
}

// slowBesidePeers compares the p99 of 5 minutes with the best one before the
// same backends.
func (f *finding) slowBesidePeers(t *Target, peers []*Target) bool {
	mine := t.latency("5m").at(0.99)
	best, ok := bestPeer(t, peers, func(p *Target) Number { return p.latency("5m").at(0.99) })
	if !ok || !worse(mine, best.seconds) {
		return false
	}
	f.weigh(weighsSlow, float64(mine))
	f.say("p99 of the last 5 minutes is %s; before the same backends %s is at %s.", seconds(mine), best.name, seconds(best.seconds))
	return true
}

// slowNow compares the last minute with the last hour.
func (f *finding) slowNow(t *Target) {
	now, usual := t.latency("1m").at(0.99), t.latency("1h").at(0.99)
	if worse(now, usual) {
		f.weigh(weighsSlow, float64(now))
		f.say("p99 of the last minute is %s, that of the last hour %s.", seconds(now), seconds(usual))
	}
}

// rateMissed says so where fewer requests were completed in a minute than a
// random arrival would explain.
func (f *finding) rateMissed(t *Target) {
	if !missed(t) {
		return
	}
	f.weigh(weighsSlow, 0)
	f.say("%s of %s requests per second were completed in the last minute; %s wait for a connection.",
		perSecond(t.RateKept), perSecond(t.Rate), count(t.Backlog))
}

// missed reports whether the rate is not kept; false where either is not known.
func missed(t *Target) bool {
	rate, kept := float64(t.Rate), float64(t.RateKept)
	return kept < keptShare*rate && (rate-kept)*60 >= 1+keptSigmas*math.Sqrt(rate*60)
}

// worse reports whether a latency stands out against another one, which it
// never does where there is none.
func worse(v, usual Number) bool {
	return v >= worseRatio*usual && v-usual >= worseSeconds
}

type peer struct {
	name    string
	seconds Number
}

// bestPeer returns the other target with the lowest value.
func bestPeer(t *Target, peers []*Target, value func(*Target) Number) (best peer, ok bool) {
	for _, p := range peers {
		if v := value(p); p != t && !math.IsNaN(float64(v)) && (!ok || v < best.seconds) {
			best, ok = peer{p.Name, v}, true
		}
	}
	return best, ok
}

// mostOf names the most frequent of the failures that sum up to all.
func mostOf(failures []Failure, all uint64, of func(Failure) uint64) string {
	if len(failures) == 0 {
		return "for reasons that are not known"
	}
	top := slices.MaxFunc(failures, func(a, b Failure) int { return cmp.Compare(of(a), of(b)) })
	name := top.name()
	switch n := of(top); {
	case n == all && all == 1:
		return "as " + name
	case n == all:
		return "all as " + name
	case 2*n > all:
		return "most of them as " + name
	}
	return "most often as " + name
}

func reasonOf(c Condition) string {
	if c.Reason == "" {
		return ""
	}
	return ", most often by " + c.Reason
}

// words returns a name of the API as people write it.
func words(name string) string { return strings.ReplaceAll(name, "_", " ") }
