package churn

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"
)

var errDead = errors.New("this process is dead")

// world is a workload and a note that outlive processes.
type world struct {
	*fakeWorkload
	book *fakeNotebook
}

// mortal is a process's way to the world. It dies with a call: from then on
// nothing that it does reaches the world.
type mortal struct {
	w     *world
	dies  int  // with the call of this number, from 1; 0: it does not
	done  bool // that call takes effect
	calls int
	die   context.CancelFunc
	log   []string // what had an effect
}

// call reports whether a call takes effect, and the error that it returns.
func (m *mortal) call() (effect bool, err error) {
	m.calls++
	switch {
	case m.dies == 0 || m.calls < m.dies:
		return true, nil
	case m.calls > m.dies:
		return false, errDead
	}
	m.die()
	return m.done, errDead
}

func (m *mortal) do(what string, effect func()) error {
	does, err := m.call()
	if does {
		effect()
		m.log = append(m.log, what)
	}
	return err
}

func (m *mortal) Scale(_ context.Context, replicas int) error {
	return m.do(fmt.Sprintf("scale %d", replicas), func() { m.w.apply(replicas) })
}

func (m *mortal) Kill(_ context.Context, n int) error {
	return m.do(fmt.Sprintf("kill %d", n), func() { m.w.apply(m.w.count() - n) })
}

func (m *mortal) Observe(ctx context.Context) (Observation, error) {
	if does, err := m.call(); err != nil || !does {
		return Observation{}, err
	}
	return m.w.Observe(ctx)
}

func (m *mortal) Load(context.Context) (Note, error) {
	if does, err := m.call(); err != nil || !does {
		return Note{}, err
	}
	return m.w.book.held(), nil
}

func (m *mortal) Save(_ context.Context, n Note) error {
	return m.do(fmt.Sprintf("save %v %d", n.Held, n.Baseline), func() { m.w.book.put(n) })
}

// live runs a process of a plan until it dies, or for a while. Its workload is
// what kind makes of its way to the world.
func live(t *testing.T, m *mortal, plan Plan, kind func(*mortal) Workload) Snapshot {
	t.Helper()
	lasts := 20 * second // more than the plan
	if plan.Hours != nil {
		lasts = 6 * second // more than a restore
	}
	ctx, cancel := context.WithTimeout(t.Context(), lasts)
	defer cancel()
	m.die = cancel
	c, err := New(Options{
		Name: "shop", Plan: plan, Workload: kind(m), Notebook: m,
		Poll: second, RestoreWithin: second,
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Run(ctx); (err != nil) != (m.dies > 0 && m.dies <= m.calls && errors.Is(err, errDead)) {
		t.Errorf("the process that dies with call %d of %d ended with %v", m.dies, m.calls, err)
	}
	var s Snapshot
	c.Snapshot(&s)
	return s
}

// never are hours in which nothing is churned: a process restores what there
// is to restore.
func never() *Hours {
	return &Hours{From: 0, To: 1, Days: []time.Weekday{time.Wednesday}} // the time of a bubble begins on a Saturday
}

// everyDeath calls f for each way to die within a number of calls.
func everyDeath(calls int, f func(dies int, done bool)) {
	for dies := 1; dies <= calls; dies++ {
		f(dies, false)
		f(dies, true)
	}
}

// crashPlans all begin with a baseline of 3.
func crashPlans() map[string]Plan {
	hold := 2 * second
	return map[string]Plan{
		"three steps":        {MaxCycles: 1, Steps: []Step{{Replicas: 5, Hold: hold}, {Replicas: 2, Hold: hold}, {Replicas: 4, Hold: hold}}},
		"down first":         {MaxCycles: 1, Steps: []Step{{Replicas: 2, Hold: hold}, {Replicas: 5, Hold: hold}, {Replicas: 6, Hold: hold}}},
		"by the baseline":    {MaxCycles: 1, Steps: []Step{{Replicas: 4, Hold: hold}, {Replicas: 3, Hold: hold}, {Replicas: 2, Hold: hold}}},
		"with a kill":        {MaxCycles: 1, Steps: []Step{{Replicas: 5, Hold: hold}, {Kill: 3, Hold: hold}, {Replicas: 4, Hold: hold}}},
		"a kill to the base": {MaxCycles: 1, Steps: []Step{{Replicas: 5, Hold: hold}, {Kill: 2, Hold: hold}, {Kill: 1, Hold: hold}}},
	}
}

func asIs(m *mortal) Workload { return m }

// restored checks what a process that was to restore has left and done.
func restored(t *testing.T, name string, w *world, m *mortal, s Snapshot) {
	t.Helper()
	if w.count() != 3 || w.book.held().Held {
		t.Errorf("%s: %d replicas, note %+v; did %v", name, w.count(), w.book.held(), m.log)
	}
	scales := 0
	for _, did := range m.log {
		if did == "scale 3" {
			scales++
		} else if !slices.Contains([]string{"save true 3", "save false 0"}, did) {
			t.Errorf("%s: it did %v", name, m.log)
		}
	}
	if scales > 1 || s.Errors != ([NumReasons]uint64{}) || s.RestorePending {
		t.Errorf("%s: it did %v, errors %v", name, m.log, s.Errors)
	}
}

// TestCrashAtAnyCall: whenever a process dies, and whether the call that it dies
// with is done or not, the next one restores the baseline and nothing else.
// Should that die as well, the one after it does.
func TestCrashAtAnyCall(t *testing.T) {
	for name, plan := range crashPlans() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			whole := new(mortal)
			run := func(whole *mortal, f func(t *testing.T, w *world)) {
				synctest.Test(t, func(t *testing.T) {
					w := &world{newFake(3), new(fakeNotebook)}
					whole.w = w
					live(t, whole, plan, asIs)
					f(t, w)
				})
			}
			run(whole, func(t *testing.T, w *world) {
				if w.count() != 3 || w.book.held().Held {
					t.Errorf("without a crash: %d replicas, note %+v", w.count(), w.book.held())
				}
			})
			plan2 := plan
			plan2.Hours = never()
			everyDeath(whole.calls, func(dies int, done bool) {
				second := 0
				run(&mortal{dies: dies, done: done}, func(t *testing.T, w *world) {
					m := &mortal{w: w}
					restored(t, fmt.Sprintf("died with %d, done %v", dies, done), w, m, live(t, m, plan2, asIs))
					second = min(m.calls, 12) // what follows is observing alone
				})
				everyDeath(second, func(dies2 int, done2 bool) {
					run(&mortal{dies: dies, done: done}, func(t *testing.T, w *world) {
						live(t, &mortal{w: w, dies: dies2, done: done2}, plan2, asIs)
						m := &mortal{w: w}
						restored(t, fmt.Sprintf("died with %d, done %v, then %d, %v", dies, done, dies2, done2), w, m, live(t, m, plan2, asIs))
					})
				})
			})
		})
	}
}
