package probe

import (
	"context"
	"testing"
	"testing/synctest"
	"time"
)

func TestClosedLoop(t *testing.T) {
	for _, tc := range []struct {
		name   string
		target Target
		close  CloseReason
		want   uint64 // completed in a second
		opened uint64
	}{
		// 4 connections, each with one request after the other of 5 ms.
		{"warm", Target{Reuse: true, Warm: true}, NotClosed, 4 * 200, 4},
		// The first request on each takes 10 ms more: 10 ms + 5 n ms <= 1 s.
		{"cold", Target{Reuse: true}, NotClosed, 4 * 198, 4},
		// 15 ms each: the 67th is opened at 1,000 ms and ends later.
		{"connection per request", Target{}, ClosePerRequest, 4 * 66, 4 * 67},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				target := tc.target
				target.Closed, target.Connections = true, 4
				b := newBench(t, target)
				b.door.open, b.door.service, b.door.close = 10*time.Millisecond, 5*time.Millisecond, tc.close
				b.prober.WarmUp(context.Background())
				b.prober.Begin()
				for range 1000 {
					b.sleep(time.Millisecond)
				}
				l := b.prober.Ledger()
				if l.Done() != tc.want || l.Opened != tc.opened || l.InFlight != 4 || l.Backlog != 0 {
					t.Errorf("%d completed over %d connections, %d in flight, %d in the backlog; want %d over %d, 4, 0",
						l.Done(), l.Opened, l.InFlight, l.Backlog, tc.want, tc.opened)
				}
				b.prober.Halt()
				b.sleep(20 * time.Millisecond)
				if l := b.prober.Ledger(); l.InFlight != 0 || l.Done() != tc.want+4 {
					t.Errorf("%d in flight after Halt, %d completed", l.InFlight, l.Done())
				}
				b.close()
			})
		})
	}
}

// TestClosedLoopOverConnectionsThatEnd has every connection die without its
// reader noticing: no tick is lost, and no counter falls.
func TestClosedLoopOverConnectionsThatEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, Target{Closed: true, Connections: 3, Reuse: true, Warm: true})
		b.door.service = time.Millisecond
		b.prober.WarmUp(context.Background())
		b.prober.Begin()
		var scheduled uint64
		for i := range 300 {
			b.sleep(700 * time.Microsecond)
			if i%20 == 0 {
				b.door.mu.Lock()
				conns := b.door.conns
				b.door.mu.Unlock()
				for _, c := range conns {
					c.dies()
				}
				b.sleep(3 * time.Millisecond)
				for _, c := range conns {
					c.peerCloses()
				}
			}
			l := b.prober.Ledger()
			if l.Scheduled < scheduled {
				t.Fatalf("scheduled fell from %d to %d", scheduled, l.Scheduled)
			}
			scheduled = l.Scheduled
		}
		b.prober.Halt()
		b.sleep(time.Second)
		if l := b.close(); l.Failed() != 0 || l.Done() != l.Scheduled || l.Done() < 300 {
			t.Errorf("%d scheduled, %d completed, %d failed", l.Scheduled, l.Done(), l.Failed())
		}
	})
}

func TestClosedLoopDoesNotHammerADeadDoor(t *testing.T) {
	for _, warm := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			b := newBench(t, Target{Closed: true, Connections: 2, Reuse: true, Warm: warm})
			b.door.fail = ConnectRefused
			b.prober.WarmUp(context.Background())
			b.prober.Begin()
			b.sleep(time.Minute)
			// Two at a time, less and less often: at most 17 times in a minute.
			if b.door.openers > 2*18 || b.door.openers < 2*10 {
				t.Errorf("warm %v: %d openings in a minute, want 20 to 36", warm, b.door.openers)
			}
			b.door.set(func(d *fakeDoor) { d.fail, d.service = Success, time.Millisecond })
			b.sleep(10 * time.Second)
			if l := b.prober.Ledger(); l.Failures(Success) < 4000 {
				t.Errorf("warm %v: %d successes once the door is back", warm, l.Failures(Success))
			}
			b.close()
		})
	}
}

// TestClosedLoopBeginsAgainAfterAFailedOpening halts a loop whose last opening
// then fails: the next window begins when the pause that follows is over.
func TestClosedLoopBeginsAgainAfterAFailedOpening(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, Target{Closed: true, Connections: 2})
		b.door.open, b.door.service, b.door.close = 50*time.Millisecond, time.Millisecond, ClosePerRequest
		b.prober.Begin()
		b.sleep(75 * time.Millisecond) // the second openings are under way
		b.prober.Halt()
		b.door.set(func(d *fakeDoor) { d.fail = ConnectTimeout })
		b.prober.Begin()
		b.sleep(30 * time.Millisecond)
		b.prober.Halt()
		b.sleep(60 * time.Millisecond)
		b.door.set(func(d *fakeDoor) { d.fail = Success })
		b.prober.Begin()
		b.sleep(10 * time.Second)
		if l := b.prober.Ledger(); l.Failures(ConnectTimeout) == 0 || l.Failures(Success) < 50 {
			t.Errorf("%d openings failed, %d requests succeeded in the window behind them", l.Failures(ConnectTimeout), l.Failures(Success))
		}
		b.close()
	})
}

// TestClosedLoopOverAFailedReplacement lets the replacement of a connection
// fail while the door answers with failures: the loop goes on.
func TestClosedLoopOverAFailedReplacement(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, Target{Closed: true, Connections: 2, Reuse: true, Warm: true, MaxRequests: 10})
		b.door.service, b.door.outcome = time.Millisecond, ResponseStatus
		b.prober.WarmUp(context.Background())
		b.prober.Begin()
		b.sleep(5 * time.Millisecond)
		b.door.set(func(d *fakeDoor) { d.fail = ConnectRefused })
		b.sleep(20 * time.Second)
		b.door.set(func(d *fakeDoor) { d.fail = Success })
		before := b.prober.Ledger()
		b.sleep(10 * time.Second)
		if l := b.prober.Ledger(); l.Done() < before.Done()+5000 {
			t.Errorf("%d requests in 10 s over 2 connections of 1 ms, want thousands", l.Done()-before.Done())
		}
		b.close()
	})
}
