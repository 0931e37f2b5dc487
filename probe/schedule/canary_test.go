package schedule

import (
	"slices"
	"testing"
	"time"

	"github.com/steadyprobe/steadyprobe/probe"
)

// A canary over a real socket pair, given ticks by hand. What it observes is
// now - due, and now is at least when Take was called.
func TestCanaryObservesEveryDueTime(t *testing.T) {
	clock := Portable(probe.NewClock())
	observed := make(chan time.Duration, 100)
	c, err := NewCanary(clock, nil, func(d time.Duration) { observed <- d })
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	for _, late := range []time.Duration{0, time.Millisecond, time.Hour, 0} {
		due := clock.Now().Add(-late)
		if wake := c.Take(due); wake != 0 {
			t.Errorf("Take returned %d, want 0", wake)
		}
		got := <-observed
		if most := clock.Now().Sub(due); got < late || got > most {
			t.Errorf("observed %v, want %v to %v", got, late, most)
		}
	}
	if wake := c.Drain(); wake != 0 {
		t.Errorf("Drain returned %d, want 0", wake)
	}
}

func TestCanarySchedule(t *testing.T) {
	s := (&Canary{}).Schedule(7)
	if got, want := s.At(20), probe.Instant(7).Add(time.Second); got != want {
		t.Errorf("tick 20 at %d, want %d", got, want)
	}
}

// A reader that does not read: Take goes on, the first due time that did not
// fit is not lost, and is observed before later ones.
func TestCanaryDoesNotBlockWhenTheReaderStarves(t *testing.T) {
	const most = 100_000
	entered, gate := make(chan struct{}, most), make(chan struct{})
	var clock fakeClock
	observed := make(chan time.Duration, most)
	c, err := NewCanary(&clock, nil, func(d time.Duration) {
		entered <- struct{}{}
		<-gate
		observed <- -d
	})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	// The clock stands at 0, so that the observation of due time i is -i.
	sent := 1
	c.Take(1)
	<-entered // or the reader would make room later
	for sent < most && c.unsent == 0 {
		sent++
		c.Take(probe.Instant(sent))
	}
	if sent == most {
		t.Skip("the socket buffer holds all messages")
	}
	t.Logf("message %d did not fit", sent)
	for i := range 10 {
		c.Take(probe.Instant(sent + 1 + i)) // left out
	}
	close(gate)
	for i := 1; i < sent; i++ {
		if got := <-observed; got != time.Duration(i) {
			t.Fatalf("observed %d, want %d", got, i)
		}
	}
	last := sent + 100
	c.Take(probe.Instant(last))
	if got := []time.Duration{<-observed, <-observed}; !slices.Equal(got, []time.Duration{time.Duration(sent), time.Duration(last)}) {
		t.Errorf("observed %d, want %d and %d", got, sent, last)
	}
}

// fakeSender sends as many bytes as it is told to, call by call.
type fakeSender struct {
	fits []int
	sent []byte
}

func (f *fakeSender) send(b []byte) int {
	n := min(f.fits[0], len(b))
	f.fits = f.fits[1:]
	f.sent = append(f.sent, b[:n]...)
	return n
}
func (f *fakeSender) Close() error { return nil }

func TestCanaryGoesOnAfterAPartOfAMessage(t *testing.T) {
	f := &fakeSender{fits: []int{8, 3, 0, 5, 8}}
	c := &Canary{sender: f}
	for due := range probe.Instant(4) {
		c.Take(0x0101010101010101 * (due + 1))
	}
	// Tick 3 is left out: 2 was not sent then. 4 follows the rest of 2.
	want := []byte{1, 1, 1, 1, 1, 1, 1, 1, 2, 2, 2, 2, 2, 2, 2, 2, 4, 4, 4, 4, 4, 4, 4, 4}
	if !slices.Equal(f.sent, want) {
		t.Errorf("sent % x\nwant % x", f.sent, want)
	}
}

func TestCanaryClose(t *testing.T) {
	c, err := NewCanary(&fakeClock{}, nil, func(time.Duration) {})
	if err != nil {
		t.Fatal(err)
	}
	c.Take(1)
	c.Close()
	c.Close()
	for range 10 {
		c.Take(2) // goes nowhere, harms nobody
	}
}

func TestCanaryAllocatesNothing(t *testing.T) {
	observed := make(chan struct{}, 1)
	c, err := NewCanary(&fakeClock{}, nil, func(time.Duration) { observed <- struct{}{} })
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if allocs := testing.AllocsPerRun(1000, func() { c.Take(1); <-observed }); allocs != 0 {
		t.Errorf("%v allocations a tick, want 0", allocs)
	}
}
