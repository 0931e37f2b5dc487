package record

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"testing"
	"time"
	"unsafe"

	"github.com/steadyprobe/steadyprobe/probe"
)

// memoryOf returns what a recorder holds, counted by hand.
func memoryOf(r *Recorder) int {
	size := int(unsafe.Sizeof(*r))
	add := func(h *Histogram) { size += 8 * (cap(h.native) + cap(h.classic)) }
	for i := range 2 {
		for j := range r.latency[i] {
			add(&r.latency[i][j])
		}
		add(&r.serviceTime[i])
		add(&r.handshake[i])
	}
	for i := range r.phases {
		add(&r.phases[i])
	}
	for i := range r.slowFailures {
		add(&r.slowFailures[i])
	}
	add(&r.lateness)
	size += timelineMemory(r)
	size += 4 * cap(r.window.open.counts)
	p := &r.window.past
	for _, parts := range [][]closed{p.slices[:], {p.minute}, p.minutes[:], {p.five}, p.fives[:]} {
		for _, c := range parts {
			size += 4 * cap(c)
		}
	}
	return size
}

// timelineMemory returns what the rings of a timeline take.
func timelineMemory(r *Recorder) int {
	return int(unsafe.Sizeof(counted{}))*cap(r.timeline.seconds.list) + int(unsafe.Sizeof(countedSlice{}))*cap(r.timeline.slices.list)
}

// fill records what a reused connection to a door on the same machine shows for
// some seconds.
func fill(r *Recorder, rate, seconds int) {
	values := likely(1 << 16)
	for i := range rate * seconds {
		r.Record(sampleAt(second+probe.Instant(i)*second/probe.Instant(rate), values, i))
	}
}

func sampleAt(at probe.Instant, values []time.Duration, i int) *probe.Sample {
	i *= 40503 // through all values in no order
	d := probe.Instant(values[i&(len(values)-1)])
	return &probe.Sample{
		Tick: probe.Tick{Intended: at}, Begun: at + d/8, Sent: at + d/8, FirstByte: at + d*7/8, End: at + d,
		Protocol: probe.HTTP11, Code: 200,
	}
}

// TestMemoryIsBounded holds the budget of a target: 70 KB at 1 request/s.
func TestMemoryIsBounded(t *testing.T) {
	idle, fresh, slow := New(Options{}), New(Options{}), New(Options{})
	fill(fresh, 1, 30)
	fill(slow, 1, 4200)
	if got := memoryOf(idle); got > 8<<10 {
		t.Errorf("an idle recorder takes %d bytes", got)
	}
	// 60 × 12 bytes of seconds, 60 × 16 bytes of slices.
	if got := timelineMemory(fresh); got != 1680 {
		t.Errorf("the timeline of a new target takes %d bytes", got)
	}
	// 300 × 12 bytes of seconds, 360 × 16 bytes of slices.
	if got := timelineMemory(slow); got != 9360 {
		t.Errorf("a full timeline takes %d bytes", got)
	}
	if got := memoryOf(slow); got > 70<<10 {
		t.Errorf("a recorder at 1 request/s takes %d bytes", got)
	}
}

// BenchmarkMemory reports what recorders hold after an hour and a bit.
func BenchmarkMemory(b *testing.B) {
	for _, tc := range []struct {
		name string
		rate int
	}{{"idle", 0}, {"rate=1", 1}, {"rate=1000", 1000}} {
		b.Run(tc.name, func(b *testing.B) {
			for b.Loop() {
				var before, after runtime.MemStats
				runtime.GC()
				runtime.ReadMemStats(&before)
				r := New(Options{})
				fill(r, tc.rate, 4200)
				runtime.GC()
				runtime.ReadMemStats(&after)
				b.ReportMetric(float64(after.HeapAlloc)-float64(before.HeapAlloc), "heap-B")
				b.ReportMetric(float64(memoryOf(r)), "counted-B")
			}
		})
	}
}

func BenchmarkRecord(b *testing.B) {
	r := New(Options{})
	values := likely(1 << 12)
	samples := make([]*probe.Sample, len(values))
	for i := range samples {
		samples[i] = sampleAt(second, values, i)
	}
	b.Run("alone", func(b *testing.B) {
		b.ReportAllocs()
		i := 0
		for b.Loop() {
			r.Record(samples[i&(len(samples)-1)])
			i++
		}
	})
	b.Run("parallel", func(b *testing.B) {
		b.ReportAllocs()
		b.RunParallel(func(pb *testing.PB) {
			i := 0
			for pb.Next() {
				r.Record(samples[i&(len(samples)-1)])
				i++
			}
		})
	})
	dense := NewDense(Options{})
	b.Run("dense", func(b *testing.B) {
		b.ReportAllocs()
		i := 0
		for b.Loop() {
			dense.Record(samples[i&(len(samples)-1)])
			i++
		}
	})
}

func BenchmarkSnapshot(b *testing.B) {
	for _, tc := range []struct {
		name string
		rate int
	}{{"rate=1", 1}, {"rate=1000", 1000}} {
		b.Run(tc.name, func(b *testing.B) {
			r := New(Options{})
			fill(r, tc.rate, 4200)
			var s Snapshot
			b.ReportAllocs()
			for b.Loop() {
				r.snapshot(4200*second, &s)
			}
		})
	}
}

// loaded returns a window after an hour and a bit at a rate.
func loaded(rate int) *window {
	w := new(window)
	values := likely(1 << 16)
	for i := range rate * 4000 {
		w.record(probe.Instant(i)*second/probe.Instant(rate), values[rand.IntN(len(values))])
	}
	return w
}

// BenchmarkClose is what one request in 10 s waits for the lock: the closing of
// a slice, of a minute with it, of five minutes with it.
func BenchmarkClose(b *testing.B) {
	for _, rate := range []int{1, 1000, 10_000} {
		for _, kind := range []struct {
			name   string
			number int64 // of the slice that closes, from a multiple of five minutes
		}{{"slice", 0}, {"minute", 5}, {"five", 29}} {
			b.Run(fmt.Sprintf("rate=%d/%s", rate, kind.name), func(b *testing.B) {
				w := loaded(rate)
				values, past := likely(10*rate), w.past
				b.ReportAllocs()
				for b.Loop() {
					b.StopTimer()
					w.past, w.number = past, w.number/30*30+kind.number
					for _, v := range values {
						w.open.add(cellOf(uint64(v)), 1)
					}
					b.StartTimer()
					w.close()
				}
			})
		}
	}
}

// BenchmarkSliceQuantiles is what the timeline adds to the closing of a slice.
func BenchmarkSliceQuantiles(b *testing.B) {
	for _, rate := range []int{1, 1000, 10_000} {
		b.Run(fmt.Sprintf("rate=%d", rate), func(b *testing.B) {
			var p pages
			for _, v := range likely(10 * rate) {
				p.add(cellOf(uint64(v)), 1)
			}
			c := p.take()
			b.ReportAllocs()
			for b.Loop() {
				c.quantiles()
			}
			b.ReportMetric(float64(len(c)), "pairs")
		})
	}
}

// BenchmarkTimeline reads a full one.
func BenchmarkTimeline(b *testing.B) {
	r := New(Options{})
	fill(r, 10, 4200)
	m := make([]Moment, 0, keptSlices)
	b.Run("seconds", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			r.secondsAt(4201*second, m[:0])
		}
	})
	b.Run("slices", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			r.slicesAt(4201*second, m[:0])
		}
	})
}

func BenchmarkQuantiles(b *testing.B) {
	for _, rate := range []int{1, 1000} {
		b.Run(fmt.Sprintf("rate=%d", rate), func(b *testing.B) {
			w := loaded(rate)
			var v view
			var out [NumWindows][NumQuantiles]float64
			b.ReportAllocs()
			for b.Loop() {
				v.copyFrom(w)
				v.quantiles(&out)
			}
		})
	}
}
