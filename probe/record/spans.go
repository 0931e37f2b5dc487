package record

import (
	"time"

	"github.com/steadyprobe/steadyprobe/probe"
)

// Span is what ended within a span of time, from From on and before Until.
type Span struct {
	From, Until       probe.Instant
	Completed, Failed uint64 // of ticks, Failed being a part of Completed
	// Cells are the latencies that the windows hold, ascending: those of
	// successes, timeouts and expired ticks (see [probe.Outcome.Slow]), none of a
	// closed loop.
	Cells []Cell
}

// SpanLengths are the lengths that spans may have. Of each the last ones are
// kept: 6 of 10 s, 5 of a minute, 12 of five minutes.
var SpanLengths = [3]time.Duration{sliceLength, perMinute * sliceLength, perFive * perMinute * sliceLength}

// perSpan returns of how many slices a span at an index of SpanLengths is.
func perSpan(length int) int64 { return int64(SpanLengths[length] / sliceLength) }

// Spans returns the spans of a length, given by its index in SpanLengths, that
// are over and kept and that ended after from, oldest first. They are aligned to
// their length; the first one begins with from where that is within it. A tick
// belongs to the span of its end, or to a later one if it was recorded after
// that was over, so that what is returned never changes: who asks again from the
// end of the last span has every tick exactly once, if in time.
func (r *Recorder) Spans(length int, from probe.Instant) []Span {
	return r.spansAt(r.clock.Now(), length, from)
}

func (r *Recorder) spansAt(now probe.Instant, length int, from probe.Instant) (spans []Span) {
	var kept [keptSlices]countedSlice
	r.mu.Lock()
	r.timeline.advance(now, &r.window)
	n := r.timeline.slices.copyTo(kept[:])
	past, open := r.window.past, r.window.number
	r.mu.Unlock()
	counts := kept[:n]
	parts := past.parts(length)
	per := perSpan(length)
	for number := max(0, open/per-int64(len(parts))); number < open/per; number++ {
		s := newSpan(length, number*per, from)
		if s.Until <= from {
			continue
		}
		s.count(counts, open-int64(n), number*per, (number+1)*per)
		var sum pages
		sum.addClosed(parts[number%int64(len(parts))])
		s.Cells = sum.cells(nil)
		spans = append(spans, s)
	}
	return spans
}

// OpenSpan returns what has ended within the span of a length, given by its
// index in SpanLengths, that is not over. It is for who will not ask again.
func (r *Recorder) OpenSpan(length int, from probe.Instant) Span {
	return r.openSpanAt(r.clock.Now(), length, from)
}

func (r *Recorder) openSpanAt(now probe.Instant, length int, from probe.Instant) Span {
	var kept [keptSlices]countedSlice
	var v view
	r.mu.Lock()
	r.timeline.advance(now, &r.window)
	n := r.timeline.slices.copyTo(kept[:])
	unfinished := r.timeline.slice
	unfinished.add(r.timeline.open)
	v.copyFrom(&r.window)
	open := r.window.number
	r.mu.Unlock()
	per := perSpan(length)
	s := newSpan(length, open/per*per, from)
	s.Until = max(now, s.From)
	s.count(kept[:n], open-int64(n), open/per*per, open)
	s.Completed += uint64(unfinished.completed)
	s.Failed += uint64(unfinished.failed)
	if length > 0 {
		v.open.addClosed(v.past.minute)
	}
	if length > 1 {
		v.open.addClosed(v.past.five)
	}
	s.Cells = v.open.cells(nil)
	return s
}

// parts returns the sums of the spans of a length, each at its number modulo
// how many there are.
func (p *past) parts(length int) []closed {
	return [len(SpanLengths)][]closed{p.slices[:], p.minutes[:], p.fives[:]}[length]
}

// newSpan returns the span of a length that begins with a slice.
func newSpan(length int, slice int64, from probe.Instant) Span {
	begins := probe.Instant(slice) * probe.Instant(sliceLength)
	return Span{From: max(begins, from), Until: begins.Add(SpanLengths[length])}
}

// count adds the slices from one number to another. counts are those of the
// slices from number first on.
func (s *Span) count(counts []countedSlice, first, from, to int64) {
	for number := max(from, first); number < to && number-first < int64(len(counts)); number++ {
		s.Completed += uint64(counts[number-first].completed)
		s.Failed += uint64(counts[number-first].failed)
	}
}
