package kube

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	"k8s.io/klog/v2"
)

// releaseWithin is how long it may take to give the lease up.
const releaseWithin = 3 * time.Second

// Campaign stands for election until ctx ends, and again after each loss, as
// [churn.Election] says. What keeps it from standing is logged; it returns nil
// when ctx has ended.
func (w *Workload) Campaign(ctx context.Context, lead func(context.Context)) error {
	logs := logr.FromSlogHandler(quiet{w.logger.Handler()})
	for ctx.Err() == nil {
		if err := w.lease.stand(klog.NewContext(ctx, logs), w.o.RetryPeriod, lead); err != nil {
			return fmt.Errorf("standing for election in churn %q: %w", w.o.Churn, err)
		}
		select {
		case <-ctx.Done():
		case <-time.After(w.o.RetryPeriod): // others may have a try
		}
	}
	return nil
}

// candidate is the lease of one candidature.
type candidate struct {
	*lease
	won atomic.Bool
}

// Create is that of the lease. It succeeds only for who becomes the holder.
func (c *candidate) Create(ctx context.Context, record resourcelock.LeaderElectionRecord) error {
	err := c.lease.Create(ctx, record)
	if err == nil {
		c.won.Store(true)
	}
	return err
}

// Update is that of the lease. It succeeds only for who becomes, or is, the
// holder, because the lease is given up otherwise.
func (c *candidate) Update(ctx context.Context, record resourcelock.LeaderElectionRecord) error {
	err := c.lease.Update(ctx, record)
	if err == nil {
		c.won.Store(true)
	}
	return err
}

// stand stands for election once: it returns after having led, when the lease
// is given up or lost, or when ctx has ended.
//
// client-go's elector gives the lease up without waiting for who leads, and
// believes in it from the end of a renewal although others count from its
// beginning. So it renews until lead has returned, the lease is given up here,
// and lead is ended by when renewals were sent.
func (l *lease) stand(ctx context.Context, retry time.Duration, lead func(context.Context)) error {
	running, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	c := &candidate{lease: l}
	led := make(chan struct{})
	elector, err := leaderelection.NewLeaderElector(leaderelection.LeaderElectionConfig{
		Lock: c, Name: l.name,
		LeaseDuration: l.duration, RenewDeadline: l.deadline, RetryPeriod: retry,
		Callbacks: leaderelection.LeaderCallbacks{
			OnStartedLeading: func(elected context.Context) {
				defer close(led)
				defer stop()
				l.lead(ctx, elected, lead)
			},
			OnStoppedLeading: func() {},
		},
	})
	if err != nil {
		return err
	}
	forget := context.AfterFunc(ctx, func() {
		if !c.won.Load() {
			stop()
		}
	})
	defer forget()
	elector.Run(running)
	if c.won.Load() {
		<-led
	}
	giving, cancel := context.WithTimeout(context.WithoutCancel(ctx), releaseWithin)
	defer cancel()
	if err := l.release(giving); err != nil {
		l.logger.Warn("the lease could not be given up, and is free when it expires", "churn", l.churn, "lease", l.Describe(),
			"err", l.client.explain("writing", "the Lease", err))
	}
	return nil
}

// lead calls lead with a context that ends with ctx, with elected, and when we
// are not sure any more to hold the lease.
func (l *lease) lead(ctx, elected context.Context, lead func(context.Context)) {
	leading, cancel := context.WithCancel(elected)
	defer context.AfterFunc(ctx, cancel)()
	var watching sync.WaitGroup
	watching.Go(func() {
		defer cancel()
		l.whileSure(leading)
	})
	l.logger.Info("elected", "churn", l.churn, "lease", l.Describe(), "identity", l.identity)
	defer func() {
		l.logger.Info("no longer elected", "churn", l.churn, "lease", l.Describe(), "identity", l.identity)
		cancel()
		watching.Wait()
	}()
	lead(leading)
}

// whileSure returns when ctx ends, or when we are not sure to hold the lease.
func (l *lease) whileSure(ctx context.Context) {
	for ctx.Err() == nil {
		until, _ := l.sure()
		left := time.Until(until)
		if left <= 0 {
			return
		}
		t := time.NewTimer(left)
		select {
		case <-ctx.Done():
		case <-t.C:
		case <-l.renewal:
		}
		t.Stop()
	}
}
