package app

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"slices"
	"sync/atomic"

	"github.com/steadyprobe/steadyprobe/churn"
	"github.com/steadyprobe/steadyprobe/config"
	"github.com/steadyprobe/steadyprobe/discovery"
	"github.com/steadyprobe/steadyprobe/kube"
	"github.com/steadyprobe/steadyprobe/probe"
	"github.com/steadyprobe/steadyprobe/probe/record"
	"github.com/steadyprobe/steadyprobe/web"
	"github.com/steadyprobe/steadyprobe/workload/notefile"
)

// churns are the churns of a daemon. They run until they are closed.
type churns struct {
	parts  churnParts
	all    atomic.Pointer[[]*churning] // in the order of the configuration
	ending []*churning                 // that are gone, and may still put back what they changed; of who reloads
}

// churnParts are what all churns of a daemon are made of.
type churnParts struct {
	logger      *slog.Logger
	clock       probe.Clock
	convergence *record.Boundaries
	embedded    churn.Workload // the backends of the demo; nil: this is none
	notes       string         // folder of the notes of providers that have no place of their own; empty: there is none
	clusters    *clusters
}

// Check reports what [Run] refuses of a configuration that is valid, as far as
// that can be said without connecting to anything: settings that mechanisms of
// discovery do not understand, as a [*config.Errors], or else churns of backends
// that only the demo has, and what a cluster would not understand.
func Check(c *config.Config) error {
	if _, err := discovery.Prepare(c); err != nil {
		return err
	}
	var all []error
	for i := range c.Churns {
		one := &c.Churns[i]
		switch {
		case one.Embedded != nil:
			all = append(all, fmt.Errorf("building churn %q: embedded backends exist only in steadyprobe demo; remove the churn, and churn: %s from its targets", one.Name, one.Name))
		case one.Kubernetes != nil:
			o := kubeOptions(one, c.Limits.ChurnNamespaces)
			if err := o.Validate(); err != nil {
				all = append(all, fmt.Errorf("building churn %q: %w", one.Name, err))
			}
		}
	}
	return errors.Join(all...)
}

// checkStorage refuses churns whose notes have no place.
func checkStorage(c *config.Config, storage string) error {
	if storage != "" {
		return nil
	}
	var all []error
	for i := range c.Churns {
		if one := &c.Churns[i]; needsStorage(one) {
			all = append(all, fmt.Errorf("building churn %q: %s has no place of its own for the note of what is to be put back after a crash; name a folder with --storage.path", one.Name, providerName(one)))
		}
	}
	return errors.Join(all...)
}

// needsStorage reports whether the note of a churn is kept in a file.
func needsStorage(c *config.Churn) bool { return c.HAProxy != nil || c.Command != nil }

// notesFolder returns the folder of the notes, empty where nothing is stored.
func notesFolder(storage string) string {
	if storage == "" {
		return ""
	}
	return filepath.Join(storage, "churns")
}

// newChurns returns what the churns of a daemon are made of, and no churn.
func newChurns(d *daemon) *churns {
	return &churns{parts: churnParts{
		logger:      d.options.Logger,
		clock:       d.engine.clock,
		convergence: d.bounds.Convergence,
		embedded:    d.embedded,
		notes:       notesFolder(d.options.Storage.Path),
		clusters:    newClusters(d.options.Logger, d.options.Version),
	}}
}

// list returns the churns that there are.
func (c *churns) list() []*churning {
	if all := c.all.Load(); all != nil {
		return *all
	}
	return nil
}

// named returns a churn by its name, nil where there is none.
func (c *churns) named(name string) *churning {
	all := c.list()
	if i := slices.IndexFunc(all, func(one *churning) bool { return one.config.Name == name }); i >= 0 {
		return all[i]
	}
	return nil
}

// close ends all churns at the same time, and returns when what they changed is
// put back.
func (c *churns) close() {
	all := slices.Concat(c.ending, c.list())
	for _, one := range all {
		one.end()
	}
	for _, one := range all {
		one.close()
	}
	c.parts.clusters.close()
}

// tellLeft says which notes belong to no churn of the configuration: what they
// tell of is for people to put back, because how to get at it is not known any
// more.
func (c *churns) tellLeft() {
	if c.parts.notes == "" {
		return
	}
	notes, err := notefile.All(c.parts.notes)
	if err != nil {
		c.parts.logger.Error("Notes of earlier churns cannot be looked for", "err", err)
		return
	}
	for _, n := range notes {
		one := c.named(n.Churn)
		switch {
		case n.Err != nil:
			c.parts.logger.Error("A note of an earlier churn cannot be read: see what its workload has, put it back by hand where need be, then remove the file",
				"file", n.Path, "churn", n.Churn, "err", n.Err)
		case n.Note.Held && (one == nil || !needsStorage(&one.config)):
			c.parts.logger.Error("An earlier churn has left its workload changed, and is no longer configured: configure it again, which puts it back, or put it back by hand and remove the file",
				"churn", n.Churn, "baseline_replicas", n.Note.Baseline, "set_replicas", n.Note.Set, "original", n.Note.Original, "file", n.Path)
		}
	}
}

// control asks a churn for what somebody wants of it.
func (c *churns) control(ctx context.Context, name string, do web.Control) error {
	one := c.named(name)
	if one == nil {
		return fmt.Errorf("controlling churn %q: there is none any more", name)
	}
	ask, known := map[web.Control]func(context.Context) error{
		web.Pause: one.cycle.Pause, web.Resume: one.cycle.Resume, web.Restore: one.cycle.Restore,
	}[do]
	if !known {
		return fmt.Errorf("controlling churn %q: nobody knows how to %s", name, do)
	}
	err := ask(ctx)
	if elsewhere, ok := errors.AsType[*churn.NotLeadingError](err); ok {
		return &web.ControlError{Message: elsewhere.Error()}
	}
	return err
}

// view returns the churns as the page and the API show them.
func (c *churns) view() []web.Churn {
	churns := c.list()
	all := make([]web.Churn, len(churns))
	for i, one := range churns {
		all[i] = one.view()
	}
	return all
}

// kubeOptions returns what a workload of a cluster is made of.
func kubeOptions(c *config.Churn, namespaces []string) kube.WorkloadOptions {
	k := c.Kubernetes
	return kube.WorkloadOptions{
		Churn:             c.Name,
		Namespace:         k.Namespace,
		Workload:          k.Workload,
		Service:           k.Service,
		Selector:          k.Selector,
		AllowedNamespaces: namespaces,
		AllowAutoscaler:   k.AllowAutoscaler,
		LeaseDuration:     k.Lease.Duration,
	}
}
