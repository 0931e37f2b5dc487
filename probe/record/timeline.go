package record

import (
	"slices"
	"time"

	"github.com/steadyprobe/steadyprobe/probe"
)

// How many whole seconds and slices of 10 s a timeline keeps: five minutes and
// an hour.
const (
	keptSeconds = 300
	keptSlices  = 360

	secondsPerSlice = int64(sliceLength / time.Second)
)

// Moment is what was completed within one span of a target's timeline. A span
// without any completion is a Moment of zeros, never left out.
type Moment struct {
	From      probe.Instant // aligned to the length of the span
	Completed uint64
	Failed    uint64 // of Completed
	// Max is the greatest of the latencies that the windows hold (see
	// [probe.Outcome.Slow]), to their precision; 0 where there were none, and in
	// a closed loop, which has no latency.
	Max time.Duration
	// P50 and P99 are quantiles of the same latencies, of slices only: 0 in
	// seconds, and where there were fewer than 1/(1-q).
	P50, P99 time.Duration
}

// counted is what was completed within one span, in 12 bytes.
type counted struct {
	completed, failed uint32
	max               uint16 // cell; 0 too where there was no latency
}

func (c *counted) add(o counted) {
	c.completed += o.completed
	c.failed += o.failed
	c.max = max(c.max, o.max)
}

func (c *counted) moment() Moment {
	return Moment{Completed: uint64(c.completed), Failed: uint64(c.failed), Max: highestOf(c.max)}
}

// countedSlice is what was completed within a slice, in 16 bytes.
type countedSlice struct {
	counted
	p50, p99 uint16 // cells; 0 too where there were too few
}

func (c *countedSlice) moment() Moment {
	m := c.counted.moment()
	m.P50, m.P99 = highestOf(c.p50), highestOf(c.p99)
	return m
}

// timeline counts what was completed by second and by slice, where slices are
// those of a window, which it advances. It begins with the first sample, and
// takes 9.4 KB at most.
type timeline struct {
	until   probe.Instant // when the open second ends; 0: not begun
	open    counted       // the open second
	number  int64         // of the open second, from the clock's zero
	slice   counted       // the seconds of the open slice that are over
	seconds ring[counted]
	slices  ring[countedSlice]
}

// advance closes the seconds and slices that are over at now, and those of w
// with them. Its time is bounded however long ago the last call was.
func (t *timeline) advance(now probe.Instant, w *window) {
	if now < t.until {
		return
	}
	number := max(int64(now)/int64(time.Second), t.number)
	if t.until != 0 {
		t.close(number, w)
		t.until = endOf(number)
	}
	t.number = number
	w.advance(now)
}

// close ends the open second and, where number is not in the open slice, that.
func (t *timeline) close(number int64, w *window) {
	t.slice.add(t.open)
	t.seconds.push(t.open, keptSeconds)
	t.seconds.pad(number-t.number-1, keptSeconds)
	t.open = counted{}
	over := number/secondsPerSlice - t.number/secondsPerSlice
	if over == 0 {
		return
	}
	slice := countedSlice{counted: t.slice}
	slice.p50, slice.p99 = w.close().quantiles()
	t.slices.push(slice, keptSlices)
	t.slices.pad(over-1, keptSlices)
	t.slice = counted{}
}

// begin starts to count, after an advance, with the second in which the first
// tick was due: a door that answers nothing at first shows as zeros.
func (t *timeline) begin(intended probe.Instant) {
	first := min(int64(intended)/int64(time.Second), t.number)
	t.seconds.pad(t.number-first, keptSeconds)
	t.slices.pad(t.number/secondsPerSlice-first/secondsPerSlice, keptSlices)
	t.until = endOf(t.number)
}

func endOf(second int64) probe.Instant { return probe.Instant(second+1) * probe.Instant(time.Second) }

// Seconds appends the last 300 whole seconds to m, oldest first, and returns
// the extended slice. The open second is left out. A tick belongs to the second
// of its end, or to the open one if that is over.
//
// The first second is that in which the first completed tick was due: before one
// is completed there are none, and of the first only a part counts. Of a closed
// loop only the counts are kept. Every completed tick is in exactly one second.
func (r *Recorder) Seconds(m []Moment) []Moment { return r.secondsAt(r.clock.Now(), m) }

func (r *Recorder) secondsAt(now probe.Instant, m []Moment) []Moment {
	var kept [keptSeconds]counted
	r.mu.Lock()
	r.timeline.advance(now, &r.window)
	n := r.timeline.seconds.copyTo(kept[:])
	open := r.timeline.number
	r.mu.Unlock()
	m = slices.Grow(m, n)
	for i := range kept[:n] {
		one := kept[i].moment()
		one.From = probe.Instant(open-int64(n-i)) * probe.Instant(time.Second)
		m = append(m, one)
	}
	return m
}

// Slices is [Recorder.Seconds] for the last 360 whole slices of 10 s, which are
// those of the windows.
func (r *Recorder) Slices(m []Moment) []Moment { return r.slicesAt(r.clock.Now(), m) }

func (r *Recorder) slicesAt(now probe.Instant, m []Moment) []Moment {
	var kept [keptSlices]countedSlice
	r.mu.Lock()
	r.timeline.advance(now, &r.window)
	n := r.timeline.slices.copyTo(kept[:])
	open := r.timeline.number / secondsPerSlice
	r.mu.Unlock()
	m = slices.Grow(m, n)
	for i := range kept[:n] {
		one := kept[i].moment()
		one.From = probe.Instant(open-int64(n-i)) * probe.Instant(sliceLength)
		m = append(m, one)
	}
	return m
}

// ringStep is by how many entries a ring grows: a target that has just started
// takes little.
const ringStep = 60

// ring holds the last entries that were pushed. It grows to the most that it is
// given, which must always be the same, and then overwrites the oldest.
type ring[T any] struct {
	list []T
	next int // the oldest, once it is full
}

func (r *ring[T]) push(v T, most int) {
	if len(r.list) == most {
		r.list[r.next] = v
		r.next = (r.next + 1) % most
		return
	}
	if len(r.list) == cap(r.list) {
		grown := make([]T, len(r.list), min(len(r.list)+ringStep, most))
		copy(grown, r.list)
		r.list = grown
	}
	r.list = append(r.list, v)
}

// pad pushes n zeros. No more than most are of use.
func (r *ring[T]) pad(n int64, most int) {
	var zero T
	for range min(n, int64(most)) {
		r.push(zero, most)
	}
}

// copyTo copies all entries, oldest first, and returns how many there are.
func (r *ring[T]) copyTo(out []T) int {
	n := copy(out, r.list[r.next:])
	return n + copy(out[n:], r.list[:r.next])
}
