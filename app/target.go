package app

import (
	"fmt"
	"net/netip"
	"time"

	"github.com/steadyprobe/steadyprobe/config"
	"github.com/steadyprobe/steadyprobe/exporter"
	"github.com/steadyprobe/steadyprobe/probe"
	"github.com/steadyprobe/steadyprobe/probe/record"
	"github.com/steadyprobe/steadyprobe/probe/resolve"
	"github.com/steadyprobe/steadyprobe/probe/schedule"
)

// target is one target of the configuration and what runs for it.
type target struct {
	config   config.Target
	rate     schedule.Rate // of all processes together
	part     part          // of it that is this process's
	resolver *resolve.Resolver
	prober   *probe.Prober
	created  time.Time
	traffic  *traffic // of pacing
}

// closed reports whether the target is a closed loop.
func (t *target) closed() bool { return t.config.Rate.Max() }

// mostAddresses is of how many addresses of a target figures are kept.
const mostAddresses = 100

// recording returns what the recorder of a target is made of.
func (e *engine) recording(c *config.Target, bounds *record.Bounds) record.Options {
	o := record.Options{Clock: e.clock, Bounds: bounds}
	if c.DNS.PerAddress {
		o.Addresses = mostAddresses
	}
	if c.Backend.Header != "" || !c.Backend.Body.IsZero() {
		o.Backends = probe.NewBackends(c.Backend.Most)
	}
	return o
}

// newTarget builds all that a target needs, and starts nothing. The recorder
// takes its samples, and base is what it records them with. It fails only for
// what validation should have refused.
func (e *engine) newTarget(c config.Target, version string, recorder probe.Recorder, base *record.Recorder) (*target, error) {
	t := &target{config: c, created: time.Now(), traffic: &traffic{}}
	t.part, _ = e.shard.part(&c)
	if !c.Rate.Max() {
		var err error
		if t.rate, err = schedule.NewRate(c.Rate.Rat()); err != nil {
			return nil, fmt.Errorf("building target %q: %w", c.Name, err)
		}
	}
	changed := func(addresses []netip.Addr) {
		t.prober.SetAddresses(addresses)
		base.KeepAddresses(addresses)
	}
	var err error
	if t.resolver, err = newResolver(&c, e.clock, changed); err != nil {
		return nil, fmt.Errorf("building target %q: %w", c.Name, err)
	}
	t.prober = probe.New(probe.Target{
		Name:        c.Name,
		Closed:      c.Rate.Max(),
		Rate:        t.perSecond(),
		Connections: t.part.connections,
		Timeout:     c.Timeout,
		Backlog:     c.Backlog,
		CatchUp:     c.CatchUp,
		Reuse:       c.Connection.Reuse,
		Warm:        c.Connection.Warm,
		MaxAge:      c.Connection.MaxAge,
		MaxRequests: c.Connection.MaxRequests,
		Objective:   c.Objective.Latency,
	}, e.clock, e.newOpener(t, version, base), recorder)
	e.trust.watchOver(base, !t.closed() && c.Pacing == "precise")
	return t, nil
}

// exported returns the target as its series show it.
func (t *target) exported(recorder *record.Recorder) exporter.Target {
	c := &t.config
	return exporter.Target{
		Name:           c.Name,
		Labels:         c.Labels,
		URL:            c.URL.Public(),
		Rate:           t.perSecond(),
		Connections:    t.part.connections,
		Loop:           loop(c.Rate),
		Pacing:         c.Pacing,
		Arrival:        c.Arrival,
		Reuse:          c.Connection.Reuse,
		Objective:      c.Objective.Latency,
		ObjectiveRatio: c.Objective.Ratio,
		Bare:           !c.URL.HTTP(),
		TLS:            c.URL.TLS(),
		Proxy:          c.Connection.ProxyProtocol != "none",
		Named:          !t.resolver.Literal(),
		Churned:        c.Churn != "",
		Created:        t.created,
		Ledger:         t.prober.Ledger,
		Snapshot:       recorder.Snapshot,
		Resolver:       t.lookups,
	}
}

// loop returns the value of the label loop.
func loop(r config.Rate) string {
	if r.Max() {
		return "closed"
	}
	return "open"
}

func (t *target) lookups() exporter.ResolverStats {
	s := t.resolver.Stats()
	var present []netip.Addr
	if t.config.DNS.PerAddress {
		present = t.resolver.Addresses()
	}
	return exporter.ResolverStats{
		Present:   present,
		Lookups:   s.Lookups,
		NotFound:  s.Failures[probe.ResolveNotFound],
		TimedOut:  s.Failures[probe.ResolveTimeout],
		Failed:    s.Failures[probe.ResolveError],
		Addresses: s.Addresses,
		Added:     s.Added,
		Removed:   s.Removed,
	}
}
