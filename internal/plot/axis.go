package plot

import (
	"math"
	"strconv"
	"strings"
	"time"
)

// shortest is the shortest latency that a logarithmic axis shows.
const shortest = time.Microsecond

// tick is a place on an axis.
type tick struct {
	at    float64 // from 0 to 1 along the axis
	label string  // empty: only a line of the grid
}

// latencyAxis is a logarithmic axis.
type latencyAxis struct{ low, high time.Duration }

// newLatencyAxis returns an axis from a 1, 2 or 5 to another with at least a
// factor of 10 between them, that holds low and high.
func newLatencyAxis(low, high time.Duration) latencyAxis {
	low, high = max(low, shortest), max(low, high, shortest)
	steps := latencySteps()
	first, last := 0, len(steps)-1
	for first+1 < len(steps) && steps[first+1] <= low {
		first++
	}
	for last > 0 && steps[last-1] >= high {
		last--
	}
	// Three steps are a factor of 10. Room is made below and above in turn, so
	// that a flat line is in the middle.
	for below := false; last-first < 3; below = !below {
		if below && first > 0 || last == len(steps)-1 {
			first--
		} else {
			last++
		}
	}
	return latencyAxis{low: steps[first], high: steps[last]}
}

// latencySteps returns 1, 2 and 5 of every power of ten.
func latencySteps() []time.Duration {
	var steps []time.Duration
	for d := shortest; ; d *= 10 {
		steps = append(steps, d, 2*d, 5*d)
		if d > math.MaxInt64/50 {
			return steps
		}
	}
}

// at returns the place of a latency from 0, lowest, to 1.
func (a latencyAxis) at(d time.Duration) float64 {
	d = min(max(d, a.low), a.high)
	return math.Log(float64(d)/float64(a.low)) / math.Log(float64(a.high)/float64(a.low))
}

// ticks returns the powers of ten with labels; 2 and 5 have some where there
// are few powers.
func (a latencyAxis) ticks() []tick {
	powers := math.Log10(float64(a.high) / float64(a.low))
	var ticks []tick
	for i, d := range latencySteps() {
		if d < a.low || d > a.high {
			continue
		}
		switch {
		case i%3 == 0 || powers < 2.5:
			ticks = append(ticks, tick{at: a.at(d), label: axisDuration(d)})
		case powers < 5:
			ticks = append(ticks, tick{at: a.at(d)})
		}
	}
	return ticks
}

// axisDuration writes a step of an axis: 500 µs, 20 ms, 1 s.
func axisDuration(d time.Duration) string {
	switch {
	case d < time.Millisecond:
		return strconv.FormatInt(int64(d/time.Microsecond), 10) + " µs"
	case d < time.Second:
		return strconv.FormatInt(int64(d/time.Millisecond), 10) + " ms"
	}
	return strconv.FormatInt(int64(d/time.Second), 10) + " s"
}

// roundDuration writes a latency with three digits.
func roundDuration(d time.Duration) string {
	value, unit := float64(d)/float64(time.Second), " s"
	switch {
	case d < time.Millisecond:
		value, unit = float64(d)/float64(time.Microsecond), " µs"
	case d < time.Second:
		value, unit = float64(d)/float64(time.Millisecond), " ms"
	}
	if value >= 100 {
		return strconv.FormatFloat(value, 'f', 0, 64) + unit
	}
	return strconv.FormatFloat(value, 'g', 3, 64) + unit
}

// nines returns −log10(1 − q) of q = 1 − rest/all: 0 for 0 %, 1 for 90 %, 2 for
// 99 %. The rest is positive and at most all.
func nines(rest, all float64) float64 { return math.Log10(all / rest) }

// ninesTicks returns 0 %, 50 %, 90 %, 99 % … of an axis up to most.
func ninesTicks(most float64) []tick {
	ticks := []tick{{at: 0, label: "0 %"}, {at: math.Log10(2) / most, label: "50 %"}}
	for n := 1; float64(n) <= most; n++ {
		label := "90"
		if n > 1 {
			label = "99"
		}
		if n > 2 {
			label += "." + strings.Repeat("9", n-2)
		}
		ticks = append(ticks, tick{at: float64(n) / most, label: label + " %"})
	}
	return ticks
}

// timeAxis is a span of wall-clock time.
type timeAxis struct {
	from time.Time // its location is that of the labels
	span time.Duration
}

// newTimeAxis returns an axis of at least one second and at most 100 years.
func newTimeAxis(from, to time.Time) timeAxis {
	const longest = 100 * 365 * 24 * time.Hour
	return timeAxis{from: from, span: min(max(to.Sub(from), time.Second), longest)}
}

// at returns the place of an instant; those before the span are below 0, those
// after it above 1.
func (a timeAxis) at(t time.Time) float64 {
	return float64(t.Sub(a.from)) / float64(a.span)
}

// ticks returns about so many ticks, which is 2 or more, at round times of day.
func (a timeAxis) ticks(most int) []tick {
	steps := []time.Duration{
		time.Second, 2 * time.Second, 5 * time.Second, 10 * time.Second, 15 * time.Second, 30 * time.Second,
		time.Minute, 2 * time.Minute, 5 * time.Minute, 10 * time.Minute, 15 * time.Minute, 30 * time.Minute,
		time.Hour, 2 * time.Hour, 3 * time.Hour, 6 * time.Hour, 12 * time.Hour, 24 * time.Hour,
	}
	step := steps[0]
	for i := 1; int64(a.span/step) >= int64(most); i++ {
		if i < len(steps) {
			step = steps[i]
		} else {
			step *= 2
		}
	}
	layout := a.layout()
	if a.span <= 24*time.Hour && step%time.Minute == 0 {
		layout = "15:04"
	}
	_, east := a.from.Zone()
	offset := time.Duration(east) * time.Second
	t := a.from.Add(offset).Truncate(step).Add(-offset)
	var ticks []tick
	for ; ; t = t.Add(step) {
		if at := a.at(t); at > 1 {
			return ticks
		} else if at >= 0 {
			ticks = append(ticks, tick{at: at, label: t.Format(layout)})
		}
	}
}

// layout returns how instants are written in full.
func (a timeAxis) layout() string {
	if a.span > 24*time.Hour {
		return "2006-01-02 15:04"
	}
	return "15:04:05"
}
