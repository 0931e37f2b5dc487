package churn

import (
	"context"
	"errors"
	"sync"
	"time"
)

// term is the time for which this instance leads.
type term struct {
	lease context.Context // ends when it can no longer be sure to
	ended chan struct{}   // closed when it writes nothing more
}

// stand stands for election, or leads at once where there is none or no need of
// one. The function that it returns ends that, and returns when the lead is
// given up.
func (c *Cycle) stand(ctx context.Context) (resign func()) {
	c.term = nil
	if c.o.Election == nil {
		c.term = &term{lease: context.WithoutCancel(ctx), ended: make(chan struct{})}
		return func() { c.term = nil }
	}
	if c.o.DryRun {
		return func() {}
	}
	campaign, cancel := context.WithCancel(context.WithoutCancel(ctx))
	var standing sync.WaitGroup
	standing.Go(func() { c.campaign(campaign) })
	return func() {
		cancel()
		if c.term != nil {
			close(c.term.ended)
			c.term = nil
		}
		standing.Wait()
	}
}

// campaign stands for election until ctx ends. It is the only thing of a Cycle
// that runs beside Run, and touches nothing of it.
func (c *Cycle) campaign(ctx context.Context) {
	wait := time.Second
	for {
		err := c.o.Election.Campaign(ctx, c.lead)
		if ctx.Err() != nil {
			return
		}
		if err == nil {
			err = errors.New("the campaign ended by itself")
		}
		t := trouble{reasonOf(err), "standing for election: " + err.Error()}
		if c.account.failed(electing, t) != t.reason {
			c.o.Logger.Warn("standing for election fails", "reason", t.reason.String(), "err", err)
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(wait):
		}
		wait = min(2*wait, longestBackOff)
	}
}

// lead hands the term to Run, and returns when that writes nothing more.
func (c *Cycle) lead(lease context.Context) {
	t := &term{lease: lease, ended: make(chan struct{})}
	select {
	case c.elected <- t:
		<-t.ended
	case <-lease.Done():
	}
}

// leads reports whether this instance may change anything.
func (c *Cycle) leads() bool { return c.term != nil && c.term.lease.Err() == nil }

// lost returns what is closed when the lead is lost, nil while there is none.
func (c *Cycle) lost() <-chan struct{} {
	if c.term == nil {
		return nil
	}
	return c.term.lease.Done()
}

// lose gives up everything, for whoever leads next.
func (c *Cycle) lose() {
	c.o.Logger.Warn("another instance may lead now; nothing more is changed by this one")
	close(c.term.ended)
	c.term = nil
	owed := c.owes()
	c.rest()
	c.account.setRestorePending(owed)
	c.note, c.left = Note{}, false
	c.mode, c.shown, c.cooldown = standby, pause{}, pause{}
	c.account.lead(false)
	c.account.become(Standby, trouble{})
}

// relieve says that nothing is to be restored any more by whoever leads next:
// it is back, or somebody else leads, who says so itself.
func (c *Cycle) relieve(o Observation) {
	leader := c.o.Election.Leader()
	if o.Desired == c.baseline || leader != "" && leader != c.identity {
		c.account.setRestorePending(false)
	}
}

// takeOffice is what a new leader begins with.
func (c *Cycle) takeOffice() {
	c.failures, c.retry, c.refused = 0, time.Time{}, -1
	c.course.cycles = 0
	if c.o.Election != nil {
		c.identity = c.o.Election.Leader()
		c.quiet = time.Now().Add(lateness)
	}
	switch {
	case c.o.Notebook != nil:
		c.mode = taking
		c.account.become(Paused, trouble{})
	case c.changed:
		c.account.become(Paused, trouble{})
		c.restoreThen(beginning)
	default:
		c.mode = beginning
	}
}
