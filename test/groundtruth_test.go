// Package test holds the tests that cross packages: ground truth in virtual
// time, and the product against real servers.
package test

import (
	"context"
	"math"
	"math/big"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	door "github.com/steadyprobe/steadyprobe/internal/faultdoor"
	"github.com/steadyprobe/steadyprobe/probe"
	"github.com/steadyprobe/steadyprobe/probe/record"
	"github.com/steadyprobe/steadyprobe/probe/resolve"
	"github.com/steadyprobe/steadyprobe/probe/schedule"
	"github.com/steadyprobe/steadyprobe/probe/wire"
)

// world is a pacer in virtual time.
type world struct {
	t     *testing.T
	clock probe.Clock
	pacer *schedule.Pacer
	stop  context.CancelFunc
	ended sync.WaitGroup
}

func newWorld(t *testing.T) *world {
	clock := probe.NewClock()
	ctx, cancel := context.WithCancel(context.Background())
	w := &world{t: t, clock: clock, stop: cancel, pacer: schedule.New(schedule.Options{Clock: schedule.Portable(clock)})}
	w.ended.Go(func() { w.pacer.Run(ctx) })
	return w
}

func (w *world) close() {
	w.stop()
	w.ended.Wait()
}

// probed is one target and what came of it.
type probed struct {
	world    *world
	prober   *probe.Prober
	recorder *record.Dense
	watching *watching
	schedule schedule.Schedule
}

// probe warms a target up and gives it ticks from the origin for the duration.
func (w *world) probe(d *door.Door, target probe.Target, origin probe.Instant, duration time.Duration) *probed {
	w.t.Helper()
	p := w.prepare(d, target)
	p.begin(origin, duration)
	return p
}

// prepare warms a target up. Its schedule has a rate only.
func (w *world) prepare(d *door.Door, target probe.Target) *probed {
	w.t.Helper()
	rate, err := schedule.NewRate(new(big.Rat).SetFloat64(target.Rate))
	if err != nil {
		w.t.Fatal(err)
	}
	if target.Timeout == 0 {
		target.Timeout = 5 * time.Second
	}
	if target.Backlog == 0 {
		target.Backlog = 30 * time.Second
	}
	target.Reuse, target.Warm = true, true
	var ok wire.Statuses
	ok.Add(200, 299)
	opener := wire.NewOpener(wire.Options{
		Way: wire.Way{
			Clock:    w.clock,
			Resolver: resolve.New(resolve.Options{Host: "127.0.0.1", Port: 1, Clock: w.clock}),
			Dial:     d.Dial,
			Timeout:  target.Timeout,
		},
		Request:  wire.Request{Method: "GET", Target: "/", Host: "door"},
		Reuse:    true,
		Statuses: ok,
		MaxBody:  1 << 20,
	})
	p := &probed{world: w, recorder: record.NewDense(record.Options{Clock: w.clock}), schedule: schedule.Schedule{Rate: rate}}
	p.watching = &watching{Recorder: p.recorder}
	p.prober = probe.New(target, w.clock, opener, p.watching)
	p.prober.WarmUp(context.Background())
	return p
}

// begin gives the target the ticks of its schedule.
func (p *probed) begin(origin probe.Instant, duration time.Duration) {
	p.schedule.Origin, p.schedule.End = origin, origin.Add(duration)
	p.world.pacer.Add(p.schedule, p.prober)
}

// waits returns how many ticks waited for a connection.
func (p *probed) waits() uint64 {
	var s record.Snapshot
	p.recorder.Snapshot(&s)
	return s.Phases[probe.PhaseWait].Count
}

// wait lets time pass until the instant, checking identities at odd moments.
func (p *probed) wait(until probe.Instant) {
	for p.world.clock.Now() < until {
		time.Sleep(min(7777*time.Microsecond, until.Sub(p.world.clock.Now())))
		p.check()
	}
}

func (p *probed) check() {
	p.world.t.Helper()
	l := p.prober.Ledger()
	if l.Scheduled != l.Done()+l.InFlight+l.Backlog {
		p.world.t.Fatalf("scheduled %d is not done %d + in flight %d + backlog %d", l.Scheduled, l.Done(), l.InFlight, l.Backlog)
	}
}

// end stops the target and returns its account, in which nothing is open.
func (p *probed) end() probe.Ledger {
	p.world.t.Helper()
	p.world.pacer.Remove(p.prober)
	p.prober.Close(context.Background())
	p.check()
	l := p.prober.Ledger()
	if want := p.schedule.Count(p.schedule.End); l.Scheduled != want || l.Done() != want {
		p.world.t.Errorf("scheduled %d, completed %d, want %d", l.Scheduled, l.Done(), want)
	}
	return l
}

// quantile returns a quantile of a distribution of the given exact values, as
// HDR histograms count it: the value number q × n, rounded to the nearest.
func quantile(sorted []time.Duration, q float64) time.Duration {
	i := int(math.Round(q*float64(len(sorted)))) - 1
	return sorted[max(i, 0)]
}

// near reports whether got is want but for the three digits of HDR.
func near(got int64, want time.Duration) bool {
	return math.Abs(float64(got)-float64(want)) <= 0.001*float64(want)+1
}

// checkQuantiles holds reported quantiles against the exact values.
func checkQuantiles(t *testing.T, name string, h *hdrhistogram.Histogram, sorted []time.Duration) {
	t.Helper()
	if h.TotalCount() != int64(len(sorted)) {
		t.Errorf("%s: %d values, want %d", name, h.TotalCount(), len(sorted))
	}
	for _, q := range []float64{0.5, 0.9, 0.95, 0.99, 0.999, 1} {
		if got, want := h.ValueAtQuantile(100*q), quantile(sorted, q); !near(got, want) {
			t.Errorf("%s: p%g is %v, want %v", name, 100*q, time.Duration(got), want)
		}
	}
}

// TestStall is the case that tools with coordinated omission get wrong: a door
// that stands still for 1 s in 10 s at 200 requests/s over 20 connections.
//
// 2,000 ticks are due every 5 ms. The 200 that are due in the stall wait until
// its end: tick i of the stall for 1 s − 5 i ms. The other 1,800 take no time.
// In ascending order value 1,800 + k is 5 k ms for k = 1 … 200, so that
//
//	p95 is value 1,900: 500 ms    p99 is value 1,980: 900 ms    max 1 s
//
// Service time does not show it: only the 20 requests that were in flight when
// the stall began took 1 s − 5 i ms; the other 1,980 took no time.
func TestStall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		defer w.close()
		origin := w.clock.Now().Add(time.Second)
		stall := origin.Add(5 * time.Second)
		d := door.New(door.HTTP(door.Stall(w.clock.Time(stall), w.clock.Time(stall.Add(time.Second)), door.OK())))
		defer d.Close()
		p := w.probe(d, probe.Target{Rate: 200, Connections: 20}, origin, 10*time.Second)
		p.wait(origin.Add(11 * time.Second))
		l := p.end()
		if l.Failed() != 0 {
			t.Errorf("%d failures, want none", l.Failed())
		}
		latency := make([]time.Duration, 1800, 2000)
		for k := 1; k <= 200; k++ {
			latency = append(latency, time.Duration(k)*5*time.Millisecond)
		}
		checkQuantiles(t, "latency", p.recorder.Latency(), latency)
		service := make([]time.Duration, 1980, 2000)
		for k := 181; k <= 200; k++ {
			service = append(service, time.Duration(k)*5*time.Millisecond)
		}
		checkQuantiles(t, "service time", p.recorder.ServiceTime(), service)
		if max := p.recorder.Lateness().Max(); max != 0 {
			t.Errorf("lateness up to %v in virtual time, want none", time.Duration(max))
		}
	})
}

// TestStalledTargetDisturbsNoOther probes a door that answers in exactly 2 ms
// beside one that never does.
func TestStalledTargetDisturbsNoOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		defer w.close()
		good := door.New(door.HTTP(door.Delay(2*time.Millisecond, door.OK())))
		defer good.Close()
		dead := door.New(door.Silent())
		defer dead.Close()
		origin := w.clock.Now().Add(10 * time.Second)
		stalled := w.probe(dead, probe.Target{Rate: 500, Connections: 10, Timeout: time.Second, Backlog: 2 * time.Second}, origin, 10*time.Second)
		healthy := w.probe(good, probe.Target{Rate: 200, Connections: 10}, origin.Add(time.Microsecond), 10*time.Second)
		healthy.wait(origin.Add(10 * time.Second))
		stalled.wait(origin.Add(20 * time.Second))
		l := stalled.end()
		// 10 connections time out once a second for as long as ticks wait; all
		// others wait 2 s and expire.
		if l.Failures(probe.ReadTimeout)+l.Failures(probe.ScheduleExpired) != 5000 {
			t.Errorf("%d timed out and %d expired, want 5000 together", l.Failures(probe.ReadTimeout), l.Failures(probe.ScheduleExpired))
		}
		h := stalled.recorder.Latency()
		if max := time.Duration(h.Max()); !near(int64(max), 3*time.Second) && max > 3*time.Second {
			t.Errorf("latency up to %v, want at most backlog + timeout", max)
		}
		if l := healthy.end(); l.Failed() != 0 {
			t.Errorf("%d failures at the healthy door", l.Failed())
		}
		latency := make([]time.Duration, 2000)
		for i := range latency {
			latency[i] = 2 * time.Millisecond
		}
		checkQuantiles(t, "latency", healthy.recorder.Latency(), latency)
	})
}

// TestOverload sends more than the connections can carry and holds every
// latency against the recursion of a queue with c servers and constant service
// time s: tick i begins at max(due i, end of tick i − c) and ends s later.
func TestOverload(t *testing.T) {
	for _, tc := range []struct {
		name        string
		rate        float64
		connections int
		service     time.Duration
	}{
		{"just within", 100, 1, 10 * time.Millisecond},
		{"one connection too slow", 100, 1, 12 * time.Millisecond},
		{"three connections too slow", 250, 3, 15 * time.Millisecond},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t)
				defer w.close()
				d := door.New(door.HTTP(door.Delay(tc.service, door.OK())))
				defer d.Close()
				origin := w.clock.Now().Add(time.Second)
				p := w.probe(d, probe.Target{Rate: tc.rate, Connections: tc.connections, Backlog: time.Hour}, origin, 10*time.Second)
				p.wait(origin.Add(15 * time.Second))
				p.end()
				n := int(p.schedule.Count(p.schedule.End))
				ends, latency := make([]probe.Instant, n), make([]time.Duration, n)
				for i := range n {
					begun := p.schedule.At(uint64(i))
					if i >= tc.connections {
						begun = max(begun, ends[i-tc.connections])
					}
					ends[i] = begun.Add(tc.service)
					latency[i] = ends[i].Sub(p.schedule.At(uint64(i)))
				}
				// Latencies only grow here, so they are in order.
				checkQuantiles(t, "latency", p.recorder.Latency(), latency)
			})
		})
	}
}
