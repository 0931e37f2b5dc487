package app

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/steadyprobe/steadyprobe/churn"
	"github.com/steadyprobe/steadyprobe/config"
	"github.com/steadyprobe/steadyprobe/workload/command"
	"github.com/steadyprobe/steadyprobe/workload/haproxy"
	"github.com/steadyprobe/steadyprobe/workload/notefile"
)

// commandTimeout is how long a program may take that scales or reads: some ask
// a cloud.
const commandTimeout = time.Minute

// provider is what a churn scales, and what goes with it.
type provider struct {
	workload    churn.Workload
	notebook    churn.Notebook           // nil: there is none
	election    churn.Election           // nil: there is no other instance
	announce    func(churn.Announcement) // nil: nobody is told
	poll        time.Duration            // 0: the default
	callTimeout time.Duration            // 0: the default
	// run runs the churn, by calling cycle with a context that ends with its own.
	run   func(ctx context.Context, cycle func(context.Context) error) error
	close func() // when nothing runs any more
}

// newProvider builds the provider of a churn. It waits for no server.
func (p *churnParts) newProvider(c *config.Churn, namespaces []string) (provider, error) {
	made := provider{close: func() {}, run: func(ctx context.Context, cycle func(context.Context) error) error { return cycle(ctx) }}
	var err error
	switch {
	case c.Kubernetes != nil:
		err = p.inCluster(c, namespaces, &made)
	case c.HAProxy != nil:
		made.poll = haproxy.Poll
		made.workload, err = haproxy.New(haproxy.Options{Socket: c.HAProxy.Socket, Backend: c.HAProxy.Backend, Mode: haproxy.Mode(c.HAProxy.Mode)})
	case c.Command != nil:
		made.poll, made.callTimeout = min(c.Command.Interval, longestPoll), commandTimeout
		made.workload, err = command.New(command.Options{
			Scale:    c.Command.Reveal(c.Command.Scale),
			Read:     c.Command.Reveal(c.Command.Read),
			Kill:     c.Command.Reveal(c.Command.Kill),
			Interval: c.Command.Interval,
		})
	case p.embedded != nil:
		made.workload = p.embedded
	default:
		err = errors.New("embedded backends exist only in steadyprobe demo")
	}
	if err == nil && needsStorage(c) {
		err = p.inFile(c, &made)
	}
	if err != nil {
		return provider{}, fmt.Errorf("building churn %q: %w", c.Name, err)
	}
	return made, nil
}

// longestPoll is how often a churn looks at its workload at least, so that a
// phase ends when it ends. What is asked less often answers with what it knew.
const longestPoll = time.Second

// inCluster makes a workload of a cluster.
func (p *churnParts) inCluster(c *config.Churn, namespaces []string, made *provider) error {
	cluster, err := p.clusters.of(c.Kubernetes)
	if err != nil {
		return err
	}
	w, err := cluster.Workload(kubeOptions(c, namespaces))
	if err != nil {
		return err
	}
	made.workload, made.notebook, made.election = w, w, w
	made.announce, made.close = w.Announce, w.Close
	return nil
}

// inFile gives a workload that has no place of its own for it a note in a file.
func (p *churnParts) inFile(c *config.Churn, made *provider) error {
	book, err := notefile.New(notefile.Options{Folder: p.notes, Churn: c.Name})
	if err != nil {
		return err
	}
	if !c.DryRun {
		made.notebook, made.election = book, book
		return nil
	}
	// A dry run stands for no election, but puts back what an earlier process
	// has left, unless there is another one that churns.
	r := &rehearsal{book: book, logger: p.logger}
	made.notebook, made.run = r, r.run
	return nil
}
