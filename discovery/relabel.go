package discovery

import (
	"strings"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/discovery/targetgroup"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/relabel"

	"github.com/steadyprobe/steadyprobe/config"
)

// rule is one entry of relabel_configs.
type rule struct {
	config *relabel.Config
	// deliberate says that the labels which the rule writes are named in it, so
	// far as they control a target.
	deliberate bool
}

// parseRules returns the relabel rules of a source, in their order.
func parseRules(s config.Settings) (rules []rule, problems []error) {
	for _, i := range items(s) {
		c := new(relabel.Config)
		wrong := i.decode(c)
		if len(wrong) == 0 {
			if err := c.Validate(model.LegacyValidation); err != nil {
				wrong = append(wrong, i.problem(i.node.Line, i.path, "%s; see what Prometheus expects there", err))
			} else if err := checkWritten(c); err != nil {
				line, path := i.at("target_label")
				wrong = append(wrong, i.problem(line, path, "%s", err))
			}
		}
		problems = append(problems, wrong...)
		rules = append(rules, rule{config: c, deliberate: deliberate(c)})
	}
	return rules, problems
}

// checkWritten returns why the label that a rule writes would be refused of
// every target.
func checkWritten(c *relabel.Config) error {
	name := c.TargetLabel
	switch {
	case strings.Contains(name, "$") || name == "" || c.Action == relabel.KeepEqual || c.Action == relabel.DropEqual:
		return nil
	case strings.HasPrefix(name, controlPrefix):
		return checkControl(name)
	case strings.HasPrefix(name, model.ReservedLabelPrefix):
		return nil
	}
	return config.CheckLabel(name)
}

// deliberate reports whether what a rule writes is named by the rule itself, so
// that nobody's annotation can choose it.
func deliberate(c *relabel.Config) bool {
	written := c.TargetLabel
	if c.Action == relabel.LabelMap {
		written = c.Replacement
	}
	literal, _, template := strings.Cut(written, "$")
	return !template || strings.HasPrefix(literal, controlPrefix) || strings.HasPrefix(literal, model.ParamLabelPrefix)
}

// isControl reports whether a label says how a target is probed.
func isControl(name string) bool {
	return name == model.AddressLabel || name == model.SchemeLabel ||
		strings.HasPrefix(name, model.ParamLabelPrefix) || strings.HasPrefix(name, controlPrefix)
}

// relabelled returns the labels of a discovered target after the rules, false
// where they drop it. What the source itself says of controls does not count,
// but for the address.
func relabelled(group *targetgroup.Group, target model.LabelSet, rules []rule) (labels.Labels, bool) {
	b := labels.NewBuilder(labels.EmptyLabels())
	for _, set := range []model.LabelSet{group.Labels, target} {
		for name, value := range set {
			if string(name) == model.AddressLabel || !isControl(string(name)) {
				b.Set(string(name), string(value))
			}
		}
	}
	for _, r := range rules {
		if !r.apply(b) {
			return labels.EmptyLabels(), false
		}
	}
	return b.Labels(), true
}

// apply changes the labels as the rule says, and reports whether the target is
// kept.
func (r rule) apply(b *labels.Builder) bool {
	if r.deliberate {
		return relabel.ProcessBuilder(b, r.config)
	}
	before := controls(b)
	keep := relabel.ProcessBuilder(b, r.config)
	for name, value := range controls(b) {
		if before[name] != value {
			b.Set(name, before[name]) // empty: removed
		}
	}
	return keep
}

func controls(b *labels.Builder) map[string]string {
	all := map[string]string{}
	b.Range(func(l labels.Label) {
		if isControl(l.Name) {
			all[l.Name] = l.Value
		}
	})
	return all
}
