package churn

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/steadyprobe/steadyprobe/probe"
)

// pair is two instances of one churn.
type pair struct {
	*fakeWorkload
	book *fakeNotebook
	of   *fakeElection
	a, b *bench
}

func newPair(t *testing.T, replicas int, change func(*Options)) *pair {
	p := &pair{fakeWorkload: newFake(replicas), book: new(fakeNotebook), of: new(fakeElection)}
	instance := func(name string) *bench {
		return newBench(t, p.fakeWorkload, func(o *Options) {
			o.Notebook, o.Election = p.book, p.of.candidate(name)
			if change != nil {
				change(o)
			}
		})
	}
	p.a, p.b = instance("a"), instance("b")
	return p
}

func (p *pair) at(since time.Duration) { p.a.at(since) }

// TestOneOfTwoChurns, and the other one follows what it does.
func TestOneOfTwoChurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPair(t, 2, nil)
		p.ready = second
		p.a.run(t)
		p.at(10 * ms)
		p.b.run(t)
		p.at(30 * second)
		// The baseline is taken 2 s after the election.
		p.a.wantScales(t, scaled{2 * second, 4}, scaled{12 * second, 2}, scaled{22 * second, 4})
		p.a.wantPhases(t, "0s: settled", "2s: scaling_up", "8s: settled", "12s: scaling_down", "18s: settled", "22s: scaling_up", "28s: settled")
		p.b.wantPhases(t, "10ms: settled", "2.01s: scaling_up", "8.01s: settled", "12.01s: scaling_down", "18.01s: settled", "22.01s: scaling_up", "28.01s: settled")
		a, b := p.a.snapshot(), p.b.snapshot()
		if a.State != Running || !a.Leader || a.LeaderName != "a" {
			t.Errorf("the leader: %+v", a)
		}
		if b.State != Standby || b.Leader || b.LeaderName != "a" || b.Reason != NoReason || b.Steps != ([NumDirections]uint64{}) || b.RestorePending || !b.NextStep.IsZero() {
			t.Errorf("the other one: %+v", b)
		}
		if err := p.a.stop(); err != nil {
			t.Error(err)
		}
		if p.count() != 2 || p.book.held().Held || p.a.snapshot().Leader {
			t.Errorf("the leader left %d replicas, %+v", p.count(), p.book.held())
		}
		p.at(33 * second)
		if b := p.b.snapshot(); b.State != Running || !b.Leader || b.LeaderName != "b" || b.Baseline != 2 {
			t.Errorf("the next leader: %+v", b)
		}
		if scales := p.scaledTo(); len(scales) != 5 || scales[4] != (scaled{32050 * ms, 4}) { // 2 s after the former had restored
			t.Errorf("scaled %v", scales)
		}
		if err := p.b.stop(); err != nil || p.count() != 2 {
			t.Errorf("%d replicas, %v", p.count(), err)
		}
	})
}

// TestStandbyFollowsAnybody: a change by whomever is a phase and no error for
// who does not lead.
func TestStandbyFollowsAnybody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPair(t, 2, func(o *Options) { o.Plan.Hours = never() })
		p.ready = second
		p.a.run(t)
		p.at(10 * ms)
		p.b.run(t)
		p.at(10 * second)
		p.set(9)
		p.at(20 * second)
		p.b.wantPhases(t, "10ms: settled", "10.01s: scaling_up", "16.01s: settled")
		if s := p.b.snapshot(); s.State != Standby || s.Errors != ([NumReasons]uint64{}) || s.Desired != 9 {
			t.Errorf("%+v", s)
		}
		if err := errors.Join(p.a.stop(), p.b.stop()); err != nil {
			t.Error(err)
		}
		p.a.wantScales(t)
	})
}

// deposed is a way to the world of an instance that is deposed in a call.
type deposed struct {
	mortal
	of   *fakeElection
	name string
	gone bool // it was
	late []string
}

// call deposes the instance in the call that it would die with, and lets it do
// what it does.
func (d *deposed) call(what string, write bool, effect func()) error {
	d.calls++
	if d.gone && write {
		d.late = append(d.late, what)
	}
	if d.calls != d.dies {
		effect()
		return nil
	}
	d.of.mu.Lock()
	leads := d.of.leader != nil && d.of.leader.name == d.name
	d.of.mu.Unlock()
	if leads {
		d.of.deposeLeader()
		d.gone = true
	}
	if d.done {
		effect()
		return nil
	}
	return context.Canceled
}

func (d *deposed) Scale(_ context.Context, replicas int) error {
	return d.call(fmt.Sprint("scale ", replicas), true, func() { d.w.apply(replicas) })
}

func (d *deposed) Observe(ctx context.Context) (o Observation, err error) {
	if d.calls == 0 {
		time.Sleep(10 * ms) // until the other one stands as well
	}
	if failed := d.call("observe", false, func() { o, err = d.w.Observe(ctx) }); failed != nil {
		return o, failed
	}
	return o, err
}

func (d *deposed) Load(context.Context) (n Note, err error) {
	err = d.call("load", false, func() { n = d.w.book.held() })
	return n, err
}

func (d *deposed) Save(_ context.Context, n Note) error {
	return d.call("save", true, func() { d.w.book.put(n) })
}

// TestLostLeadAtAnyCall: who has lost the lead changes and saves nothing more,
// and the next one restores what it had changed, whichever call it was lost in.
func TestLostLeadAtAnyCall(t *testing.T) {
	plan := crashPlans()["three steps"]
	lose := func(t *testing.T, dies int, done bool) (calls int) {
		synctest.Test(t, func(t *testing.T) {
			w := &world{newFake(3), new(fakeNotebook)}
			of := new(fakeElection)
			d := &deposed{mortal: mortal{w: w, dies: dies, done: done}, of: of, name: "a"}
			options := func(name string, way interface {
				Workload
				Notebook
			}, plan Plan,
			) Options {
				return Options{
					Name: "shop", Plan: plan, Workload: way, Notebook: way, Election: of.candidate(name),
					Poll: second, Logger: textLogger(new(logBuffer)),
				}
			}
			a, errA := New(options("a", d, plan))
			plan2 := plan
			plan2.Hours = never()
			m := &mortal{w: w}
			b, errB := New(options("b", m, plan2))
			if err := errors.Join(errA, errB); err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithCancel(t.Context())
			ended := make(chan error, 2)
			go func() { ended <- a.Run(ctx) }()
			synctest.Wait()
			go func() { ended <- b.Run(ctx) }()
			time.Sleep(20 * second)
			var s Snapshot
			b.Snapshot(&s)
			if d.gone {
				if len(d.late) > 0 {
					t.Errorf("call %d, done %v: it did %v after it was deposed", dies, done, d.late)
				}
				if !s.Leader {
					t.Errorf("call %d, done %v: nobody leads", dies, done)
				}
				restored(t, fmt.Sprintf("deposed in call %d, done %v", dies, done), w, m, s)
				var a2 Snapshot
				if a.Snapshot(&a2); a2.Leader || a2.State != Standby || a2.RestorePending {
					t.Errorf("call %d, done %v: the deposed one is %+v", dies, done, a2)
				}
			}
			cancel()
			if err := errors.Join(<-ended, <-ended); err != nil {
				t.Errorf("call %d, done %v: %v", dies, done, err)
			}
			calls = d.calls
		})
		return calls
	}
	calls := lose(t, 0, false)
	everyDeath(calls, func(dies int, done bool) { lose(t, dies, done) })
}

// TestLeadIsLostWhileScaling: the call is cut at once, not after its time.
func TestLeadIsLostWhileScaling(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPair(t, 2, nil)
		var cut time.Duration
		p.onScale = func(ctx context.Context, _ int) (bool, error) {
			if cut > 0 {
				return false, nil
			}
			<-ctx.Done()
			cut = time.Since(p.start)
			return true, ctx.Err()
		}
		p.a.run(t)
		synctest.Wait()
		p.b.run(t)
		p.at(4 * second)
		p.of.deposeLeader()
		p.at(4*second + 500*ms)
		if cut != 4*second {
			t.Errorf("cut at %v", cut)
		}
		if p.count() != 2 || p.book.held().Held { // b has restored
			t.Errorf("%d replicas, %+v", p.count(), p.book.held())
		}
		if s := p.a.snapshot(); s.Errors != ([NumReasons]uint64{}) || s.State != Standby {
			t.Errorf("%+v", s)
		}
		if err := errors.Join(p.a.stop(), p.b.stop()); err != nil {
			t.Error(err)
		}
	})
}

// TestLeadIsKeptDuringACall: nobody else is elected while a call that does not
// hear may still change something.
func TestLeadIsKeptDuringACall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPair(t, 2, nil)
		p.onScale = func(_ context.Context, replicas int) (bool, error) {
			if replicas == 4 {
				time.Sleep(5 * second)
			}
			return false, nil
		}
		p.a.run(t)
		p.at(10 * ms)
		p.b.run(t)
		p.at(4 * second)
		p.of.deposeLeader()
		p.at(7*second - ms)
		if p.b.snapshot().Leader {
			t.Error("b leads while a scales")
		}
		p.at(7*second + 500*ms)
		if !p.b.snapshot().Leader || p.count() != 2 || p.book.held().Held {
			t.Errorf("%d replicas, %+v", p.count(), p.book.held())
		}
		if err := errors.Join(p.a.stop(), p.b.stop()); err != nil {
			t.Error(err)
		}
	})
}

// TestLeadIsLostAtTheEnd: it is the next leader's to restore.
func TestLeadIsLostAtTheEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPair(t, 2, nil)
		p.a.run(t)
		p.at(5 * second)
		p.onScale = func(context.Context, int) (bool, error) { return false, &Error{Unreachable, errors.New("away")} }
		p.a.cancel()
		p.at(10 * second)
		if s := p.a.snapshot(); !s.Leader || !s.RestorePending {
			t.Errorf("%+v", s)
		}
		p.of.deposeLeader()
		want := `restoring churn "shop": another instance leads now, and restores`
		if err := <-p.a.done; err == nil || err.Error() != want {
			t.Errorf("got %v, want %s", err, want)
		}
		if s := p.a.snapshot(); p.count() != 4 || s.Leader || s.State != Stopped || !s.RestorePending {
			t.Errorf("%d replicas, %+v", p.count(), s)
		}
		p.onScale = nil
		p.b.run(t)
		p.at(11 * second)
		if p.count() != 2 || p.book.held().Held {
			t.Errorf("%d replicas, %+v", p.count(), p.book.held())
		}
		if err := p.b.stop(); err != nil {
			t.Error(err)
		}
	})
}

// TestLeadIsWonAgain: with a fresh baseline.
func TestLeadIsWonAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPair(t, 2, nil)
		p.a.run(t)
		p.at(9 * second)
		p.of.deposeLeader() // and nobody else stands
		p.at(20 * second)
		s := p.a.snapshot()
		if s.State != Running || !s.Leader || s.Baseline != 2 || s.Errors != ([NumReasons]uint64{}) {
			t.Errorf("%+v", s)
		}
		// It restores what it has left itself, lets that settle, and begins again.
		p.a.wantScales(t, scaled{2 * second, 4}, scaled{9 * second, 2}, scaled{14050 * ms, 4})
		if err := p.a.stop(); err != nil || p.count() != 2 {
			t.Errorf("%d replicas, %v", p.count(), err)
		}
	})
}

// brokenElection fails until it is well.
type brokenElection struct {
	*candidate
	well  atomic.Bool
	tried atomic.Int32
	err   error
}

func (e *brokenElection) Campaign(ctx context.Context, lead func(context.Context)) error {
	e.tried.Add(1)
	if e.well.Load() {
		return e.candidate.Campaign(ctx, lead)
	}
	return e.err
}

func TestElectionFails(t *testing.T) {
	for _, tc := range []struct {
		name   string
		err    error
		reason Reason
		detail string
	}{
		{"with an error", &Error{Forbidden, errors.New("no leases for you")}, Forbidden, "standing for election: forbidden: no leases for you"},
		{"without one", nil, Other, "standing for election: the campaign ended by itself"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				e := &brokenElection{candidate: new(fakeElection).candidate("a"), err: tc.err}
				f := newFake(2)
				b := newBench(t, f, func(o *Options) { o.Notebook, o.Election = new(fakeNotebook), e })
				b.run(t)
				b.at(40 * second)
				var once [NumReasons]uint64
				once[tc.reason] = 1
				s := b.snapshot()
				if s.State != Standby || s.Leader || s.Reason != tc.reason || s.Detail != tc.detail || s.Errors != once || s.LeaderName != "" {
					t.Errorf("%+v", s)
				}
				if n := e.tried.Load(); n != 6 { // at 0, 1, 3, 7, 15, 31 s
					t.Errorf("tried %d times", n)
				}
				if s.Phase != probe.Settled || s.LastBeat.IsZero() {
					t.Errorf("it does not look: %+v", s)
				}
				if n := strings.Count(b.log.String(), "standing for election fails"); n != 1 {
					t.Errorf("said %d times", n)
				}
				e.well.Store(true)
				b.at(65 * second) // the next one is at 61 s
				if s := b.snapshot(); s.State != Running || !s.Leader || s.Reason != NoReason || s.Errors != once {
					t.Errorf("%+v", s)
				}
				if err := b.stop(); err != nil || f.count() != 2 {
					t.Errorf("%d replicas, %v", f.count(), err)
				}
			})
		})
	}
}

// TestPanicGivesTheLeadUp, after the baseline is restored.
func TestPanicGivesTheLeadUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPair(t, 2, func(o *Options) {
			told := 0
			o.Phase = func(probe.ChurnPhase) {
				if told++; told == 3 {
					panic("boom")
				}
			}
		})
		func() {
			defer func() {
				if recover() != "boom" {
					t.Error("it did not panic")
				}
			}()
			_ = p.a.cycle.Run(t.Context())
		}()
		if p.count() != 2 || p.book.held().Held || p.of.leader != nil {
			t.Errorf("%d replicas, %+v, leader %v", p.count(), p.book.held(), p.of.leader)
		}
	})
}

// TestLeadIsLostWhileObserving: a server that hangs hides from nobody that the
// lead is lost, nor that something is to be put back, until somebody leads.
func TestLeadIsLostWhileObserving(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPair(t, 3, nil)
		p.a.run(t)
		p.at(4 * second)
		if s := p.a.snapshot(); p.count() != 4 || !s.Leader || s.RestorePending {
			t.Fatalf("%d replicas, %+v", p.count(), s)
		}
		hangs := true
		p.onObserve = func(ctx context.Context) error {
			if hangs {
				<-ctx.Done()
				return ctx.Err()
			}
			return nil
		}
		p.at(5 * second)
		// As if nobody could be reached: it does not even know that it is deposed.
		p.of.strand()
		p.at(5*second + 10*ms)
		if s := p.a.snapshot(); s.Leader || s.State != Standby || !s.RestorePending || s.Errors != ([NumReasons]uint64{}) {
			t.Errorf("while nobody leads: %+v", s)
		}
		hangs = false
		p.b.run(t)
		p.of.admit()
		p.at(20 * second)
		if s := p.a.snapshot(); s.RestorePending || p.count() != 3 {
			t.Errorf("when somebody leads again: %d replicas, %+v", p.count(), s)
		}
		if err := errors.Join(p.a.stop(), p.b.stop()); err != nil {
			t.Error(err)
		}
		if p.count() != 3 || p.book.held().Held {
			t.Errorf("%d replicas, %+v", p.count(), p.book.held())
		}
	})
}
