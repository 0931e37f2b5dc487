package app

import (
	"context"
	"log/slog"
	"net/netip"
	"slices"

	"github.com/steadyprobe/steadyprobe/config"
	"github.com/steadyprobe/steadyprobe/discovery"
	"github.com/steadyprobe/steadyprobe/exporter"
	"github.com/steadyprobe/steadyprobe/kube"
	"github.com/steadyprobe/steadyprobe/probe/resolve"
	"github.com/steadyprobe/steadyprobe/web"
)

// LogLibraries has libraries that know only one logger for the whole process log
// there. It is for the start of the process, before anything else runs.
func LogLibraries(logger *slog.Logger) {
	kube.RedirectLogs(discovery.WatchFailures(logger, kube.QuietLogs(logger)))
}

// openDiscovery makes what finds targets, and starts nothing.
func (d *daemon) openDiscovery() (err error) {
	d.discovery, err = discovery.New(discovery.Options{
		Logger:          d.options.Logger,
		Agent:           "steadyprobe/" + d.options.Version,
		Lookup:          lookUp,
		MostConnections: mostConnections(d.options.Shard),
		Apart:           d.options.apart,
	})
	if err != nil {
		return err
	}
	d.sources, err = d.sourcesOf(d.config)
	return err
}

// closeDiscovery stops what finds targets, if anything does.
func (d *daemon) closeDiscovery() {
	if d.discovery != nil {
		d.discovery.Close()
	}
}

// sourcesOf builds the sources of a configuration, and starts nothing.
func (d *daemon) sourcesOf(c *config.Config) (*discovery.Build, error) {
	plan, err := discovery.Prepare(c)
	if err != nil {
		return nil, err
	}
	return d.discovery.Build(plan)
}

// lookUp asks for the addresses of a discovered name, as its target would.
func lookUp(ctx context.Context, q discovery.Question) ([]netip.Addr, error) {
	network := "ip"
	switch q.Family {
	case "ipv4":
		network = "ip4"
	case "ipv6":
		network = "ip6"
	}
	return resolve.Standard(q.Server)(ctx, network, q.Host)
}

// reach returns what says which addresses a target may lead to, nil: all.
func reach(c *config.Target) func(netip.Addr) bool {
	allow := c.Reach()
	if allow == nil {
		return nil
	}
	return allow.AdmitsAddress
}

// discovered runs the targets that are discovered now. It must not be called at
// the same time as replace or reread.
func (d *daemon) discovered(ctx context.Context) {
	before, found := d.state.Load(), d.discovery.Targets()
	if slices.EqualFunc(before.found, found, func(a, b config.Target) bool { return a.Equal(&b) }) {
		return
	}
	p, err := d.plan(before.config, withFiles(found))
	if err == nil {
		p.after.found = found
		err = d.show(p)
	}
	if err != nil {
		d.options.Logger.Error("The targets that are discovered now cannot be run, and those of before are", "err", err)
		return
	}
	d.apply(ctx, p)
}

// withFiles returns the targets with what the files of their requests hold now:
// when their profile was loaded, these may have held something else.
func withFiles(targets []config.Target) []config.Target {
	fresh := slices.Clone(targets)
	for i := range fresh {
		if len(fresh[i].TrafficFiles()) == 0 {
			continue
		}
		if t, err := fresh[i].ReloadTraffic(); err == nil { // else the reloader says so
			fresh[i] = t
		}
	}
	return fresh
}

// elsewhere returns how many targets of each source lead where they may not, by
// now: none of their addresses is one that is allowed.
func (d *daemon) elsewhere() map[string]int {
	lost := map[string]int{}
	for _, one := range d.state.Load().probed {
		if source := one.config.Source(); source != "" {
			if s := one.resolver.Stats(); s.Refused > 0 && s.Addresses == 0 {
				lost[source]++
			}
		}
	}
	return lost
}

// exportedSources returns the sources as their series show them.
func (d *daemon) exportedSources() []exporter.Source {
	lost := d.elsewhere()
	sources := d.discovery.Sources()
	all := make([]exporter.Source, len(sources))
	for i, s := range sources {
		one := exporter.Source{Name: s.Name, Targets: s.Targets, Failures: s.Failures}
		if s.Held {
			one.Held = s.Targets
		}
		for reason, n := range s.Refused {
			if discovery.Reason(reason) == discovery.Network {
				n += lost[s.Name]
			}
			one.Refused = append(one.Refused, exporter.RefusedTargets{Reason: discovery.Reason(reason).String(), Targets: n})
		}
		all[i] = one
	}
	return all
}

// viewSources returns the sources as the API shows them.
func (d *daemon) viewSources() []web.Source {
	lost := d.elsewhere()
	sources := d.discovery.Sources()
	all := make([]web.Source, len(sources))
	for i, s := range sources {
		one := web.Source{
			Name:       s.Name,
			Mechanisms: s.Mechanisms,
			Profile:    s.Profile,
			Targets:    s.Targets,
			Pending:    s.Pending,
			Dropped:    s.Dropped,
			Held:       s.Held,
			Elsewhere:  lost[s.Name],
			Refused:    map[string]int{},
			Listed:     []web.RefusedTarget{},
			Failures:   s.Failures,
		}
		for reason, n := range s.Refused {
			if n > 0 {
				one.Refused[discovery.Reason(reason).String()] = n
			}
		}
		for _, r := range s.Listed {
			one.Listed = append(one.Listed, web.RefusedTarget{Target: r.Target, Reason: r.Reason.String(), Text: r.Text})
		}
		if !s.Updated.IsZero() {
			one.Updated = &s.Updated
		}
		if s.LastFailure != "" {
			one.LastFailure = &web.SourceFailure{At: s.FailedAt, Error: s.LastFailure}
		}
		all[i] = one
	}
	return all
}
