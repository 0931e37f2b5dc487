package app

import (
	"testing"
	"time"

	"github.com/steadyprobe/steadyprobe/probe"
	"github.com/steadyprobe/steadyprobe/probe/record"
)

// sampleOf returns a success of one millisecond.
func sampleOf(clock probe.Clock) *probe.Sample {
	now := clock.Now()
	return &probe.Sample{
		Tick:      probe.Tick{Intended: now},
		Begun:     now.Add(50 * time.Microsecond),
		Sent:      now.Add(50 * time.Microsecond),
		FirstByte: now.Add(900 * time.Microsecond),
		End:       now.Add(time.Millisecond),
		Code:      200,
		Protocol:  probe.HTTP11,
	}
}

func TestRecentBeginsAnew(t *testing.T) {
	r := newRecent()
	for i := range 100 {
		r.observe(time.Duration(i+1) * time.Millisecond)
	}
	r.observe(-time.Second)    // a clock cannot do that; it counts as 0
	r.observe(100 * time.Hour) // and this as an hour
	near := func(got, want time.Duration) bool { return got > want*98/100 && got < want*102/100 }
	if got := r.take(50); !near(got, 50*time.Millisecond) {
		t.Errorf("the median of 0, 1 to 100 ms and an hour is %v", got)
	}
	if got := r.take(50); got != 0 {
		t.Errorf("the median of nothing is %v, want 0", got)
	}
	r.observe(3 * time.Millisecond)
	if got := r.take(99); !near(got, 3*time.Millisecond) {
		t.Errorf("the p99 of 3 ms is %v", got)
	}
}

func TestWatchedRecordAllocatesNothing(t *testing.T) {
	clock := probe.NewClock()
	tr := newTrust(quiet())
	defer tr.close()
	w := watched{record.New(record.Options{Clock: clock}), tr, false}
	s := sampleOf(clock)
	w.Record(s)
	if n := testing.AllocsPerRun(1000, func() { w.Record(s) }); n != 0 {
		t.Errorf("recording allocates %v times", n)
	}
}

func BenchmarkWatchedRecord(b *testing.B) {
	clock := probe.NewClock()
	tr := newTrust(quiet())
	defer tr.close()
	for _, targets := range []struct {
		name string
		run  func(b *testing.B)
	}{
		{"alone", func(b *testing.B) {
			w, s := watched{record.New(record.Options{Clock: clock}), tr, false}, sampleOf(clock)
			for b.Loop() {
				w.Record(s)
			}
		}},
		{"one target each", func(b *testing.B) {
			b.RunParallel(func(pb *testing.PB) {
				w, s := watched{record.New(record.Options{Clock: clock}), tr, false}, sampleOf(clock)
				for pb.Next() {
					w.Record(s)
				}
			})
		}},
		{"without", func(b *testing.B) {
			r, s := record.New(record.Options{Clock: clock}), sampleOf(clock)
			for b.Loop() {
				r.Record(s)
			}
		}},
	} {
		b.Run(targets.name, targets.run)
	}
}
