// Package app builds the process from a configuration: the daemon that probes
// all day, and the run with an end.
package app

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	toolkit "github.com/prometheus/exporter-toolkit/web"

	"github.com/steadyprobe/steadyprobe/churn"
	"github.com/steadyprobe/steadyprobe/config"
	"github.com/steadyprobe/steadyprobe/discovery"
	"github.com/steadyprobe/steadyprobe/exporter"
	"github.com/steadyprobe/steadyprobe/history"
	"github.com/steadyprobe/steadyprobe/internal/saturation"
	"github.com/steadyprobe/steadyprobe/probe/record"
)

// Options say what [Run] runs.
type Options struct {
	ConfigFile    string              // not used by Demo
	Web           *toolkit.FlagConfig // where and how the endpoints are served
	HealthAddress string              // serves the two health paths plainly; empty: not at all
	Shard         Shard
	Storage       Storage
	Profiles      bool // of the Go runtime are served
	// Reload asks for a reload each time that something comes; nil: nothing does.
	Reload <-chan os.Signal
	// Lifecycle lets the endpoint be asked for a reload, and to control churns.
	Lifecycle bool
	// AutoReload is how often all files of the configuration are compared with
	// what they held when it was loaded, and reloaded; 0: never.
	AutoReload time.Duration
	Logger     *slog.Logger
	Version    string // of the program
	// Listening is told the addresses once the endpoints are served; nil: nobody.
	Listening func(main []net.Addr, health net.Addr)

	apart time.Duration // between changes of what is discovered, for tests; 0: the usual
}

func (o *Options) validate() error {
	switch {
	case o.Logger == nil:
		return errors.New("there is no logger")
	case o.Web == nil || o.Web.WebListenAddresses == nil || o.Web.WebSystemdSocket == nil || o.Web.WebConfigFile == nil:
		return errors.New("there are no web flags")
	case o.AutoReload != 0 && o.AutoReload < leastAutoReload:
		return fmt.Errorf("files cannot be compared every %v; write %v or more, or 0s for never, as --config.auto-reload-interval", o.AutoReload, leastAutoReload)
	case len(*o.Web.WebListenAddresses) == 0 && !*o.Web.WebSystemdSocket:
		return errors.New("there is no address to listen on: name one with --web.listen-address")
	}
	return o.Shard.validate()
}

// leastAutoReload is how often all files are read at most.
const leastAutoReload = time.Second

// shutdownLimit bounds how long answers to scrapers may take after the end.
const shutdownLimit = 5 * time.Second

// daemon is a running process.
type daemon struct {
	options  Options
	config   *config.Config // at the start
	embedded churn.Workload // the backends of the demo; nil: this is none
	loaded   time.Time      // at the start

	engine    *engine
	bounds    *record.Bounds
	exporter  *exporter.Exporter
	state     atomic.Pointer[state]
	churns    *churns
	observer  *observer
	history   *history.History // nil: there is none
	discovery *discovery.Set
	sources   *discovery.Build // until they are started
	ready     atomic.Bool
	abandoned context.Context // is done when targets are not to be started any more
	starting  sync.WaitGroup
	ending    sync.WaitGroup // of what a reload has removed
	reloader  *reloader
	first     *plan // until it is started
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
	loaded, err := load(o.ConfigFile, o.Logger)
	if err != nil {
		return err
	}
	if err := errors.Join(Check(loaded), checkStorage(loaded, o.Storage.Path)); err != nil {
		return err
	}
	d := &daemon{options: o, config: loaded, loaded: time.Now()}
	return d.run(ctx)
}

// run probes until ctx is done or an endpoint fails.
func (d *daemon) run(ctx context.Context) error {
	if err := checkFiles(d.options.Shard, d.config.Targets, d.embedded != nil); err != nil {
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
	defer d.closeHistory()
	defer d.closeDiscovery()
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
	buckets := &d.config.Metrics.Buckets
	var err error
	d.bounds, err = record.NewBounds(record.Additional{
		Convergence: buckets.Convergence,
		Latency:     buckets.Latency,
		ServiceTime: buckets.ServiceTime,
		Handshake:   buckets.Handshake,
		Phase:       buckets.Phase,
		Lateness:    buckets.Lateness,
	})
	if err != nil {
		return fmt.Errorf("setting up histograms: %w", err)
	}
	if d.engine, err = newEngine(d.options.Logger, d.bounds); err != nil {
		return err
	}
	d.engine.shard = d.options.Shard
	if err = d.openHistory(); err == nil {
		err = d.openDiscovery()
	}
	if err == nil {
		err = d.buildTargets()
	}
	if err != nil {
		d.closeDiscovery()
		d.closeHistory()
		d.engine.close()
	}
	return err
}

func (d *daemon) buildTargets() (err error) {
	d.reloader = newReloader(d)
	d.exporter, err = exporter.New(exporter.Options{
		Start:       d.loaded,
		Histograms:  d.histograms(&d.config.Metrics),
		SelfLatency: d.engine.self.snapshot,
		Saturation:  d.saturation,
		Shard:       d.options.Shard.exported(),

		HistoryFailures: d.historyFailures(),
		Discovery:       d.exportedSources,
		Reload:          d.reloader.exported,
	})
	if err != nil {
		return err
	}
	d.observer = newObserver(d.engine.clock, d.options.Logger)
	d.churns = newChurns(d)
	d.state.Store(&state{})
	if d.first, err = d.plan(d.config, nil); err != nil {
		return err
	}
	return d.show(d.first)
}

// start begins to start every target, and returns at once: the daemon is ready
// whatever the doors do, and a door that takes long to warm up to delays no
// other. A target that is not warm when ctx is done is not started, now or after
// a reload.
func (d *daemon) start(ctx context.Context) {
	d.abandoned = ctx
	d.observer.start()
	d.churns.tie(d.first.churns, d.first.after)
	d.launch(d.first.added, 0)
	d.churns.start(d.first.churns)
	d.churns.tellLeft()
	d.options.Logger.Info("Probing", "targets", len(d.first.added))
	d.first = nil
	d.discovery.Apply(d.sources)
	d.sources = nil
	d.ready.Store(true)
	d.reloader.start()
}

// stop ends the churns while traffic still tells what it does to a door to put
// back what they changed, then the targets. The context of start must be done.
func (d *daemon) stop() {
	d.ready.Store(false)
	d.reloader.close()
	d.closeDiscovery()
	d.churns.close()
	d.observer.close() // what is cut off by the end is no door's failure
	d.starting.Wait()
	d.end(d.state.Load().targets())
	d.ending.Wait()
	d.closeHistory()
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
