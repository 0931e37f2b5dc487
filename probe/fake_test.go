package probe

import (
	"context"
	"net/netip"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// fakeDoor opens connections that answer after a given time.
type fakeDoor struct {
	clock Clock

	mu      sync.Mutex
	open    time.Duration // an opening takes this long
	fail    Outcome       // of openings; Success: they succeed
	service time.Duration
	outcome Outcome     // of requests
	close   CloseReason // of every sample
	conns   []*fakeConn
	openers int // openings so far
	refuse  int // of refuse + 1 openings so many fail
	most    int // requests at once, at most
	now     int // requests at once

	addresses []netip.Addr // that openings go to in turn; none: nowhere
}

func (d *fakeDoor) set(f func(*fakeDoor)) {
	d.mu.Lock()
	defer d.mu.Unlock()
	f(d)
}

func (d *fakeDoor) Open(l *Link) {
	d.mu.Lock()
	d.openers++
	number := d.openers
	d.mu.Unlock()
	go func() {
		d.mu.Lock()
		wait, fail := d.open, d.fail
		if d.refuse > 0 && number%(d.refuse+1) != 0 {
			fail = ConnectRefused
		}
		d.mu.Unlock()
		s := Sample{Begun: d.clock.Now(), Did: PhaseSet(0).With(PhaseConnect)}
		tick, bound := l.Bound()
		s.Tick = tick
		select {
		case <-time.After(wait):
		case <-l.Context().Done():
			fail = ScheduleShutdown
		}
		s.End = d.clock.Now()
		s.Connect = s.End.Sub(s.Begun)
		d.mu.Lock()
		if n := len(d.addresses); n > 0 {
			s.Address = d.addresses[(number-1)%n]
		}
		d.mu.Unlock()
		if fail != Success {
			s.Outcome = fail
			l.Failed(&s)
			return
		}
		c := &fakeConn{door: d, link: l, wake: make(chan struct{}, 1)}
		d.mu.Lock()
		d.conns = append(d.conns, c)
		d.mu.Unlock()
		c.busy = bound
		l.Opened(c, 1, &s)
		if bound {
			c.serve(s)
		}
	}()
}

// fakeConn is idle, busy or gone, as the Prober's rules demand: it panics when
// they are broken.
type fakeConn struct {
	door *fakeDoor
	link *Link
	wake chan struct{}

	mu       sync.Mutex
	busy     bool
	gone     bool
	dead     bool   // the peer has closed it, and nobody has noticed
	refusing func() // called by Send of a dead one; may be nil
	retired  CloseReason
	served   int
}

func (c *fakeConn) Send(t Tick) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.busy || c.gone {
		panic("a tick for a connection that is not idle")
	}
	if c.dead {
		c.link.Refuse()
		if c.refusing != nil {
			c.mu.Unlock()
			c.refusing()
			c.mu.Lock()
		}
		return false
	}
	c.busy = true
	go c.serve(Sample{Tick: t, Begun: c.door.clock.Now(), Sent: c.door.clock.Now()})
	return true
}

func (c *fakeConn) serve(s Sample) {
	for {
		c.door.mu.Lock()
		wait, reason := c.door.service, c.door.close
		s.Outcome = c.door.outcome
		c.door.now++
		c.door.most = max(c.door.most, c.door.now)
		c.door.mu.Unlock()
		select {
		case <-time.After(wait):
		case <-c.link.Context().Done():
			s.Outcome, reason = ScheduleShutdown, CloseShutdown
		}
		s.Sent, s.End, s.Close = s.Begun, c.door.clock.Now(), reason
		s.FirstByte = s.End
		c.door.mu.Lock()
		c.door.now--
		c.door.mu.Unlock()
		c.mu.Lock()
		c.busy = false
		c.served++
		c.mu.Unlock()
		next, more := c.link.Done(&s)
		if reason != NotClosed {
			c.end(reason)
			return
		}
		if !more {
			c.mu.Lock()
			retired := c.retired
			c.mu.Unlock()
			if retired != NotClosed {
				c.end(retired)
			}
			return
		}
		c.mu.Lock()
		dead := c.dead
		c.busy = !dead
		c.mu.Unlock()
		if dead {
			c.link.Refuse()
			c.link.HandOn(next)
			return
		}
		s = Sample{Tick: next, Begun: c.door.clock.Now()}
	}
}

func (c *fakeConn) Retire(r CloseReason) {
	c.mu.Lock()
	c.retired = r
	idle := !c.busy && !c.gone
	c.mu.Unlock()
	if idle && c.link.Leave() {
		c.end(r)
	}
}

// dies ends the connection without its reader noticing.
func (c *fakeConn) dies() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.dead = true
}

// peerCloses ends the connection while it is idle, if it is.
func (c *fakeConn) peerCloses() {
	if c.link.Leave() {
		c.end(ClosePeer)
	}
}

func (c *fakeConn) end(r CloseReason) {
	c.mu.Lock()
	if c.gone {
		c.mu.Unlock()
		return
	}
	c.gone = true
	c.mu.Unlock()
	c.link.Gone(r, Bytes{Sent: 1})
}

// fakeRecorder keeps every sample.
type fakeRecorder struct {
	mu       sync.Mutex
	samples  []Sample
	openings []Sample
}

func (r *fakeRecorder) Record(s *Sample) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.samples = append(r.samples, *s)
}

func (r *fakeRecorder) RecordOpening(s *Sample) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.openings = append(r.openings, *s)
}

// bench is a Prober between a fakeDoor and a fakeRecorder in virtual time.
type bench struct {
	t        *testing.T
	door     *fakeDoor
	recorder *fakeRecorder
	prober   *Prober
	clock    Clock
	wake     Instant
}

func newBench(t *testing.T, target Target) *bench {
	clock := NewClock()
	b := &bench{t: t, clock: clock, door: &fakeDoor{clock: clock}, recorder: &fakeRecorder{}}
	if target.Timeout == 0 {
		target.Timeout = 5 * time.Second
	}
	if target.Backlog == 0 {
		target.Backlog = 30 * time.Second
	}
	b.prober = New(target, clock, b.door, b.recorder)
	return b
}

// tick gives one tick that is due now, and checks the ledger.
func (b *bench) tick() {
	b.wake = b.prober.Take(b.clock.Now())
	b.check()
}

// pace gives ticks at equal distances, draining whenever the Prober asks.
func (b *bench) pace(n int, every time.Duration) {
	for range n {
		b.tick()
		b.sleep(every)
	}
}

// sleep lets time pass as the pacer would.
func (b *bench) sleep(d time.Duration) {
	until := b.clock.Now().Add(d)
	for b.wake != 0 && b.wake < until {
		time.Sleep(b.wake.Sub(b.clock.Now()))
		b.wake = b.prober.Drain()
		b.check()
	}
	time.Sleep(until.Sub(b.clock.Now()))
	synctest.Wait()
	b.check()
}

// check holds the ledger against its identity.
func (b *bench) check() {
	b.t.Helper()
	l := b.prober.Ledger()
	if l.Scheduled != l.Done()+l.InFlight+l.Backlog {
		b.t.Fatalf("scheduled %d is not done %d + in flight %d + backlog %d", l.Scheduled, l.Done(), l.InFlight, l.Backlog)
	}
}

// close ends the bench and checks that nothing is left.
func (b *bench) close() Ledger {
	b.t.Helper()
	b.prober.Close(context.Background())
	synctest.Wait()
	b.check()
	l := b.prober.Ledger()
	if l.InFlight != 0 || l.Backlog != 0 || l.Connections != 0 {
		b.t.Errorf("after Close %d in flight, %d in the backlog, %d connections", l.InFlight, l.Backlog, l.Connections)
	}
	var closed uint64
	for _, n := range l.Closed {
		closed += n
	}
	if closed != l.Opened {
		b.t.Errorf("opened %d connections, closed %d", l.Opened, closed)
	}
	if got := uint64(len(b.recorder.samples)); got != l.Done() {
		b.t.Errorf("recorded %d samples, completed %d ticks", got, l.Done())
	}
	for i := range b.recorder.samples {
		s := &b.recorder.samples[i]
		if got := s.Lateness() + s.Wait() + s.ServiceTime(); got != s.Latency() {
			b.t.Fatalf("sample %+v: lateness + wait + service time is %v, latency %v", s, got, s.Latency())
		}
	}
	return l
}
