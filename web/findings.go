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

// Finding is what stands out of one target.
type Finding struct {
	Target    string
	Sentences []string // what, when and why; at least one
}

// Findings returns what stands out of targets that are of one instant, the
// worst first, and nothing where all is well. What is compared, and from where
// on a difference counts, is in docs/MEASUREMENT.md.
func Findings(targets []Target) []Finding {
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
	found := make([]Finding, len(all))
	for i := range all {
		found[i] = all[i].Finding
	}
	return found
}

// finding is a Finding being made.
type finding struct {
	Finding
	weight  int
	measure float64 // within the weight: share that failed, or seconds
}

// findOf returns what stands out of t, which may be one of several targets
// in front of the same backends. Of one that is down, all else is only what
// that comes to.
func findOf(t *Target, peers []*Target) finding {
	f := finding{Finding: Finding{Target: t.Name}}
	if t.Condition.State == stateDown {
		f.down(t, peers)
		return f
	}
	slow, failing := f.slowInPhases(t), f.failingInPhases(t)
	if len(slow) > 0 || len(failing) > 0 {
		f.besidePeers(t, peers, slow, failing)
	}
	if len(failing) == 0 {
		f.failing(t)
	}
	if len(slow) == 0 && !f.slowBesidePeers(t, peers) {
		f.slowNow(t)
	}
	f.rateMissed(t)
	return f
}

func (f *finding) say(format string, v ...any) {
	f.Sentences = append(f.Sentences, fmt.Sprintf(format, v...))
}

// explain says what a failure means, unless its name says it.
func (f *finding) explain(t *Target, name string) {
	text := means(failureMeanings[:], name)
	codes := t.unexpected()
	if name == responseStatus && len(codes) > 0 {
		name, text = statusName(codes[0]), means(statusMeanings[:], codes[0])
	}
	if text != "" {
		f.say("%s: %s.", name, text)
	}
}

// weigh makes f at least as heavy as this.
func (f *finding) weigh(weight int, measure float64) {
	if weight > f.weight {
		f.weight, f.measure = weight, measure
	} else if weight == f.weight {
		f.measure = max(f.measure, measure)
	}
}

// down says since when, why, and whether it is this door alone.
func (f *finding) down(t *Target, peers []*Target) {
	f.weight = weighsDown
	reason := ""
	if t.Condition.Reason != "" {
		reason = ", most often by " + t.named(t.Condition.Reason)
	}
	f.say("It has been down since %s%s.", clock(t.Condition.Since), reason)
	f.explain(t, t.Condition.Reason)
	for _, p := range peers {
		if p != t && p.Condition.State == stateUp {
			f.say("In front of the same backends %s is up: it is this door rather than the backends.", p.Name)
			return
		}
	}
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
	f.say("%s %s failed in the last 5 minutes, %s.", count(recent), noun, mostOf(t, t.Failures, recent, recentOf))
	f.explain(t, topOf(t.Failures, recentOf).name())
}

// slowBesidePeers compares the p99 of 5 minutes with that of the first target in
// front of the same backends that is better.
func (f *finding) slowBesidePeers(t *Target, peers []*Target) bool {
	mine := t.latency("5m").at(0.99)
	for _, p := range peers {
		its := p.latency("5m").at(0.99)
		if p == t || !worse(mine, its) {
			continue
		}
		f.weigh(weighsSlow, float64(mine))
		f.say("p99 of the last 5 minutes is %s; in front of the same backends %s is at %s.", seconds(mine), p.Name, seconds(its))
		return true
	}
	return false
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

// enough failures are no chance: of that many expected ones none happens once in
// 150 times.
const enough = 5

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

func totalOf(f Failure) uint64  { return f.Total }
func recentOf(f Failure) uint64 { return f.Recent }

// mostFrequent returns the name of the most frequent failure, empty where there
// is none.
func mostFrequent(failures []Failure) string {
	if len(failures) == 0 {
		return ""
	}
	return topOf(failures, totalOf).name()
}

// topOf returns the failure of which there are most; there must be one.
func topOf(failures []Failure, of func(Failure) uint64) Failure {
	return slices.MaxFunc(failures, func(a, b Failure) int { return cmp.Compare(of(a), of(b)) })
}

// mostOf names the most frequent of the failures of t that sum up to all.
func mostOf(t *Target, failures []Failure, all uint64, of func(Failure) uint64) string {
	if len(failures) == 0 {
		return "for reasons that are not known"
	}
	top := topOf(failures, of)
	name := t.named(top.name())
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

// words returns a name of the API as people write it.
func words(name string) string { return strings.ReplaceAll(name, "_", " ") }
