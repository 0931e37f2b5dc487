package probe

import (
	"context"
	"testing"
	"testing/synctest"
	"time"
)

// TestTickPassesConnectionsThatHaveEnded gives ticks to connections that the
// door has closed and whose readers have not had the time to see it.
func TestTickPassesConnectionsThatHaveEnded(t *testing.T) {
	for _, tc := range []struct {
		name string
		dead int // of the 4 connections
		// openings: 4 to begin with, and one by a tick that finds none alive.
		openings int
	}{
		{"none", 0, 4},
		{"some", 3, 4},
		{"all", 4, 5},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newBench(t, Target{Rate: 100, Connections: 4, Reuse: true, Warm: true})
				b.door.service = time.Millisecond
				b.prober.WarmUp(context.Background())
				b.sleep(time.Minute)
				for _, c := range b.door.conns[:tc.dead] {
					c.dies()
				}
				b.tick()
				b.sleep(10 * time.Millisecond)
				if b.door.openers != tc.openings {
					t.Errorf("%d openings, want %d", b.door.openers, tc.openings)
				}
				if l := b.prober.Ledger(); l.Failures(Success) != 1 {
					t.Errorf("%d successes, want the one", l.Failures(Success))
				}
				for _, c := range b.door.conns[:tc.dead] {
					if c.served != 0 {
						t.Errorf("a dead connection served %d requests", c.served)
					}
					c.peerCloses() // at last
				}
				synctest.Wait()
				// What ended is replaced: 4 are open again.
				if l := b.prober.Ledger(); l.Connections != 4 || l.Closed[ClosePeer] != uint64(tc.dead) {
					t.Errorf("%d connections open and %d closed by the peer, want 4 and %d", l.Connections, l.Closed[ClosePeer], tc.dead)
				}
				b.close()
			})
		})
	}
}

// TestConnectionThatEndsBeforeTheNextTickOfTheBacklog has one connection die
// while ticks wait for it: the first of them opens another one, in order.
func TestConnectionThatEndsBeforeTheNextTickOfTheBacklog(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, Target{Rate: 100, Connections: 1, Reuse: true})
		b.door.service = 20 * time.Millisecond
		b.tick()
		b.sleep(time.Millisecond)
		first := b.door.conns[0]
		for range 3 {
			b.tick()
			b.sleep(time.Millisecond)
		}
		first.dies()
		b.sleep(100 * time.Millisecond)
		first.peerCloses()
		l := b.close()
		if l.Failures(Success) != 4 || first.served != 1 || len(b.door.conns) != 2 {
			t.Errorf("%d successes, %d on the first of %d connections; want 4, 1, 2", l.Failures(Success), first.served, len(b.door.conns))
		}
		for i := 1; i < len(b.recorder.samples); i++ {
			if b.recorder.samples[i].Intended < b.recorder.samples[i-1].Intended {
				t.Errorf("ticks completed out of order: %v", b.recorder.samples)
			}
		}
	})
}

// TestTickThatIsPutBackExpires lets the place of a dead connection go to an
// opening that belongs to no tick and hangs, before the tick that found it dead
// can have it: the tick goes back, and expires although no other tick comes.
func TestTickThatIsPutBackExpires(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, Target{Rate: 0.01, Connections: 1, Reuse: true, Warm: true, Backlog: time.Second})
		b.prober.WarmUp(t.Context())
		b.sleep(time.Minute)
		b.door.set(func(d *fakeDoor) { d.open = 20 * time.Second })
		c := b.door.conns[0]
		c.dies()
		c.refusing = c.peerCloses
		b.prober.Take(b.clock.Now())
		b.check()
		time.Sleep(time.Second)
		synctest.Wait()
		if l := b.prober.Ledger(); l.Backlog != 0 || l.Failures(ScheduleExpired) != 1 {
			t.Errorf("after the backlog's second %d wait and %d have expired, want 0 and 1", l.Backlog, l.Failures(ScheduleExpired))
		}
		b.close()
	})
}

// TestCloseWhileATickIsRefused closes a target while one of its ticks learns
// that its connection has ended: it completes as schedule/shutdown.
func TestCloseWhileATickIsRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, Target{Rate: 100, Connections: 2, Reuse: true, Warm: true})
		b.prober.WarmUp(context.Background())
		over := make(chan struct{})
		for _, c := range b.door.conns {
			c.dies()
			c.refusing = func() {
				go func() {
					defer close(over)
					b.prober.Close(context.Background())
				}()
				synctest.Wait()
				c.peerCloses()
			}
		}
		b.tick()
		<-over
		if l := b.close(); l.Failures(ScheduleShutdown) != 1 || l.Done() != 1 {
			t.Errorf("completed %v, want one schedule/shutdown", l.Completed)
		}
	})
}

func TestBacklogTakesTicksBack(t *testing.T) {
	var b backlog
	for i := range Instant(300) {
		b.push(Tick{Intended: i})
	}
	for i := range Instant(129) {
		if got := b.pop().Intended; got != i {
			t.Fatalf("popped tick %d, want %d", got, i)
		}
	}
	// 127 fit before the head's place, the others need pages before that one.
	for i := Instant(128); i >= -200; i-- {
		b.pushFront(Tick{Intended: i})
	}
	for i := Instant(-200); i < 300; i++ {
		if got := b.pop().Intended; got != i {
			t.Fatalf("popped tick %d, want %d", got, i)
		}
	}
	b.pushFront(Tick{Intended: 7})
	if got := b.pop().Intended; got != 7 || b.len() != 0 {
		t.Errorf("popped tick %d and %d are left, want 7 and 0", got, b.len())
	}
}
