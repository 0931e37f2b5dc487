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
// All slices are aligned, so what is left of an older minute is found in its
// minute, what belongs to the open one in its slices.
type window struct {
	open   pages
	past   past
	number int64         // of the open slice
	until  probe.Instant // when the open slice ends
}

// past holds the slices that are over, each at its number modulo the length.
type past struct {
	slices  [perMinute]closed
	minutes [perFive]closed
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

// close ends the open slice and begins the next.
func (w *window) close() {
	w.past.slices[w.number%perMinute] = w.open.take()
	w.number++
	if w.number%perMinute != 0 {
		return
	}
	minute := w.number/perMinute - 1
	w.past.minutes[minute%perFive] = w.merge(w.past.slices[:])
	if w.number%(perMinute*perFive) != 0 {
		return
	}
	five := minute / perFive
	w.past.fives[five%perHour] = w.merge(w.past.minutes[:])
}

// merge returns the sum of parts. It counts in the open slice, which is empty
// between its closing and the next.
func (w *window) merge(parts []closed) closed {
	for i := range parts {
		w.open.addClosed(&parts[i])
	}
	return w.open.take()
}

// view is a copy of a window, to take quantiles from without the lock.
type view struct {
	open   pages
	past   past
	number int64
	sum    pages // what is being worked on
}

// copyFrom makes v a copy of w: of the open slice, while what is over does not
// change and is shared.
func (v *view) copyFrom(w *window) {
	v.open.copyFrom(&w.open)
	v.past, v.number = w.past, w.number
}

// quantiles writes the quantiles of all windows.
func (v *view) quantiles(out *[NumWindows][NumQuantiles]float64) {
	minute := v.number / perMinute
	thisMinute := v.past.slices[:v.number%perMinute]
	thisFive := v.past.minutes[:minute%perFive]
	for i, parts := range [NumWindows][][]closed{
		{v.past.slices[:]},
		{thisMinute, v.past.minutes[:]},
		{thisMinute, thisFive, v.past.fives[:]},
	} {
		v.sum.copyFrom(&v.open)
		for _, part := range parts {
			for j := range part {
				v.sum.addClosed(&part[j])
			}
		}
		v.sum.quantiles(&out[i])
	}
}
