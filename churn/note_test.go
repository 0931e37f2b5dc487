package churn

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// noted returns a fake whose calls, and those of the notebook, are written down
// but for Observe.
func noted(replicas int) (f *fakeWorkload, book *fakeNotebook, calls func() string) {
	f, book = newFake(replicas), new(fakeNotebook)
	var all []string
	f.onScale = func(_ context.Context, n int) (bool, error) {
		all = append(all, fmt.Sprintf("scale %d", n))
		return false, nil
	}
	book.onLoad = func(context.Context) error {
		all = append(all, "load")
		return nil
	}
	book.onSave = func(_ context.Context, n Note) (bool, error) {
		all = append(all, fmt.Sprintf("save %s", short(n)))
		return false, nil
	}
	return f, book, func() string { return strings.Join(all, ", ") }
}

// short is a note without its deadline.
func short(n Note) string {
	if !n.Held && n.Original == "" && !n.Paused {
		return "nothing"
	}
	return fmt.Sprintf("{%v %d: %d<-%d %q %v}", n.Held, n.Baseline, n.Set, n.Before, n.Original, n.Paused)
}

// TestNoteIsSavedFirst: before every change the note is read and says what is
// about to be asked for, and it is released when the baseline was seen.
func TestNoteIsSavedFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, book, calls := noted(3)
		b := newBench(t, f, func(o *Options) { o.Notebook = book })
		b.run(t)
		b.at(12 * second)
		// The hold of 10 s, 5 min until it is stuck, and a minute.
		if got := book.held().Deadline.Sub(b.start.Add(10 * second)); got != 6*time.Minute+10*second {
			t.Errorf("the deadline is %v after the step", got)
		}
		if err := b.stop(); err != nil {
			t.Error(err)
		}
		want := `load, ` +
			`load, save {true 3: 4<-3 "" false}, scale 4, ` +
			`load, save {true 3: 2<-4 "" false}, scale 2, ` +
			`load, save {true 3: 2<-4 "" false}, scale 3, ` +
			`load, save nothing`
		if got := calls(); got != want {
			t.Errorf("called\n%s\nwant\n%s", got, want)
		}
	})
}

// TestNoteIsRenewed before its deadline, as often as needed.
func TestNoteIsRenewed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, book, _ := noted(3)
		b := newBench(t, f, func(o *Options) {
			o.Notebook, o.Poll = book, second
			o.Plan = Plan{Steps: []Step{{Replicas: 4, Hold: time.Hour}, {Replicas: 4, Hold: 10 * time.Hour}}}
		})
		b.run(t)
		for minute := 1; minute < 10*60; minute++ {
			b.at(time.Duration(minute) * time.Minute)
			if n := book.held(); !n.Held || time.Until(n.Deadline) < 2*time.Minute {
				t.Fatalf("after %d min: %+v", minute, n)
			}
		}
		// 66 min when it was scaled, of which half is left at 33 min, when 33 min until
		// the next step are due. From then on it is half of at least 6 min at a time.
		if n := book.saved(); n > 2+600/3 {
			t.Errorf("saved %d times in 10 h", n)
		}
		if n := book.held(); n.Set != 4 || n.Before != 4 {
			t.Errorf("it has been at 4 for hours, and the note is %+v", n)
		}
		if err := b.stop(); err != nil || f.count() != 3 {
			t.Errorf("%d replicas, %v", f.count(), err)
		}
	})
}

// TestWithoutNoteNoStep: what cannot be saved is not done.
func TestWithoutNoteNoStep(t *testing.T) {
	for _, tc := range []struct {
		name   string
		load   bool // fails, else Save does
		done   bool
		err    error
		reason Reason
	}{
		{"cannot be read", true, false, &Error{Unreachable, errors.New("away")}, Unreachable},
		{"cannot be saved", false, false, &Error{Forbidden, errors.New("read-only")}, Forbidden},
		{"may have been saved", false, true, errors.New("gateway timeout"), Other},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f, book := newFake(2), new(fakeNotebook)
				broken := false
				book.onLoad = func(context.Context) error {
					if broken && tc.load {
						return tc.err
					}
					return nil
				}
				book.onSave = func(context.Context, Note) (bool, error) {
					if broken && !tc.load {
						return tc.done, tc.err
					}
					return false, nil
				}
				f.onObserve = func(context.Context) error { // it breaks after the note was taken over
					broken = time.Since(f.start) < 3*second
					return nil
				}
				b := newBench(t, f, func(o *Options) { o.Notebook = book })
				b.run(t)
				b.at(2 * second)
				b.wantScales(t)
				var once [NumReasons]uint64
				once[tc.reason] = 1
				if s := b.snapshot(); s.Errors != once || s.Reason != tc.reason || s.State != Running {
					t.Errorf("%v, reason %v: %s, errors %v", s.State, s.Reason, s.Detail, s.Errors)
				}
				b.wantPhases(t, "0s: settled") // a step that is not taken is no phase
				b.at(8 * second)               // the back-off is at most 3.2 s by now
				if s := b.snapshot(); len(f.scaledTo()) != 1 || s.Reason != NoReason || s.Errors != once {
					t.Errorf("scaled %v, reason %v, errors %v", f.scaledTo(), s.Reason, s.Errors)
				}
				if err := b.stop(); err != nil || f.count() != 2 || book.held().Held {
					t.Errorf("%d replicas, %+v, %v", f.count(), book.held(), err)
				}
			})
		})
	}
}

// TestNoteCannotBeReadAtFirst: it may hold a baseline, so nothing is done.
func TestNoteCannotBeReadAtFirst(t *testing.T) {
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
		b.at(20 * second)
		s := b.snapshot()
		if s.State != Paused || s.Reason != Unreachable || s.Errors != ([NumReasons]uint64{Unreachable: 1}) || s.Desired != 4 {
			t.Errorf("%+v", s)
		}
		err := b.stop()
		if want := `beginning churn "shop": reading the note: unreachable: away`; err == nil || err.Error() != want {
			t.Errorf("got %v, want %s", err, want)
		}
		b.wantScales(t)
		b.run(t)
		down.Store(false)
		b.at(21 * second)
		if f.count() != 2 || book.held().Held {
			t.Errorf("%d replicas, %+v", f.count(), book.held())
		}
		if err := b.stop(); err != nil || f.count() != 2 {
			t.Errorf("%d replicas, %v", f.count(), err)
		}
	})
}

// TestRestoreWithoutNotebook: that the note cannot be kept any more does not
// keep the baseline from being put back, where nobody else may write it.
func TestRestoreWithoutNotebook(t *testing.T) {
	for _, elected := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			f, book := newFake(2), new(fakeNotebook)
			full := false
			book.onSave = func(context.Context, Note) (bool, error) {
				if full {
					return false, errors.New("no space left on device")
				}
				return false, nil
			}
			b := newBench(t, f, func(o *Options) {
				o.Notebook = book
				if elected {
					o.Election = new(fakeElection).candidate("a")
				}
			})
			b.run(t)
			b.at(3 * second)
			full = true
			err := b.stop()
			want := `restoring churn "shop" to 2 replicas within 30s: saving the note: no space left on device`
			if err == nil || err.Error() != want {
				t.Errorf("got %v, want %s", err, want)
			}
			replicas := 2
			if elected { // who cannot write the note may have been deposed
				replicas = 4
			}
			if n := book.held(); f.count() != replicas || !n.Held || n.Baseline != 2 {
				t.Errorf("elected %v: %d replicas, want %d; %+v", elected, f.count(), replicas, n)
			}
			if s := b.snapshot(); !s.RestorePending || s.Reason != Other {
				t.Errorf("elected %v: %+v", elected, s)
			}
		})
	}
}

// TestNoStepAtTheEnd: a step that could not be noted is not taken when notes can
// be kept again while the Run ends, and the end does not wait for it.
func TestNoStepAtTheEnd(t *testing.T) {
	for name, again := range map[string]bool{"notes cannot be kept": false, "notes can be kept again": true} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f, book := newFake(2), new(fakeNotebook)
				stopping := false
				book.onSave = func(_ context.Context, n Note) (bool, error) {
					if n.Held && (!stopping || !again) {
						return false, errors.New("no space left on device")
					}
					return false, nil
				}
				b := newBench(t, f, func(o *Options) { o.Notebook = book })
				b.run(t)
				b.at(3 * second)
				stopping = true
				begun := time.Now()
				if err := b.stop(); err != nil || time.Since(begun) > second {
					t.Errorf("it took %v: %v", time.Since(begun), err)
				}
				b.wantScales(t)
				if s := b.snapshot(); book.held().Held || s.RestorePending {
					t.Errorf("%+v, %+v", book.held(), s)
				}
			})
		})
	}
}

// TestNoteOfARestore: a restore notes the two counts between which the workload
// is, whatever could be said of them before.
func TestNoteOfARestore(t *testing.T) {
	for _, tc := range []struct {
		name  string
		full  bool // no step can be noted from 3 s on
		hold  time.Duration
		after time.Duration
		want  Note
	}{
		// At 10 s the step from 4 to 3 is noted in vain, and not taken.
		{"the next step could not be noted", true, 10 * second, 10*second + 10*ms, Note{Held: true, Baseline: 2, Set: 2, Before: 4}},
		// The deadline is an hour and StuckAfter and a minute away, and renewed in
		// the middle of that: the note says 4 and 4 from there on.
		{"the note was renewed", false, time.Hour, 59 * time.Minute, Note{Held: true, Baseline: 2, Set: 2, Before: 4}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f, book := newFake(2), new(fakeNotebook)
				var noted []Note
				stopping := false
				book.onSave = func(_ context.Context, n Note) (bool, error) {
					if stopping && n.Held {
						noted = append(noted, n)
					}
					if tc.full && !stopping && time.Since(f.start) > 3*second {
						return false, errors.New("no space left on device")
					}
					return false, nil
				}
				b := newBench(t, f, func(o *Options) {
					o.Notebook = book
					o.Plan.Steps = []Step{{Replicas: 4, Hold: tc.hold}, {Replicas: 3, Hold: tc.hold}}
				})
				b.run(t)
				b.at(tc.after)
				stopping = true
				if err := b.stop(); err != nil || f.count() != 2 {
					t.Errorf("%d replicas, %v", f.count(), err)
				}
				if len(noted) == 0 {
					t.Fatal("nothing was noted before the baseline was put back")
				}
				got := noted[0]
				got.Deadline = time.Time{}
				if got != tc.want {
					t.Errorf("noted %+v, want %+v", got, tc.want)
				}
			})
		})
	}
}

// TestForeignNote: a baseline that somebody else has noted while we churn is
// not overwritten, but restored.
func TestForeignNote(t *testing.T) {
	for _, tc := range []struct {
		name   string
		n      Note
		stop   bool // in between, else there is another step
		keeper bool
		want   int
	}{
		{"before a step", Note{Held: true, Baseline: 7, Set: 4, Before: 7}, false, false, 7},
		{"before a restore", Note{Held: true, Baseline: 7, Set: 4, Before: 7}, true, false, 7},
		{"of another original", Note{Held: true, Baseline: 2, Set: 4, Before: 2, Original: "7 servers"}, false, true, 7},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f, book := newFake(2), new(fakeNotebook)
				book.onSave = func(_ context.Context, n Note) (bool, error) {
					if was := book.held(); n.Held && was.Held && (n.Baseline != was.Baseline || n.Original != was.Original) {
						t.Errorf("%v was overwritten by %v", short(was), short(n))
					}
					return false, nil
				}
				b := newBench(t, f, func(o *Options) {
					o.Notebook, o.Plan.Hours = book, &Hours{From: 0, To: 60}
					if tc.keeper {
						o.Workload = fakeKeeper{f, new([]string)}
					}
				})
				b.run(t)
				b.at(5 * second)
				book.replace(tc.n)
				if !tc.stop {
					b.at(10*second + 500*ms)
					if s := b.snapshot(); f.count() != tc.want || book.held().Held || s.Errors != ([NumReasons]uint64{Conflict: 1}) {
						t.Errorf("%d replicas, %+v, errors %v", f.count(), book.held(), s.Errors)
					}
				}
				if err := b.stop(); err != nil || f.count() != tc.want || book.held().Held {
					t.Errorf("at the end: %d replicas, %+v, %v", f.count(), book.held(), err)
				}
			})
		})
	}
}

// TestLateCall: a call whose outcome was left open takes effect when the
// baseline is there already, in the process that made it or in the next one.
func TestLateCall(t *testing.T) {
	for _, tc := range []struct {
		name  string
		late  time.Duration // after the call
		crash bool
	}{
		{"at once", 20 * ms, false},
		{"after a second", second, false},
		{"after a second, and a crash", second, true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f, book := newFake(3), new(fakeNotebook)
				f.onScale = func(_ context.Context, replicas int) (bool, error) {
					if replicas == 2 {
						time.AfterFunc(tc.late, func() { f.set(2) })
						return false, errors.New("gateway timeout")
					}
					return false, nil
				}
				b := newBench(t, f, func(o *Options) { o.Notebook, o.Plan.Steps = book, o.Plan.Steps[1:] })
				b.run(t)
				b.at(10 * ms)
				if tc.crash { // it sees nothing more, and does nothing
					b.onObserve = func(context.Context) error { return errDead }
					left := book.held()
					_ = b.stop()
					book.replace(left)
					f.onObserve = nil
					b = newBench(t, f, func(o *Options) { o.Notebook, o.Plan.Hours = book, never() })
					b.run(t)
					time.Sleep(10 * second)
				}
				if err := b.stop(); err != nil || f.count() != 3 || book.held().Held {
					t.Errorf("%d replicas, %+v, %v", f.count(), book.held(), err)
				}
				time.Sleep(time.Minute)
				if f.count() != 3 {
					t.Errorf("%d replicas a minute later", f.count())
				}
			})
		})
	}
}

// TestCrashInARestore: a step of the plan whose outcome is open takes effect
// after the process that was about to put the baseline back has died.
func TestCrashInARestore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, book := newFake(3), new(fakeNotebook)
		f.onScale = func(_ context.Context, replicas int) (bool, error) {
			switch replicas {
			case 2: // hangs in the server
				return false, errors.New("gateway timeout")
			case 3:
				return false, &Error{Unreachable, errors.New("away")}
			}
			return false, nil
		}
		b := newBench(t, f, func(o *Options) { o.Notebook, o.RestoreWithin = book, 100*ms })
		b.run(t)
		b.at(10*second + 10*ms)
		if err := b.stop(); err == nil || !book.held().Held || f.count() != 4 {
			t.Errorf("%d replicas, %+v, %v", f.count(), book.held(), err)
		}
		f.onScale = nil
		f.set(2)
		b = newBench(t, f, func(o *Options) { o.Notebook, o.Plan.Hours = book, never() })
		b.run(t)
		time.Sleep(10 * second)
		if err := b.stop(); err != nil || f.count() != 3 || book.held().Held {
			t.Errorf("%d replicas, %+v, %v", f.count(), book.held(), err)
		}
	})
}

// TestExternalChangeIsNotTakenOver: what was left is somebody else's by now.
func TestExternalChangeIsNotTakenOver(t *testing.T) {
	for _, desired := range []int{0, 1, 5, 9} {
		synctest.Test(t, func(t *testing.T) {
			f, book := newFake(desired), &fakeNotebook{note: Note{Held: true, Baseline: 3, Set: 2, Before: 4}}
			b := newBench(t, f, func(o *Options) { o.Notebook = book })
			b.run(t)
			b.at(time.Minute)
			s := b.snapshot()
			if s.State != Stopped || s.Reason != ExternalChange || s.Errors != ([NumReasons]uint64{ExternalChange: 1}) || s.RestorePending || s.Baseline != 3 {
				t.Errorf("%+v", s)
			}
			if err := b.stop(); err != nil || f.count() != desired || book.held() != (Note{}) {
				t.Errorf("%d replicas, %+v, %v", f.count(), book.held(), err)
			}
			b.wantScales(t)
		})
	}
}

// TestReleaseIsTriedAgain, also after the workload was left alone.
func TestReleaseIsTriedAgain(t *testing.T) {
	for _, external := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			f, book := newFake(2), new(fakeNotebook)
			fails := 3
			book.onSave = func(_ context.Context, n Note) (bool, error) {
				if fails--; !n.Held && fails > 0 {
					return false, &Error{Unreachable, errors.New("away")}
				}
				return false, nil
			}
			b := newBench(t, f, func(o *Options) { o.Notebook = book })
			b.run(t)
			b.at(second)
			fails = 3
			if external {
				f.set(5)
				b.at(2 * second)
				if s := b.snapshot(); s.State != Stopped || s.Reason != ExternalChange || book.held().Held {
					t.Errorf("%+v, %+v", s, book.held())
				}
			}
			if err := b.stop(); err != nil || book.held().Held {
				t.Errorf("%+v, %v", book.held(), err)
			}
			if s := b.snapshot(); s.Errors[Unreachable] != 1 || s.RestorePending {
				t.Errorf("%+v", s)
			}
			if want := map[bool]int{false: 2, true: 5}[external]; f.count() != want {
				t.Errorf("%d replicas, want %d", f.count(), want)
			}
		})
	}
}

// TestEndBeforeTheNoteIsReleased of a workload that was left alone: it still is.
func TestEndBeforeTheNoteIsReleased(t *testing.T) {
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
		f.set(5)
		b.at(4 * second)
		b.cancel()
		b.at(10 * second)
		full.Store(false)
		if err := <-b.done; err != nil || f.count() != 5 || book.held() != (Note{}) {
			t.Errorf("%d replicas, %+v, %v", f.count(), book.held(), err)
		}
		if s := b.snapshot(); s.Errors != ([NumReasons]uint64{ExternalChange: 1, Unreachable: 1}) || s.Reason != ExternalChange {
			t.Errorf("%+v", s)
		}
	})
}

// TestNoteOfNothing: a note that was saved, and not followed by a call, is
// released and restores nothing.
func TestNoteOfNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, book, calls := noted(2)
		book.note = Note{Held: true, Baseline: 2, Set: 4, Before: 2}
		b := newBench(t, f, func(o *Options) { o.Notebook, o.Plan.Hours = book, never() })
		b.run(t)
		b.at(2*second - ms)
		if !book.held().Held || !b.snapshot().RestorePending {
			t.Error("it was released although the call may be on its way")
		}
		b.at(2*second + 100*ms)
		if book.held().Held || b.snapshot().RestorePending {
			t.Error("it was not released")
		}
		if err := b.stop(); err != nil || calls() != "load, load, save nothing" {
			t.Errorf("called %s, %v", calls(), err)
		}
		if !slices.Equal(b.phases, []string{"0s: settled"}) {
			t.Errorf("phases %v", b.phases)
		}
	})
}
