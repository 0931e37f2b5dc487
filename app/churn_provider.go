package app

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/steadyprobe/steadyprobe/churn"
	"github.com/steadyprobe/steadyprobe/config"
	"github.com/steadyprobe/steadyprobe/kube"
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
func (p *churnParts) newProvider(c *config.Churn) (provider, error) {
	made := provider{close: func() {}, run: func(ctx context.Context, cycle func(context.Context) error) error { return cycle(ctx) }}
	var err error
	switch {
	case c.Kubernetes != nil:
		err = p.inCluster(c, &made)
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
func (p *churnParts) inCluster(c *config.Churn, made *provider) error {
	cluster, err := p.clusters.of(c.Kubernetes)
	if err != nil {
		return err
	}
	w, err := cluster.Workload(kubeOptions(c, p.namespaces))
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

// rehearsal is the note of a churn in a dry run: there is one only while no
// other process churns. It keeps others from churning for as long as there is
// something to put back, and no longer.
type rehearsal struct {
	book   *notefile.Book
	logger *slog.Logger

	mu     sync.Mutex
	alone  bool
	retire context.CancelFunc // gives up being the only one
}

// electionWait is how long a dry run waits to know whether another process
// churns.
const electionWait = 2 * time.Second

// run runs the cycle, at first as the only process that may churn, where that
// can be had.
func (r *rehearsal) run(ctx context.Context, cycle func(context.Context) error) error {
	standing, retire := context.WithCancel(ctx)
	defer retire()
	r.mu.Lock()
	r.retire = retire
	r.mu.Unlock()
	elected := make(chan struct{}, 1)
	var campaign sync.WaitGroup
	campaign.Go(func() {
		err := r.book.Campaign(standing, func(lead context.Context) {
			r.setAlone(true)
			select {
			case elected <- struct{}{}:
			default:
			}
			<-lead.Done()
			r.setAlone(false)
		})
		if err != nil && standing.Err() == nil {
			r.logger.Warn("Whether an earlier process has left something to put back cannot be known", "err", err)
		}
	})
	select {
	case <-elected:
	case <-ctx.Done():
	case <-time.After(electionWait):
		retire() // what the other one leaves is not ours
		campaign.Wait()
	}
	err := cycle(ctx)
	retire()
	campaign.Wait()
	return err
}

func (r *rehearsal) setAlone(alone bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.alone = alone
}

func (r *rehearsal) isAlone() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.alone
}

// end gives up being the only one.
func (r *rehearsal) end() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.retire()
}

// Load returns the note, none where it may be that of another process.
func (r *rehearsal) Load(ctx context.Context) (churn.Note, error) {
	if !r.isAlone() {
		return churn.Note{}, nil
	}
	n, err := r.book.Load(ctx)
	if err == nil && !n.Held {
		r.end()
	}
	return n, err
}

// Save replaces the note.
func (r *rehearsal) Save(ctx context.Context, n churn.Note) error {
	err := r.book.Save(ctx, n)
	if err == nil && !n.Held {
		r.end()
	}
	return err
}

// clusters are those that workloads are in, each once.
type clusters struct {
	logger  *slog.Logger
	version string

	ctx  context.Context // ends when they are closed
	stop context.CancelFunc

	mu       sync.Mutex
	all      map[clusterKey]*kube.Cluster
	started  bool
	sweeping sync.WaitGroup
}

// clusterKey is what tells clusters, and our places in them, apart.
type clusterKey struct{ kubeconfig, context, namespace string }

func newClusters(logger *slog.Logger, version string) *clusters {
	c := &clusters{logger: logger, version: version, all: map[clusterKey]*kube.Cluster{}}
	c.ctx, c.stop = context.WithCancel(context.Background())
	return c
}

// of returns the cluster of a workload. It reads files and connects to nothing.
func (c *clusters) of(k *config.Kubernetes) (*kube.Cluster, error) {
	key := clusterKey{k.KubeconfigFile(), k.Context, k.Lease.Namespace}
	c.mu.Lock()
	defer c.mu.Unlock()
	if known := c.all[key]; known != nil {
		return known, nil
	}
	made, err := kube.Connect(kube.ClusterOptions{
		Kubeconfig: key.kubeconfig,
		Context:    key.context,
		Namespace:  key.namespace,
		Version:    c.version,
		Logger:     c.logger,
	})
	if err != nil {
		return nil, err
	}
	c.all[key] = made
	if c.started {
		c.sweep(made)
	}
	return made, nil
}

// start begins to put back what instances have left that are gone.
func (c *clusters) start() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.started = true
	for _, one := range c.all {
		c.sweep(one)
	}
}

// sweep is called with mu held.
func (c *clusters) sweep(one *kube.Cluster) {
	c.sweeping.Go(func() {
		if err := one.Sweeper().Run(c.ctx); err != nil {
			c.logger.Error("What other instances have left is not looked for any more", "err", err)
		}
	})
}

// close returns when nothing runs any more.
func (c *clusters) close() {
	c.stop()
	c.sweeping.Wait()
}
