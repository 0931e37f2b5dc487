package discovery

import (
	"cmp"
	"errors"
	"slices"
	"strings"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/discovery/targetgroup"

	"github.com/steadyprobe/steadyprobe/config"
)

// Plan is what a configuration says of discovery. It does not change.
type Plan struct {
	config  *config.Config
	entries []*entry

	mostConnections int // of the process, besides the limits; 0: any
}

// entry is one source of a plan.
type entry struct {
	config     *config.Discovery
	profile    *config.Profile
	mechanisms []mechanism
	rules      []rule
}

// Prepare checks what a configuration says of discovery, as far as that can be
// known without asking anybody and without reading files. The error is a
// [*config.Errors] with all that is wrong.
func Prepare(c *config.Config) (*Plan, error) {
	p := &Plan{config: c}
	var problems []error
	for i := range c.Discovery {
		d := &c.Discovery[i]
		e := &entry{config: d, profile: c.ProfileNamed(d.Profile)}
		mechanisms, wrong := parseMechanisms(d)
		rules, wrongRules := parseRules(d.Relabel)
		e.mechanisms, e.rules = mechanisms, rules
		problems = append(append(problems, wrong...), wrongRules...)
		p.entries = append(p.entries, e)
	}
	if len(problems) == 0 {
		return p, nil
	}
	all := &config.Errors{}
	for _, err := range problems {
		if problem, ok := errors.AsType[config.Problem](err); ok {
			all.Problems = append(all.Problems, problem)
		}
	}
	slices.SortStableFunc(all.Problems, func(a, b config.Problem) int { return cmp.Compare(a.Line, b.Line) })
	return nil, all
}

// same reports whether the sources find the same.
func (e *entry) same(o *entry) bool {
	return slices.EqualFunc(e.mechanisms, o.mechanisms, func(a, b mechanism) bool { return a.identity == b.identity })
}

// candidate is a target that nothing is known against yet.
type candidate struct {
	found config.Discovered
	key   string
	dial  string // name that leads to it; empty: an address does
}

// evaluation is what a source has found, after relabelling.
type evaluation struct {
	candidates []candidate // by name, each once
	refused    []Refused
	dropped    int // by relabel rules
}

// evaluate relabels and reads what was found.
func (e *entry) evaluate(groups []*targetgroup.Group) *evaluation {
	result := &evaluation{}
	for _, group := range groups {
		for _, target := range group.Targets {
			l, keep := relabelled(group, target, e.rules)
			if !keep {
				result.dropped++
				continue
			}
			found, why := e.read(l)
			if why != nil {
				result.refuse(cmp.Or(found.Name, l.Get(model.AddressLabel), "(no address)"), why)
				continue
			}
			result.candidates = append(result.candidates, candidate{found: found, key: key(&found), dial: e.lookedUp(&found)})
		}
	}
	result.settle()
	return result
}

// settle leaves one candidate of each name, the same one in whatever order they
// were found.
func (v *evaluation) settle() {
	slices.SortFunc(v.candidates, func(a, b candidate) int {
		return cmp.Or(cmp.Compare(a.found.Name, b.found.Name), cmp.Compare(a.key, b.key))
	})
	kept := v.candidates[:0]
	for _, c := range v.candidates {
		switch last := len(kept) - 1; {
		case last < 0 || kept[last].found.Name != c.found.Name:
			kept = append(kept, c)
		case kept[last].key != c.key: // else it is the same one in two groups
			v.refuse(c.found.Name, refuse(Name, "another target of the source has the name; set "+labelName))
		}
	}
	v.candidates = kept
	slices.SortStableFunc(v.refused, func(a, b Refused) int { return cmp.Compare(a.Target, b.Target) })
}

// add adds the candidates of another evaluation whose names are new.
func (v *evaluation) add(o *evaluation) {
	known := map[string]bool{}
	for _, c := range v.candidates {
		known[c.found.Name] = true
	}
	for _, c := range o.candidates {
		if !known[c.found.Name] {
			v.candidates = append(v.candidates, c)
		}
	}
	slices.SortStableFunc(v.candidates, func(a, b candidate) int { return cmp.Compare(a.found.Name, b.found.Name) })
}

func (v *evaluation) refuse(target string, why *refusal) {
	v.refused = append(v.refused, Refused{Target: shown(target), Reason: why.reason, Text: why.text})
}

// shown returns the name or the address of a target in bounded length, without
// the user info and the query that a wrong address may have.
func shown(target string) string {
	switch at, query := strings.LastIndexByte(target, '@'), strings.IndexByte(target, '?'); {
	case query >= 0 && query < at: // either may hold the other's character
		target = "<secret>"
	case query >= 0:
		target = target[at+1:query] + "?<secret>"
	default:
		target = target[at+1:]
	}
	const most = 160
	if len(target) > most {
		target = target[:most] + "…"
	}
	return strings.ToValidUTF8(target, "�")
}
