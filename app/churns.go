package app

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"

	"github.com/steadyprobe/steadyprobe/churn"
	"github.com/steadyprobe/steadyprobe/config"
	"github.com/steadyprobe/steadyprobe/exporter"
	"github.com/steadyprobe/steadyprobe/probe"
	"github.com/steadyprobe/steadyprobe/web"
)

// churns are the churns of a daemon. They are built before the targets start
// and run until they are stopped.
type churns struct {
	all     []*churning
	stop    context.CancelFunc
	running sync.WaitGroup
}

// churning is one churn and the probers that it is tied to.
type churning struct {
	config  config.Churn
	cycle   *churn.Cycle
	probers []*probe.Prober
}

// Check reports what [Run] refuses of a configuration that is valid: churns of
// backends that only the demo has.
func Check(c *config.Config) error {
	var all []error
	for i := range c.Churns {
		if name := c.Churns[i].Name; c.Churns[i].Embedded != nil {
			all = append(all, fmt.Errorf("building churn %q: embedded backends exist only in steadyprobe demo; remove the churn, and churn: %s from its targets", name, name))
		}
	}
	return errors.Join(all...)
}

// newChurns builds the churns of the configuration, and starts nothing. The
// targets that are tied to one are settled from now on.
func (d *daemon) newChurns() (*churns, error) {
	c := &churns{stop: func() {}}
	for i := range d.config.Churns {
		one := &churning{config: d.config.Churns[i]}
		for _, p := range d.probed {
			if p.config.Churn == one.config.Name {
				one.probers = append(one.probers, p.prober)
			}
		}
		var err error
		if one.cycle, err = churn.New(one.options(d)); err != nil {
			return nil, err
		}
		one.setPhase(probe.Settled)
		c.all = append(c.all, one)
	}
	return c, nil
}

func (c *churning) options(d *daemon) churn.Options {
	o := churn.Options{
		Name:        c.config.Name,
		Settle:      c.config.Settle,
		DryRun:      c.config.DryRun,
		Workload:    d.embedded,
		Phase:       c.setPhase,
		Convergence: d.bounds.Convergence,
		Logger:      d.options.Logger,
	}
	for _, s := range c.config.Steps {
		o.Plan.Steps = append(o.Plan.Steps, churn.Step{Replicas: *s.Replicas, Hold: s.Hold})
	}
	return o
}

func (c *churning) setPhase(p probe.ChurnPhase) {
	for _, one := range c.probers {
		one.SetChurn(p)
	}
}

// start begins to churn.
func (c *churns) start(logger *slog.Logger) {
	ctx, cancel := context.WithCancel(context.Background())
	c.stop = cancel
	for _, one := range c.all {
		c.running.Go(func() {
			if err := one.cycle.Run(ctx); err != nil {
				logger.Error("A churn ended with an error", "err", err)
			}
		})
	}
}

// close ends all churns, and returns when what they changed is put back.
func (c *churns) close() {
	c.stop()
	c.running.Wait()
}

// exported returns the churns as their series show them.
func (c *churns) exported(d *daemon) []exporter.Churn {
	all := make([]exporter.Churn, len(c.all))
	for i, one := range c.all {
		all[i] = exporter.Churn{Name: one.config.Name, Created: d.loaded, Read: one.read}
	}
	return all
}

// read fills what the exporter shows.
func (c *churning) read(s *exporter.ChurnState) {
	from := churn.Snapshot{Convergence: s.Convergence}
	c.cycle.Snapshot(&from)
	s.Baseline, s.Desired, s.Ready, s.Endpoints = from.Baseline, from.Desired, from.Ready, from.Endpoints
	s.Phase, s.State = from.Phase, from.State.String()
	s.Steps[exporter.Up], s.Steps[exporter.Down] = from.Steps[churn.Up], from.Steps[churn.Down]
	s.Convergence[exporter.Up], s.Convergence[exporter.Down] = from.Convergence[churn.Up], from.Convergence[churn.Down]
	for i := range s.Errors {
		s.Errors[i] = from.Errors[i+1] // there is no series for "no reason"
	}
	s.Leader, s.RestorePending, s.LastBeat = true, from.RestorePending, from.LastBeat
}

// view returns the churns as the page and the API show them.
func (c *churns) view() []web.Churn {
	all := make([]web.Churn, len(c.all))
	for i, one := range c.all {
		var s churn.Snapshot
		one.cycle.Snapshot(&s)
		v := web.Churn{
			Name:           one.config.Name,
			State:          s.State.String(),
			Reason:         s.Detail,
			Phase:          s.Phase.String(),
			Since:          s.Since,
			Baseline:       s.Baseline,
			Desired:        s.Desired,
			Ready:          s.Ready,
			ReadyEndpoints: s.Endpoints,
		}
		for _, n := range s.Steps {
			v.Steps += n
		}
		for _, h := range s.History {
			v.History = append(v.History, web.PhaseChange{Phase: h.Phase.String(), From: h.From})
		}
		all[i] = v
	}
	return all
}
