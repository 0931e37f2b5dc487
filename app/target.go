package app

import (
	"fmt"
	"net/netip"
	"sync"
	"time"

	"github.com/steadyprobe/steadyprobe/config"
	"github.com/steadyprobe/steadyprobe/exporter"
	"github.com/steadyprobe/steadyprobe/probe"
	"github.com/steadyprobe/steadyprobe/probe/record"
	"github.com/steadyprobe/steadyprobe/probe/resolve"
	"github.com/steadyprobe/steadyprobe/probe/schedule"
)

// target is one target of the configuration and what runs for it. Its settings
// do not change: a reload that changes them makes another target, which has the
// same prober, traffic and places.
type target struct {
	config   config.Target
	rate     schedule.Rate // of all processes together
	part     part          // of it that is this process's
	resolver *resolve.Resolver
	opener   probe.Opener
	prober   *probe.Prober
	created  time.Time
	traffic  *traffic // of pacing
	places   *places
}

// closed reports whether the target is a closed loop.
func (t *target) closed() bool { return t.config.Rate.Max() }

// paced reports whether a tick that is late is a fault.
func (t *target) paced() bool { return !t.closed() && t.config.Pacing == "precise" }

// places hands on what addresses a target has, from the resolver that holds.
type places struct {
	prober   *probe.Prober
	recorder *record.Recorder

	mu       sync.Mutex
	resolver *resolve.Resolver
}

// changed tells the addresses that a resolver has found, unless another one has
// taken its place.
func (p *places) changed(by *resolve.Resolver, addresses []netip.Addr) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if by == p.resolver {
		p.prober.SetAddresses(addresses)
		p.recorder.KeepAddresses(addresses)
	}
}

// move puts another resolver in the place of the one before, and forgets what
// that has found. Meanwhile the prober is told what else has changed.
func (p *places) move(to *resolve.Resolver, meanwhile func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.resolver = to
	p.prober.SetAddresses(nil)
	if to.Literal() {
		p.recorder.KeepAddresses(to.Addresses())
	}
	meanwhile()
}

// mostAddresses is of how many addresses of a target figures are kept.
const mostAddresses = 100

// addressesOf returns of how many addresses of a target figures are kept.
func addressesOf(c *config.Target) int {
	if c.DNS.PerAddress {
		return mostAddresses
	}
	return 0
}

// backendsOf returns how many backends of a target are counted apart.
func backendsOf(c *config.Target) int {
	if c.Backend.Header != "" || !c.Backend.Body.IsZero() {
		return c.Backend.Most
	}
	return 0
}

// recording returns what the recorder of a target is made of.
func (e *engine) recording(c *config.Target, bounds *record.Bounds) record.Options {
	return record.Options{
		Clock:     e.clock,
		Bounds:    bounds,
		Addresses: addressesOf(c),
		// There even where nothing is counted apart, so that what opens
		// connections can be made before a reload changes that.
		Backends: probe.NewBackends(max(1, backendsOf(c))),
	}
}

// settings returns a target that has nothing yet but its settings.
func (e *engine) settings(c config.Target) (*target, error) {
	t := &target{config: c}
	t.part, _ = e.shard.part(&c)
	if c.Rate.Max() {
		return t, nil
	}
	var err error
	if t.rate, err = schedule.NewRate(c.Rate.Rat()); err != nil {
		return nil, fmt.Errorf("building target %q: %w", c.Name, err)
	}
	return t, nil
}

// newTarget builds all that a target needs, and starts nothing. The recorder
// takes its samples, and base is what it records them with. It fails only for
// what validation should have refused.
func (e *engine) newTarget(c config.Target, version string, recorder probe.Recorder, base *record.Recorder) (*target, error) {
	t, err := e.settings(c)
	if err != nil {
		return nil, err
	}
	t.created, t.traffic, t.places = time.Now(), &traffic{}, &places{recorder: base}
	if t.resolver, err = newResolver(&c, e.clock, t.places, nil); err != nil {
		return nil, fmt.Errorf("building target %q: %w", c.Name, err)
	}
	t.opener = e.newOpener(t, version, base)
	t.prober = probe.New(t.probing(), e.clock, t.opener, recorder)
	t.places.prober, t.places.resolver = t.prober, t.resolver
	return t, nil
}

// probing returns what the prober must know.
func (t *target) probing() probe.Target {
	c := &t.config
	return probe.Target{
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
	}
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
