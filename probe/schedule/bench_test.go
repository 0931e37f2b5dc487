package schedule

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"testing"
	"time"

	"github.com/steadyprobe/steadyprobe/probe"
)

// What one tick costs the pacer, without sleeping and without a taker.
func BenchmarkPacerTick(b *testing.B) {
	for _, targets := range []int{1, 100, 1000} {
		b.Run(fmt.Sprintf("targets=%d", targets), func(b *testing.B) {
			p, _ := paceFake(targets, Rate{1000, 1})
			b.ReportAllocs()
			for b.Loop() {
				now := p.clock.Now()
				if next := p.agenda.next(); next > now {
					p.clock.SleepUntil(next)
				}
				p.turn()
			}
		})
	}
}

// How late ticks are at 1,000/s for 1 s, and what a canary reads beside them.
func BenchmarkLateness(b *testing.B) {
	pc := probe.NewClock()
	for _, bb := range []struct {
		name  string
		clock Clock
	}{
		{"precise", Precise(pc, slog.New(slog.DiscardHandler))},
		{"portable", Portable(pc)},
	} {
		b.Run(bb.name, func(b *testing.B) {
			defer ReserveProcs(1, slog.New(slog.DiscardHandler))()
			var lateness latenessTaker
			var self []time.Duration
			for b.Loop() {
				lateness = latenessTaker{clock: bb.clock}
				self = paceOneSecond(b, bb.clock, &lateness)
			}
			reportQuantiles(b, "late", lateness.late)
			reportQuantiles(b, "self", self)
		})
	}
}

func paceOneSecond(b *testing.B, clock Clock, lateness *latenessTaker) (self []time.Duration) {
	p := New(Options{Clock: clock})
	canary, err := NewCanary(clock, nil, func(d time.Duration) { self = append(self, d) })
	if err != nil {
		b.Fatal(err)
	}
	origin := clock.Now().Add(Lead)
	s := Schedule{Origin: origin, Rate: Rate{1000, 1}, End: origin.Add(time.Second)}
	p.Add(s, lateness)
	p.Add(canary.Schedule(origin.Add(333*time.Microsecond)), canary)
	ctx, cancel := context.WithCancel(b.Context())
	defer cancel()
	lateness.late = make([]time.Duration, 0, s.Count(s.End))
	lateness.full = cancel
	p.Run(ctx)
	canary.Close()
	return self
}

type latenessTaker struct {
	clock Clock
	late  []time.Duration
	full  func() // called when late is at its capacity
}

func (l *latenessTaker) Take(intended probe.Instant) probe.Instant {
	l.late = append(l.late, l.clock.Now().Sub(intended))
	if len(l.late) == cap(l.late) {
		l.full()
	}
	return 0
}
func (l *latenessTaker) Drain() probe.Instant { return 0 }

func reportQuantiles(b *testing.B, name string, values []time.Duration) {
	if len(values) == 0 {
		return
	}
	slices.Sort(values)
	for _, percent := range []int{50, 99} {
		v := values[min(len(values)*percent/100, len(values)-1)]
		b.ReportMetric(float64(v)/1e3, fmt.Sprintf("us-%s-p%d", name, percent))
	}
}
