package record

import (
	"time"

	"github.com/steadyprobe/steadyprobe/probe"
)

// Time is cut into slices of 10 s, counted from the clock's zero. Slices that
// are over are merged into minutes, and these into spans of five minutes, all
// aligned to their length.
const (
	sliceLength = 10 * time.Second
	perMinute   = 6  // slices in a minute
	perFive     = 5  // minutes in five minutes
	perHour     = 12 // five minutes in an hour

	// forgotten is after how many slices nothing of a slice is in a window: an
	// hour in spans of five minutes and the open one.
	forgotten = (perHour + 1) * perFive * perMinute
)

// window holds the latencies of the last hour, so that the quantiles of each of
// [Windows] can be taken at any time. A window holds at least its span and, as
// a whole slice, minute or five minutes is kept or dropped:
//
//	1m: the open slice and the 6 before it, 60 to 70 s (17 % more)
//	5m: the open minute and the 5 before it, 300 to 360 s (20 % more)
//	1h: the open five minutes and the 12 before them, 3,600 to 3,900 s (8 % more)
//
// All are aligned: of the older minutes nothing is in slices any more, and of
// the open one all that is over is in one sum.
type window struct {
	open   pages
	past   past
	number int64         // of the open slice
	until  probe.Instant // when the open slice ends
}

// past holds the slices that are over, and their sums, each at its number
// modulo the length. What is over of the open minute and of the open five
// minutes is summed up as it comes: to do it once in five minutes would hold
// the lock several times as long.
type past struct {
	slices  [perMinute]closed
	minute  closed // the slices of the open minute
	minutes [perFive]closed
	five    closed // the minutes of the open five minutes
	fives   [perHour]closed
}

// advance closes the slices that are over at now. Its time is bounded however
// long ago the last call was.
func (w *window) advance(now probe.Instant) {
	if now < w.until {
		return
	}
	number := int64(now) / int64(sliceLength)
	if number-w.number > forgotten {
		w.open.empty()
		w.past = past{}
		w.number = number
	}
	for w.number < number {
		w.close()
	}
	w.until = probe.Instant(number+1) * probe.Instant(sliceLength)
}

// close ends the open slice, returns what it held and begins the next.
func (w *window) close() closed {
	p := &w.past
	slice := w.open.take()
	p.slices[w.number%perMinute] = slice
	p.minute = w.sum(p.minute, slice)
	w.number++
	if w.number%perMinute != 0 {
		return slice
	}
	minute := w.number/perMinute - 1
	p.minutes[minute%perFive] = p.minute
	p.five = w.sum(p.five, p.minute)
	p.minute = nil
	if w.number%(perMinute*perFive) != 0 {
		return slice
	}
	p.fives[minute/perFive%perHour] = p.five
	p.five = nil
	return slice
}

// sum returns the sum of two. It counts in the open slice, which is empty
// between its closing and the next.
func (w *window) sum(a, b closed) closed {
	if len(a) == 0 {
		return b
	}
	if len(b) == 0 {
		return a
	}
	w.open.addClosed(a)
	w.open.addClosed(b)
	return w.open.take()
}

// view is a copy of a window, to take quantiles from without the lock.
type view struct {
	open pages
	past past
	sum  pages // what is being worked on
}

// copyFrom makes v a copy of w: of the open slice, while what is over does not
// change and is shared.
func (v *view) copyFrom(w *window) {
	v.open.copyFrom(&w.open)
	v.past = w.past
}

// quantiles writes the quantiles of all windows.
func (v *view) quantiles(out *[NumWindows][NumQuantiles]float64) {
	for i := range out {
		v.add(i)
		v.sum.quantiles(&out[i])
	}
}

// add makes v.sum what the window at an index of Windows holds.
func (v *view) add(window int) {
	v.sum.copyFrom(&v.open)
	if window > 0 {
		v.sum.addClosed(v.past.minute)
	}
	if window > 1 {
		v.sum.addClosed(v.past.five)
	}
	parts := [NumWindows][]closed{v.past.slices[:], v.past.minutes[:], v.past.fives[:]}
	for _, part := range parts[window] {
		v.sum.addClosed(part)
	}
}
