package churn

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// noteMargin is added to the deadline of a note, for clocks that differ and
// servers that are slow.
const noteMargin = time.Minute

// errLate says that the lead or the Run has ended. It is never shown.
var errLate = errors.New("it is too late to change anything")

// errForeign says that a note is there which is not ours.
var errForeign = &Error{Conflict, errors.New("the note holds another baseline than ours; that one is restored first")}

// load calls Load.
func (c *Cycle) load(ctx context.Context) (Note, error) {
	call, cancel := c.calling(ctx)
	defer cancel()
	return c.o.Notebook.Load(call)
}

// takeOver reads what the leader or the process before has left.
func (c *Cycle) takeOver(ctx context.Context) {
	if time.Now().Before(c.retry) || !c.mayChange(ctx) {
		return
	}
	n, err := c.load(ctx)
	if err != nil {
		c.failed(ctx, noting, fmt.Errorf("reading the note: %w", err))
		return
	}
	c.succeeded(noting)
	c.adopt(n)
}

// adopt makes what a note says our own.
func (c *Cycle) adopt(n Note) {
	c.rest()
	c.note, c.left, c.ours = n, false, false
	c.account.setByHand(n.Paused)
	if !n.Held {
		c.mode = beginning
		return
	}
	c.baseline, c.original, c.set = n.Baseline, n.Original, n.Set
	c.changed, c.unclear = true, []int{n.Set, n.Before}
	c.asked = change{to: n.Before}
	c.open = n.Set != n.Baseline || n.Before != n.Baseline
	c.account.setBaseline(n.Baseline)
	detail := fmt.Sprintf("an earlier process has left the workload scaled; it had %d replicas before", n.Baseline)
	c.o.Logger.Warn("the baseline is restored first", "detail", detail)
	c.shut(pause{trouble: trouble{detail: detail}}, "")
	c.restoreThen(beginning)
}

// write replaces the note, but never one that holds somebody else's baseline.
func (c *Cycle) write(ctx context.Context, n Note) error {
	was, err := c.load(ctx)
	if err != nil {
		return fmt.Errorf("reading the note: %w", err)
	}
	if was.Held && (!c.note.Held || was.Baseline != c.baseline || was.Original != c.original) {
		c.adopt(was)
		return errForeign
	}
	if !c.mayChange(ctx) {
		return errLate
	}
	call, cancel := c.calling(ctx)
	defer cancel()
	before := c.note
	if c.note = n; before.Held && !n.Held { // until that is known
		c.note = before
		c.note.Paused = n.Paused
	}
	if err := c.o.Notebook.Save(call, n); err != nil {
		return fmt.Errorf("saving the note: %w", err)
	}
	c.note, c.unsaved = n, false
	c.succeeded(noting)
	return nil
}

// fence saves what is about to be done before it is done, so that a crash at
// any moment leaves a note from which the baseline can be put back.
func (c *Cycle) fence(ctx context.Context, ch change) error {
	if c.o.Notebook == nil {
		return nil
	}
	n := Note{
		Held: true, Baseline: c.baseline, Set: ch.to, Before: c.set,
		Original: c.original, Paused: c.note.Paused,
	}
	var hold time.Duration
	switch {
	case !ch.restore:
		hold = c.o.Plan.Steps[c.course.index].Hold + c.o.Plan.Jitter
	case c.note.Held && !c.forced && !c.knows(): // the workload may have either, until it has the baseline
		n.Set, n.Before = c.note.Set, c.note.Before
	}
	err := c.write(ctx, c.dated(n, hold))
	if err != nil && ch.restore && c.o.Election == nil && c.note.Held && c.mode == restoring && !errors.Is(err, errForeign) {
		// The note says what is needed, and nobody else may write it.
		c.failed(ctx, noting, err)
		return nil
	}
	return err
}

// knows reports whether the workload has what it was asked for last while the
// note says something else, or no more than that: the step that was noted was
// never asked for, or the note was renewed since. What a restore that is done in
// part may leave lies between that count and the baseline then.
func (c *Cycle) knows() bool {
	return len(c.unclear) == 0 && (c.note.Set != c.set || c.note.Before == c.set)
}

// dated returns a note with its deadline.
func (c *Cycle) dated(n Note, hold time.Duration) Note {
	now, lasts := time.Now(), hold+c.o.StuckAfter+noteMargin
	n.Deadline, c.renew = now.Add(lasts), now.Add(lasts/2)
	return n
}

// keepNote saves the note again before its deadline passes.
func (c *Cycle) keepNote(ctx context.Context, now time.Time) {
	if c.o.Notebook == nil || !c.note.Held || now.Before(c.renew) || now.Before(c.retry) || !c.mayChange(ctx) {
		return
	}
	before, n := c.renew, c.note
	if len(c.unclear) == 0 {
		n.Set, n.Before = c.set, c.set
	}
	if err := c.write(ctx, c.dated(n, max(0, time.Until(c.course.due)))); err != nil {
		c.renew = before
		c.failed(ctx, noting, err)
	}
}

// release says in the note that there is nothing to be restored any more. It
// reports whether that is so.
func (c *Cycle) release(ctx context.Context) bool {
	if !c.note.Held {
		return true
	}
	if time.Now().Before(c.retry) || !c.mayChange(ctx) {
		return false
	}
	if err := c.write(ctx, Note{Paused: c.note.Paused}); err != nil {
		c.failed(ctx, noting, err)
		return false
	}
	return true
}
