package churn

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

// TestExternalChange: from 2 to 4 at 0 s, matched from 1 s, settled at 6 s;
// to 2 at 10 s, matched from 11 s, settled at 16 s.
func TestExternalChange(t *testing.T) {
	for _, tc := range []struct {
		name   string
		at     time.Duration
		to     int
		phases []string // after the first two, settled and scaling_up at 0 s
		detail string
	}{
		{
			"while scaling up, before it matches", 500 * ms, 3,
			[]string{"500ms: scaling_down", "6.5s: settled"}, // follows: 3 instead of 4
			"from 4 to 3",
		},
		{
			"just after our call was accepted", 50 * ms, 3,
			[]string{"50ms: scaling_down", "6.05s: settled"}, // from 4, which was ours
			"from 4 to 3",
		},
		{
			"while scaling up, when it matches", 3 * second, 5,
			[]string{"9s: settled"}, // goes on scaling up
			"from 4 to 5",
		},
		{
			"while settled", 8 * second, 3,
			[]string{"6s: settled", "8s: scaling_down", "14s: settled"},
			"from 4 to 3",
		},
		{
			"to the baseline", 8 * second, 2,
			[]string{"6s: settled", "8s: scaling_down", "14s: settled"},
			"from 4 to 2",
		},
		{
			"while scaling down", 12 * second, 3,
			[]string{"6s: settled", "10s: scaling_down", "12s: scaling_up", "18s: settled"},
			"from 2 to 3",
		},
		{
			"to none", 17 * second, 0,
			[]string{"6s: settled", "10s: scaling_down", "16s: settled", "17s: scaling_down", "23s: settled"},
			"from 2 to 0",
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := newFake(2)
				f.ready = second
				b := newBench(t, f, nil)
				b.run(t)
				b.at(tc.at - 10*ms) // so that it is seen at tc.at
				before := len(f.scaledTo())
				f.set(tc.to)
				b.at(40 * second)
				s := b.snapshot()
				if s.State != Stopped || s.Reason != ExternalChange || s.Errors != ([NumReasons]uint64{ExternalChange: 1}) {
					t.Errorf("state %v, reason %v, errors %v", s.State, s.Reason, s.Errors)
				}
				if want := "somebody else changed the desired replicas " + tc.detail; s.Detail != want {
					t.Errorf("detail %q, want %q", s.Detail, want)
				}
				b.wantPhases(t, append([]string{"0s: settled", "0s: scaling_up"}, tc.phases...)...)
				if err := b.stop(); err != nil {
					t.Error(err)
				}
				if f.count() != tc.to || len(f.scaledTo()) != before {
					t.Errorf("%d replicas after %v, want %d left alone", f.count(), f.scaledTo(), tc.to)
				}
				if s := b.snapshot(); s.Reason != ExternalChange || s.RestorePending {
					t.Errorf("at the end: reason %v, restore pending %v", s.Reason, s.RestorePending)
				}
			})
		})
	}
}

// TestExternalChangeAtTheEnd comes between the last observation and the end.
func TestExternalChangeAtTheEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake(2)
		b := newBench(t, f, nil)
		b.run(t)
		b.at(second + 10*ms)
		f.set(7)
		if err := b.stop(); err != nil {
			t.Error(err)
		}
		if s := b.snapshot(); f.count() != 7 || s.Reason != ExternalChange || s.RestorePending {
			t.Errorf("%d replicas, reason %v, restore pending %v", f.count(), s.Reason, s.RestorePending)
		}
	})
}

// TestUnclearIsForgotten: when a step has settled, a count that a call for an
// earlier one may have set is somebody else's.
func TestUnclearIsForgotten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake(2)
		f.onScale = fail(1, false, errors.New("boom"))
		b := newBench(t, f, nil)
		b.run(t)
		b.at(17 * second) // settled at 2
		f.set(4)
		b.at(18 * second)
		if s := b.snapshot(); s.State != Stopped || s.Reason != ExternalChange {
			t.Errorf("%+v", s)
		}
		if err := b.stop(); err != nil || f.count() != 4 {
			t.Errorf("%d replicas, %v", f.count(), err)
		}
	})
}

// TestUnclearIsDoneOnce: a call that failed and was done is not undone by a
// change that comes later.
func TestUnclearIsDoneOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake(2)
		f.onScale = fail(1, true, errors.New("boom"))
		b := newBench(t, f, nil)
		b.run(t)
		b.at(3*second - 10*ms)
		f.set(3)
		b.at(9 * second)
		b.wantPhases(t, "0s: settled", "0s: scaling_up", "3s: scaling_down", "8s: settled")
		if err := b.stop(); err != nil || f.count() != 3 {
			t.Errorf("%d replicas, %v", f.count(), err)
		}
	})
}
