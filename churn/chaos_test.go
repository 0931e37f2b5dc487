package churn

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// chaos is a way to the world on which calls fail in every way there is, for a
// while: not done, done nevertheless, or done late, when their answer was given
// up long ago. As a server does with a precondition, it refuses a change of a
// count that is not the one that was seen last, and a note that another process
// has seen since.
type chaos struct {
	w     *world
	notes *atomic.Int32 // versions of the note
	rand  *rand.Rand
	until time.Time // from then on all is well
	seen  int       // replicas
	of    int       // of this version of the count
	did   *diary
}

// diary is what was done. It may be used concurrently.
type diary struct {
	mu    sync.Mutex
	lines []string
	count sync.Mutex // is held by whoever looks at the count and its version, or changes both
}

func (h *chaos) log(format string, args ...any) {
	h.did.mu.Lock()
	defer h.did.mu.Unlock()
	h.did.lines = append(h.did.lines, fmt.Sprintf("%v: ", time.Since(h.w.start))+fmt.Sprintf(format, args...))
}

// call makes a call in one of the ways.
func (h *chaos) call(what string, effect func() error) error {
	reasons := []Reason{Unreachable, Other, Conflict, NotFound, Forbidden, Refused}
	if !time.Now().Before(h.until) || h.rand.IntN(3) > 0 {
		err := effect()
		h.log("%s (%v)", what, err)
		return err
	}
	reason := reasons[h.rand.IntN(len(reasons))]
	done := "not done"
	if reason.unclear() {
		switch h.rand.IntN(3) {
		case 0:
			done = "done"
			_ = effect()
		case 1:
			late := time.Duration(h.rand.IntN(1500)) * ms
			done = fmt.Sprintf("done %v later", late)
			time.AfterFunc(late, func() { h.log("%s, late (%v)", what, effect()) })
		}
	}
	h.log("%s: %v, %s", what, reason, done)
	return &Error{reason, errors.New("chaos")}
}

func (h *chaos) change(replicas int) func() error {
	seen := h.of
	return func() error {
		h.did.count.Lock()
		defer h.did.count.Unlock()
		if h.version() != seen {
			return &Error{Conflict, errors.New("it is another count")}
		}
		if replicas != h.w.count() {
			h.w.apply(replicas)
		}
		return nil
	}
}

// version is another one after each change of the count.
func (h *chaos) version() int { return len(h.w.scaledTo()) }

func (h *chaos) Scale(_ context.Context, replicas int) error {
	return h.call(fmt.Sprint("scale ", replicas), h.change(replicas))
}

func (h *chaos) Kill(_ context.Context, n int) error {
	return h.call(fmt.Sprint("kill ", n), h.change(h.seen-n))
}

func (h *chaos) Observe(ctx context.Context) (o Observation, err error) {
	before, of := h.seen, h.of
	h.did.count.Lock()
	o, err = h.w.Observe(ctx)
	h.seen, h.of = o.Desired, h.version()
	h.did.count.Unlock()
	if time.Now().Before(h.until) && h.rand.IntN(6) == 0 {
		reason := []Reason{Unreachable, Forbidden, Refused}[h.rand.IntN(3)]
		h.log("observe: %v", reason)
		if reason != Refused {
			o, h.seen, h.of = Observation{}, before, of
		}
		return o, &Error{reason, errors.New("chaos")}
	}
	return o, err
}

func (h *chaos) Load(context.Context) (Note, error) {
	n := h.w.book.held()
	if err := h.call("load", func() error { return nil }); err != nil {
		return Note{}, err
	}
	return n, nil
}

func (h *chaos) Save(_ context.Context, n Note) error {
	now := h.notes.Load()
	return h.call("save "+short(n), func() error {
		if !h.notes.CompareAndSwap(now, now+1) {
			return &Error{Conflict, errors.New("it is another note")}
		}
		h.w.book.put(n)
		return nil
	})
}

// order gives orders at random, until ctx ends.
func (h *chaos) order(ctx context.Context, c *Cycle, r *rand.Rand) {
	for {
		select {
		case <-time.After(time.Duration(r.IntN(8000)) * ms):
		case <-ctx.Done():
			return
		}
		o := order(r.IntN(3))
		short, cancel := context.WithTimeout(ctx, second)
		err := c.order(short, o)
		cancel()
		h.log("%v by hand: %v", o, err)
	}
}

// process runs a process, and returns how many changes it took for somebody
// else's.
func (h *chaos) process(t *testing.T, plan Plan, lives, restores time.Duration, orders bool) uint64 {
	c, err := New(Options{
		Name: "shop", Plan: plan, Workload: h, Notebook: h, Settle: 300 * ms, Poll: 100 * ms,
		StuckAfter: 5 * second, RestoreWithin: restores, Guard: Guard{Cooldown: 3 * second},
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), lives)
	defer cancel()
	var ordering sync.WaitGroup
	if orders {
		r := rand.New(rand.NewPCG(h.rand.Uint64(), 8))
		ordering.Go(func() { h.order(ctx, c, r) })
	}
	_ = c.Run(ctx)
	ordering.Wait()
	var s Snapshot
	c.Snapshot(&s)
	h.log("a process has ended: %v, %v", s.State, s.Detail)
	return s.Errors[ExternalChange]
}

// TestChaos: as long as nobody else scales, the baseline is there in the end,
// and nothing is taken for somebody else's, whatever fails, and whenever a
// process dies and is followed by another one. What somebody else has scaled
// stays as they wanted it.
func TestChaos(t *testing.T) {
	plans := crashPlans()
	names := []string{"three steps", "down first", "by the baseline", "with a kill", "a kill to the base"}
	for seed := range uint64(300) {
		synctest.Test(t, func(t *testing.T) {
			r := rand.New(rand.NewPCG(seed, 7))
			w := &world{newFake(3), new(fakeNotebook)}
			did := new(diary)
			external, want := uint64(0), 3
			var notes atomic.Int32
			process := func(plan Plan, chaotic, lives, restores time.Duration, orders bool) {
				notes.Add(1)
				h := &chaos{w: w, notes: &notes, rand: r, until: time.Now().Add(chaotic), did: did}
				external += h.process(t, plan, lives, restores, orders)
			}
			others := seed%3 == 0
			if others {
				want = 20 // is never ours, and neither plan is allowed from there
				time.AfterFunc(time.Duration(r.IntN(20_000))*ms, func() {
					did.count.Lock()
					defer did.count.Unlock()
					w.apply(want)
				})
			}
			plan := plans[names[seed%uint64(len(names))]]
			for range 1 + r.IntN(3) { // some are killed, some end well
				lives := time.Duration(r.IntN(20_000)) * ms
				process(plan, time.Minute, lives, time.Duration(1+r.IntN(2000))*ms, !others && seed%2 == 0)
			}
			time.Sleep(20 * second) // until everybody has done what they would
			plan.Hours = never()
			process(plan, 5*second, time.Minute, time.Minute, false)
			if n := w.book.held(); w.count() != want || n.Held || external > 0 && !others {
				t.Errorf("seed %d: %d replicas, want %d; %+v, %d changes by others", seed, w.count(), want, n, external)
				for _, line := range did.lines {
					t.Log(line)
				}
			}
		})
		if t.Failed() {
			return
		}
	}
}
