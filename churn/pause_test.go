package churn

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// TestHours: outside of them the baseline is there, and nothing is changed.
func TestHours(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { // from midnight on Saturday 2000-01-01, UTC
		f, all := newFake(2), new(told)
		b := newBench(t, f, func(o *Options) {
			o.Plan = upAndDown(20 * time.Minute)
			o.Plan.Hours = &Hours{From: 60, To: 90} // 01:00 to 01:30
			o.Announce, o.Poll = all.announce, second
		})
		b.run(t)
		b.at(time.Minute)
		s := b.snapshot()
		if s.State != Paused || s.Reason != NoReason || s.Detail != "outside of its active hours, which begin Saturday 01:00 UTC" || s.PausedByHand {
			t.Errorf("%v, %v: %s", s.State, s.Reason, s.Detail)
		}
		if !s.PausedUntil.Equal(b.start.Add(time.Hour)) || !s.NextStep.IsZero() {
			t.Errorf("until %v, next step at %v", s.PausedUntil, s.NextStep)
		}
		b.at(time.Hour + time.Minute)
		s = b.snapshot()
		if s.State != Running || !s.PausedUntil.IsZero() || !s.NextStep.Equal(b.start.Add(80*time.Minute)) || s.Next.Replicas != 2 {
			t.Errorf("%+v", s)
		}
		b.at(82 * time.Minute)
		f.set(2) // as it is
		b.at(91 * time.Minute)
		if s := b.snapshot(); s.State != Paused || !s.PausedUntil.Equal(b.start.Add(25*time.Hour)) || s.Errors != ([NumReasons]uint64{}) {
			t.Errorf("%+v", s)
		}
		f.set(3) // is nobody's business
		b.at(25*time.Hour + time.Minute)
		if s := b.snapshot(); s.State != Running || s.Baseline != 3 {
			t.Errorf("the next day: %+v", s)
		}
		b.wantScales(t, scaled{time.Hour, 4}, scaled{80 * time.Minute, 2}, scaled{25 * time.Hour, 4})
		b.at(25*time.Hour + 30*time.Minute + 2*second) // in the middle of a step
		if f.count() != 3 {
			t.Errorf("%d replicas, want the baseline of 3", f.count())
		}
		if err := b.stop(); err != nil {
			t.Error(err)
		}
		want := "Paused Resumed ScaledUp ScaledDown Paused Restored Resumed ScaledUp ScaledDown Paused Restored"
		if got := all.reasons(); got != want {
			t.Errorf("told %s\nwant %s", got, want)
		}
		if n := strings.Count(b.log.String(), "churn pauses"); n != 3 {
			t.Errorf("%d pauses were logged", n)
		}
	})
}

// TestCooldown: what a step was given up for is over when its time is.
func TestCooldown(t *testing.T) {
	stuck := func(f *fakeWorkload, _ *Options) {
		once := true
		f.onScale = func(_ context.Context, replicas int) (bool, error) {
			f.breakReplicas(0)
			if once && replicas == 4 {
				f.breakReplicas(1)
				once = false
			}
			return false, nil
		}
	}
	refused := func(reason Reason) func(f *fakeWorkload, _ *Options) {
		return func(f *fakeWorkload, _ *Options) {
			f.onScale = fail(1, false, &Error{reason, errors.New("no")})
		}
	}
	for _, tc := range []struct {
		name   string
		set    func(*fakeWorkload, *Options)
		reason Reason
		at     time.Duration // when it pauses
		told   string        // until then
	}{
		{"stuck", stuck, Stuck, 20 * second, "ScaledUp Stuck! Restored"},
		{"refused in a step", refused(Refused), Refused, 0, "Refused!"},
		{"forbidden in a step", refused(Forbidden), Forbidden, 0, "Refused!"},
		{"aborted", func(f *fakeWorkload, o *Options) {
			o.Guard.AbortShare, o.Guard.AbortWindow = 0.1, 10*second
			o.Traffic = func() Traffic {
				all := uint64(time.Since(f.start) / (10 * ms))
				bad := uint64(min(time.Since(f.start), 40*second) / (50 * ms)) // one in five
				return Traffic{Completed: all, Failed: bad}
			}
		}, Aborted, 10 * second, "ScaledUp Aborted! Restored"},
		{"a kill whose outcome is open", func(f *fakeWorkload, o *Options) {
			k := &fakeKiller{fakeWorkload: f, onKill: fail(1, false, errors.New("gateway timeout"))}
			o.Workload, o.Plan.Steps = k, []Step{{Kill: 1, Hold: 10 * second}, {Replicas: 3, Hold: 10 * second}}
		}, Other, 50 * ms, "Paused Restored"},
	} {
		for _, cooldown := range []time.Duration{0, time.Minute} {
			t.Run(tc.name+" for "+cooldown.String(), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					f, all := newFake(2), new(told)
					b := newBench(t, f, func(o *Options) {
						o.StuckAfter, o.Guard.Cooldown, o.Announce = 20*second, cooldown, all.announce
						tc.set(f, o)
					})
					b.run(t)
					b.at(tc.at + 5*second)
					s := b.snapshot()
					var once [NumReasons]uint64
					once[tc.reason] = 1
					if s.State != Paused || s.Reason != tc.reason || s.Errors != once || s.RestorePending || f.count() != 2 {
						t.Errorf("%d replicas, %v for %v (%s), errors %v", f.count(), s.State, s.Reason, s.Detail, s.Errors)
					}
					if until := tc.at + cooldown; cooldown > 0 && !s.PausedUntil.Equal(b.start.Add(until)) || cooldown == 0 && !s.PausedUntil.IsZero() {
						t.Errorf("until %v", s.PausedUntil.Sub(b.start))
					}
					if got := all.reasons(); got != tc.told {
						t.Errorf("told %s, want %s", got, tc.told)
					}
					f.set(3)
					b.at(tc.at + time.Minute - 50*ms)
					if s := b.snapshot(); s.State != Paused {
						t.Errorf("%v within the cooldown", s.State)
					}
					b.at(tc.at + time.Minute + 2*second)
					if s := b.snapshot(); cooldown > 0 && (s.State != Running || s.Reason != NoReason || s.Baseline != 3 || s.Errors != once) {
						t.Errorf("after the cooldown: %+v", s)
					} else if cooldown == 0 && (s.State != Paused || s.Reason != tc.reason) {
						t.Errorf("without a cooldown: %+v", s)
					}
					if err := b.stop(); err != nil || f.count() != 3 {
						t.Errorf("%d replicas, %v", f.count(), err)
					}
				})
			})
		}
	}
}

// TestRefusedByTheWorkload: the brake for its owner restores at once, whatever
// the churn does, and lets it go on when it is released.
func TestRefusedByTheWorkload(t *testing.T) {
	for _, tc := range []struct {
		name string
		at   time.Duration
		want []scaled // in all
	}{
		// What was restored settles first: 1 s and 5 s.
		{"while scaling up", 500 * ms, []scaled{{0, 4}, {500 * ms, 2}, {30 * second, 4}}},
		{"while settled", 8 * second, []scaled{{0, 4}, {8 * second, 2}, {30 * second, 4}}},
		{"at the baseline", 18 * second, []scaled{{0, 4}, {10 * second, 2}, {30 * second, 4}}},
		{"just before", 29900 * ms, []scaled{{0, 4}, {10 * second, 2}, {20 * second, 4}, {29900 * ms, 2}}},
		{"from the begin on", 0, []scaled{{30 * second, 4}}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f, book, all := newFake(2), new(fakeNotebook), new(told)
				f.ready = second
				brake := &Error{Refused, errors.New("the annotation is gone")}
				f.onObserve = func(context.Context) error {
					if since := time.Since(f.start); since >= tc.at && since < 30*second {
						return brake
					}
					return nil
				}
				b := newBench(t, f, func(o *Options) { o.Workload, o.Notebook, o.Announce = seen{f}, book, all.announce })
				b.run(t)
				b.at(tc.at + 60*ms)
				s := b.snapshot()
				if f.count() != 2 || book.held().Held || s.State != Paused || s.Reason != Refused || s.Detail != brake.Error() {
					t.Errorf("%d replicas, %+v, %+v", f.count(), book.held(), s)
				}
				b.at(30*second - ms)
				if s := b.snapshot(); s.Errors != ([NumReasons]uint64{Refused: 1}) {
					t.Errorf("errors %v", s.Errors)
				}
				b.at(31 * second)
				b.wantScales(t, tc.want...)
				if s := b.snapshot(); tc.at < 29*second && (s.State != Running || s.Reason != NoReason) {
					t.Errorf("%+v", s)
				}
				if err := b.stop(); err != nil || f.count() != 2 {
					t.Errorf("%d replicas, %v", f.count(), err)
				}
				if n := strings.Count(all.reasons(), "Refused!"); n != 1 {
					t.Errorf("told %s", all.reasons())
				}
			})
		})
	}
}

// TestRefusedByCallAndObserve: a call may find the brake first. When it is
// released there is no cooldown.
func TestRefusedByCallAndObserve(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake(2)
		brake := &Error{Refused, errors.New("the annotation is gone")}
		f.onScale = fail(1, false, brake)
		f.onObserve = func(context.Context) error {
			if since := time.Since(f.start); since > 0 && since < 30*second {
				return brake
			}
			return nil
		}
		b := newBench(t, f, func(o *Options) { o.Workload, o.Guard.Cooldown = seen{f}, time.Hour })
		b.run(t)
		b.at(31 * second)
		if s := b.snapshot(); s.State != Running {
			t.Errorf("%+v", s)
		}
		b.wantScales(t, scaled{30 * second, 4})
		if err := b.stop(); err != nil {
			t.Error(err)
		}
	})
}

// TestEndWhileRefused is an error only where it never began.
func TestEndWhileRefused(t *testing.T) {
	for _, begun := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			f := newFake(2)
			f.onObserve = func(context.Context) error {
				if begun && time.Since(f.start) < 3*second {
					return nil
				}
				return &Error{Refused, errors.New("no annotation")}
			}
			b := newBench(t, f, func(o *Options) { o.Workload = seen{f} })
			b.run(t)
			b.at(10 * second)
			if err := b.stop(); (err != nil) == begun || !begun && err.Error() != `beginning churn "shop": refused: no annotation` {
				t.Errorf("begun %v: %v", begun, err)
			}
		})
	}
}

// TestRefusedDoesNotHideAnExternalChange.
func TestRefusedDoesNotHideAnExternalChange(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake(2)
		b := newBench(t, f, func(o *Options) { o.Workload = seen{f} })
		b.run(t)
		b.at(3 * second)
		f.set(3)
		f.onObserve = func(context.Context) error { return &Error{Refused, errors.New("an autoscaler has come")} }
		b.at(6 * second)
		if s := b.snapshot(); s.State != Stopped || s.Reason != ExternalChange || f.count() != 3 {
			t.Errorf("%d replicas, %+v", f.count(), s)
		}
		if err := b.stop(); err != nil || f.count() != 3 {
			t.Errorf("%d replicas, %v", f.count(), err)
		}
	})
}

// seen is a workload that is seen although it is refused.
type seen struct{ *fakeWorkload }

func (s seen) Observe(ctx context.Context) (Observation, error) {
	o, err := s.fakeWorkload.Observe(ctx)
	if reasonOf(err) == Refused {
		hook := s.onObserve
		s.onObserve = nil
		o, _ = s.fakeWorkload.Observe(ctx)
		s.onObserve = hook
	}
	return o, err
}

// TestForbiddenToLook: the baseline is restored unseen, once, and the note kept
// until it is seen.
func TestForbiddenToLook(t *testing.T) {
	for _, tc := range []struct {
		name   string
		change int // by somebody else, unseen, after the restore; 0: none
		state  State
		want   int
	}{
		{"and then allowed again", 0, Running, 4},
		{"while somebody else scales", 7, Stopped, 7},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f, book := newFake(2), new(fakeNotebook)
				b := newBench(t, f, func(o *Options) { o.Notebook = book })
				b.run(t)
				b.at(8 * second)
				f.onObserve = func(context.Context) error { return &Error{Forbidden, errors.New("no get for you")} }
				b.at(10 * second)
				s := b.snapshot()
				if f.count() != 2 || s.State != Paused || s.Reason != Forbidden || !s.RestorePending || !book.held().Held {
					t.Errorf("%d replicas, %+v, %+v", f.count(), book.held(), s)
				}
				if tc.change > 0 {
					f.set(tc.change)
				}
				b.at(20 * second)
				if s := b.snapshot(); s.Errors != ([NumReasons]uint64{Forbidden: 1}) || len(f.scaledTo()) != 2 {
					t.Errorf("scaled %v, errors %v", f.scaledTo(), s.Errors)
				}
				f.onObserve = nil
				b.at(26 * second)
				s = b.snapshot()
				if s.State != tc.state || f.count() != tc.want || s.RestorePending {
					t.Errorf("%d replicas, %+v", f.count(), s)
				}
				if err := b.stop(); err != nil || book.held().Held {
					t.Errorf("%+v, %v", book.held(), err)
				}
			})
		})
	}
}

// TestForbiddenToLookAtWhatWasLeft: what was never seen to be ours is not
// changed unseen.
func TestForbiddenToLookAtWhatWasLeft(t *testing.T) {
	for _, desired := range []int{4, 9} {
		synctest.Test(t, func(t *testing.T) {
			f, book := newFake(desired), &fakeNotebook{note: Note{Held: true, Baseline: 2, Set: 4, Before: 2}}
			f.onObserve = func(context.Context) error {
				if since := time.Since(f.start); since < 20*second {
					return &Error{Forbidden, errors.New("no get for you")}
				}
				return nil
			}
			b := newBench(t, f, func(o *Options) { o.Notebook, o.Plan.Hours = book, never() })
			b.run(t)
			b.at(19 * second)
			if s := b.snapshot(); f.count() != desired || s.State != Paused || s.Reason != Forbidden || !s.RestorePending {
				t.Errorf("%d replicas, %+v", f.count(), s)
			}
			b.at(21 * second)
			want := map[int]int{4: 2, 9: 9}[desired]
			if f.count() != want || book.held().Held {
				t.Errorf("%d replicas, want %d, %+v", f.count(), want, book.held())
			}
			if err := b.stop(); err != nil {
				t.Error(err)
			}
		})
	}
}

// TestOutage: a server that is away for long pauses the churn, which restores as
// soon as it answers.
func TestOutage(t *testing.T) {
	for _, tc := range []struct {
		name   string
		from   time.Duration
		change int // by somebody else, in the outage; 0: none
		count  int // 100 ms after it
		state  State
	}{
		{"above the baseline", 8 * second, 0, 2, Paused}, // until it has settled
		{"at the baseline", 18 * second, 0, 4, Running},  // and the first step of the plan follows
		{"and somebody scales", 8 * second, 7, 7, Stopped},
		{"before it begins", 0, 3, 4, Running}, // from a baseline of 3
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f, book, all := newFake(2), new(fakeNotebook), new(told)
				away := false
				down := func() error {
					if away {
						return &Error{Unreachable, errors.New("connection refused")}
					}
					return nil
				}
				f.onObserve = func(context.Context) error { return down() }
				f.onScale = func(context.Context, int) (bool, error) { return false, down() }
				book.onLoad = func(context.Context) error { return down() }
				book.onSave = func(context.Context, Note) (bool, error) { return false, down() }
				b := newBench(t, f, func(o *Options) { o.Notebook, o.Announce = book, all.announce })
				if away = tc.from == 0; !away {
					b.run(t)
					b.at(tc.from)
					away = true
				} else {
					b.run(t)
				}
				b.at(tc.from + 4*second)
				if s := b.snapshot(); tc.from > 0 && s.State != Running {
					t.Errorf("%v after 4 s", s.State)
				}
				b.at(tc.from + 10*time.Minute)
				s := b.snapshot()
				if s.State != Paused || s.Reason != Unreachable || s.Errors[Unreachable] > 2 {
					t.Errorf("%v for %v, errors %v", s.State, s.Reason, s.Errors)
				}
				if tc.change > 0 {
					f.set(tc.change)
				}
				before := len(f.scaledTo())
				away = false
				b.at(tc.from + 10*time.Minute + 30*second) // the back-off of the note is at most that
				if tc.from > 0 {
					if s := f.scaledTo(); tc.state == Paused && (len(s) <= before || s[before].replicas != 2 || s[before].at > tc.from+10*time.Minute+100*ms) {
						t.Errorf("scaled %v, want 2 at once", s[before:])
					}
				}
				s = b.snapshot()
				if tc.state == Stopped && (s.State != Stopped || s.Reason != ExternalChange || f.count() != 7) {
					t.Errorf("%d replicas, %+v", f.count(), s)
				}
				if tc.state != Stopped && (s.State != Running || s.Reason != NoReason) {
					t.Errorf("%+v", s)
				}
				if err := b.stop(); err != nil || book.held().Held {
					t.Errorf("%+v, %v", book.held(), err)
				}
			})
		})
	}
}

// TestOutageOfNothing: what somebody scales while nothing of ours was changed is
// the next baseline.
func TestOutageOfNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake(2)
		f.onObserve = func(context.Context) error {
			if since := time.Since(f.start); since >= 5*second && since < 15*second {
				return &Error{Unreachable, errors.New("away")}
			}
			return nil
		}
		b := newBench(t, f, func(o *Options) {
			o.Plan.Steps = []Step{{Replicas: 2, Hold: time.Minute}, {Replicas: 4, Hold: time.Minute}}
		})
		b.run(t)
		b.at(10*second + ms)
		if s := b.snapshot(); s.State != Paused || s.RestorePending {
			t.Errorf("%+v", s)
		}
		f.set(3)
		b.at(16 * second)
		if s := b.snapshot(); s.State != Running || s.Baseline != 3 || s.Errors != ([NumReasons]uint64{Unreachable: 1}) {
			t.Errorf("%+v", s)
		}
		if err := b.stop(); err != nil || f.count() != 3 {
			t.Errorf("%d replicas, %v", f.count(), err)
		}
	})
}
