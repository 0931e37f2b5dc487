package app

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"reflect"
	"slices"
	"time"

	"github.com/steadyprobe/steadyprobe/config"
	"github.com/steadyprobe/steadyprobe/exporter"
	"github.com/steadyprobe/steadyprobe/probe"
	"github.com/steadyprobe/steadyprobe/probe/record"
	"github.com/steadyprobe/steadyprobe/probe/schedule"
	"github.com/steadyprobe/steadyprobe/probe/wire"
)

// state is what a daemon runs. It does not change: a reload makes another one.
type state struct {
	config *config.Config
	found  []config.Target // besides those of the configuration
	probed []*probed       // in the order of the configuration, then those that were found
	named  map[string]*probed
}

// probed is one target of the daemon.
type probed struct {
	*target
	recorder *record.Recorder
	files    *watched // of what it sends; of the reloader
}

// newState returns the state with these targets, of which some may yet be nil.
func newState(c *config.Config, all []*probed) *state {
	s := &state{config: c, probed: all, named: make(map[string]*probed, len(all))}
	for _, one := range all {
		if one != nil {
			s.named[one.config.Name] = one
		}
	}
	return s
}

// targets returns what runs for each target.
func (s *state) targets() []*target {
	targets := make([]*target, len(s.probed))
	for i, p := range s.probed {
		targets[i] = p.target
	}
	return targets
}

// plan is the way from one state to another, built and checked as a whole before
// anything that runs is touched.
type plan struct {
	before, after *state
	added         []*probed
	removed       []*target
	revised       []*revision
	churns        *churnPlan
}

// revision is what a target becomes whose settings have changed.
type revision struct {
	before *target
	after  *probed
	number uint64       // of the target
	opener probe.Opener // that opens all connections from now on; nil: those that are open stay
	say    *wire.Request
}

// plan builds all that running the configuration takes, with the targets that
// were found besides, and starts nothing. It fails for what cannot change while
// the process runs, and for what validation should have refused.
func (d *daemon) plan(c *config.Config, found []config.Target) (*plan, error) {
	own := d.options.Shard.own(slices.Concat(c.Targets, found))
	p := &plan{before: d.state.Load(), after: newState(c, make([]*probed, len(own)))}
	p.after.found = found
	if old := p.before.config; old != nil && !reflect.DeepEqual(old.Metrics.Buckets, c.Metrics.Buckets) {
		return nil, config.Problem{
			File: d.options.ConfigFile, Field: "metrics.buckets",
			Text: "cannot change while the process runs, as it has counted by those that it started with; write them again, or start it anew",
		}
	}
	for i := range own {
		one, err := d.planTarget(p, own[i], uint64(i))
		if err != nil {
			return nil, err
		}
		p.after.probed[i], p.after.named[one.config.Name] = one, one
	}
	for _, one := range p.before.probed {
		if p.after.named[one.config.Name] == nil {
			p.removed = append(p.removed, one.target)
		}
	}
	var err error
	p.churns, err = d.planChurns(c)
	return p, err
}

func (d *daemon) planTarget(p *plan, c config.Target, number uint64) (*probed, error) {
	before := p.before.named[c.Name]
	switch {
	case before == nil:
		one := &probed{recorder: record.New(d.engine.recording(&c, d.bounds)), files: &watched{paths: c.TrafficFiles()}}
		var err error
		one.target, err = d.engine.newTarget(c, d.options.Version, one.recorder, one.recorder)
		p.added = append(p.added, one)
		return one, err
	case before.config.Equal(&c):
		return before, nil
	}
	r, err := d.engine.revise(before, c, d.options.Version)
	if err != nil {
		return nil, err
	}
	r.number = number
	p.revised = append(p.revised, r)
	return r.after, nil
}

// revise builds what a target becomes.
func (e *engine) revise(before *probed, c config.Target, version string) (*revision, error) {
	t, err := e.settings(c)
	if err != nil {
		return nil, err
	}
	t.resolver, t.opener, t.prober = before.resolver, before.opener, before.prober
	t.created, t.traffic, t.places = before.created, before.traffic, before.places
	r := &revision{before: before.target, after: &probed{target: t, recorder: before.recorder, files: &watched{paths: c.TrafficFiles()}}}
	if before.config.DialAddress() != c.DialAddress() || lookups(&before.config) != lookups(&c) || !reflect.DeepEqual(before.config.Reach(), c.Reach()) {
		if t.resolver, err = newResolver(&c, e.clock, t.places, before.resolver); err != nil {
			return nil, fmt.Errorf("building target %q: %w", c.Name, err)
		}
	}
	switch {
	case t.resolver != before.resolver || !sameDoor(&before.config, &c):
	case c.URL.HTTP():
		if say := request(&c, version); !reflect.DeepEqual(say, request(&before.config, version)) {
			r.say = &say
		}
		return r, nil
	case before.config.TCP.Content().Equal(c.TCP.Content()):
		return r, nil
	}
	t.opener = e.newOpener(t, version, before.recorder)
	r.opener = t.opener
	return r, nil
}

// lookups returns what the lookups of a target's name depend on.
func lookups(c *config.Target) config.DNS {
	d := c.DNS
	d.PerAddress = false
	return d
}

// sameDoor reports whether connections that were opened for one target can go on
// for the other one: they differ in nothing but when there is a request, how
// many connections there are and for how long, what is shown, and what files
// hold.
func sameDoor(a, b *config.Target) bool {
	x, y := a.Written(), b.Written()
	x.Rate, x.Connections, x.Labels, x.Sharding = y.Rate, y.Connections, y.Labels, y.Sharding
	x.Backlog, x.CatchUp, x.Pacing, x.Arrival = y.Backlog, y.CatchUp, y.Pacing, y.Arrival
	x.Objective, x.Churn, x.Backend.Most, x.DNS.PerAddress = y.Objective, y.Churn, y.Backend.Most, y.DNS.PerAddress
	x.Connection.Warm, x.Connection.MaxAge, x.Connection.MaxRequests = y.Connection.Warm, y.Connection.MaxAge, y.Connection.MaxRequests
	return x.Equal(&y)
}

// histograms returns how histograms are exposed.
func (d *daemon) histograms(m *config.Metrics) exporter.Histograms {
	h := exporter.DefaultHistograms()
	h.Classic, h.Native = m.Classic, m.Native
	h.Schema, h.MaxBuckets = m.NativeSchema, m.NativeMaxBuckets
	h.Bounds = d.bounds
	return h
}

// show has all that can be seen of the daemon be that of the plan. It fails, and
// changes nothing, for what validation should have refused.
func (d *daemon) show(p *plan) error {
	exported := make([]exporter.Target, len(p.after.probed))
	for i, one := range p.after.probed {
		exported[i] = one.exported(one.recorder)
	}
	if err := d.exporter.Expose(d.histograms(&p.after.config.Metrics), exported, p.churns.exported()); err != nil {
		return err
	}
	d.observer.watch(p.after.targets())
	d.state.Store(p.after)
	d.churns.show(p.churns)
	var all, paced []*record.Recorder
	for _, one := range p.after.probed {
		all = append(all, one.recorder)
		if one.paced() {
			paced = append(paced, one.recorder)
		}
	}
	d.engine.trust.watchOver(all, paced)
	return nil
}

// apply goes the way of the plan. Nothing of it can fail. What opens many
// connections takes its time, so that targets that go on are not disturbed; when
// ctx is done it does not.
func (d *daemon) apply(ctx context.Context, p *plan) {
	d.retire(p.removed)
	d.churns.tie(p.churns, p.after)
	openings := 0
	for _, r := range p.revised {
		openings += r.openings()
	}
	pace := newPace(openings)
	for _, r := range p.revised {
		n := r.openings()
		d.revise(r)
		pace.wait(ctx, n)
	}
	d.launch(p.added, openGap)
	d.churns.start(p.churns)
}

// revise makes a target what it becomes.
func (d *daemon) revise(r *revision) {
	t := r.after.target
	r.after.recorder.Reconfigure(addressesOf(&t.config), backendsOf(&t.config))
	if r.say != nil && !t.opener.(*wire.Opener).SetRequest(*r.say) {
		t.opener = d.engine.newOpener(t, d.options.Version, r.after.recorder)
		r.opener = t.opener
	}
	if t.resolver == r.before.resolver {
		t.prober.Reconfigure(t.probing(), r.opener)
	} else {
		t.places.move(t.resolver, func() { t.prober.Reconfigure(t.probing(), r.opener) })
		t.resolver.Start()
		d.ending.Go(r.before.resolver.Close)
	}
	d.engine.pacing.change(t, r.number)
}

// openings returns about how many connections a revision opens at once.
func (r *revision) openings() int {
	if r.opener == nil {
		return 0
	}
	return min(r.before.prober.Ledger().Connections, r.after.part.connections)
}

// Connections that a reload opens come so far apart, unless that would take
// too long.
const (
	openGap  = time.Millisecond
	openSpan = 20 * time.Second
)

// pace spreads openings over time.
type pace struct {
	gap  time.Duration
	owed time.Duration
}

func newPace(openings int) *pace {
	return &pace{gap: min(openGap, openSpan/time.Duration(max(openings, 1)))}
}

// wait lets the time of n openings pass, before the next ones.
func (p *pace) wait(ctx context.Context, n int) {
	const least = 2 * time.Millisecond // that is worth a sleep
	if p.owed += time.Duration(n) * p.gap; p.owed < least {
		return
	}
	timer := time.NewTimer(p.owed)
	defer timer.Stop()
	p.owed = 0
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}

// retire ends targets, in the background: what they have in flight gets its
// time.
func (d *daemon) retire(targets []*target) {
	if len(targets) == 0 {
		return
	}
	d.ending.Go(func() { d.end(targets) })
}

// end ends the traffic of targets, and returns when nothing is left of it.
func (d *daemon) end(targets []*target) {
	var longest time.Duration
	for _, t := range targets {
		longest = max(longest, t.config.Timeout)
	}
	d.engine.pacing.remove(targets)
	ctx, cancel := context.WithTimeout(context.Background(), longest+time.Second)
	defer cancel()
	drain(ctx, targets)
	d.forget(targets)
}

// launch begins to start targets, and returns at once. Each next one starts a
// gap later, unless that would take too long for all.
func (d *daemon) launch(all []*probed, gap time.Duration) {
	origin := d.engine.clock.Now().Add(schedule.Lead)
	gap = min(gap, openSpan/time.Duration(max(len(all), 1)))
	for i, p := range all {
		d.remember(p)
		p.resolver.Start()
		d.starting.Go(func() {
			p.prober.WarmUp(d.abandoned)
			if d.abandoned.Err() != nil {
				return
			}
			from := max(origin, d.engine.clock.Now().Add(schedule.Lead)).Add(time.Duration(i) * gap)
			d.engine.pacing.begin(p.target, func(t *target) probe.Instant {
				return from.Add(schedule.Spread(uint64(i), t.rate))
			})
		})
	}
}

// replace runs another configuration from now on, with the targets that are
// discovered by what it says. An error has changed nothing. It must not be
// called twice at once.
func (d *daemon) replace(ctx context.Context, c *config.Config) (*plan, error) {
	if err := errors.Join(Check(c), checkStorage(c, d.options.Storage.Path)); err != nil {
		return nil, err
	}
	sources, err := d.sourcesOf(c)
	if err != nil {
		return nil, err
	}
	found := sources.Targets()
	if err := checkFiles(d.options.Shard, slices.Concat(c.Targets, found), d.embedded != nil); err != nil {
		return nil, err
	}
	p, err := d.plan(c, withFiles(found))
	if err != nil {
		return nil, err
	}
	p.after.found = found
	if err := d.show(p); err != nil {
		p.churns.discard()
		return nil, err
	}
	d.discovery.Apply(sources)
	d.apply(ctx, p)
	return p, nil
}

// load loads a configuration file, and logs what is probably not meant.
func load(file string, logger *slog.Logger) (*config.Config, error) {
	c, warnings, err := config.Load(file)
	for _, w := range warnings {
		logger.Warn("Configuration is probably not what you mean", "warning", w.String())
	}
	if err != nil {
		return nil, loading(err)
	}
	return c, nil
}

// loading says what went wrong.
func loading(err error) error { return fmt.Errorf("loading --config.file: %w", err) }
