package probe

import (
	"context"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

func TestTickTakesConnectionThatWaitedLongest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, Target{Rate: 100, Connections: 4, Reuse: true})
		b.door.service = time.Millisecond
		b.pace(40, 10*time.Millisecond)
		// The ramp opens all four with the first four ticks, then each is used in
		// turn: 40 ticks over 4 connections.
		if len(b.door.conns) != 4 {
			t.Fatalf("opened %d connections, want 4", len(b.door.conns))
		}
		for i, c := range b.door.conns {
			if c.served != 10 {
				t.Errorf("connection %d served %d requests, want 10", i, c.served)
			}
		}
		if l := b.close(); l.Completed[NoChurn][Success] != 40 {
			t.Errorf("%d successes, want 40", l.Completed[NoChurn][Success])
		}
	})
}

func TestRamp(t *testing.T) {
	for _, tc := range []struct {
		name        string
		rate        float64
		connections int
		want        int
	}{
		{"slow rate needs one", 0.2, 10, 1},
		{"rounded up", 2.5, 10, 3},
		{"never more than connections", 1000, 10, 10},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newBench(t, Target{Rate: tc.rate, Connections: tc.connections, Reuse: true})
				b.pace(20, time.Duration(float64(time.Second)/tc.rate))
				if len(b.door.conns) != tc.want {
					t.Errorf("opened %d connections, want %d", len(b.door.conns), tc.want)
				}
				b.close()
			})
		})
	}
}

func TestBacklogIsSentOldestFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, Target{Rate: 100, Connections: 1, Reuse: true})
		b.door.service = 25 * time.Millisecond
		b.pace(4, 10*time.Millisecond)
		b.sleep(time.Second)
		// Tick i is due at 10 i ms and is served from 25 i to 25 (i+1) ms, so its
		// latency is 25 (i+1) - 10 i = 25 + 15 i ms.
		for i, s := range b.recorder.samples {
			if want := time.Duration(25+15*i) * time.Millisecond; s.Latency() != want {
				t.Errorf("tick %d: latency %v, want %v", i, s.Latency(), want)
			}
			if want := time.Duration(15*i) * time.Millisecond; s.Wait() != want {
				t.Errorf("tick %d: wait %v, want %v", i, s.Wait(), want)
			}
		}
		if b.door.most != 1 {
			t.Errorf("%d requests at once on 1 connection", b.door.most)
		}
		b.close()
	})
}

func TestTickExpiresInBacklog(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, Target{Rate: 10, Connections: 1, Reuse: true, Backlog: 250 * time.Millisecond})
		b.door.service = time.Second
		b.pace(3, 100*time.Millisecond)
		b.sleep(time.Second)
		l := b.prober.Ledger()
		if l.Failures(ScheduleExpired) != 2 || l.Failures(Success) != 1 {
			t.Fatalf("%d expired and %d successes, want 2 and 1", l.Failures(ScheduleExpired), l.Failures(Success))
		}
		for _, s := range b.recorder.samples[:2] {
			if s.Latency() != 250*time.Millisecond || s.ServiceTime() != 0 {
				t.Errorf("expired with latency %v and service time %v, want 250ms and none", s.Latency(), s.ServiceTime())
			}
		}
		b.close()
	})
}

func TestCatchUpCapsTheBurst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, Target{Rate: 100, Connections: 50, Reuse: true, CatchUp: 2})
		b.door.open = time.Second
		b.door.service = time.Millisecond
		b.pace(100, 10*time.Millisecond)
		// 50 ticks opened the connections; 50 wait when the openings succeed, and
		// one tick more is due every 10 ms. At 200 a second the backlog shrinks by
		// 100 a second, so that it is empty after 500 ms.
		if got := b.prober.Ledger().Backlog; got < 48 || got > 50 {
			t.Fatalf("backlog %d when the door recovers, want 48 to 50", got)
		}
		b.pace(25, 10*time.Millisecond)
		if got := b.prober.Ledger().Backlog; got < 23 || got > 27 {
			t.Errorf("backlog %d after 250 ms, want 23 to 27", got)
		}
		b.pace(27, 10*time.Millisecond)
		if got := b.prober.Ledger().Backlog; got != 0 {
			t.Errorf("backlog %d after 520 ms, want none", got)
		}
		b.close()
	})
}

func TestOpeningFailureBelongsToItsTick(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, Target{Rate: 10, Connections: 5, Reuse: true})
		b.door.fail = ConnectRefused
		b.pace(10, 100*time.Millisecond)
		if l := b.close(); l.Failures(ConnectRefused) != 10 || l.Opened != 0 || l.OpeningFailures[ConnectRefused] != 0 {
			t.Errorf("%d refused, %d opened, %d failed openings; want 10, 0, 0",
				l.Failures(ConnectRefused), l.Opened, l.OpeningFailures[ConnectRefused])
		}
	})
}

func TestWarmUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, Target{Rate: 100, Connections: 8, Reuse: true, Warm: true})
		b.door.open = 20 * time.Millisecond
		began := b.clock.Now()
		b.prober.WarmUp(context.Background())
		if took := b.clock.Now().Sub(began); took != 20*time.Millisecond {
			t.Errorf("warming up took %v, want 20ms: openings run in parallel", took)
		}
		b.pace(10, 10*time.Millisecond)
		if len(b.recorder.openings) != 8 || b.door.openers != 8 {
			t.Errorf("%d openings recorded, %d made, want 8", len(b.recorder.openings), b.door.openers)
		}
		// What the door closes is opened again, without a tick.
		for _, c := range b.door.conns[:3] {
			c.peerCloses()
		}
		b.sleep(30 * time.Millisecond)
		if l := b.prober.Ledger(); l.Connections != 8 || l.Closed[ClosePeer] != 3 {
			t.Errorf("%d connections and %d closed by the peer, want 8 and 3", l.Connections, l.Closed[ClosePeer])
		}
		b.close()
	})
}

func TestWarmTargetDoesNotHammerADeadDoor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, Target{Rate: 1, Connections: 2, Reuse: true, Warm: true})
		b.door.fail = ConnectRefused
		b.prober.WarmUp(context.Background())
		b.sleep(time.Minute)
		// Twice at 0, 0.1, 0.3, 0.7, 1.5, 3.1 and 6.3 s, then every 5 s until 56.3 s.
		if l := b.prober.Ledger(); l.OpeningFailures[ConnectRefused] != 2*(7+10) {
			t.Errorf("%d openings in a minute, want 34", l.OpeningFailures[ConnectRefused])
		}
		b.door.set(func(d *fakeDoor) { d.fail = Success })
		b.sleep(5 * time.Second)
		if l := b.close(); l.Opened != 2 {
			t.Errorf("%d connections after the door is back, want 2", l.Opened)
		}
	})
}

// TestWarmTargetDoesNotHammerADoorThatCloses has a door close every connection
// as soon as it is open, as a balancer without backends does.
func TestWarmTargetDoesNotHammerADoorThatCloses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, Target{Rate: 0.001, Connections: 2, Reuse: true, Warm: true})
		b.prober.WarmUp(context.Background())
		for range 60_000 {
			for _, c := range b.door.conns {
				c.peerCloses()
			}
			b.sleep(time.Millisecond)
		}
		// Twice at 0, 0.1, 0.3, 0.7, 1.5, 3.1 and 6.3 s, then every 5 s.
		if b.door.openers > 2*18 || b.door.openers < 2*10 {
			t.Errorf("%d openings in a minute, want 20 to 36", b.door.openers)
		}
		b.close()
	})
}

// TestSuccessBesideFailuresDoesNotHammer has a door that closes each connection
// after an answer and refuses most openings: the successes of some are no reason
// to open all the others at once, again and again.
func TestSuccessBesideFailuresDoesNotHammer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, Target{Rate: 100, Connections: 20, Reuse: true, Warm: true})
		b.door.service, b.door.close = time.Millisecond, CloseAnnounced
		b.door.open = time.Millisecond
		b.prober.WarmUp(context.Background())
		b.door.refuse = 4 // of 5
		b.pace(1000, 10*time.Millisecond)
		// 1,000 ticks in 10 s need an opening each. The pauses between refills grow
		// to 5 s, so that a few refills of up to 20 come on top.
		if n := b.door.openers; n > 1500 {
			t.Errorf("%d openings for 1,000 ticks", n)
		}
		b.close()
	})
}

func TestTurnoverCostsNoRequest(t *testing.T) {
	for _, tc := range []struct {
		name   string
		target Target
		reason CloseReason
		want   uint64 // closed after 1,000 ticks in 10 s
	}{
		// 4 connections share 1,000 ticks: 250 each, a new one after 50.
		{"max_requests", Target{MaxRequests: 50}, CloseMaxRequests, 4 * 4},
		// 4 connections, each replaced every 0.9 to 1 s for 10 s: 9 to 11 times.
		{"max_age", Target{MaxAge: time.Second}, CloseMaxAge, 4 * 10},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				target := tc.target
				target.Rate, target.Connections, target.Reuse = 100, 4, true
				b := newBench(t, target)
				b.door.open = 2 * time.Millisecond
				b.door.service = time.Millisecond
				b.pace(4, 10*time.Millisecond)
				b.pace(996, 10*time.Millisecond)
				for i, s := range b.recorder.samples {
					want := time.Millisecond
					if i < 4 {
						want += 2 * time.Millisecond // these opened the connections
					}
					if s.Latency() != want {
						t.Fatalf("tick %d: latency %v, want %v", i, s.Latency(), want)
					}
				}
				l := b.prober.Ledger()
				if got := l.Closed[tc.reason]; got < tc.want-4 || got > tc.want+4 {
					t.Errorf("%d connections closed, want %d or 4 more or less", got, tc.want)
				}
				if l.Connections != 4 {
					t.Errorf("%d connections, want 4", l.Connections)
				}
				b.close()
			})
		})
	}
}

func TestReplacementFailureKeepsTheOldConnection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, Target{Rate: 100, Connections: 1, Reuse: true, MaxRequests: 5})
		b.pace(4, 10*time.Millisecond)
		b.door.set(func(d *fakeDoor) { d.fail = ConnectRefused })
		b.pace(96, 10*time.Millisecond)
		l := b.close()
		if l.Failures(Success) != 100 || l.Opened != 1 {
			t.Errorf("%d successes on %d connections, want 100 on 1", l.Failures(Success), l.Opened)
		}
		if l.OpeningFailures[ConnectRefused] == 0 {
			t.Error("no replacement was tried")
		}
	})
}

func TestConnectionPerRequest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, Target{Rate: 100, Connections: 3})
		b.door.open = 2 * time.Millisecond
		b.door.service = 3 * time.Millisecond
		b.door.close = ClosePerRequest
		b.pace(50, 10*time.Millisecond)
		for i, s := range b.recorder.samples {
			if s.Latency() != 5*time.Millisecond {
				t.Fatalf("tick %d: latency %v, want 5ms", i, s.Latency())
			}
		}
		if l := b.close(); l.Opened != 50 || l.Closed[ClosePerRequest] != 50 {
			t.Errorf("opened %d, closed %d, want 50", l.Opened, l.Closed[ClosePerRequest])
		}
	})
}

func TestObjective(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, Target{Rate: 100, Connections: 1, Reuse: true, Objective: 25 * time.Millisecond})
		b.prober.SetChurn(ScalingUp)
		b.door.service = 25 * time.Millisecond
		b.tick() // 25 ms: within
		b.tick() // waits 25 ms: not within
		b.sleep(time.Second)
		if l := b.close(); l.WithinObjective[ScalingUp] != 1 || l.Completed[ScalingUp][Success] != 2 {
			t.Errorf("%d of %d within the objective, want 1 of 2", l.WithinObjective[ScalingUp], l.Completed[ScalingUp][Success])
		}
	})
}

func TestClose(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, Target{Rate: 10, Connections: 2, Reuse: true})
		b.door.service = 10 * time.Second
		for range 5 {
			b.tick()
		}
		ctx, cancel := context.WithTimeout(context.Background(), 3*time.Second)
		defer cancel()
		began := b.clock.Now()
		b.prober.Close(ctx)
		if took := b.clock.Now().Sub(began); took != 3*time.Second {
			t.Errorf("Close took %v, want the 3s of its context", took)
		}
		b.prober.Take(b.clock.Now())
		if l := b.close(); l.Failures(ScheduleShutdown) != 6 {
			t.Errorf("%d shut down, want 6: two in flight, three in the backlog, one too late", l.Failures(ScheduleShutdown))
		}
	})
}

func TestCloseLetsRequestsFinish(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, Target{Rate: 10, Connections: 2, Reuse: true})
		b.door.service = time.Second
		b.door.open = time.Second
		b.tick()
		b.tick()
		if l := b.close(); l.Failures(Success) != 2 {
			t.Errorf("%d successes, want 2: openings in flight finish too", l.Failures(Success))
		}
	})
}

// TestIdentityUnderFaults lets a door do its worst at random and checks the
// ledger from another goroutine all the time.
func TestIdentityUnderFaults(t *testing.T) {
	for seed := range uint64(20) {
		synctest.Test(t, func(t *testing.T) {
			r := rand.New(rand.NewPCG(seed, 1))
			target := Target{
				Rate: 200, Connections: 1 + r.IntN(20), Reuse: r.IntN(4) > 0,
				Backlog: time.Duration(1+r.IntN(500)) * time.Millisecond,
				CatchUp: []float64{0, 1, 3}[r.IntN(3)],
			}
			target.Warm = target.Reuse && r.IntN(2) == 0
			if r.IntN(2) == 0 {
				target.MaxRequests = uint64(1 + r.IntN(20))
			}
			if r.IntN(2) == 0 {
				target.MaxAge = time.Duration(1+r.IntN(1000)) * time.Millisecond
			}
			b := newBench(t, target)
			b.prober.WarmUp(t.Context())
			var watch sync.WaitGroup
			stop := make(chan struct{})
			watch.Go(func() {
				for {
					select {
					case <-stop:
						return
					case <-time.After(777 * time.Microsecond):
						b.check()
					}
				}
			})
			for range 60 {
				b.door.set(func(d *fakeDoor) {
					d.open = time.Duration(r.IntN(20)) * time.Millisecond
					d.service = time.Duration(r.IntN(200)) * time.Millisecond
					d.fail = []Outcome{Success, Success, ConnectRefused, TLSTimeout}[r.IntN(4)]
					d.close = []CloseReason{NotClosed, NotClosed, ClosePeer}[r.IntN(3)]
					if !target.Reuse {
						d.close = ClosePerRequest
					}
				})
				b.pace(r.IntN(40), 5*time.Millisecond)
				b.door.mu.Lock()
				conns := b.door.conns
				b.door.mu.Unlock()
				for _, c := range conns {
					c.mu.Lock()
					idle := !c.busy && !c.gone
					c.mu.Unlock()
					if idle && r.IntN(5) == 0 {
						c.peerCloses()
					}
				}
			}
			close(stop)
			watch.Wait()
			b.close()
			if b.door.most > target.Connections {
				t.Errorf("seed %d: %d requests at once, allowed are %d", seed, b.door.most, target.Connections)
			}
		})
	}
}

func TestBacklogQueue(t *testing.T) {
	var q backlog
	next, oldest := Instant(0), Instant(0)
	r := rand.New(rand.NewPCG(1, 2))
	for range 20000 {
		if q.len() == 0 || r.IntN(100) < 52 {
			q.push(Tick{Intended: next})
			next++
			continue
		}
		if got := q.oldest().Intended; got != oldest {
			t.Fatalf("oldest is %d, want %d", got, oldest)
		}
		if got := q.pop().Intended; got != oldest {
			t.Fatalf("popped %d, want %d", got, oldest)
		}
		oldest++
	}
	if q.len() != int(next-oldest) {
		t.Errorf("length %d, want %d", q.len(), next-oldest)
	}
}

func TestOutcomeNames(t *testing.T) {
	seen := map[string]bool{}
	for o := range NumOutcomes {
		name := Outcome(o).String()
		if seen[name] || name == "/" {
			t.Errorf("outcome %d has no name of its own: %q", o, name)
		}
		seen[name] = true
	}
}
