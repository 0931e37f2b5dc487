package churn

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// fakeKeeper keeps its count as its original state.
type fakeKeeper struct {
	*fakeWorkload
	calls *[]string
}

func (k fakeKeeper) Keep(context.Context) (string, error) {
	*k.calls = append(*k.calls, "keep")
	return fmt.Sprintf("%d servers", k.count()), nil
}

func (k fakeKeeper) Restore(_ context.Context, original string) error {
	*k.calls = append(*k.calls, "restore "+original)
	n := 0
	if _, err := fmt.Sscanf(original, "%d", &n); err == nil {
		k.set(n)
	}
	return nil
}

// TestKeeper is asked for its state before the first change after each restore,
// and gets it back.
func TestKeeper(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, book := newFake(3), new(fakeNotebook)
		var calls []string
		b := newBench(t, f, func(o *Options) {
			o.Workload, o.Notebook = fakeKeeper{f, &calls}, book
			book.onSave = func(_ context.Context, n Note) (bool, error) {
				calls = append(calls, short(n))
				return false, nil
			}
		})
		b.run(t)
		b.at(12 * second)
		if err := errors.Join(b.cycle.Pause(t.Context())); err != nil {
			t.Error(err)
		}
		b.at(13 * second)
		if err := errors.Join(b.cycle.Resume(t.Context())); err != nil {
			t.Error(err)
		}
		b.at(20 * second)
		if err := b.stop(); err != nil || f.count() != 3 {
			t.Errorf("%d replicas, %v", f.count(), err)
		}
		want := []string{
			`keep`, `{true 3: 4<-3 "3 servers" false}`, `{true 3: 2<-4 "3 servers" false}`,
			`{true 3: 2<-4 "3 servers" true}`, `{true 3: 2<-4 "3 servers" true}`, `restore 3 servers`, `{false 0: 0<-0 "" true}`,
			`nothing`,
			`keep`, `{true 3: 4<-3 "3 servers" false}`,
			`{true 3: 4<-3 "3 servers" false}`, `restore 3 servers`, `nothing`,
		}
		if !slices.Equal(calls, want) {
			t.Errorf("called\n%s\nwant\n%s", strings.Join(calls, "\n"), strings.Join(want, "\n"))
		}
		b.wantScales(t, scaled{0, 4}, scaled{10 * second, 2}, scaled{17050 * ms, 4}) // restored at 12 s, seen 50 ms later, settled
	})
}

// TestKeeperCannotKeep: what cannot be put back is not changed.
func TestKeeperCannotKeep(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, book := newFake(3), new(fakeNotebook)
		k := forgetful{fakeKeeper{f, new([]string)}}
		b := newBench(t, f, func(o *Options) { o.Workload, o.Notebook = k, book })
		b.run(t)
		b.at(10 * second)
		s := b.snapshot()
		if s.Reason != Unreachable || s.Detail != "reading the original state: unreachable: away" || s.Errors != ([NumReasons]uint64{Unreachable: 1}) || book.saved() != 0 {
			t.Errorf("%+v, saved %d notes", s, book.saved())
		}
		if err := b.stop(); err != nil {
			t.Error(err)
		}
		b.wantScales(t)
	})
}

// forgetful is a Keeper that cannot say its state.
type forgetful struct{ fakeKeeper }

func (forgetful) Keep(context.Context) (string, error) {
	return "", &Error{Unreachable, errors.New("away")}
}

// TestKeeperJudges what is put back: another count than the baseline is not
// somebody's to be blamed, and not tried again.
func TestKeeperJudges(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, book, all := newFake(3), new(fakeNotebook), new(told)
		var calls []string
		b := newBench(t, f, func(o *Options) {
			o.Workload, o.Notebook, o.Announce = stubborn{fakeKeeper{f, &calls}}, book, all.announce
		})
		b.run(t)
		b.at(second)
		if err := b.cycle.Pause(t.Context()); err != nil {
			t.Error(err)
		}
		b.at(20 * second)
		s := b.snapshot()
		if s.State != Paused || s.Errors != ([NumReasons]uint64{}) || s.RestorePending || book.held() != (Note{Paused: true}) || f.count() != 1 {
			t.Errorf("%d replicas, %+v, %+v", f.count(), book.held(), s)
		}
		if got := strings.Join(calls, ", "); got != "keep, restore 3 servers" {
			t.Errorf("called %s", got)
		}
		want := "What was changed is put back; with what others have changed there are 1 replicas, where the baseline was 3."
		if got := all.messages(); !strings.HasSuffix(got, want) {
			t.Errorf("told %s", got)
		}
		if err := b.stop(); err != nil || f.count() != 1 {
			t.Errorf("%d replicas, %v", f.count(), err)
		}
	})
}

// stubborn is a Keeper of which somebody has taken two servers away.
type stubborn struct{ fakeKeeper }

func (s stubborn) Restore(ctx context.Context, original string) error {
	err := s.fakeKeeper.Restore(ctx, original)
	s.set(1)
	return err
}

// rack is servers that are scaled one after the other. A call that its process
// dies with may have been done for some of them.
type rack struct {
	*mortal
	ready []bool
	half  bool // of the call that it dies with
}

func (r *rack) set(want []bool, most int) {
	for i := range r.ready {
		if r.ready[i] != want[i] {
			if most--; most < 0 {
				return
			}
			r.ready[i] = want[i]
		}
	}
}

func (r *rack) count() (n int) {
	for _, ready := range r.ready {
		if ready {
			n++
		}
	}
	return n
}

// scale is the servers that are ready when as many are to be.
func (r *rack) scale(replicas int) []bool {
	want := slices.Clone(r.ready)
	for i := 0; i < len(want) && r.count() < replicas; i++ {
		if !want[i] {
			want[i] = true
			replicas--
		}
	}
	for i, n := len(want)-1, r.count(); i >= 0 && n > replicas; i-- {
		if want[i] {
			want[i] = false
			n--
		}
	}
	return want
}

func (r *rack) change(what string, want []bool) error {
	most := len(r.ready)
	if r.half && r.calls+1 == r.dies {
		most = 1
	}
	return r.do(what, func() { r.set(want, most) })
}

func (r *rack) Scale(_ context.Context, replicas int) error {
	return r.change(fmt.Sprint("scale ", replicas), r.scale(replicas))
}

func (r *rack) Kill(_ context.Context, n int) error {
	return r.change(fmt.Sprint("kill ", n), r.scale(r.count()-n))
}

func (r *rack) Keep(context.Context) (string, error) {
	if does, err := r.call(); err != nil || !does {
		return "", err
	}
	return fmt.Sprint(r.ready), nil
}

func (r *rack) Restore(_ context.Context, original string) error {
	var want []bool
	for _, word := range strings.Fields(strings.Trim(original, "[]")) {
		want = append(want, word == "true")
	}
	return r.change("restore", want)
}

func (r *rack) Observe(context.Context) (Observation, error) {
	if does, err := r.call(); err != nil || !does {
		return Observation{}, err
	}
	return all(r.count()), nil
}

// TestCrashOfAKeeper at any call, done, not done, or done for one server alone:
// the next process puts every server back as it was.
func TestCrashOfAKeeper(t *testing.T) {
	original := []bool{true, false, true, false, true, false}
	for name, plan := range crashPlans() {
		t.Run(name, func(t *testing.T) {
			calls := 0
			run := func(t *testing.T, dies int, done, half bool) {
				synctest.Test(t, func(t *testing.T) {
					w := &world{newFake(3), new(fakeNotebook)}
					ready := slices.Clone(original)
					m := &mortal{w: w, dies: dies, done: done}
					live(t, m, plan, func(m *mortal) Workload { return &rack{m, ready, half} })
					if dies == 0 {
						calls = m.calls
					}
					plan2 := plan
					plan2.Hours = never()
					m2 := &mortal{w: w}
					s := live(t, m2, plan2, func(m *mortal) Workload { return &rack{m, ready, false} })
					if !slices.Equal(ready, original) || w.book.held().Held || s.Errors != ([NumReasons]uint64{}) {
						t.Errorf("died with %d, done %v, half %v: %v, note %+v, errors %v; it did %v", dies, done, half, ready, w.book.held(), s.Errors, m2.log)
					}
				})
			}
			run(t, 0, false, false)
			everyDeath(calls, func(dies int, done bool) {
				run(t, dies, done, false)
				if done {
					run(t, dies, true, true)
				}
			})
		})
	}
}

// gradual is a workload whose calls may be done in part.
type gradual struct {
	*mortal
	half bool // of the call that it dies with
}

func (gradual) Gradual() {}

func (g gradual) Scale(ctx context.Context, replicas int) error {
	if now := g.w.count(); g.half && g.calls+1 == g.dies && g.done {
		return g.do("some of a scale", func() { g.w.apply((now + replicas) / 2) })
	}
	return g.mortal.Scale(ctx, replicas)
}

// TestCrashInTheMiddle of a call that was done in part.
func TestCrashInTheMiddle(t *testing.T) {
	plan := Plan{MaxCycles: 1, Steps: steps(to(6), to(2), to(5))} // halves are 4, 4 and 3
	calls := 0
	run := func(dies int, half bool) {
		synctest.Test(t, func(t *testing.T) {
			w := &world{newFake(3), new(fakeNotebook)}
			m := &mortal{w: w, dies: dies, done: true}
			live(t, m, plan, func(m *mortal) Workload { return gradual{m, half} })
			if dies == 0 {
				calls = m.calls
			}
			plan2 := plan
			plan2.Hours = never()
			m2 := &mortal{w: w}
			restored(t, fmt.Sprintf("died with %d, half %v", dies, half), w, m2, live(t, m2, plan2, func(m *mortal) Workload { return gradual{m, false} }))
		})
	}
	run(0, false)
	everyDeath(calls, run)
}

// TestDoneInPart: each call fails, and does a third of what it was asked for.
// The counts on the way are ours, as long as the workload says that there are such.
func TestDoneInPart(t *testing.T) {
	for _, slow := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			f := newFake(6)
			f.onScale = func(_ context.Context, replicas int) (bool, error) {
				if replicas != 3 {
					return false, nil
				}
				time.AfterFunc(60*ms, func() { f.set(max(3, f.count()-1)) })
				return false, errors.New("killed after its time")
			}
			b := newBench(t, f, func(o *Options) {
				o.Plan.Steps = []Step{{Replicas: 3, Hold: 10 * second}, {Replicas: 6, Hold: 10 * second}}
				if slow {
					o.Workload = slowly{f}
				}
			})
			b.run(t)
			b.at(9 * second)
			s := b.snapshot()
			if want := map[bool]State{true: Running, false: Stopped}[slow]; s.State != want || slow && (s.Steps[Down] != 1 || f.count() != 3) {
				t.Errorf("gradual %v: %d replicas, %+v", slow, f.count(), s)
			}
			if err := b.stop(); err != nil || slow && f.count() != 6 {
				t.Errorf("%d replicas, %v", f.count(), err)
			}
		})
	}
}

// slowly is a workload of which a call may be done in part.
type slowly struct{ *fakeWorkload }

func (slowly) Gradual() {}
