package app

import (
	"context"
	"log/slog"
	"reflect"
	"slices"
	"time"

	"github.com/steadyprobe/steadyprobe/churn"
	"github.com/steadyprobe/steadyprobe/config"
	"github.com/steadyprobe/steadyprobe/exporter"
	"github.com/steadyprobe/steadyprobe/probe"
)

// churnPlan is what a reload does to churns: those that say the same go on.
type churnPlan struct {
	all   []*churning // in the order of the configuration
	added []*churning
	gone  map[string]*churning // that are removed or changed, by name
}

// planChurns builds the churns of a configuration, and starts nothing.
func (d *daemon) planChurns(c *config.Config) (*churnPlan, error) {
	p := &churnPlan{gone: map[string]*churning{}}
	before := map[string]*churning{}
	for _, one := range d.churns.list() {
		before[one.config.Name], p.gone[one.config.Name] = one, one
	}
	for i := range c.Churns {
		name := c.Churns[i].Name
		if one := before[name]; one != nil && reflect.DeepEqual(one.config, c.Churns[i]) {
			delete(p.gone, name)
			p.all = append(p.all, one)
			continue
		}
		one := &churning{config: c.Churns[i], created: time.Now(), phase: probe.Settled}
		var err error
		if one.cycle, err = churn.New(one.options(d)); err != nil {
			return nil, err
		}
		p.all, p.added = append(p.all, one), append(p.added, one)
	}
	return p, nil
}

// exported returns the churns as their series show them.
func (p *churnPlan) exported() []exporter.Churn {
	all := make([]exporter.Churn, len(p.all))
	for i, one := range p.all {
		all[i] = exporter.Churn{Name: one.config.Name, Created: one.created, Read: one.read}
	}
	return all
}

// list returns the churns that there are.
func (c *churns) list() []*churning {
	if all := c.all.Load(); all != nil {
		return *all
	}
	return nil
}

// show has the page and the API show the churns of a plan.
func (c *churns) show(p *churnPlan) { c.all.Store(&p.all) }

// tie ends the churns that are gone, in the background, where they put back what
// they have changed, and ties targets to the others.
func (c *churns) tie(p *churnPlan, after *state) {
	c.ending = slices.DeleteFunc(c.ending, (*churning).over)
	for _, one := range p.gone {
		one.stop()
		one.tie(nil)
		c.ending = append(c.ending, one)
	}
	tied := map[string][]*probe.Prober{}
	for _, one := range after.probed {
		if name := one.config.Churn; name != "" {
			tied[name] = append(tied[name], one.prober)
		}
	}
	for _, one := range p.all {
		one.untie(tied[one.config.Name])
	}
	for _, one := range p.all {
		one.tie(tied[one.config.Name])
	}
}

// start begins those that are new.
func (c *churns) start(p *churnPlan, logger *slog.Logger) {
	for _, one := range p.added {
		c.begin(one, logger)
	}
}

// begin begins to churn, once all churns of the same workload that are gone have
// put back what they changed: it would take that for the baseline.
func (c *churns) begin(one *churning, logger *slog.Logger) {
	ctx, stop := context.WithCancel(context.Background())
	one.stop, one.ended = stop, make(chan struct{})
	var before []*churning
	for _, other := range c.ending {
		if sameWorkload(&one.config, &other.config) {
			before = append(before, other)
		}
	}
	c.running.Go(func() {
		defer close(one.ended)
		for _, other := range before {
			<-other.ended
		}
		if ctx.Err() != nil {
			return // it has changed nothing
		}
		if err := one.cycle.Run(ctx); err != nil {
			logger.Error("A churn ended with an error", "err", err)
		}
	})
}

// sameWorkload reports whether two churns scale the same replicas.
func sameWorkload(a, b *config.Churn) bool {
	if a.Kubernetes == nil || b.Kubernetes == nil {
		return a.Kubernetes == b.Kubernetes
	}
	return a.Kubernetes.Namespace == b.Kubernetes.Namespace && a.Kubernetes.Workload == b.Kubernetes.Workload
}

// over reports whether it has put back what it changed.
func (c *churning) over() bool {
	select {
	case <-c.ended:
		return true
	default:
		return false
	}
}

// setPhase tells the tied targets in which phase their ticks are from now on.
func (c *churning) setPhase(p probe.ChurnPhase) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.phase = p
	for one := range c.probers {
		one.SetChurn(p)
	}
}

// untie ends the tie of all targets but these.
func (c *churning) untie(but []*probe.Prober) {
	c.mu.Lock()
	defer c.mu.Unlock()
	kept := make(map[*probe.Prober]struct{}, len(but))
	for _, one := range but {
		kept[one] = struct{}{}
	}
	for one := range c.probers {
		if _, there := kept[one]; !there {
			one.SetChurn(probe.NoChurn)
			delete(c.probers, one)
		}
	}
}

// tie makes these the targets that are tied, and tells them the phase.
func (c *churning) tie(probers []*probe.Prober) {
	c.untie(probers)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.probers = make(map[*probe.Prober]struct{}, len(probers))
	for _, one := range probers {
		c.probers[one] = struct{}{}
		one.SetChurn(c.phase)
	}
}
