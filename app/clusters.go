package app

import (
	"context"
	"log/slog"
	"sync"

	"github.com/steadyprobe/steadyprobe/config"
	"github.com/steadyprobe/steadyprobe/kube"
)

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

// start begins to put back what instances have left that are gone. It may be
// called again.
func (c *clusters) start() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.started {
		return
	}
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
