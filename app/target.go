package app

import (
	"fmt"
	"net"
	"strconv"
	"time"

	"github.com/steadyprobe/steadyprobe/config"
	"github.com/steadyprobe/steadyprobe/exporter"
	"github.com/steadyprobe/steadyprobe/probe"
	"github.com/steadyprobe/steadyprobe/probe/record"
	"github.com/steadyprobe/steadyprobe/probe/resolve"
	"github.com/steadyprobe/steadyprobe/probe/schedule"
	"github.com/steadyprobe/steadyprobe/probe/wire"
)

// target is one target of the configuration and what runs for it.
type target struct {
	config   config.Target
	rate     schedule.Rate
	resolver *resolve.Resolver
	prober   *probe.Prober
	created  time.Time
	paced    []*pacer // that give its ticks; of pacing
}

// closed reports whether the target is a closed loop.
func (t *target) closed() bool { return t.config.Rate.Max() }

// newTarget builds all that a target needs, and starts nothing. The recorder
// takes its samples, and base is what it records them with. It fails only for
// what validation should have refused.
func (e *engine) newTarget(c config.Target, version string, recorder probe.Recorder, base *record.Recorder) (*target, error) {
	var rate schedule.Rate
	if !c.Rate.Max() {
		var err error
		if rate, err = schedule.NewRate(c.Rate.Rat()); err != nil {
			return nil, fmt.Errorf("building target %q: %w", c.Name, err)
		}
	}
	host, portText, err := net.SplitHostPort(c.DialAddress())
	if err != nil {
		return nil, fmt.Errorf("building target %q: %w", c.Name, err)
	}
	port, err := strconv.ParseUint(portText, 10, 16)
	if err != nil {
		return nil, fmt.Errorf("building target %q: port %q: %w", c.Name, portText, err)
	}
	t := &target{config: c, rate: rate, created: time.Now()}
	t.resolver = resolve.New(resolve.Options{Host: host, Port: uint16(port), Refresh: c.DNS.Refresh, Clock: e.clock})
	opener := wire.NewOpener(wire.Options{
		Clock:           e.clock,
		Resolver:        t.resolver,
		Loop:            e.loop,
		TLS:             c.TLSConfig(),
		Request:         request(&c, version),
		Reuse:           c.Connection.Reuse,
		Timeout:         c.Timeout,
		ConnectTimeout:  c.Timeouts.Connect,
		TLSTimeout:      c.Timeouts.TLS,
		ResponseTimeout: c.Timeouts.Response,
		Statuses:        statuses(c.Expect),
		MaxBody:         c.Expect.MaxBody.Bytes(),
		FirstFailure: func(o probe.Outcome, err error) {
			e.logger.Warn("A connection could not be opened; more of the same are only counted", "target", c.Name, "failure", o.String(), "err", err)
		},
	})
	t.prober = probe.New(probe.Target{
		Name:        c.Name,
		Closed:      c.Rate.Max(),
		Rate:        c.Rate.Float(),
		Connections: c.Connections,
		Timeout:     c.Timeout,
		Backlog:     c.Backlog,
		CatchUp:     c.CatchUp,
		Reuse:       c.Connection.Reuse,
		Warm:        c.Connection.Warm,
		MaxAge:      c.Connection.MaxAge,
		MaxRequests: c.Connection.MaxRequests,
		Objective:   c.Objective.Latency,
	}, e.clock, opener, recorder)
	e.trust.watchOver(base, !t.closed() && c.Pacing == "precise")
	return t, nil
}

// request returns what every tick of the target sends.
func request(c *config.Target, version string) wire.Request {
	r := wire.Request{
		Method: c.HTTP.Method,
		Target: c.URL.RequestURI(),
		Host:   c.HostHeader(),
		// So that logs, firewalls and bills can be filtered.
		UserAgent: fmt.Sprintf("steadyprobe/%s (+%s)", version, c.Name),
		Body:      []byte(c.HTTP.Content().Reveal()),
	}
	for _, h := range c.HeaderFields() {
		r.Headers = append(r.Headers, wire.Header{Name: h.Name, Value: h.Value.Reveal()})
	}
	return r
}

func statuses(e config.Expect) (s wire.Statuses) {
	for code := 100; code <= 599; code++ {
		if e.Accepts(code) {
			s.Add(code, code)
		}
	}
	return s
}

// exported returns the target as its series show it.
func (t *target) exported(recorder *record.Recorder) exporter.Target {
	c := &t.config
	return exporter.Target{
		Name:           c.Name,
		Labels:         c.Labels,
		URL:            c.URL.Public(),
		Rate:           c.Rate.Float(),
		Connections:    c.Connections,
		Loop:           loop(c.Rate),
		Pacing:         c.Pacing,
		Arrival:        c.Arrival,
		Reuse:          c.Connection.Reuse,
		Objective:      c.Objective.Latency,
		ObjectiveRatio: c.Objective.Ratio,
		TLS:            c.URL.TLS(),
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
	return exporter.ResolverStats{
		Lookups:   s.Lookups,
		NotFound:  s.Failures[probe.ResolveNotFound],
		TimedOut:  s.Failures[probe.ResolveTimeout],
		Failed:    s.Failures[probe.ResolveError],
		Addresses: s.Addresses,
		Added:     s.Added,
		Removed:   s.Removed,
	}
}
