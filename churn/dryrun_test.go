package churn

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/steadyprobe/steadyprobe/probe"
)

func TestDryRunScalesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake(2)
		b := newBench(t, f, func(o *Options) { o.DryRun = true })
		b.run(t)
		b.at(12 * time.Second)
		f.set(7) // is nobody's business here
		b.at(35 * time.Second)
		s := b.snapshot()
		if s.State != DryRun || s.Phase != probe.Settled || s.Reason != NoReason || s.Desired != 7 || s.Steps != [NumDirections]uint64{} {
			t.Errorf("%+v", s)
		}
		if err := b.stop(); err != nil {
			t.Error(err)
		}
		b.wantPhases(t, "0s: settled")
		b.wantScales(t)
		if s := b.snapshot(); s.State != Stopped {
			t.Errorf("state %v at the end", s.State)
		}
		want := `level=WARN msg="this is a dry run: what would be scaled is said and not done; dry_run: false ends that" baseline_replicas=2
level=INFO msg="would scale" from=2 to=4
level=INFO msg="would scale" from=4 to=2
level=INFO msg="would scale" from=2 to=4
level=INFO msg="would scale" from=4 to=2
`
		if got := b.log.String(); got != want {
			t.Errorf("logged\n%s\nwant\n%s", got, want)
		}
	})
}

// TestDryRunChecksAll that a real run would.
func TestDryRunChecksAll(t *testing.T) {
	for _, tc := range []struct {
		name   string
		change func(*fakeWorkload, *Options)
		state  State
		reason Reason
		detail string
		log    []string // what would be done
		told   string
	}{
		{
			"kills", func(f *fakeWorkload, o *Options) {
				o.Workload, o.Plan.Steps = &fakeKiller{f, nil}, steps(kill(1), to(4))
			}, DryRun, NoReason, "",
			[]string{`msg="would kill" backends=1 from=4 to=3`, `msg="would scale" from=3 to=4`}, "DryRun",
		},
		{
			"hours", func(_ *fakeWorkload, o *Options) { o.Plan.Hours = never() },
			Paused, NoReason, "outside of its active hours, which begin Wednesday 00:00 UTC", nil, "Paused",
		},
		{
			"cycles", func(_ *fakeWorkload, o *Options) { o.Plan.MaxCycles = 1 },
			Stopped, NoReason, "all 1 cycles are done",
			[]string{`msg="would scale" from=4 to=2`}, "DryRun Stopped",
		},
		{
			"the workload's refusal", func(f *fakeWorkload, o *Options) {
				f.onObserve = func(context.Context) error { return &Error{Refused, errors.New("no annotation")} }
			}, Paused, Refused, "refused: no annotation", nil, "Refused!",
		},
		{
			"the workload's silence", func(f *fakeWorkload, o *Options) {
				f.onObserve = func(context.Context) error { return &Error{NotFound, errors.New("no such thing")} }
			}, Paused, NotFound, "not_found: no such thing", nil, "",
		},
		{
			"the floor", func(_ *fakeWorkload, o *Options) { o.Plan.Steps[1].Replicas = 1 },
			Paused, Refused, "step 2 to 1 replicas is below the floor of 2, with a baseline of 4", nil, "Refused!",
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f, book, all := newFake(4), new(fakeNotebook), new(told)
				b := newBench(t, f, func(o *Options) {
					o.DryRun, o.Notebook, o.Announce = true, book, all.announce
					tc.change(f, o)
				})
				b.run(t)
				b.at(time.Minute)
				s := b.snapshot()
				if s.State != tc.state || s.Reason != tc.reason || s.Detail != tc.detail || s.Phase != probe.Settled {
					t.Errorf("%v for %v (%s), phase %v", s.State, s.Reason, s.Detail, s.Phase)
				}
				for _, line := range tc.log {
					if !strings.Contains(b.log.String(), line) {
						t.Errorf("it did not log %s:\n%s", line, b.log)
					}
				}
				if tc.log == nil && strings.Contains(b.log.String(), "would") {
					t.Errorf("it logged\n%s", b.log)
				}
				if got := all.reasons(); got != tc.told {
					t.Errorf("told %s, want %s", got, tc.told)
				}
				_ = b.stop() // where it could not begin it says so
				if f.count() != 4 || len(f.scaledTo()) != 0 || book.saved() != 0 {
					t.Errorf("scaled %v, saved %d notes", f.scaledTo(), book.saved())
				}
				b.wantPhases(t, "0s: settled")
			})
		})
	}
}

// TestDryRunStandsForNothing, reads no note and saves none.
func TestDryRunStandsForNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPair(t, 4, func(o *Options) { o.DryRun = true })
		left := Note{Held: true, Baseline: 2, Set: 4, Before: 2}
		p.book.note = left
		p.a.run(t)
		p.at(15 * second)
		if s := p.a.snapshot(); s.State != DryRun || s.Leader || s.Baseline != 4 {
			t.Errorf("%+v", s)
		}
		if p.of.leader != nil || len(p.of.waiting) > 0 || p.book.saved() > 0 || p.book.held() != left {
			t.Errorf("leader %v, saved %d notes", p.of.leader, p.book.saved())
		}
		if err := p.a.stop(); err != nil {
			t.Error(err)
		}
		p.a.wantScales(t)
		p.a.wantPhases(t, "0s: settled")
	})
}

// TestDryRunRestoresWhatWasLeft, where nobody else would.
func TestDryRunRestoresWhatWasLeft(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, book := newFake(4), &fakeNotebook{note: Note{Held: true, Baseline: 2, Set: 4, Before: 2}}
		b := newBench(t, f, func(o *Options) { o.Notebook, o.DryRun = book, true })
		b.run(t)
		b.at(20 * second)
		b.wantScales(t, scaled{0, 2})
		b.wantPhases(t, "0s: settled", "0s: scaling_down", "5.05s: settled")
		if s := b.snapshot(); s.State != DryRun || s.Baseline != 2 || book.held().Held || s.RestorePending {
			t.Errorf("%+v, %+v", s, book.held())
		}
		saved := book.saved()
		f.set(3) // is nobody's business, and no phase
		b.at(40 * second)
		if err := b.stop(); err != nil || f.count() != 3 || book.saved() != saved || len(b.phases) != 3 {
			t.Errorf("%d replicas, saved %d notes, phases %v, %v", f.count(), book.saved(), b.phases, err)
		}
	})
}
