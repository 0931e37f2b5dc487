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

// TestTrustSeesEveryPacedTarget records a late tick for a target whose lateness
// is intended and for one whose lateness is not.
func TestTrustSeesEveryPacedTarget(t *testing.T) {
	clock := probe.NewClock()
	tr := newTrust(quiet())
	tr.close() // only the watch asks, and here the test does
	economical, precise := record.New(record.Options{Clock: clock}), record.New(record.Options{Clock: clock})
	tr.watchOver([]*record.Recorder{economical, precise}, []*record.Recorder{precise})
	s := sampleOf(clock)
	economical.Record(s)
	all, paced := tr.recorders()
	if got := tr.lateness.Lateness(0.99, paced); got != 0 {
		t.Errorf("an economical target makes a lateness of %v", got)
	}
	if got := tr.service.ServiceTime(0.5, all); got < 950*time.Microsecond || got > 975*time.Microsecond {
		t.Errorf("the median service time is %v, want 950 us or 2.2 %% more", got)
	}
	precise.Record(s)
	if got := tr.lateness.Lateness(0.99, paced); got < 50*time.Microsecond || got > 52*time.Microsecond {
		t.Errorf("the lateness of a precise target is %v, want 50 us or 2.2 %% more", got)
	}
}
