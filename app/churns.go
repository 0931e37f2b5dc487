package app

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/steadyprobe/steadyprobe/churn"
	"github.com/steadyprobe/steadyprobe/config"
	"github.com/steadyprobe/steadyprobe/discovery"
	"github.com/steadyprobe/steadyprobe/exporter"
	"github.com/steadyprobe/steadyprobe/probe"
	"github.com/steadyprobe/steadyprobe/web"
)

// churns are the churns of a daemon. They run until they are stopped.
type churns struct {
	all     atomic.Pointer[[]*churning] // in the order of the configuration
	ending  []*churning                 // that are gone, and may still put back what they changed; of who reloads
	running sync.WaitGroup
}

// churning is one churn and the probers that it is tied to.
type churning struct {
	config  config.Churn
	cycle   *churn.Cycle
	created time.Time

	// Set before it begins.
	stop  context.CancelFunc
	ended chan struct{}

	mu      sync.Mutex
	phase   probe.ChurnPhase
	probers map[*probe.Prober]struct{}
}

// Check reports what [Run] refuses of a configuration that is valid: settings
// that mechanisms of discovery do not understand, as a [*config.Errors], or else
// churns of backends that only the demo has.
func Check(c *config.Config) error {
	if _, err := discovery.Prepare(c); err != nil {
		return err
	}
	var all []error
	for i := range c.Churns {
		if name := c.Churns[i].Name; c.Churns[i].Embedded != nil {
			all = append(all, fmt.Errorf("building churn %q: embedded backends exist only in steadyprobe demo; remove the churn, and churn: %s from its targets", name, name))
		}
	}
	return errors.Join(all...)
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
		o.Plan.Steps = append(o.Plan.Steps, churn.Step{Replicas: s.Replicas, Hold: s.Hold})
	}
	return o
}

// close ends all churns, and returns when what they changed is put back.
func (c *churns) close() {
	for _, one := range c.list() {
		one.stop()
	}
	c.running.Wait()
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
	churns := c.list()
	all := make([]web.Churn, len(churns))
	for i, one := range churns {
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
