package app

import (
	"context"
	"time"

	"github.com/steadyprobe/steadyprobe/churn"
	"github.com/steadyprobe/steadyprobe/config"
	"github.com/steadyprobe/steadyprobe/exporter"
	"github.com/steadyprobe/steadyprobe/probe"
	"github.com/steadyprobe/steadyprobe/web"
)

// churning is one churn, what it scales, and the targets that are tied to it.
type churning struct {
	config   config.Churn
	created  time.Time // when counting began
	parts    *churnParts
	provider provider
	cycle    *churn.Cycle
	tied     tied

	ctx     context.Context // ends when the churn is to end
	end     context.CancelFunc
	started bool          // of who starts and closes it
	ended   chan struct{} // closed when nothing runs any more, where it was started
}

// newChurning builds a churn, and starts nothing of it but what its provider
// needs to look around. It waits for no server.
func (p *churnParts) newChurning(c config.Churn, namespaces []string, created time.Time) (*churning, error) {
	one := &churning{config: c, created: created, parts: p, ended: make(chan struct{})}
	one.tied = tied{churn: c.Name, clock: p.clock, phase: probe.Settled}
	one.ctx, one.end = context.WithCancel(context.Background())
	var err error
	if one.provider, err = p.newProvider(&c, namespaces); err != nil {
		one.end()
		return nil, err
	}
	if one.cycle, err = churn.New(one.options()); err != nil {
		one.close()
		return nil, err
	}
	return one, nil
}

func (c *churning) options() churn.Options {
	w := &c.provider
	o := churn.Options{
		Name:        c.config.Name,
		Plan:        planOf(&c.config),
		Workload:    w.workload,
		Notebook:    w.notebook,
		Election:    w.election,
		Guard:       guardOf(&c.config),
		Settle:      c.config.Settle,
		DryRun:      c.config.DryRun,
		Phase:       c.tied.setPhase,
		Traffic:     c.tied.traffic,
		Announce:    w.announce,
		Backends:    c.tied.backends,
		LastFailure: c.tied.lastFailure,
		Poll:        w.poll,
		CallTimeout: w.callTimeout,
		StuckAfter:  c.config.StuckAfter,
		Convergence: c.parts.convergence,
		Logger:      c.parts.logger,
	}
	if w.callTimeout > 0 {
		// A call that is under way when the churn is to end has to be waited for.
		o.RestoreWithin = max(churn.DefaultRestoreWithin, 2*w.callTimeout)
	}
	return o
}

// planOf returns what a churn does.
func planOf(c *config.Churn) churn.Plan {
	p := churn.Plan{Jitter: c.Jitter, MaxCycles: c.MaxCycles}
	for _, s := range c.Steps {
		step := churn.Step{Kill: s.Kill, Hold: s.Hold}
		if s.Replicas != nil {
			step.Replicas = *s.Replicas
		}
		p.Steps = append(p.Steps, step)
	}
	if h := c.ActiveHours; h != nil {
		p.Hours = &churn.Hours{From: h.From.Minutes(), To: h.To.Minutes(), Location: h.TimeZone.Location()}
		for _, d := range h.Days {
			p.Hours.Days = append(p.Hours.Days, d.Weekday())
		}
	}
	return p
}

// guardOf returns the limits within which a churn stays.
func guardOf(c *config.Churn) churn.Guard {
	g := churn.Guard{Floor: c.Floor, Ceiling: c.Ceiling, AbortWindow: c.AbortWhen.Window, Cooldown: c.Cooldown}
	if share := c.AbortWhen.Failures.Ratio(); share < 1 { // more than all cannot fail
		g.AbortShare = share
	}
	return g
}

// start begins to churn, when those before have ended.
func (c *churning) start(before []*churning) {
	c.started = true
	go func() {
		defer close(c.ended)
		defer c.provider.close()
		for _, other := range before {
			<-other.ended
		}
		if c.ctx.Err() != nil {
			return // it has changed nothing
		}
		if err := c.provider.run(c.ctx, c.cycle.Run); err != nil {
			c.parts.logger.Error("A churn ended with an error", "churn", c.config.Name, "err", err)
		}
	}()
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

// close ends the churn, and returns when what it changed is put back, or cannot
// be.
func (c *churning) close() {
	c.end()
	if !c.started {
		c.provider.close()
		return
	}
	<-c.ended
}

// exported returns the churn as its series show it.
func (c *churning) exported() exporter.Churn {
	return exporter.Churn{Name: c.config.Name, Created: c.created, Read: c.read}
}

// read fills what the exporter shows.
func (c *churning) read(s *exporter.ChurnState) {
	from := churn.Snapshot{
		Convergence: s.Convergence, FirstResponse: s.FirstResponse, LastResponse: s.LastResponse, Failover: s.Failover,
	}
	c.cycle.Snapshot(&from)
	s.Baseline, s.Desired, s.Ready, s.Endpoints = from.Baseline, from.Desired, from.Ready, from.Endpoints
	s.Phase, s.State = from.Phase, from.State.String()
	s.Steps[exporter.Up], s.Steps[exporter.Down] = from.Steps[churn.Up], from.Steps[churn.Down]
	s.Convergence[exporter.Up], s.Convergence[exporter.Down] = from.Convergence[churn.Up], from.Convergence[churn.Down]
	s.FirstResponse, s.LastResponse, s.Failover = from.FirstResponse, from.LastResponse, from.Failover
	for i := range s.Errors {
		s.Errors[i] = from.Errors[i+1] // there is no series for "no reason"
	}
	s.Leader, s.RestorePending, s.LastBeat = from.Leader, from.RestorePending, from.LastBeat
}

// view returns the churn as the page and the API show it.
func (c *churning) view() web.Churn {
	var s churn.Snapshot
	c.cycle.Snapshot(&s)
	v := web.Churn{
		Name:           c.config.Name,
		Workload:       workloadName(&c.config),
		Targets:        c.tied.names(),
		State:          s.State.String(),
		Cause:          s.Reason.String(),
		Reason:         s.Detail,
		Phase:          s.Phase.String(),
		Since:          s.Since,
		Baseline:       s.Baseline,
		Desired:        s.Desired,
		Ready:          s.Ready,
		ReadyEndpoints: s.Endpoints,
		Floor:          s.Floor,
		Ceiling:        s.Ceiling,
		Kills:          s.Kills,
		Cycles:         s.Cycles,
		Leader:         s.Leader,
		LeaderName:     s.LeaderName,
		RestorePending: s.RestorePending,
		LastBeat:       web.Time{Time: s.LastBeat},
		PausedByHand:   s.PausedByHand,
		PausedUntil:    web.Time{Time: s.PausedUntil},
		Errors:         map[string]uint64{},
	}
	if !s.NextStep.IsZero() {
		v.Next = &web.NextStep{At: s.NextStep, Replicas: s.Next.Replicas, Kill: s.Next.Kill}
	}
	for _, n := range s.Steps {
		v.Steps += n
	}
	for i, n := range s.Errors {
		if n > 0 {
			v.Errors[churn.Reason(i).String()] = n
		}
	}
	for _, h := range s.History {
		v.History = append(v.History, web.PhaseChange{Phase: h.Phase.String(), From: h.From})
	}
	return v
}
