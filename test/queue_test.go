package test

import (
	"container/heap"
	"math"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	door "github.com/steadyprobe/steadyprobe/internal/faultdoor"
	"github.com/steadyprobe/steadyprobe/probe"
)

// served is a door whose request number n (from 0) takes times[n mod len].
func served(times []time.Duration) *door.Door {
	return door.New(door.HTTP(func(c *door.Conn, r *door.Request) error {
		if err := c.Sleep(times[int(r.Total-1)%len(times)]); err != nil {
			return err
		}
		return c.Answer(r, door.Answer{})
	}))
}

// instants is a heap of when servers are free.
type instants []probe.Instant

func (h instants) Len() int           { return len(h) }
func (h instants) Less(i, j int) bool { return h[i] < h[j] }
func (h instants) Swap(i, j int)      { h[i], h[j] = h[j], h[i] }
func (h *instants) Push(x any)        { *h = append(*h, x.(probe.Instant)) }
func (h *instants) Pop() any {
	last := (*h)[len(*h)-1]
	*h = (*h)[:len(*h)-1]
	return last
}

// queue returns the exact latencies of a first-come, first-served queue with so
// many servers: tick i begins when it is due and a server is free, and ends
// after times[i].
func queue(due []probe.Instant, times []time.Duration, servers int) []time.Duration {
	free := make(instants, servers)
	latency := make([]time.Duration, len(due))
	for i, at := range due {
		begun := max(at, heap.Pop(&free).(probe.Instant))
		end := begun.Add(times[i%len(times)])
		heap.Push(&free, end)
		latency[i] = end.Sub(at)
	}
	return latency
}

// watching notes when the ticks of a target were due.
type watching struct {
	probe.Recorder
	mu  sync.Mutex
	due []probe.Instant
}

func (w *watching) Record(s *probe.Sample) {
	w.Recorder.Record(s)
	w.mu.Lock()
	defer w.mu.Unlock()
	w.due = append(w.due, s.Intended)
}

func exponential(mean time.Duration, n int, seed uint64) []time.Duration {
	r := rand.New(rand.NewPCG(seed, 0))
	times := make([]time.Duration, n)
	for i := range times {
		times[i] = time.Duration(r.ExpFloat64() * float64(mean))
	}
	return times
}

// TestAgainstQueues holds every reported quantile against the simulation of the
// queue that a door and the connections to it are.
func TestAgainstQueues(t *testing.T) {
	twoPoint := make([]time.Duration, 100)
	for i := range twoPoint {
		twoPoint[i] = 2 * time.Millisecond
		if i%20 == 0 {
			twoPoint[i] = 100 * time.Millisecond // one in twenty
		}
	}
	for _, tc := range []struct {
		name        string
		times       []time.Duration
		rate        float64
		connections int
		poisson     bool
	}{
		{"constant, never a queue", []time.Duration{3 * time.Millisecond}, 500, 10, false},
		{"two-point, short queues", twoPoint, 200, 3, false},
		{"two-point, many connections", twoPoint, 1000, 50, false},
		{"two-point, overloaded", twoPoint, 400, 2, false},
		{"exponential", exponential(10*time.Millisecond, 100_003, 1), 200, 3, false},
		{"exponential, one connection", exponential(4*time.Millisecond, 100_003, 2), 200, 1, false},
		{"exponential, poisson arrival", exponential(10*time.Millisecond, 100_003, 3), 200, 3, true},
		{"constant, poisson arrival", []time.Duration{4 * time.Millisecond}, 200, 1, true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t)
				defer w.close()
				d := served(tc.times)
				defer d.Close()
				origin := w.clock.Now().Add(time.Second)
				p := w.prepare(d, probe.Target{Rate: tc.rate, Connections: tc.connections, Backlog: time.Hour, Timeout: time.Minute})
				p.schedule.Poisson, p.schedule.Seed = tc.poisson, 11
				p.begin(origin, 20*time.Second)
				p.wait(origin.Add(60 * time.Second))
				l := p.end()
				if l.Failed() != 0 {
					t.Errorf("%d failures", l.Failed())
				}
				due := slices.Sorted(slices.Values(p.watching.due))
				latency := slices.Sorted(slices.Values(queue(due, tc.times, tc.connections)))
				checkQuantiles(t, "latency", p.recorder.Latency(), latency)
			})
		})
	}
}

// TestPoissonAgainstErlang holds Poisson arrival against the closed form of the
// queue M/M/c. With arrival rate λ, service rate μ and load a = λ/μ on c
// servers the probability to wait (Erlang C) and the mean wait are
//
//	C = (a^c/c! × c/(c−a)) / (Σ_{k<c} a^k/k! + a^c/c! × c/(c−a))
//	W = C / (cμ − λ)
//
// For λ = 210/s, μ = 100/s and c = 3: a = 2.1, a^c/c! × c/(c−a) = 1.5435 × 3/0.9
// = 5.145, Σ = 1 + 2.1 + 2.205 = 5.305, C = 0.4923, W = 0.4923/90 s = 5.47 ms, so
// that the mean latency is 10 + 5.47 = 15.47 ms.
func TestPoissonAgainstErlang(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		defer w.close()
		d := served(exponential(10*time.Millisecond, 100_003, 5))
		defer d.Close()
		origin := w.clock.Now().Add(time.Second)
		p := w.prepare(d, probe.Target{Rate: 210, Connections: 3, Backlog: time.Hour, Timeout: time.Minute})
		p.schedule.Poisson, p.schedule.Seed = true, 17
		p.begin(origin, 300*time.Second)
		p.wait(origin.Add(310 * time.Second))
		l := p.end()
		h := p.recorder.Latency()
		// 63,000 waits that depend on each other: 8 % is four standard errors as
		// seen over seeds.
		if mean := h.Mean() / 1e6; math.Abs(mean/15.47-1) > 0.08 {
			t.Errorf("mean latency %.2f ms, want 15.47 ms", mean)
		}
		waited := float64(p.waits()) / float64(l.Done())
		if math.Abs(waited/0.4923-1) > 0.08 {
			t.Errorf("%.3f of the ticks waited, want 0.492", waited)
		}
	})
}
