package churn

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"
)

// scaled is one call of Scale that took effect.
type scaled struct {
	at       time.Duration // since the fake was made
	replicas int
}

// fakeWorkload is a workload whose replicas follow the desired count after a
// time, and its endpoints after one more.
type fakeWorkload struct {
	ready, endpoints time.Duration // the lags

	// Both are asked first, where they are set; an error is what the call
	// returns, and done says whether Scale takes effect although it fails.
	onScale   func(ctx context.Context, replicas int) (done bool, err error)
	onObserve func(ctx context.Context) error

	mu       sync.Mutex
	start    time.Time
	desired  int
	before   int       // what it was scaled from
	changed  time.Time // when
	broken   int       // replicas that are not ready
	scales   []scaled
	observed int
}

func newFake(replicas int) *fakeWorkload {
	return &fakeWorkload{start: time.Now(), desired: replicas, before: replicas}
}

// publish makes what a test has changed known to those who call from now on.
func (f *fakeWorkload) publish() {
	f.mu.Lock()
	defer f.mu.Unlock()
}

// set is what anybody may do.
func (f *fakeWorkload) set(replicas int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.before, f.desired, f.changed = f.desired, replicas, time.Now()
}

func (f *fakeWorkload) breakReplicas(n int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.broken = n
}

func (f *fakeWorkload) count() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.desired
}

func (f *fakeWorkload) Scale(ctx context.Context, replicas int) error {
	f.mu.Lock()
	hook := f.onScale
	f.mu.Unlock()
	if hook != nil {
		if done, err := hook(ctx, replicas); err != nil {
			if done {
				f.apply(replicas)
			}
			return err
		}
	}
	f.apply(replicas)
	return nil
}

func (f *fakeWorkload) apply(replicas int) {
	f.set(replicas)
	f.mu.Lock()
	defer f.mu.Unlock()
	f.scales = append(f.scales, scaled{time.Since(f.start), replicas})
}

func (f *fakeWorkload) Observe(ctx context.Context) (Observation, error) {
	f.mu.Lock()
	hook := f.onObserve
	f.mu.Unlock()
	if hook != nil {
		if err := hook(ctx); err != nil {
			return Observation{}, err
		}
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.observed++
	o := Observation{Desired: f.desired, Ready: f.before, Endpoints: f.before}
	if since := time.Since(f.changed); since >= f.ready {
		o.Ready = f.desired - f.broken
		if since >= f.ready+f.endpoints {
			o.Endpoints = f.desired - f.broken
		}
	}
	return o, nil
}

func (f *fakeWorkload) scaledTo() []scaled {
	f.mu.Lock()
	defer f.mu.Unlock()
	return append([]scaled(nil), f.scales...)
}

// String is how a failed test shows a call.
func (s scaled) String() string { return fmt.Sprintf("%v: %d", s.at, s.replicas) }

// fakeNotebook is a notebook in memory.
type fakeNotebook struct {
	// Both are asked first, where they are set; an error is what the call
	// returns, and done says whether Save takes effect although it fails.
	onLoad func(ctx context.Context) error
	onSave func(ctx context.Context, n Note) (done bool, err error)

	mu    sync.Mutex
	note  Note
	saves []Note
}

func (f *fakeNotebook) Load(ctx context.Context) (Note, error) {
	if f.onLoad != nil {
		if err := f.onLoad(ctx); err != nil {
			return Note{}, err
		}
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.note, nil
}

func (f *fakeNotebook) Save(ctx context.Context, n Note) error {
	if f.onSave != nil {
		if done, err := f.onSave(ctx, n); err != nil {
			if done {
				f.put(n)
			}
			return err
		}
	}
	f.put(n)
	return nil
}

// put is what Save does. Whoever holds a baseline, no test wants it to be lost.
func (f *fakeNotebook) put(n Note) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if was := f.note; was.Held && n.Held && (n.Baseline != was.Baseline || n.Original != was.Original) {
		panic(fmt.Sprintf("%+v is overwritten by %+v", was, n))
	}
	f.note = n
	f.saves = append(f.saves, n)
}

// replace is what somebody else does.
func (f *fakeNotebook) replace(n Note) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.note = n
}

func (f *fakeNotebook) held() Note {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.note
}

func (f *fakeNotebook) saved() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.saves)
}

// fakeElection elects one of those that stand, the one that waits longest.
type fakeElection struct {
	mu      sync.Mutex
	waiting []*candidate
	leader  *candidate
	closed  bool // nobody is elected
}

// candidate is one instance of an election.
type candidate struct {
	name    string
	of      *fakeElection
	elected chan struct{}
	depose  context.CancelFunc // while it leads
}

func (e *fakeElection) candidate(name string) *candidate { return &candidate{name: name, of: e} }

func (c *candidate) Campaign(ctx context.Context, lead func(context.Context)) error {
	for {
		c.of.mu.Lock()
		c.elected = make(chan struct{})
		c.of.waiting = append(c.of.waiting, c)
		c.of.next()
		elected := c.elected
		c.of.mu.Unlock()
		select {
		case <-elected:
		case <-ctx.Done():
			c.of.leave(c)
			return nil
		}
		lease, cancel := context.WithCancel(ctx)
		c.of.mu.Lock()
		c.depose = cancel
		c.of.mu.Unlock()
		lead(lease)
		cancel()
		c.of.leave(c)
		if ctx.Err() != nil {
			return nil
		}
	}
}

// next elects somebody where nobody leads. The caller holds the mutex.
func (e *fakeElection) next() {
	if e.leader == nil && len(e.waiting) > 0 && !e.closed {
		e.leader, e.waiting = e.waiting[0], e.waiting[1:]
		close(e.leader.elected)
	}
}

func (e *fakeElection) leave(c *candidate) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.waiting = slices.DeleteFunc(e.waiting, func(o *candidate) bool { return o == c })
	if e.leader == c {
		e.leader = nil
	}
	e.next()
}

// strand takes the lead away from whoever has it, and gives it to nobody until
// admit is called.
func (e *fakeElection) strand() {
	e.mu.Lock()
	e.closed = true
	e.mu.Unlock()
	e.deposeLeader()
}

func (e *fakeElection) admit() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.closed = false
	e.next()
}

// deposeLeader takes the lead away from whoever has it.
func (e *fakeElection) deposeLeader() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.leader.depose()
}

func (c *candidate) Leader() string {
	c.of.mu.Lock()
	defer c.of.mu.Unlock()
	if c.of.leader == nil {
		return ""
	}
	return c.of.leader.name
}
