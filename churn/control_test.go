package churn

import (
	"context"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// told collects what was announced.
type told struct {
	mu  sync.Mutex
	all []Announcement
}

func (a *told) announce(one Announcement) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.all = append(a.all, one)
}

// reasons returns what was announced, a warning with a mark of exclamation.
func (a *told) reasons() string {
	a.mu.Lock()
	defer a.mu.Unlock()
	var s []string
	for _, one := range a.all {
		reason := one.Reason
		if one.Warning {
			reason += "!"
		}
		s = append(s, reason)
	}
	return strings.Join(s, " ")
}

func (a *told) messages() string {
	a.mu.Lock()
	defer a.mu.Unlock()
	var s []string
	for _, one := range a.all {
		s = append(s, one.Message)
	}
	return strings.Join(s, "\n")
}

// TestPauseAndResume in every mode in which a churn can be.
func TestPauseAndResume(t *testing.T) {
	for _, tc := range []struct {
		name    string
		change  func(*fakeWorkload, *Options)
		at      time.Duration // of the pause; all else is a second later each
		scales  []scaled      // until it is resumed
		resumed int           // replicas a second after that
		told    string
	}{
		{
			"while scaling", nil, 500 * ms,
			[]scaled{{0, 4}, {500 * ms, 2}}, 2, // it lets that settle first, for 1 + 5 s
			"ScaledUp Paused Restored",
		},
		{
			"while settled", nil, 8 * second,
			[]scaled{{0, 4}, {8 * second, 2}}, 2,
			"ScaledUp Paused Restored",
		},
		{
			"at the baseline", func(_ *fakeWorkload, o *Options) {
				o.Plan.Steps = []Step{{Replicas: 2, Hold: time.Minute}, {Replicas: 4, Hold: time.Minute}}
			}, 8 * second,
			nil, 2, "Paused Resumed",
		},
		{
			"outside of its hours", func(_ *fakeWorkload, o *Options) { o.Plan.Hours = never() }, 8 * second,
			nil, 2, "Paused Paused Paused", // and again when it is resumed
		},
		{
			"when the plan is refused", func(_ *fakeWorkload, o *Options) { o.Plan.Steps[0].Replicas = 9 }, 8 * second,
			nil, 2, "Refused! Paused Refused!",
		},
		{
			"when all cycles are done", func(_ *fakeWorkload, o *Options) {
				o.Plan = Plan{MaxCycles: 1, Steps: []Step{{Replicas: 4, Hold: second}}}
			}, 20 * second,
			[]scaled{{0, 4}, {6 * second, 2}}, 4,
			"ScaledUp Stopped Restored Paused Resumed ScaledUp",
		},
		{
			"after somebody else's change", func(f *fakeWorkload, _ *Options) {
				time.AfterFunc(7*second, func() { f.set(3) })
			}, 20 * second,
			[]scaled{{0, 4}}, 4, // from a baseline of 3
			"ScaledUp ExternalChange! Paused Resumed ScaledUp",
		},
		{
			"after it was stuck", func(f *fakeWorkload, o *Options) {
				f.onScale = func(_ context.Context, replicas int) (bool, error) {
					f.breakReplicas(replicas - 2)
					return false, nil
				}
				o.StuckAfter = 20 * second
			}, 40 * second,
			[]scaled{{0, 4}, {20 * second, 2}}, 4,
			"ScaledUp Stuck! Restored Paused Resumed ScaledUp",
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			for _, kept := range []bool{false, true} {
				synctest.Test(t, func(t *testing.T) {
					f, book, all := newFake(2), new(fakeNotebook), new(told)
					f.ready = second
					b := newBench(t, f, func(o *Options) {
						o.Announce = all.announce
						if kept {
							o.Notebook = book
						}
						if tc.change != nil {
							tc.change(f, o)
						}
					})
					b.run(t)
					b.at(tc.at)
					if err := b.cycle.Pause(t.Context()); err != nil {
						t.Error(err)
					}
					if s := b.snapshot(); !s.PausedByHand || s.State != Paused || s.Detail != "paused by hand" || s.Reason != NoReason {
						t.Errorf("%v, reason %v: %s, by hand %v", s.State, s.Reason, s.Detail, s.PausedByHand)
					}
					b.at(tc.at + second)
					b.wantScales(t, tc.scales...)
					s := b.snapshot()
					if n := book.held(); s.RestorePending || n.Held || n.Paused != kept || !s.NextStep.IsZero() {
						t.Errorf("%+v, %+v", s, n)
					}
					if err := b.cycle.Resume(t.Context()); err != nil {
						t.Error(err)
					}
					b.at(tc.at + 2*second)
					if s := b.snapshot(); f.count() != tc.resumed || s.PausedByHand || book.held().Paused {
						t.Errorf("resumed: %d replicas, want %d; %+v", f.count(), tc.resumed, s)
					}
					if got := all.reasons(); got != tc.told {
						t.Errorf("told %s\nwant %s", got, tc.told)
					}
					if err := b.stop(); err != nil || book.held() != (Note{}) {
						t.Errorf("%+v, %v", book.held(), err)
					}
				})
			}
		})
	}
}

// TestPauseOutlivesTheProcess, and so does its end.
func TestPauseOutlivesTheProcess(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, book := newFake(2), new(fakeNotebook)
		next := func() *bench {
			b := newBench(t, f, func(o *Options) { o.Notebook = book })
			b.run(t)
			time.Sleep(second)
			synctest.Wait()
			return b
		}
		a := next()
		if err := errors.Join(a.cycle.Pause(t.Context()), a.stop()); err != nil || f.count() != 2 {
			t.Errorf("%d replicas, %v", f.count(), err)
		}
		b := next()
		if s := b.snapshot(); s.State != Paused || !s.PausedByHand || s.Detail != "paused by hand" || len(f.scaledTo()) != 2 {
			t.Errorf("%+v, scaled %v", s, f.scaledTo())
		}
		if err := errors.Join(b.cycle.Resume(t.Context()), b.stop()); err != nil {
			t.Error(err)
		}
		c := next()
		if s := c.snapshot(); s.State != Running || s.PausedByHand {
			t.Errorf("%+v", s)
		}
		if err := c.stop(); err != nil {
			t.Error(err)
		}
	})
}

// TestPauseCannotBeSaved: it pauses nevertheless, and saves it later.
func TestPauseCannotBeSaved(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, book := newFake(2), new(fakeNotebook)
		b := newBench(t, f, func(o *Options) { o.Notebook, o.Plan.Steps = book, o.Plan.Steps[1:] }) // at the baseline
		b.run(t)
		b.at(second)
		var down atomic.Bool
		down.Store(true)
		book.onSave = func(context.Context, Note) (bool, error) {
			if down.Load() {
				return false, &Error{Unreachable, errors.New("away")}
			}
			return false, nil
		}
		err := b.cycle.Pause(t.Context())
		if want := `pausing churn "shop": it does, but not after a crash: saving the note: unreachable: away`; err == nil || err.Error() != want {
			t.Errorf("got %v, want %s", err, want)
		}
		b.at(20 * second)
		if s := b.snapshot(); s.State != Paused || s.Reason != Unreachable || s.Errors != ([NumReasons]uint64{Unreachable: 1}) || !s.PausedByHand {
			t.Errorf("%+v", s)
		}
		down.Store(false)
		b.at(50 * second)
		if s := b.snapshot(); !book.held().Paused || s.Reason != NoReason || s.State != Paused {
			t.Errorf("%+v, %+v", book.held(), s)
		}
		if err := b.stop(); err != nil || !book.held().Paused {
			t.Errorf("%+v, %v", book.held(), err)
		}
	})
}

// TestRestoreByHand puts the baseline back also where somebody else has changed
// the count, and pauses.
func TestRestoreByHand(t *testing.T) {
	for _, tc := range []struct {
		name   string
		before func(b *bench)
		want   int
		told   string
	}{
		{"while it churns", func(b *bench) {}, 2, "ScaledUp Paused Restored"},
		{"after somebody else's change", func(b *bench) { b.set(7) }, 2, "ScaledUp ExternalChange! Paused Restored"},
		{"to the baseline", func(b *bench) { b.set(2) }, 2, "ScaledUp ExternalChange! Paused Restored"},
		{
			"when it was so before, was restored and then changed", func(b *bench) {
				b.set(7)
				time.Sleep(second)
				_ = b.cycle.Restore(context.Background())
				time.Sleep(second)
				b.set(8)
			}, 8, "ScaledUp ExternalChange! Paused Restored",
		},
		{
			"when it was restored and then changed", func(b *bench) { // that is not ours to undo
				_ = b.cycle.Pause(context.Background())
				time.Sleep(second)
				b.set(7)
			}, 7, "ScaledUp Paused Restored",
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f, book, all := newFake(2), new(fakeNotebook), new(told)
				b := newBench(t, f, func(o *Options) { o.Notebook, o.Announce = book, all.announce })
				b.run(t)
				b.at(3 * second)
				tc.before(b)
				time.Sleep(second)
				if err := b.cycle.Restore(t.Context()); err != nil {
					t.Error(err)
				}
				time.Sleep(second)
				s := b.snapshot()
				if f.count() != tc.want || s.State != Paused || !s.PausedByHand || s.RestorePending || book.held() != (Note{Paused: true}) {
					t.Errorf("%d replicas, want %d; %+v, %+v", f.count(), tc.want, book.held(), s)
				}
				if got := all.reasons(); got != tc.told {
					t.Errorf("told %s\nwant %s", got, tc.told)
				}
				if err := b.stop(); err != nil || f.count() != tc.want {
					t.Errorf("%d replicas, %v", f.count(), err)
				}
			})
		})
	}
}

// TestRestoreByHandIsNotForEver: who scales again after it is left alone again.
func TestRestoreByHandIsNotForEver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, book := newFake(2), new(fakeNotebook)
		b := newBench(t, f, func(o *Options) { o.Notebook = book })
		f.onScale = func(_ context.Context, replicas int) (bool, error) { // an autoscaler
			if replicas == 2 {
				time.AfterFunc(20*ms, func() { f.set(8) })
			}
			return false, nil
		}
		b.run(t)
		b.at(second)
		f.set(7)
		b.at(2 * second)
		if err := b.cycle.Restore(t.Context()); err != nil {
			t.Error(err)
		}
		b.at(10 * second)
		s := b.snapshot()
		if s.State != Stopped || s.Reason != ExternalChange || s.Errors[ExternalChange] != 2 || book.held().Held {
			t.Errorf("%+v, %+v", s, book.held())
		}
		if err := b.stop(); err != nil || f.count() != 8 {
			t.Errorf("%d replicas, %v", f.count(), err)
		}
		b.wantScales(t, scaled{0, 4}, scaled{2 * second, 2})
	})
}

// TestResumeEndsACooldown, and counts cycles from none.
func TestResumeEndsACooldown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake(2)
		f.onScale = fail(1, false, &Error{Refused, errors.New("no")})
		b := newBench(t, f, func(o *Options) {
			o.Guard.Cooldown, o.Plan.MaxCycles = time.Hour, 2
		})
		b.run(t)
		b.at(10 * second)
		if s := b.snapshot(); s.State != Paused || s.Reason != Refused {
			t.Errorf("%+v", s)
		}
		for i, cycles := range []uint64{2, 4} { // of 20 s each
			if err := b.cycle.Resume(t.Context()); err != nil {
				t.Error(err)
			}
			b.at(time.Duration(i+1)*time.Minute - 25*second)
			if s := b.snapshot(); s.State != Running {
				t.Errorf("%+v", s)
			}
			b.at(time.Duration(i+1) * time.Minute)
			if s := b.snapshot(); s.State != Stopped || s.Cycles != cycles {
				t.Errorf("want %d cycles: %+v", cycles, s)
			}
		}
		if err := b.stop(); err != nil {
			t.Error(err)
		}
	})
}

// TestResumeBeforeTheNoteIsReleased waits for that: a fresh baseline is not
// noted over an old one.
func TestResumeBeforeTheNoteIsReleased(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, book := newFake(2), new(fakeNotebook)
		var full atomic.Bool
		book.onSave = func(context.Context, Note) (bool, error) {
			if full.Load() {
				return false, &Error{Unreachable, errors.New("away")}
			}
			return false, nil
		}
		b := newBench(t, f, func(o *Options) { o.Notebook = book })
		b.run(t)
		b.at(3 * second)
		full.Store(true)
		f.set(3)
		b.at(4 * second)
		if err := b.cycle.Resume(t.Context()); err == nil {
			t.Error("it was saved")
		}
		b.at(10 * second)
		if s := b.snapshot(); s.State != Stopped || !book.held().Held || f.count() != 3 {
			t.Errorf("%d replicas, %+v, %+v", f.count(), book.held(), s)
		}
		full.Store(false)
		b.at(40 * second) // the back-off is at most that
		if s := b.snapshot(); s.State != Running || s.Baseline != 3 || book.held().Baseline != 3 || s.Errors[ExternalChange] != 1 || s.Errors[Conflict] != 0 {
			t.Errorf("%+v, %+v", book.held(), s)
		}
		if err := b.stop(); err != nil || f.count() != 3 {
			t.Errorf("%d replicas, %v", f.count(), err)
		}
	})
}

// TestCrashInARestoreByHand: the next process goes on with it.
func TestCrashInARestoreByHand(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, book := newFake(7), new(fakeNotebook)
		b := newBench(t, f, func(o *Options) { o.Notebook, o.RestoreWithin = book, 100*ms })
		book.note = Note{Held: true, Baseline: 2, Set: 4, Before: 2}
		b.run(t)
		b.at(second) // left alone
		f.onScale = func(context.Context, int) (bool, error) { return false, &Error{Unreachable, errDead} }
		if err := b.cycle.Restore(t.Context()); err != nil {
			t.Error(err)
		}
		b.at(2 * second)
		if err := b.stop(); err == nil || f.count() != 7 || !book.held().Held {
			t.Errorf("%d replicas, %+v, %v", f.count(), book.held(), err)
		}
		f.onScale = nil
		b = newBench(t, f, func(o *Options) { o.Notebook = book })
		b.run(t)
		time.Sleep(10 * second)
		if s := b.snapshot(); f.count() != 2 || book.held() != (Note{Paused: true}) || !s.PausedByHand {
			t.Errorf("%d replicas, %+v, %+v", f.count(), book.held(), s)
		}
		if err := b.stop(); err != nil {
			t.Error(err)
		}
	})
}

// TestRestoreByHandIsNoted also over a note that was not yet released.
func TestRestoreByHandIsNoted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, book := newFake(2), new(fakeNotebook)
		var full atomic.Bool
		book.onSave = func(context.Context, Note) (bool, error) {
			if full.Load() {
				return false, &Error{Unreachable, errors.New("away")}
			}
			return false, nil
		}
		b := newBench(t, f, func(o *Options) { o.Notebook, o.Election = book, new(fakeElection).candidate("a") })
		b.run(t)
		b.at(3 * second)
		full.Store(true)
		f.set(7)
		b.at(4 * second)
		full.Store(false)
		f.onScale = func(context.Context, int) (bool, error) { return false, &Error{Unreachable, errors.New("away")} }
		if err := b.cycle.Restore(t.Context()); err != nil {
			t.Error(err)
		}
		b.at(5 * second)
		if n := book.held(); !n.Held || n.Baseline != 2 || n.Set != 7 && n.Before != 7 {
			t.Errorf("who comes next would not take 7 replicas for ours: %+v", n)
		}
		f.onScale = nil
		b.at(40 * second) // the back-off is at most that
		if f.count() != 2 || book.held() != (Note{Paused: true}) {
			t.Errorf("%d replicas, %+v", f.count(), book.held())
		}
		if err := b.stop(); err != nil {
			t.Error(err)
		}
	})
}

// TestControlIsRefused where there is nobody who could do it.
func TestControlIsRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPair(t, 2, nil)
		if err := p.a.cycle.Pause(t.Context()); err == nil || err.Error() != `pausing churn "shop": it does not run` {
			t.Errorf("before it runs: %v", err)
		}
		p.a.run(t)
		p.at(10 * ms)
		p.b.run(t)
		p.at(4 * second)
		err := p.b.cycle.Restore(t.Context())
		elsewhere, ok := errors.AsType[*NotLeadingError](err)
		if !ok || *elsewhere != (NotLeadingError{"shop", "a"}) || err.Error() != `churn "shop": it is "a" that leads; ask that instance` {
			t.Errorf("elsewhere: %v", err)
		}
		if s := p.a.snapshot(); s.State != Running || p.book.held().Paused || p.b.snapshot().PausedByHand {
			t.Errorf("it had an effect: %+v", s)
		}

		// A call that hangs.
		p.onObserve = func(ctx context.Context) error {
			<-ctx.Done()
			return ctx.Err()
		}
		p.at(5 * second)
		ctx, cancel := context.WithTimeout(t.Context(), second)
		defer cancel()
		if err := p.a.cycle.Resume(ctx); !errors.Is(err, context.DeadlineExceeded) || !strings.HasPrefix(err.Error(), `resuming churn "shop": `) {
			t.Errorf("hanging: %v", err)
		}
		p.onObserve = nil

		// While it ends.
		p.at(20 * second)
		p.onScale = func(context.Context, int) (bool, error) { return false, &Error{Unreachable, errors.New("away")} }
		p.a.cancel()
		p.at(25 * second)
		if err := p.a.cycle.Pause(t.Context()); err != nil && err.Error() != `pausing churn "shop": it is about to end` {
			t.Errorf("ending: %v", err)
		}
		p.onScale = nil
		p.publish()
		if err := errors.Join(<-p.a.done, p.b.stop()); err != nil {
			t.Error(err)
		}
		if err := p.a.cycle.Resume(t.Context()); err == nil || err.Error() != `resuming churn "shop": it does not run` {
			t.Errorf("at the end: %v", err)
		}
	})
	if got := (&NotLeadingError{Churn: "shop"}).Error(); got != `churn "shop": no instance is elected at present; try again` {
		t.Error(got)
	}
}

// TestPauseBeforeTheNoteIsRead reads it, or says that it cannot.
func TestPauseBeforeTheNoteIsRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, book := newFake(4), &fakeNotebook{note: Note{Held: true, Baseline: 2, Set: 4, Before: 2}}
		var down atomic.Bool
		down.Store(true)
		book.onLoad = func(context.Context) error {
			if down.Load() {
				return &Error{Unreachable, errors.New("away")}
			}
			return nil
		}
		b := newBench(t, f, func(o *Options) { o.Notebook = book })
		b.run(t)
		b.at(10 * second)
		err := b.cycle.Pause(t.Context())
		if want := `pausing churn "shop": reading the note: unreachable: away`; err == nil || err.Error() != want {
			t.Errorf("got %v, want %s", err, want)
		}
		down.Store(false)
		if err := b.cycle.Pause(t.Context()); err != nil {
			t.Error(err)
		}
		b.at(11 * second)
		if s := b.snapshot(); f.count() != 2 || book.held() != (Note{Paused: true}) || !s.PausedByHand || s.State != Paused {
			t.Errorf("%d replicas, %+v, %+v", f.count(), book.held(), s)
		}
		if err := b.stop(); err != nil {
			t.Error(err)
		}
	})
}

// TestPauseOfADryRun changes nothing, the note neither.
func TestPauseOfADryRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPair(t, 2, func(o *Options) { o.DryRun = true })
		p.a.run(t)
		p.at(second)
		if err := p.a.cycle.Pause(t.Context()); err != nil {
			t.Error(err)
		}
		p.at(30 * second)
		if s := p.a.snapshot(); s.State != Paused || !s.PausedByHand {
			t.Errorf("%+v", s)
		}
		rehearsed := strings.Count(p.a.log.String(), "would scale")
		if err := p.a.cycle.Resume(t.Context()); err != nil {
			t.Error(err)
		}
		p.at(31 * second)
		if s := p.a.snapshot(); s.State != DryRun || rehearsed != 1 || strings.Count(p.a.log.String(), "would scale") != 2 {
			t.Errorf("%+v\n%s", s, p.a.log)
		}
		if err := p.a.stop(); err != nil || p.book.saved() != 0 || len(p.scaledTo()) != 0 {
			t.Errorf("saved %d notes, %v", p.book.saved(), err)
		}
	})
}
