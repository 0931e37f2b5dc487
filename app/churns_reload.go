package app

import (
	"reflect"
	"slices"
	"time"

	"github.com/steadyprobe/steadyprobe/config"
	"github.com/steadyprobe/steadyprobe/exporter"
)

// churnPlan is what a reload does to churns: those that say the same go on.
type churnPlan struct {
	all   []*churning // in the order of the configuration
	added []*churning
	gone  []*churning // that are removed or changed
}

// planChurns builds the churns of a configuration, and starts nothing.
func (d *daemon) planChurns(c *config.Config) (*churnPlan, error) {
	p := &churnPlan{gone: slices.Clone(d.churns.list())}
	for i := range c.Churns {
		same := func(one *churning) bool { return reflect.DeepEqual(one.config, c.Churns[i]) }
		if k := slices.IndexFunc(p.gone, same); k >= 0 {
			p.all = append(p.all, p.gone[k])
			p.gone = slices.Delete(p.gone, k, k+1)
			continue
		}
		one, err := d.churns.parts.newChurning(c.Churns[i], c.Limits.ChurnNamespaces, time.Now())
		if err != nil {
			p.discard()
			return nil, err
		}
		p.all, p.added = append(p.all, one), append(p.added, one)
	}
	return p, nil
}

// discard gives up a plan that is not gone.
func (p *churnPlan) discard() {
	for _, one := range p.added {
		one.close()
	}
}

// exported returns the churns as their series show them.
func (p *churnPlan) exported() []exporter.Churn {
	all := make([]exporter.Churn, len(p.all))
	for i, one := range p.all {
		all[i] = one.exported()
	}
	return all
}

// show has the page and the API show the churns of a plan.
func (c *churns) show(p *churnPlan) { c.all.Store(&p.all) }

// tie ends the churns that are gone, in the background, where they put back what
// they have changed, and ties targets to the others.
func (c *churns) tie(p *churnPlan, after *state) {
	c.ending = slices.DeleteFunc(c.ending, (*churning).over)
	for _, one := range p.gone {
		one.end()
		one.tied.keep(nil)
		c.ending = append(c.ending, one)
	}
	// Before any is tied: a target may go from one churn to another.
	for _, one := range p.all {
		one.tied.keep(after.probed)
	}
	for _, one := range p.all {
		one.tied.set(after.probed)
	}
}

// start begins those that are new, each once all churns that are gone and scaled
// the same workload have put back what they changed: it would take that for the
// baseline.
func (c *churns) start(p *churnPlan) {
	c.parts.clusters.start()
	for _, one := range p.added {
		var before []*churning
		for _, other := range c.ending {
			if other.config.Name == one.config.Name || sameWorkload(&other.config, &one.config) {
				before = append(before, other)
			}
		}
		one.start(before)
	}
}

// sameWorkload reports whether two churns scale the same replicas, as far as that
// can be told.
func sameWorkload(a, b *config.Churn) bool {
	provider, what := a.Scales()
	other, same := b.Scales()
	return provider != "" && provider == other && what == same
}
