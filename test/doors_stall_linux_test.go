package test

import (
	"testing"
	"time"

	"github.com/steadyprobe/steadyprobe/internal/faultdoor"
	"github.com/steadyprobe/steadyprobe/report"
)

// TestStalledDoor stops a real door for 1 s in 5 s at 200 requests/s over 20
// connections, next to a healthy door and to one that takes no connections.
//
// 200 of 1,000 ticks are due in the stall and wait from 1 s down to 0, so that
// the latency of one tick in ten is above 0.5 s. Service time does not show
// it: only the 20 requests that were in flight took longer.
func TestStalledDoor(t *testing.T) {
	checkLeaks(t)
	const stall = time.Second
	for _, kind := range doorKinds {
		t.Run(kind.name, func(t *testing.T) {
			stalled, healthy := kind.start(t, 0, true), startNGINX(t, 0, true)
			p := profile{rate: 200, connections: 20}
			before := once(t, time.Second, healthy.target(t, p))[0]
			dead := targetFor(t, "http://"+faultdoor.Full(t)+"/", "", profile{rate: 20, connections: 5, timeout: time.Second / 2, backlog: time.Second / 2})
			results := onceWhile(t, 5*time.Second, func() {
				time.Sleep(2 * time.Second)
				stalled.server.Stall(stall)
			}, stalled.target(t, p), healthy.target(t, p), dead)
			checkStalled(t, &results[0], stall)
			checkHealthy(t, &results[1], &before)
			checkDead(t, &results[2])
			for i := range results {
				r := &results[i]
				t.Logf("%s: latency p50 %.1f p90 %.1f p99 %.1f max %.1f ms, service time p50 %.1f p90 %.1f max %.1f ms, lateness max %.1f ms, self latency max %.1f ms, failures %v",
					r.URL, 1000*r.Latency.P50, 1000*r.Latency.P90, 1000*r.Latency.P99, 1000*r.Latency.Max,
					1000*r.ServiceTime.P50, 1000*r.ServiceTime.P90, 1000*r.ServiceTime.Max, 1000*r.Lateness.Max, 1000*r.SelfLatency.Max, r.FailuresBy)
			}
			for _, d := range []struct {
				door *realDoor
				want uint64
			}{{stalled, 1000}, {healthy, 200 + 1000}} {
				if got := d.door.counts().requests; got != d.want {
					t.Errorf("%s counted %d requests, want %d", d.door.name, got, d.want)
				}
			}
		})
	}
}

// delay is what the machine itself may have added to any figure of a run, in
// seconds.
func delay(r *report.Result) float64 { return r.Lateness.Max + r.SelfLatency.Max }

func checkStalled(t *testing.T, r *report.Result, stall time.Duration) {
	t.Helper()
	s := stall.Seconds()
	if r.Failures != 0 {
		t.Errorf("failures %v at the stalled door, want none", r.FailuresBy)
	}
	// A request that is due within the first 20 ms, and one that has waited for
	// half of the stall.
	if r.Latency.Max < s-0.02 || r.Latency.P90 < s/2-0.02 {
		t.Errorf("latency p90 %v s, max %v s of a stall of %v; want at least half of it and all of it", r.Latency.P90, r.Latency.Max, stall)
	}
	if limit := s/4 + delay(r); r.Latency.P50 > limit || r.ServiceTime.P90 > limit {
		t.Errorf("latency p50 %v s, service time p90 %v s; want them below %v s: they do not show the stall", r.Latency.P50, r.ServiceTime.P90, limit)
	}
	if r.ServiceTime.Max < s-0.02-delay(r) {
		t.Errorf("service time max %v s, want that of a request in flight when the stall of %v began", r.ServiceTime.Max, stall)
	}
}

// checkHealthy compares a door with itself before another one stalled.
func checkHealthy(t *testing.T, r, before *report.Result) {
	t.Helper()
	if r.Failures != 0 {
		t.Errorf("failures %v at the healthy door, want none", r.FailuresBy)
	}
	if limit := 0.5 + delay(r) + before.Latency.Max; r.Latency.Max > limit {
		t.Errorf("latency max %v s at the healthy door, before %v s; want it below %v s", r.Latency.Max, before.Latency.Max, limit)
	}
	// What the probe itself was late with at the end was not sent in time.
	if r.AchievedRate < r.Rate*(0.99-delay(r)/r.DurationSeconds) {
		t.Errorf("%v of %v requests/s sent to the healthy door", r.AchievedRate, r.Rate)
	}
}

// checkDead checks a door that takes no connection: every tick fails, after
// its timeout or in the backlog.
func checkDead(t *testing.T, r *report.Result) {
	t.Helper()
	if r.FailuresBy["connect/timeout"]+r.FailuresBy["schedule/expired"] != r.Completed || r.FailuresBy["connect/timeout"] == 0 {
		t.Errorf("failures %v of %d requests to a dead door, want only connect/timeout and schedule/expired", r.FailuresBy, r.Completed)
	}
	// At most backlog + timeout, each 0.5 s, and at least one of them.
	if r.Latency.P50 < 0.49 || r.Latency.Max > 1.1+delay(r) {
		t.Errorf("latency p50 %v s, max %v s at a dead door, want 0.5 to 1 s", r.Latency.P50, r.Latency.Max)
	}
}
