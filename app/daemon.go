// Package app builds the process from a configuration: the daemon that probes
// all day, and the run with an end.
package app

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	toolkit "github.com/prometheus/exporter-toolkit/web"

	"github.com/steadyprobe/steadyprobe/churn"
	"github.com/steadyprobe/steadyprobe/config"
	"github.com/steadyprobe/steadyprobe/exporter"
	"github.com/steadyprobe/steadyprobe/internal/saturation"
	"github.com/steadyprobe/steadyprobe/probe/record"
	"github.com/steadyprobe/steadyprobe/probe/schedule"
)

// Options say what [Run] runs.
type Options struct {
	ConfigFile    string              // not used by Demo
	Web           *toolkit.FlagConfig // where and how the endpoints are served
	HealthAddress string              // serves the two health paths plainly; empty: not at all
	Storage       Storage
	Lifecycle     bool // churns may be controlled over HTTP
	Logger        *slog.Logger
	Version       string // of the program
	// Listening is told the addresses once the endpoints are served; nil: nobody.
	Listening func(main []net.Addr, health net.Addr)
}

func (o *Options) validate() error {
	switch {
	case o.Logger == nil:
		return errors.New("there is no logger")
	case o.Web == nil || o.Web.WebListenAddresses == nil || o.Web.WebSystemdSocket == nil || o.Web.WebConfigFile == nil:
		return errors.New("there are no web flags")
	case len(*o.Web.WebListenAddresses) == 0 && !*o.Web.WebSystemdSocket:
		return errors.New("there is no address to listen on: name one with --web.listen-address")
	}
	return nil
}

// shutdownLimit bounds how long answers to scrapers may take after the end.
const shutdownLimit = 5 * time.Second

// daemon is a running process.
type daemon struct {
	options  Options
	config   *config.Config
	embedded churn.Workload // the backends of the demo; nil: this is none
	loaded   time.Time

	engine   *engine
	bounds   *record.Bounds
	exporter *exporter.Exporter
	probed   []*probed
	churns   *churns
	observer *observer
	ready    atomic.Bool
	starting sync.WaitGroup
}

// probed is one target of the daemon.
type probed struct {
	*target
	recorder *record.Recorder
}

// Run loads the configuration and probes its targets until ctx is done, then
// stops in order: the schedules end, requests in flight get their time, the
// rest completes as schedule/shutdown, and the endpoints answer to the end. It
// returns an error when it cannot start or when an endpoint fails.
func Run(ctx context.Context, o Options) error {
	if err := o.validate(); err != nil {
		return fmt.Errorf("starting: %w", err)
	}
	if o.ConfigFile == "" {
		return errors.New("starting: there is no configuration file: name one with --config.file")
	}
	loaded, warnings, err := config.Load(o.ConfigFile)
	for _, w := range warnings {
		o.Logger.Warn("Configuration is probably not what you mean", "warning", w.String())
	}
	if err != nil {
		return fmt.Errorf("loading --config.file: %w", err)
	}
	if err := errors.Join(Check(loaded), checkStorage(loaded, o.Storage.Path)); err != nil {
		return err
	}
	d := &daemon{options: o, config: loaded, loaded: time.Now()}
	return d.run(ctx)
}

// run probes until ctx is done or an endpoint fails.
func (d *daemon) run(ctx context.Context) error {
	if err := checkFiles(d.config.Targets, d.embedded != nil); err != nil {
		return err
	}
	// Everything that can fail comes before the first request to a door.
	listeners, err := d.listen()
	if err != nil {
		return err
	}
	defer listeners.close()
	if err := d.build(); err != nil {
		return err
	}
	defer d.engine.close()
	defer d.churns.close() // where it does not come to an end in order
	endpoints, err := d.serve(listeners)
	if err != nil {
		return err
	}
	starting, abandon := context.WithCancel(ctx)
	defer abandon()
	d.start(starting)
	select {
	case <-ctx.Done():
	case err = <-endpoints.failed:
	}
	d.options.Logger.Info("Stopping")
	abandon()
	d.stop()
	answers, cancel := context.WithTimeout(context.Background(), shutdownLimit)
	defer cancel()
	endpoints.close(answers)
	return err
}

// build makes all parts and starts the pacer, without targets.
func (d *daemon) build() error {
	m := &d.config.Metrics
	bounds, err := record.NewBounds(record.Additional{
		Convergence: m.Buckets.Convergence,
		Latency:     m.Buckets.Latency,
		ServiceTime: m.Buckets.ServiceTime,
		Handshake:   m.Buckets.Handshake,
		Phase:       m.Buckets.Phase,
		Lateness:    m.Buckets.Lateness,
	})
	if err != nil {
		return fmt.Errorf("setting up histograms: %w", err)
	}
	histograms := exporter.DefaultHistograms()
	histograms.Classic, histograms.Native = m.Classic, m.Native
	histograms.Schema, histograms.MaxBuckets = m.NativeSchema, m.NativeMaxBuckets
	histograms.Bounds = bounds
	d.bounds = bounds
	if d.engine, err = newEngine(d.options.Logger, bounds); err != nil {
		return err
	}
	if err := d.buildTargets(histograms); err != nil {
		if d.churns != nil {
			d.churns.close()
		}
		d.engine.close()
		return err
	}
	return nil
}

func (d *daemon) buildTargets(histograms exporter.Histograms) (err error) {
	d.exporter, err = exporter.New(exporter.Options{
		Start:       d.loaded,
		Histograms:  histograms,
		SelfLatency: d.engine.self.snapshot,
		Saturation:  d.saturation,
		Reload:      func() exporter.Reload { return exporter.Reload{Successful: true, Success: d.loaded} },
	})
	if err != nil {
		return err
	}
	exported := make([]exporter.Target, len(d.config.Targets))
	for i, c := range d.config.Targets {
		p := &probed{recorder: record.New(d.engine.recording(&c, histograms.Bounds))}
		if p.target, err = d.engine.newTarget(c, d.options.Version, p.recorder, p.recorder); err != nil {
			return err
		}
		exported[i] = p.exported(p.recorder)
		d.probed = append(d.probed, p)
	}
	if d.churns, err = d.newChurns(); err != nil {
		return err
	}
	d.observer = newObserver(d.engine.clock, d.options.Logger, d.targets())
	if err := d.exporter.SetChurns(d.churns.exported()); err != nil {
		return err
	}
	return d.exporter.SetTargets(exported)
}

// targets returns what runs for each target.
func (d *daemon) targets() []*target {
	targets := make([]*target, len(d.probed))
	for i, p := range d.probed {
		targets[i] = p.target
	}
	return targets
}

// start begins to start every target, and returns at once: the daemon is ready
// whatever the doors do, and a door that takes long to warm up to delays no
// other. A target that is not warm when ctx is done is not started.
func (d *daemon) start(ctx context.Context) {
	d.observer.start()
	origin := d.engine.clock.Now().Add(schedule.Lead)
	for i, p := range d.probed {
		p.resolver.Start()
		d.starting.Go(func() {
			p.prober.WarmUp(ctx)
			if ctx.Err() != nil {
				return
			}
			from := max(origin, d.engine.clock.Now().Add(schedule.Lead))
			d.engine.pacing.add(p.target, from.Add(schedule.Spread(uint64(i), p.rate)), 0)
		})
	}
	d.churns.start()
	d.ready.Store(true)
	d.options.Logger.Info("Probing", "targets", len(d.probed))
}

// stop ends the churns while traffic still tells what it does to a door to put
// back what they changed, then the targets. The context of start must be done.
func (d *daemon) stop() {
	d.ready.Store(false)
	d.churns.close()
	d.observer.close() // what is cut off by the end is no door's failure
	d.starting.Wait()
	targets := d.targets()
	var longest time.Duration
	for _, t := range targets {
		longest = max(longest, t.config.Timeout)
	}
	d.engine.pacing.remove(targets)
	ctx, cancel := context.WithTimeout(context.Background(), longest+time.Second)
	defer cancel()
	drain(ctx, targets)
}

func (d *daemon) saturation() []exporter.Saturation {
	var all []exporter.Saturation
	for _, r := range d.engine.trust.watch.Snapshot() {
		all = append(all, exporter.Saturation{Resource: r.Name, Saturated: r.Saturated, Seconds: r.Seconds})
	}
	return all
}

// distrust returns a sentence for each resource that the probe is short of.
func distrust(resources []exporter.Saturation) (why []string) {
	for _, r := range resources {
		if !r.Saturated {
			continue
		}
		resource := strings.ReplaceAll(r.Resource, "_", " ")
		if r.Resource == saturation.CPU {
			resource = "processor time"
		}
		if r.Seconds < 1 {
			why = append(why, fmt.Sprintf("The probe is short of %s since a moment ago.", resource))
			continue
		}
		why = append(why, fmt.Sprintf("The probe is short of %s, for %.0f s in all since it started.", resource, r.Seconds))
	}
	return why
}
