package kubernetes

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	sd "github.com/prometheus/prometheus/discovery"
	"github.com/prometheus/prometheus/discovery/targetgroup"
	"k8s.io/client-go/discovery"
)

// The client library tries a watch again and again, without a word to anybody,
// while the API server refuses connections or is busy. So it is asked for its
// version now and then: that is how a source knows that it is cut off.
const (
	askEvery = 30 * time.Second
	askLimit = 10 * time.Second
)

// guard is a mechanism whose API server is asked whether it is there.
type guard struct {
	sd.Discoverer
	api    discovery.DiscoveryInterface
	failed func(message string, err error)
}

// Guard returns a mechanism that does as another one, and counts in metrics of
// its own, and logs, when the API server that the settings name does not answer.
// It reads the files that they name, and connects to nothing.
func Guard(c *Config, other sd.Discoverer, r prometheus.Registerer, logger *slog.Logger) (sd.Discoverer, error) {
	client, err := c.newClient("steadyprobe")
	if err != nil {
		return nil, err
	}
	m := newMetrics(r)
	if err := m.Register(); err != nil {
		return nil, err
	}
	return &guard{Discoverer: other, api: client.api, failed: func(message string, err error) {
		m.failures.Inc()
		logger.Error(message, "err", err.Error())
	}}, nil
}

// Run implements [sd.Discoverer].
func (g *guard) Run(ctx context.Context, updates chan<- []*targetgroup.Group) {
	ctx, cancel := context.WithCancel(ctx)
	var asking sync.WaitGroup
	asking.Go(func() { g.ask(ctx) })
	g.Discoverer.Run(ctx, updates)
	cancel()
	asking.Wait()
}

// ask asks the API server now and then, until ctx is done.
func (g *guard) ask(ctx context.Context) {
	ticker := time.NewTicker(askEvery)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		if err := g.version(ctx); err != nil && ctx.Err() == nil {
			g.failed("The API server does not answer", fmt.Errorf("asking for its version: %w", err))
		}
	}
}

// version asks the API server for its version, which whoever has an account may
// know.
func (g *guard) version(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, askLimit)
	defer cancel()
	return g.api.RESTClient().Get().AbsPath("/version").Do(ctx).Error()
}
