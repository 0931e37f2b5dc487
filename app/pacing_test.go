package app

import (
	"testing"
	"time"

	"github.com/steadyprobe/steadyprobe/config"
	"github.com/steadyprobe/steadyprobe/internal/faultdoor"
	"github.com/steadyprobe/steadyprobe/probe"
	"github.com/steadyprobe/steadyprobe/probe/schedule"
)

// TestPacersAreSharedByRate gives rates to at most three pacers of 20,000
// ticks a second each.
func TestPacersAreSharedByRate(t *testing.T) {
	for _, row := range []struct {
		name  string
		rates []string
		want  []int // pacers of each target
		all   int   // precise pacers in the end
	}{
		{"one is enough for many", []string{"5000", "5000", "9000"}, []int{1, 1, 1}, 1},
		{"a second one where it is not", []string{"15000", "15000", "4000"}, []int{1, 1, 1}, 2},
		{"never more than there may be", []string{"15000", "15000", "15000", "15000"}, []int{1, 1, 1, 1}, 3},
		{"a rate beyond one pacer is dealt out", []string{"100", "50000"}, []int{1, 3}, 3},
	} {
		t.Run(row.name, func(t *testing.T) {
			clock := probe.NewClock()
			p := newPacing(clock, schedule.Portable(clock), quiet())
			defer p.close()
			p.most = 3
			var targets []*target
			for i, text := range row.rates {
				c := config.Target{Pacing: "precise"}
				setRate(t, &c, text)
				rate, err := schedule.NewRate(c.Rate.Rat())
				if err != nil {
					t.Fatal(err)
				}
				tg := &target{config: c, rate: rate, part: part{of: 1}, traffic: &traffic{}}
				targets = append(targets, tg)
				if got := len(p.assign(tg)); got != row.want[i] {
					t.Errorf("target %d has %d pacers, want %d", i, got, row.want[i])
				}
				if again := p.assign(tg); len(again) != row.want[i] {
					t.Errorf("target %d was assigned anew", i)
				}
			}
			if len(p.precise) != row.all {
				t.Errorf("%d pacers, want %d", len(p.precise), row.all)
			}
			p.remove(targets)
			for i, one := range p.precise {
				if one.rate > 1e-6 || one.rate < -1e-6 {
					t.Errorf("pacer %d has a rate of %v when all are removed", i, one.rate)
				}
			}
		})
	}
}

func TestOnceOverSeveralPacers(t *testing.T) {
	door := faultdoor.Listen(t, good())
	c := target1(t, door.URL("http"))
	c.Connections = 50
	setRate(t, &c, "30000")
	r := onceFor(t.Context(), t, OnceOptions{Targets: []config.Target{c}, Duration: 100 * time.Millisecond})[0]
	if n := door.Counts().Requests; r.Scheduled != 3000 || n != 3000 {
		t.Errorf("scheduled %d, the door was sent %d, want 3000", r.Scheduled, n)
	}
}

func TestOnceClosedLoop(t *testing.T) {
	for _, reuse := range []bool{true, false} {
		door := faultdoor.Listen(t, faultdoor.HTTP(faultdoor.Delay(5*time.Millisecond, faultdoor.OK())))
		c := target1(t, door.URL("http"))
		c.Connections, c.Connection.Reuse, c.Connection.Warm = 4, reuse, reuse
		setRate(t, &c, "max")
		r := onceFor(t.Context(), t, OnceOptions{Targets: []config.Target{c}, Duration: 300 * time.Millisecond, WarmUp: 50 * time.Millisecond})[0]
		// 4 connections, each with at most 60 requests of 5 ms in 300 ms, and the
		// one that it carries at the end.
		if r.Completed < 4 || r.Completed > 4*62 || r.Failures != 0 {
			t.Errorf("reuse %v: %d completed, %v", reuse, r.Completed, r.FailuresBy)
		}
		if r.Latency.Count != 0 || r.Lateness.Count != 0 || r.ServiceTime.Count != r.Completed || r.ServiceTime.P50 < 0.005 {
			t.Errorf("reuse %v: latency of %d, lateness of %d, service time of %d of %d, %v s",
				reuse, r.Latency.Count, r.Lateness.Count, r.ServiceTime.Count, r.Completed, r.ServiceTime.P50)
		}
		if n := door.Counts().Requests; n < r.Completed {
			t.Errorf("reuse %v: the door was sent %d requests, %d are completed", reuse, n, r.Completed)
		}
	}
}

func TestOnceEconomy(t *testing.T) {
	door := faultdoor.Listen(t, good())
	c := target1(t, door.URL("http"))
	c.Connections, c.Pacing = 20, "economy"
	setRate(t, &c, "2000")
	r := onceFor(t.Context(), t, OnceOptions{Targets: []config.Target{c}, Duration: 200 * time.Millisecond})[0]
	if r.Scheduled != 400 || door.Counts().Requests != 400 || r.Failures != 0 {
		t.Errorf("scheduled %d, the door was sent %d, %v; want 400", r.Scheduled, door.Counts().Requests, r.FailuresBy)
	}
	// Two ticks a millisecond are sent together at its end: the first of them
	// 0.5 ms late at least, or the second one, whatever their phase.
	if r.Lateness.Max < 0.0005 {
		t.Errorf("lateness is %v s at most, so that the pacer woke up more often than once a millisecond", r.Lateness.Max)
	}
}

func TestOncePoisson(t *testing.T) {
	door := faultdoor.Listen(t, good())
	c := target1(t, door.URL("http"))
	c.Connections, c.Arrival = 20, "poisson"
	setRate(t, &c, "1000")
	r := onceFor(t.Context(), t, OnceOptions{Targets: []config.Target{c}, Duration: 300 * time.Millisecond})[0]
	// 300 with a standard deviation of sqrt(300) = 17.3; six of them are 104.
	if r.Scheduled < 196 || r.Scheduled > 404 || door.Counts().Requests != r.Scheduled {
		t.Errorf("scheduled %d, the door was sent %d, want about 300", r.Scheduled, door.Counts().Requests)
	}
}
