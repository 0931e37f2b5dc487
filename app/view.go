package app

import (
	"cmp"
	"math"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/common/version"

	"github.com/steadyprobe/steadyprobe/config"
	"github.com/steadyprobe/steadyprobe/probe"
	"github.com/steadyprobe/steadyprobe/probe/record"
	"github.com/steadyprobe/steadyprobe/web"
)

// usualQuantiles are those that people are shown of what has no windows.
var usualQuantiles = []float64{0.5, 0.9, 0.99, 0.999}

func (d *daemon) viewStatus() web.Status {
	var self record.Distribution
	d.engine.self.snapshot(&self)
	reasons := distrust(d.saturation())
	return web.Status{
		Version:       d.options.Version,
		Revision:      version.Revision,
		Started:       d.loaded,
		Now:           time.Now(),
		Ready:         d.ready.Load(),
		Shard:         web.Shard{Index: d.options.Shard.Index, Shards: d.options.Shard.count()},
		Configuration: d.reloader.view(),
		Trust: web.Trust{
			Trustworthy: len(reasons) == 0,
			Reasons:     reasons,
			SelfLatency: quantilesOf(&self),
		},
	}
}

func (d *daemon) viewTargets() []web.Target {
	var s record.Snapshot
	probed := d.state.Load().probed
	all := make([]web.Target, len(probed))
	for i, p := range probed {
		all[i] = d.viewTarget(p, &s)
	}
	return all
}

func (d *daemon) viewTargetNamed(name string) (web.Target, bool) {
	p := d.named(name)
	if p == nil {
		return web.Target{}, false
	}
	return d.viewTarget(p, new(record.Snapshot)), true
}

// viewTarget uses the room of s.
func (d *daemon) viewTarget(p *probed, s *record.Snapshot) web.Target {
	l := p.prober.Ledger()
	p.recorder.Snapshot(s)
	seen := d.observer.of(p.target)
	c := &p.config
	v := web.Target{
		Name:        c.Name,
		URL:         c.URL.Public(),
		Labels:      c.Labels,
		Loop:        loop(c.Rate),
		Rate:        web.Number(p.perSecond()),
		RateKept:    web.Number(math.NaN()),
		Churn:       c.Churn,
		Condition:   web.Condition{State: seen.state, Since: seen.since},
		Scheduled:   l.Scheduled,
		Completed:   l.Done(),
		InFlight:    l.InFlight,
		Backlog:     l.Backlog,
		Failed:      l.Failed(),
		Failures:    viewFailures(&seen.past, failuresOf(&l)),
		Responses:   record.ByStatus(s.Responses),
		Objective:   viewObjective(&c.Objective, &l),
		Connections: web.Connections{Open: l.Connections, Limit: p.part.connections, Opened: l.Opened, Closed: map[string]uint64{}},
		ServiceTime: quantilesOf(&s.ServiceTime[record.Succeeded], &s.ServiceTime[record.Failed]),
	}
	for i := range v.Failures {
		if f := &v.Failures[i]; f.Stage == probe.StageResponse && f.Reason == probe.ResponseStatus.Reason() {
			f.Codes = unexpected(v.Responses, f.Total, c.Expect.Accepts)
		}
	}
	if seen.state != up && seen.state != starting && seen.reason != probe.Success {
		v.Condition.Reason = seen.reason.String()
	}
	v.Addresses, v.Backends = viewAddresses(p.lookups().Present, s), viewBackends(s)
	if kept, ok := seen.past.rateKept(); ok {
		v.RateKept = web.Number(kept)
	}
	for i, n := range l.Closed {
		if n > 0 {
			v.Connections.Closed[probe.CloseReason(i).String()] = n
		}
	}
	if c.Churn != "" {
		v.Phases = viewPhases(&l, s)
	}
	if p.closed() {
		v.Rate = web.Number(math.NaN())
		return v
	}
	v.Lateness = quantilesOf(&s.Lateness)
	for w, span := range record.Windows {
		window := web.Window{Window: model.Duration(span).String()}
		for i, q := range record.Quantiles {
			window.Quantiles = append(window.Quantiles, web.Quantile{Q: q, Seconds: web.Number(s.Windows[w][i])})
		}
		v.Latency = append(v.Latency, window)
	}
	return v
}

// quantilesOf returns the usual quantiles of distributions of one family.
func quantilesOf(parts ...*record.Distribution) (all web.Quantiles) {
	var d record.Distribution
	for _, part := range parts {
		d.Add(part)
	}
	for _, q := range usualQuantiles {
		all = append(all, web.Quantile{Q: q, Seconds: web.Number(d.Quantile(q))})
	}
	return all
}

// viewFailures returns all failures, most frequent first, with how many of them
// are of the last five minutes.
func viewFailures(p *past, all failures) []web.Failure {
	recent := p.recent(all, pastSpans)
	view := make([]web.Failure, len(all))
	for i, f := range all {
		view[i] = web.Failure{Stage: f.outcome.Stage(), Reason: f.outcome.Reason(), Total: f.count, Recent: recent.of(f.outcome)}
	}
	sortFailures(view)
	return view
}

func sortFailures(f []web.Failure) {
	slices.SortStableFunc(f, func(a, b web.Failure) int {
		return cmp.Or(cmp.Compare(b.Total, a.Total), strings.Compare(a.Stage, b.Stage), strings.Compare(a.Reason, b.Reason))
	})
}

// viewAddresses returns what came of the requests to each address that is
// present, and to all others that had no place.
func viewAddresses(present []netip.Addr, s *record.Snapshot) []web.Address {
	view := []web.Address{}
	for i := range s.Addresses {
		a := &s.Addresses[i]
		one := web.Address{Address: "other", Requests: a.Requests, Failed: a.Failures}
		if a.Address.IsValid() {
			if !slices.Contains(present, a.Address) {
				continue
			}
			one.Address = a.Address.String()
		}
		if a.Latency.Count > 0 {
			one.Latency = quantilesOf(&a.Latency)
		}
		view = append(view, one)
	}
	return view
}

func viewBackends(s *record.Snapshot) []web.Backend {
	view := []web.Backend{}
	for _, b := range s.Backends {
		view = append(view, web.Backend{Backend: b.Name, Answers: b.Answers})
	}
	return view
}

// unexpected returns the statuses that are not accepted, most frequent first.
// Of the others nobody knows whether they are: they were refused where failed
// is more than the rest.
func unexpected(responses map[string]uint64, failed uint64, accepts func(code int) bool) (codes []string) {
	known := uint64(0)
	for code, n := range responses {
		if status, err := strconv.Atoi(code); err == nil && !accepts(status) {
			codes, known = append(codes, code), known+n
		}
	}
	if known < failed && responses[record.OtherStatus] > 0 {
		codes = append(codes, record.OtherStatus)
	}
	slices.SortFunc(codes, func(a, b string) int {
		return cmp.Or(cmp.Compare(responses[b], responses[a]), strings.Compare(a, b))
	})
	return codes
}

// viewObjective returns nil where no latency is promised.
func viewObjective(o *config.Objective, l *probe.Ledger) *web.Objective {
	if o.Latency <= 0 {
		return nil
	}
	v := &web.Objective{Latency: web.Number(o.Latency.Seconds()), Ratio: web.Number(math.NaN())}
	if o.Ratio > 0 {
		v.Ratio = web.Number(o.Ratio)
	}
	for _, n := range l.WithinObjective {
		v.Within += n
	}
	return v
}

// viewPhases returns what was measured in each churn phase.
func viewPhases(l *probe.Ledger, s *record.Snapshot) (phases []web.ChurnPhase) {
	for _, c := range []probe.ChurnPhase{probe.Settled, probe.ScalingUp, probe.ScalingDown} {
		v := web.ChurnPhase{
			Phase:    c.String(),
			Failures: []web.Failure{},
			Latency:  quantilesOf(&s.Latency[record.Succeeded][c], &s.SlowFailures[c]),
		}
		for i, n := range l.Completed[c] {
			o := probe.Outcome(i)
			v.Completed += n
			if o != probe.Success && n > 0 {
				v.Failed += n
				v.Failures = append(v.Failures, web.Failure{Stage: o.Stage(), Reason: o.Reason(), Total: n})
			}
		}
		sortFailures(v.Failures)
		phases = append(phases, v)
	}
	return phases
}

// named returns a target by its name, nil where there is none.
func (d *daemon) named(name string) *probed { return d.state.Load().named[name] }

func (d *daemon) viewDistribution(name string, window time.Duration) ([]web.Cell, bool) {
	p, w := d.named(name), slices.Index(record.Windows[:], window)
	if p == nil || w < 0 {
		return nil, false
	}
	cells := p.recorder.Latencies(w, nil)
	view := make([]web.Cell, len(cells))
	for i, c := range cells {
		view[i] = web.Cell{Highest: c.Highest, Count: c.Count}
	}
	return view, true
}

func (d *daemon) viewTimeline(name string, span time.Duration) (web.Timeline, bool) {
	p := d.named(name)
	if p == nil {
		return web.Timeline{}, false
	}
	var moments []record.Moment
	if span == time.Second {
		moments = p.recorder.Seconds(nil)
	} else {
		moments = p.recorder.Slices(nil)
	}
	v := web.Timeline{Target: name, Span: web.Number(span.Seconds()), Moments: make([]web.Moment, len(moments))}
	now, instant := time.Now(), d.engine.clock.Now()
	for i, m := range moments {
		v.Moments[i] = web.Moment{
			From:      now.Add(m.From.Sub(instant)),
			Completed: m.Completed,
			Failed:    m.Failed,
			P50:       known(m.P50),
			P99:       known(m.P99),
			Max:       known(m.Max),
		}
	}
	return v, true
}

// known returns seconds, NaN where there are none.
func known(d time.Duration) web.Number {
	if d <= 0 {
		return web.Number(math.NaN())
	}
	return web.Number(d.Seconds())
}
