package record

import (
	"testing"
	"time"

	"github.com/steadyprobe/steadyprobe/probe"
)

var _ probe.Recorder = (*Dense)(nil)

func TestDense(t *testing.T) {
	d := NewDense(Options{Clock: probe.NewClock()})
	base := okSample() // latency 14 ms, service time 13 ms, lateness 1 ms
	with := func(o probe.Outcome, change func(*probe.Sample)) {
		s := base
		s.Outcome = o
		if change != nil {
			change(&s)
		}
		d.Record(&s)
	}
	with(probe.Success, nil)
	with(probe.ReadTimeout, func(s *probe.Sample) { s.End = start + 2*3600*second })
	with(probe.ReadReset, nil) // in lateness only
	with(probe.ScheduleExpired, func(s *probe.Sample) { s.Taken, s.Begun = start+ms, 0 })
	opening := openingSample()
	d.RecordOpening(&opening)

	for _, tc := range []struct {
		name        string
		count, most int64
		got         interface {
			TotalCount() int64
			Max() int64
		}
	}{
		// 1 h is in the cell of 2^31 ns that ends at 1,677 × 2^31 - 1.
		{"latency", 3, 1677<<31 - 1, d.Latency()},
		{"service time", 2, 1677<<31 - 1, d.ServiceTime()},
		// 1 ms is in the cell of 512 ns that ends at 1,954 × 512 - 1.
		{"lateness", 4, 1954*512 - 1, d.Lateness()},
	} {
		if tc.got.TotalCount() != tc.count || tc.got.Max() != tc.most {
			t.Errorf("%s: %d up to %d, want %d up to %d", tc.name, tc.got.TotalCount(), tc.got.Max(), tc.count, tc.most)
		}
	}
	var s Snapshot
	d.Snapshot(&s)
	if s.Lateness.Count != 4 || s.Clamped != 1 || s.Phases[probe.PhaseTLS].Count != 1 {
		t.Errorf("lateness %d, clamped %d", s.Lateness.Count, s.Clamped)
	}
}

func TestDenseClosedLoop(t *testing.T) {
	d := NewDense(Options{})
	for _, o := range []probe.Outcome{probe.Success, probe.ReadTimeout, probe.ReadReset} {
		s := okSample()
		s.Outcome, s.Closed = o, true
		d.Record(&s)
	}
	latency, lateness, service := d.Latency().TotalCount(), d.Lateness().TotalCount(), d.ServiceTime().TotalCount()
	if latency != 0 || lateness != 0 || service != 2 { // a reset is in none
		t.Errorf("%d latencies, %d latenesses, %d service times; want 0, 0, 2", latency, lateness, service)
	}
}

func TestDenseReturnsCopies(t *testing.T) {
	d := NewDense(Options{})
	before := d.Latency()
	s := okSample()
	d.Record(&s)
	if before.TotalCount() != 0 || d.Latency().TotalCount() != 1 {
		t.Error("an old copy has changed")
	}
	if n := testing.AllocsPerRun(100, func() { d.Record(&s) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
	if got, want := d.ServiceTime().Max(), int64(13*time.Millisecond); got < want || got > want+want/1000 {
		t.Errorf("service time %d, want %d to three digits", got, want)
	}
}
