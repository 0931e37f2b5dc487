package probe

import (
	"math/rand/v2"
	"net/netip"
	"testing"
	"testing/synctest"
	"time"
)

// elsewhere changes the target and its door, and returns that.
func (b *bench) elsewhere(change func(*Target), of func(*fakeDoor)) *fakeDoor {
	target := b.prober.target
	change(&target)
	door := &fakeDoor{clock: b.clock}
	of(door)
	b.prober.Reconfigure(target, door)
	b.check()
	return door
}

// differently changes the target, not the door.
func (b *bench) differently(change func(*Target)) {
	target := b.prober.target
	change(&target)
	b.prober.Reconfigure(target, nil)
	b.check()
}

func (d *fakeDoor) opened() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return len(d.conns)
}

// served returns how many requests the door has answered.
func (d *fakeDoor) served() (n int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, c := range d.conns {
		c.mu.Lock()
		n += c.served
		c.mu.Unlock()
	}
	return n
}

// A change that concerns no connection closes none and opens none.
func TestReconfigureKeepsConnections(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, Target{Rate: 100, Connections: 4, Reuse: true})
		b.door.set(func(d *fakeDoor) { d.open, d.service = time.Millisecond, time.Millisecond })
		b.pace(100, 10*time.Millisecond)
		b.differently(func(t *Target) { t.Rate, t.Objective, t.Backlog, t.MaxAge = 50, time.Second, time.Minute, time.Hour })
		b.pace(50, 20*time.Millisecond)
		b.differently(func(t *Target) { t.Connections = 8 })
		b.pace(1, 20*time.Millisecond)
		l := b.prober.Ledger()
		if l.Scheduled != 151 || l.Failures(Success) != 151 || l.Opened != 5 || l.Connections != 5 {
			t.Errorf("%+v, want 151 successes over 4 connections, and one more that the last change lets open", l)
		}
		if within := l.WithinObjective[NoChurn]; within != 51 {
			t.Errorf("%d within the objective, want those since there is one, 51", within)
		}
		b.close()
	})
}

// Connections are replaced before they are closed, whatever they carry, and no
// request is lost.
func TestReconfigureReplacesConnections(t *testing.T) {
	for _, row := range []struct {
		name    string
		service time.Duration
		busy    int // requests in flight at the change
	}{
		{"idle", time.Millisecond, 0},
		{"some are busy", 25 * time.Millisecond, 2},
		{"all are busy", 25 * time.Millisecond, 4},
		{"there is a backlog", 25 * time.Millisecond, 20},
	} {
		t.Run(row.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newBench(t, Target{Rate: 100, Connections: 4, Reuse: true})
				b.door.set(func(d *fakeDoor) { d.open, d.service = time.Millisecond, row.service })
				b.pace(4, 100*time.Millisecond)
				for range row.busy {
					b.tick()
				}
				before := b.prober.Ledger()
				second := b.elsewhere(func(*Target) {}, func(d *fakeDoor) { d.open, d.service = 5*time.Millisecond, time.Millisecond })
				// Until the replacements are open the old ones go on.
				if l := b.prober.Ledger(); l.Connections != 4 || l.Closed[CloseReload] != 0 || l.Scheduled != before.Scheduled {
					t.Errorf("at the change %+v, want 4 connections and none closed", l)
				}
				b.sleep(100 * time.Millisecond)
				b.pace(20, 10*time.Millisecond)
				l := b.prober.Ledger()
				if l.Opened != 8 || l.Closed[CloseReload] != 4 || l.Connections != 4 || second.opened() != 4 {
					t.Errorf("opened %d, %d of them to the new door, closed %v, %d are open; want 8, 4, 4 by a reload, 4", l.Opened, second.opened(), l.Closed, l.Connections)
				}
				if n := second.served(); n < 20 {
					t.Errorf("the new door was sent %d requests, want at least 20", n)
				}
				if l = b.close(); l.Failed() != 0 || l.Scheduled != uint64(24+row.busy) || b.prober.leaving != 0 {
					t.Errorf("%d scheduled, %d failed, %d leaving; want %d, 0, 0", l.Scheduled, l.Failed(), b.prober.leaving, 24+row.busy)
				}
			})
		})
	}
}

// A door that has stalled holds every connection. The one that is probed in its
// place is not held up by that, and what was in flight gets its time.
func TestReconfigureAwayFromAStalledDoor(t *testing.T) {
	for _, row := range []struct {
		name  string
		stall func(*fakeDoor)
	}{
		{"no answer", func(d *fakeDoor) { d.service = time.Hour }},
		{"no connection", func(d *fakeDoor) { d.open = time.Hour }},
	} {
		t.Run(row.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newBench(t, Target{Rate: 100, Connections: 4, Reuse: true})
				b.door.set(row.stall)
				b.pace(100, 10*time.Millisecond)
				if l := b.prober.Ledger(); l.InFlight != 4 || l.Backlog != 96 {
					t.Fatalf("%d in flight and %d in the backlog, want 4 and 96", l.InFlight, l.Backlog)
				}
				second := b.elsewhere(func(*Target) {}, func(d *fakeDoor) { d.service = time.Millisecond })
				b.sleep(time.Second)
				b.pace(10, 10*time.Millisecond)
				l := b.prober.Ledger()
				if l.InFlight != 4 || l.Backlog != 0 || second.served() != 106 {
					t.Errorf("%d in flight, %d in the backlog, %d served by the new door; want 4, 0, 106", l.InFlight, l.Backlog, second.served())
				}
				if n := second.most; n > 4 {
					t.Errorf("the new door had %d requests at once, want at most 4", n)
				}
				b.sleep(2 * time.Hour)
				if l := b.prober.Ledger(); l.InFlight != 0 || b.prober.leaving != 0 || l.Connections != 4 {
					t.Errorf("%d in flight, %d of them leaving, %d connections in the end; want 0, 0, 4", l.InFlight, b.prober.leaving, l.Connections)
				}
				b.close()
			})
		})
	}
}

// What cannot be reached is felt: connections to the door of before do not hide
// it for longer than one attempt takes.
func TestReconfigureToADeadDoor(t *testing.T) {
	for _, warm := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			b := newBench(t, Target{Rate: 10, Connections: 4, Reuse: true, Warm: warm})
			b.pace(10, 100*time.Millisecond)
			b.elsewhere(func(*Target) {}, func(d *fakeDoor) { d.open, d.fail = 250*time.Millisecond, ConnectTimeout })
			b.pace(2, 100*time.Millisecond) // by the old ones
			b.sleep(100 * time.Millisecond)
			before := b.prober.Ledger()
			if before.Failed() != 0 || before.Connections != 0 || before.OpeningFailures[ConnectTimeout] == 0 {
				t.Errorf("warm %v: %d failed, %d connections, openings failed %d times; want 0, 0 and some", warm, before.Failed(), before.Connections, before.OpeningFailures[ConnectTimeout])
			}
			b.pace(10, 100*time.Millisecond)
			b.sleep(time.Minute)
			if l := b.prober.Ledger(); l.Done() != 22 || !warm && l.Failures(ConnectTimeout) != 10 {
				t.Errorf("warm %v: %d done, %d of them timed out", warm, l.Done(), l.Failures(ConnectTimeout))
			}
			// And back, though openings have just failed.
			third := b.elsewhere(func(*Target) {}, func(*fakeDoor) {})
			b.pace(10, 100*time.Millisecond)
			if n := third.served(); n < 10 {
				t.Errorf("warm %v: the door that can be reached has served %d, want 10 at least", warm, n)
			}
			b.close()
		})
	}
}

// A second change comes while the replacements of the first one are being
// opened: these are not used for anything.
func TestReconfigureTwice(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, Target{Rate: 100, Connections: 4, Reuse: true})
		b.pace(10, 10*time.Millisecond)
		second := b.elsewhere(func(*Target) {}, func(d *fakeDoor) { d.open = 50 * time.Millisecond })
		b.pace(2, 10*time.Millisecond)
		third := b.elsewhere(func(*Target) {}, func(d *fakeDoor) { d.open = 100 * time.Millisecond })
		b.pace(50, 10*time.Millisecond)
		if n := second.served(); n != 0 {
			t.Errorf("the door that is no more was sent %d requests", n)
		}
		l := b.prober.Ledger()
		if l.Connections != 4 || third.opened() != 4 || second.opened() != 4 || l.Failed() != 0 {
			t.Errorf("%d connections, opened %d and %d, %d failed; want 4, 4, 4, 0", l.Connections, second.opened(), third.opened(), l.Failed())
		}
		b.close()
	})
}

func TestReconfigureToFewerConnections(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, Target{Rate: 1000, Connections: 8, Reuse: true})
		b.door.set(func(d *fakeDoor) { d.service = 100 * time.Millisecond })
		for range 8 {
			b.tick()
		}
		b.sleep(time.Second)
		for range 6 { // and two are idle
			b.tick()
		}
		b.differently(func(t *Target) { t.Connections = 3 })
		synctest.Wait()
		if l := b.prober.Ledger(); l.Connections != 6 || l.Closed[CloseReload] != 2 {
			t.Errorf("%d connections, closed %v; want 6, as 2 were idle", l.Connections, l.Closed)
		}
		b.door.set(func(d *fakeDoor) { d.most = 0 })
		b.sleep(time.Second)
		b.pace(100, time.Millisecond)
		b.sleep(10 * time.Second)
		l := b.prober.Ledger()
		if l.Connections != 3 || l.Closed[CloseReload] != 5 || l.Failed() != 0 || l.Opened != 8 {
			t.Errorf("%d connections, closed %v, opened %d, %d failed; want 3, 5 by a reload, 8, 0", l.Connections, l.Closed, l.Opened, l.Failed())
		}
		if b.door.most > 3 {
			t.Errorf("%d requests at once, want 3", b.door.most)
		}
		b.close()
	})
}

// Without reuse nothing replaces connections; with it again they are kept.
func TestReconfigureReuse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, Target{Rate: 100, Connections: 4, Reuse: true})
		b.pace(10, 10*time.Millisecond)
		once := b.elsewhere(func(t *Target) { t.Reuse = false }, func(d *fakeDoor) { d.close = ClosePerRequest })
		synctest.Wait()
		if l := b.prober.Ledger(); l.Connections != 0 || l.Closed[CloseReload] != 4 {
			t.Errorf("%d connections, closed %v; want 0, 4 by a reload", l.Connections, l.Closed)
		}
		b.pace(10, 10*time.Millisecond)
		if n := once.opened(); n != 10 {
			t.Errorf("%d connections for 10 requests", n)
		}
		again := b.elsewhere(func(t *Target) { t.Reuse = true }, func(*fakeDoor) {})
		b.pace(10, 10*time.Millisecond)
		if l := b.close(); again.opened() != 4 || l.Failed() != 0 || l.Done() != 30 {
			t.Errorf("%d connections, %d failed, %d done; want 4, 0, 30", again.opened(), l.Failed(), l.Done())
		}
	})
}

// A backlog that may wait for less long expires when that is over, as soon as
// the pacer has been woken.
func TestReconfigureBacklog(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, Target{Rate: 10, Connections: 1, Reuse: true, Backlog: time.Hour})
		b.door.set(func(d *fakeDoor) { d.service = 24 * time.Hour })
		b.pace(11, 100*time.Millisecond)
		b.differently(func(t *Target) { t.Backlog = 550 * time.Millisecond })
		b.wake = b.prober.Drain() // what Pacer.Wake does
		// Ticks of 0.1 s to 1.0 s wait at 1.1 s: six of them for 0.55 s or more.
		if l := b.prober.Ledger(); l.Failures(ScheduleExpired) != 5 || l.Backlog != 5 {
			t.Errorf("%d expired, %d wait; want 5 and 5", l.Failures(ScheduleExpired), l.Backlog)
		}
		b.sleep(time.Second)
		if l := b.prober.Ledger(); l.Failures(ScheduleExpired) != 10 || l.Backlog != 0 {
			t.Errorf("%d expired, %d wait; want 10 and 0", l.Failures(ScheduleExpired), l.Backlog)
		}
		b.elsewhere(func(*Target) {}, func(*fakeDoor) {})
		b.sleep(25 * time.Hour)
		b.close()
	})
}

// The catch-up of a slow target, one tick in 1,000 s, is not waited for by a
// fast one.
func TestReconfigureCatchUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, Target{Rate: 0.001, Connections: 1, Reuse: true, CatchUp: 1, Backlog: time.Hour})
		b.door.set(func(d *fakeDoor) { d.service = time.Second })
		for range 3 {
			b.tick() // one is sent, two wait: one of them for 1,000 s
		}
		b.sleep(2500 * time.Millisecond)
		if l := b.prober.Ledger(); l.Done() != 2 || l.Backlog != 1 {
			t.Fatalf("%d done, %d wait; want 2 and 1", l.Done(), l.Backlog)
		}
		b.differently(func(t *Target) { t.Rate = 10 })
		b.sleep(2 * time.Second)
		if l := b.prober.Ledger(); l.Done() != 3 {
			t.Errorf("%d done, want 3", l.Done())
		}
		b.close()
	})
}

// Addresses of the door of before say nothing of the one after.
func TestReconfigureForgetsAddresses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, Target{Rate: 100, Connections: 2, Reuse: true})
		b.door.set(func(d *fakeDoor) { d.addresses = []netip.Addr{addressA} })
		b.prober.SetAddresses([]netip.Addr{addressA})
		b.pace(4, 10*time.Millisecond)
		b.prober.SetAddresses(nil)
		b.elsewhere(func(*Target) {}, func(d *fakeDoor) { d.addresses = []netip.Addr{addressB} })
		b.pace(10, 10*time.Millisecond)
		b.prober.SetAddresses([]netip.Addr{addressB})
		b.pace(10, 10*time.Millisecond)
		if l := b.close(); l.Closed[CloseReload] != 2 || l.Closed[CloseAddressRemoved] != 0 || l.Opened != 4 {
			t.Errorf("opened %d, closed %v; want 4, 2 of them by a reload", l.Opened, l.Closed)
		}
	})
}

// A target that is warming up warms up to what it has become.
func TestReconfigureWhileWarmingUp(t *testing.T) {
	for _, row := range []struct {
		name string
		warm bool
		want int
	}{{"still warm", true, 4}, {"not warm", false, 0}} {
		t.Run(row.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newBench(t, Target{Rate: 100, Connections: 4, Reuse: true, Warm: true})
				b.door.set(func(d *fakeDoor) { d.open = time.Hour })
				over := make(chan struct{})
				go func() {
					defer close(over)
					b.prober.WarmUp(t.Context())
				}()
				synctest.Wait()
				second := b.elsewhere(func(t *Target) { t.Warm = row.warm }, func(d *fakeDoor) { d.open = 0 })
				<-over
				if n := second.opened(); n != row.want {
					t.Errorf("warm with %d connections, want %d", n, row.want)
				}
				b.pace(10, 10*time.Millisecond)
				b.close()
			})
		})
	}
}

// A target becomes a closed loop with its backlog, and an open one again.
func TestReconfigureClosedLoop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, Target{Rate: 100, Connections: 2, Reuse: true})
		b.door.set(func(d *fakeDoor) { d.service = 100 * time.Millisecond })
		b.pace(10, 10*time.Millisecond)
		waiting := b.prober.Ledger().Backlog
		b.differently(func(t *Target) { t.Closed = true })
		b.prober.Begin()
		b.check()
		b.sleep(time.Second)
		b.prober.Halt()
		b.differently(func(t *Target) { t.Closed = false })
		b.sleep(time.Second)
		b.pace(10, 10*time.Millisecond)
		b.sleep(time.Second)
		l := b.close()
		closed := 0
		for _, s := range b.recorder.samples {
			if s.Closed {
				closed++
			}
		}
		// 2 connections for 1 s at 0.1 s: 20, those that waited included.
		if want := 20 - int(waiting); closed < want-2 || closed > want+2 || l.Done() != uint64(20+closed) || l.Failed() != 0 {
			t.Errorf("%d ticks of a closed loop, want about %d; %d done, %d failed", closed, want, l.Done(), l.Failed())
		}
	})
}

func TestReconfigureAfterClose(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, Target{Rate: 100, Connections: 2, Reuse: true, Warm: true})
		b.pace(4, 10*time.Millisecond)
		b.close()
		second := b.elsewhere(func(*Target) {}, func(*fakeDoor) {})
		synctest.Wait()
		if second.openers != 0 {
			t.Errorf("a closed prober has opened %d connections", second.openers)
		}
	})
}

// Whatever happens in whatever order: the ledger adds up at every step, and in
// the end nothing is left.
func TestReconfigureAtRandom(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	for round := range uint64(60) {
		synctest.Test(t, func(t *testing.T) { reconfigureAtRandom(t, rand.New(rand.NewPCG(seed, round))) })
	}
}

func reconfigureAtRandom(t *testing.T, rng *rand.Rand) {
	duration := func(most time.Duration) time.Duration { return time.Duration(rng.Int64N(int64(most))) }
	b := newBench(t, Target{Rate: 100, Connections: 1 + rng.IntN(8), Reuse: rng.IntN(4) > 0})
	random := func(d *fakeDoor, reuse bool) {
		d.open, d.service = duration(50*time.Millisecond), duration(50*time.Millisecond)
		if rng.IntN(4) == 0 {
			d.service = duration(10 * time.Second)
		}
		d.outcome, d.fail, d.close = Success, Success, NotClosed
		switch rng.IntN(5) {
		case 0:
			d.fail = ConnectRefused
		case 1:
			d.outcome, d.close = ReadTimeout, CloseTimeout
		}
		if !reuse && d.close == NotClosed {
			d.close = ClosePerRequest
		}
	}
	change := func(t *Target) {
		t.Connections = 1 + rng.IntN(8)
		t.MaxRequests = rng.Uint64N(5)
		t.MaxAge = duration(2 * time.Second)
		t.Backlog = time.Millisecond + duration(5*time.Second)
		t.CatchUp = float64(rng.IntN(3))
		t.Warm = t.Reuse && rng.IntN(2) == 0
	}
	doors := []*fakeDoor{b.door}
	random(b.door, b.prober.target.Reuse)
	for range 150 {
		switch rng.IntN(10) {
		case 0:
			b.differently(change)
			b.wake = b.prober.Drain()
		case 1:
			target := b.prober.target
			target.Reuse = rng.IntN(4) > 0
			change(&target)
			door := &fakeDoor{clock: b.clock}
			random(door, target.Reuse)
			b.prober.Reconfigure(target, door)
			doors = append(doors, door)
			b.wake = b.prober.Drain()
		case 2:
			d := doors[rng.IntN(len(doors))]
			d.mu.Lock()
			for _, c := range d.conns {
				if rng.IntN(3) == 0 {
					defer c.peerCloses()
				}
			}
			d.mu.Unlock()
		}
		for range rng.IntN(5) {
			b.tick()
		}
		b.sleep(duration(100 * time.Millisecond))
	}
	b.sleep(time.Minute)
	if b.prober.Ledger().InFlight == 0 && b.prober.leaving != 0 {
		t.Errorf("%d ticks are leaving of none in flight", b.prober.leaving)
	}
	b.close()
	if b.prober.leaving != 0 || b.prober.open != 0 || len(b.prober.links) != 0 {
		t.Errorf("in the end %d ticks are leaving, %d of %d links are open", b.prober.leaving, b.prober.open, len(b.prober.links))
	}
}
