package churn

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync/atomic"
	"time"

	"github.com/steadyprobe/steadyprobe/probe"
)

const (
	// scaleGrace is how much longer a call that changes something may take when
	// the cycle is told to end. To cut it at once would leave open whether it was
	// done.
	scaleGrace = time.Second
	// longestBackOff is the most time between two attempts.
	longestBackOff = 30 * time.Second
	// patience is how long a workload may be out of sight before the churn is
	// paused for it.
	patience = 5 * time.Second
	// lateness is how long after a call whose outcome is open the baseline must
	// have been there to be believed: a server that comes back may still find it
	// in its queue. It is also how old an observation may be that a provider has
	// kept from before an election.
	lateness = 2 * time.Second
)

// mode is what a Cycle is about.
type mode uint8

const (
	standby   mode = iota // another instance churns, or none
	taking                // elected; the note is not read yet
	beginning             // it begins as soon as nothing is against it
	cycling
	restoring // the baseline
	resting   // nothing is to be done before Resume
)

// Cycle scales a workload along a plan and puts back what there was before.
// Snapshot, Pause, Resume and Restore may be called at any time, concurrently.
type Cycle struct {
	o        Options
	account  *account
	run      atomic.Pointer[running] // nil while Run does not run
	requests chan request
	elected  chan *term

	// All that follows belongs to Run. It outlives it: what one Run could not
	// restore, the next one restores, with the same baseline.

	term     *term     // nil: this instance does not lead
	identity string    // of this instance, when it led last
	quiet    time.Time // no baseline is taken before
	mode     mode
	then     mode // after restoring
	machine  machine
	seen     bool // there was an observation in this Run
	told     probe.ChurnPhase
	course   course
	flow     flow
	answers  answers
	outage   outage
	marked   bool // of the step or restore under way both were told

	note     Note      // what was saved last, or tried to; without a Notebook only Paused is used
	renew    time.Time // when it is to be saved again
	unsaved  bool      // Paused is not what was saved
	baseline int
	original string // of a Keeper, since before the first change
	changed  bool   // by our doing the workload is, or may be, not what it was
	left     bool   // so it was when somebody else changed it
	forced   bool   // the baseline is to be restored whoever has changed it
	putBack  bool   // a call that restores was accepted
	begun    bool   // it has cycled in this Run
	ours     bool   // what was seen last, so that the baseline may be restored unseen
	restored bool   // in this Run, so that it has to settle before there is a step

	desired   int       // the count that was seen last
	set       int       // the one of those that was ours; in a dry run the one we would have set
	attempted time.Time // when the workload was last asked to change
	asked     change    // what for
	unsure    bool      // that failed, and nothing was observed since
	open      bool      // that, or an earlier process's, may take effect yet
	unclear   []int     // counts whose call failed, and may have taken effect or still may
	failures  int       // of attempts, in a row
	retry     time.Time // no attempt before

	stepSince time.Time       // when the step under way was first attempted, zero: none is
	stepTaken bool            // its call was accepted
	direction Direction       // of it
	errs      [numCalls]error // of the latest call of each, nil if it succeeded

	unseen    time.Time // since when the workload is out of sight; zero: it is not
	shown     pause     // why nothing is churned, zero while it is
	cooldown  pause     // what a pause is for that ends with its time
	back      time.Time // since when the baseline is there again, while restoring
	limits    limits
	rehearsed bool // a dry run was announced
	refused   int  // the baseline for which the plan was refused; -1: none was
	refusedAt time.Time
}

// running is one call of Run.
type running struct {
	ending chan struct{} // closed when it is told to end
}

// New returns a Cycle that does nothing until Run is called. Its error names
// everything that is wrong with the options.
func New(o Options) (*Cycle, error) {
	if err := o.complete(); err != nil {
		return nil, err
	}
	return &Cycle{
		o:        o,
		account:  newAccount(o.Name, o.Convergence),
		requests: make(chan request),
		elected:  make(chan *term),
		machine:  newMachine(o.Settle, 0),
		course:   course{plan: o.Plan, random: rand.N[time.Duration]},
		flow:     flow{window: o.Guard.AbortWindow},
		answers:  answers{backends: o.Backends},
		outage:   outage{latest: o.LastFailure, traffic: o.Traffic},
		refused:  -1,
	}, nil
}

// Snapshot copies what is known at present into s, whose slices are used again.
// It never waits for the workload.
func (c *Cycle) Snapshot(s *Snapshot) {
	c.account.snapshot(s, time.Now())
	if c.o.Election != nil {
		s.LeaderName = c.o.Election.Leader()
	}
}

// Run stands for election where there is one, puts back what an earlier process
// has left, takes the baseline and cycles until ctx ends. Then it restores the
// baseline where it has changed anything, also when the workload panics, with
// up to RestoreWithin of its own time, gives up the lead, and returns. Errors of
// the workload are counted, shown and tried again; Run returns one where it
// never got as far as knowing the baseline, or where restoring failed.
//
// It may be called again, but not before it has returned. After a restore that
// failed it begins with that.
func (c *Cycle) Run(ctx context.Context) (err error) {
	run := &running{ending: make(chan struct{})}
	if !c.run.CompareAndSwap(nil, run) {
		return fmt.Errorf("running churn %q: it runs already", c.o.Name)
	}
	defer c.run.Store(nil)
	resign := c.stand(ctx)
	defer resign()
	c.enter()
	defer func() {
		close(run.ending)
		if endErr := c.end(ctx); endErr != nil {
			err = endErr
		}
	}()
	for ctx.Err() == nil {
		c.beat(ctx)
		c.wait(ctx)
	}
	for _, which := range [...]call{observing, noting} {
		if err := c.errs[which]; err != nil && !c.begun && (c.mode == beginning || c.mode == taking) {
			return fmt.Errorf("beginning churn %q: %w", c.o.Name, err)
		}
	}
	return nil
}

// enter is the begin of a Run.
func (c *Cycle) enter() {
	c.seen, c.errs, c.unseen, c.shown, c.cooldown = false, [numCalls]error{}, time.Time{}, pause{}, pause{}
	c.refused, c.restored, c.begun = -1, false, false
	c.course.restart()
	c.course.cycles = 0
	c.flow.forget()
	c.forgetStep()
	c.answers.begin(time.Now())
	c.outage.kill = time.Time{}
	c.account.lead(c.term != nil)
	switch {
	case c.o.DryRun && c.o.Election != nil:
		c.mode = beginning
	case c.term == nil:
		c.mode = standby
		c.account.become(Standby, trouble{})
	default:
		c.takeOffice()
	}
	c.tell(time.Now())
}

// wait returns when it is time for the next beat, when ctx ends, or when
// somebody wants something.
func (c *Cycle) wait(ctx context.Context) {
	now := time.Now()
	d := c.o.Poll
	for _, at := range [...]time.Time{c.machine.wake(), c.course.due, c.quiet} {
		if at.After(now) {
			d = min(d, at.Sub(now))
		}
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
	case <-t.C:
	case <-c.lost():
		c.lose()
	case t := <-c.elected:
		c.term = t
		c.account.lead(true)
		c.takeOffice()
	case r := <-c.requests:
		r.answer <- c.obey(ctx, r.order)
	}
}

// end restores the baseline at the end of Run.
func (c *Cycle) end(ctx context.Context) error {
	defer c.account.ended()
	if !c.leads() || !c.owes() {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), c.o.RestoreWithin)
	defer cancel()
	if c.changed {
		c.restoreThen(resting)
	} else {
		c.rest() // a note alone is to be released, and no step is taken any more
	}
	c.failures, c.retry = 0, time.Time{}
	for ctx.Err() == nil {
		c.beat(ctx)
		if !c.owes() {
			return nil
		}
		c.wait(ctx)
		if !c.leads() {
			return fmt.Errorf("restoring churn %q: another instance leads now, and restores", c.o.Name)
		}
	}
	err := errors.Join(c.errs[:]...)
	if err == nil {
		err = ctx.Err()
	}
	return fmt.Errorf("restoring churn %q to %d replicas within %v: %w", c.o.Name, c.baseline, c.o.RestoreWithin, err)
}

// owes reports whether something is to be put back, or a note to be released.
func (c *Cycle) owes() bool { return c.changed || c.note.Held && c.mode != taking }
