package discovery

import (
	"cmp"
	"fmt"
	"math/big"
	"net/netip"
	"slices"
	"time"

	"github.com/steadyprobe/steadyprobe/config"
)

// Question is a name to be looked up before a target is admitted.
type Question struct {
	Host   string
	Server netip.AddrPort // to ask; not valid: as the system does
	Family string         // as dns.family of a target
}

// answer is what a lookup has said.
type answer struct {
	addresses []netip.Addr // none: the lookup has failed, which a target may show
	at        time.Time
}

// askAgain is after how long a name is looked up again that led where nothing is
// allowed.
const askAgain = 5 * time.Minute

// figures are what came of the candidates of one source.
type figures struct {
	admitted int
	pending  int // not known yet whether they are admitted
	refused  [NumReasons]int
	listed   []Refused
}

func (f *figures) refuse(target string, why *refusal) {
	f.refused[why.reason]++
	if len(f.listed) < mostRefused {
		f.listed = append(f.listed, Refused{Target: shown(target), Reason: why.reason, Text: why.text})
	}
}

// admitted is a target that is to run.
type admitted struct {
	source string
	key    string
	plan   *Plan // that the target was made by
	target config.Target
}

// admission decides which candidates of all sources are targets. Those that run
// come before others, so that what is new takes no place from them.
type admission struct {
	plan    *Plan
	running map[string]admitted // until now, by name
	answers map[Question]answer
	now     time.Time

	figures   []figures // by source
	admitted  map[string]admitted
	questions map[Question]bool // to be looked up
	used      map[Question]bool // those that are asked or answered
	again     time.Time         // when to look up what has led nowhere; zero: never

	taken       map[string]bool   // names
	labels      []map[string]bool // names of each source
	rate        *big.Rat          // of all
	connections int               // of all
}

// admit decides about what the sources have found.
func admit(plan *Plan, views []view, running map[string]admitted, answers map[Question]answer, now time.Time) *admission {
	a := &admission{
		plan: plan, running: running, answers: answers, now: now,
		figures: make([]figures, len(views)), admitted: map[string]admitted{}, questions: map[Question]bool{}, used: map[Question]bool{},
		taken: map[string]bool{}, labels: make([]map[string]bool, len(views)), rate: new(big.Rat),
	}
	for i := range plan.config.Targets {
		t := &plan.config.Targets[i]
		a.taken[t.Name] = true
		a.rate.Add(a.rate, t.Rate.Rat())
		a.connections += t.Connections
	}
	for i := range views {
		a.labels[i] = map[string]bool{}
		for _, r := range views[i].state.refused {
			a.figures[i].refuse(r.Target, &refusal{r.Reason, r.Text})
		}
	}
	for _, old := range []bool{true, false} {
		for i := range views {
			e := views[i].entry
			for k := range views[i].state.candidates {
				c := &views[i].state.candidates[k]
				before, runs := running[c.found.Name]
				if runs = runs && before.source == e.config.Name; runs == old {
					a.try(i, e, c, before, runs)
				}
			}
		}
	}
	return a
}

// targets returns what is admitted, in the order of the sources and by name.
func (a *admission) targets(views []view) (all []config.Target) {
	for i := range views {
		for k := range views[i].state.candidates {
			name := views[i].state.candidates[k].found.Name
			if t, ok := a.admitted[name]; ok && t.source == views[i].entry.config.Name {
				all = append(all, t.target)
			}
		}
	}
	return all
}

// try admits a candidate of a source, or counts why not. Before is what runs
// under its name.
func (a *admission) try(source int, e *entry, c *candidate, before admitted, runs bool) {
	f := &a.figures[source]
	if a.taken[c.found.Name] {
		f.refuse(c.found.Name, refuse(Name, "another target has the name; set "+labelName))
		return
	}
	full := f.admitted+f.pending >= e.config.MaxTargets
	known, why := a.leads(e, c, !full)
	if full && why == nil {
		why = refuse(MaxTargets, fmt.Sprintf("the source has %d targets, which is as many as max_targets lets it have", e.config.MaxTargets))
	}
	if why != nil {
		f.refuse(c.found.Name, why)
		return
	}
	t := before.target
	if !runs || before.key != c.key || before.plan != a.plan {
		var err error
		if t, err = e.profile.Target(c.found); err != nil {
			f.refuse(c.found.Name, invalid(err))
			return
		}
	}
	if why = cmp.Or(a.fewLabels(source, &c.found), a.withinLimits(&t)); why != nil {
		f.refuse(c.found.Name, why)
		return
	}
	a.taken[c.found.Name] = true
	for name := range c.found.Labels {
		a.labels[source][name] = true
	}
	a.rate.Add(a.rate, t.Rate.Rat())
	a.connections += t.Connections
	if !known && !runs {
		f.pending++ // its place is kept
		return
	}
	f.admitted++
	a.admitted[c.found.Name] = admitted{source: e.config.Name, key: c.key, plan: a.plan, target: t}
}

// leads reports whether it is known where a candidate leads, and why it is
// refused if that is nowhere that is allowed. What is not known is to be looked
// up where that is asked for. A name that cannot be looked up is not refused:
// that is what a target shows.
func (a *admission) leads(e *entry, c *candidate, ask bool) (known bool, why *refusal) {
	if c.dial == "" {
		return true, nil
	}
	q := Question{Host: c.dial, Server: e.profile.DNS.ServerAddress(), Family: e.profile.DNS.Family}
	a.used[q] = true
	said, known := a.answers[q]
	if !known {
		if ask {
			a.questions[q] = true
		}
		return false, nil
	}
	if len(said.addresses) == 0 || slices.ContainsFunc(said.addresses, e.config.Allow.AdmitsAddress) {
		return true, nil
	}
	switch again := said.at.Add(askAgain); {
	case !a.now.Before(again):
		a.questions[q] = true
	case a.again.IsZero() || again.Before(a.again):
		a.again = again
	}
	return true, refuse(Network, fmt.Sprintf("%s leads to %s, which is not in allow.networks", c.dial, said.addresses[0]))
}

// fewLabels refuses a target with which those of its source would have too many
// names of labels: each series of each target has all of them.
func (a *admission) fewLabels(source int, found *config.Discovered) *refusal {
	more := 0
	for name := range found.Labels {
		if !a.labels[source][name] {
			more++
		}
	}
	if len(a.labels[source])+more <= mostLabels {
		return nil
	}
	return refuse(Invalid, fmt.Sprintf("with its labels the targets of the source would have more than %d in all; remove some by labeldrop", mostLabels))
}

// withinLimits refuses a target with which all would be more than the limits.
func (a *admission) withinLimits(t *config.Target) *refusal {
	limits := &a.plan.config.Limits
	if rate := new(big.Rat).Add(a.rate, t.Rate.Rat()); rate.Cmp(limits.MaxTotalRate.Rat()) > 0 {
		return refuse(Limits, fmt.Sprintf("with its %s requests/s the sum of rates would be above limits.max_total_rate (%s)", t.Rate, limits.MaxTotalRate))
	}
	if most := a.plan.mostConnections; most > 0 && a.connections+t.Connections > most {
		return refuse(Limits, fmt.Sprintf("with its %d connections the process could need more open files than it may have (ulimit -n, LimitNOFILE=)", t.Connections))
	}
	if a.connections+t.Connections > limits.MaxConnections {
		return refuse(Limits, fmt.Sprintf("with its %d connections the sum would be above limits.max_connections (%d)", t.Connections, limits.MaxConnections))
	}
	return nil
}
