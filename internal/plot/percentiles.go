package plot

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"
)

// Percentiles draws latency by percentile as an SVG of the given look. The
// horizontal axis is logarithmic in what is left: 0 %, 90 %, 99 %, 99.9 % … have
// equal distances, as far as the series with the most requests reaches. The
// vertical axis is logarithmic too.
//
// A line is the steps that the cells are, nothing is interpolated, and that of n
// requests ends with a dot at 1 − 1/n and the highest of them: nothing is known
// beyond. Steps below a quarter of a unit are drawn as one. Of a series
// without latencies the legend says why, and so does the plot where all are
// without. It fails where w does.
func Percentiles(w io.Writer, look Look, title string, series []Series) error {
	title = clean(title)
	curves := make([]curve, len(series))
	entries, empty := make([]entry, len(series)), make([]string, len(series))
	most, low, high, any := 1.0, time.Duration(0), time.Duration(0), false
	for i, s := range series {
		curves[i] = newCurve(s.Cells)
		entries[i] = look.Theme.palette().lineEntry(i, why(s.Name, s.Empty, len(curves[i].cells) > 0))
		empty[i] = clean(s.Empty)
		if c := curves[i]; len(c.cells) > 0 {
			first, last := c.cells[0].Highest, c.cells[len(c.cells)-1].Highest
			if !any {
				low, high, any = first, last, true
			}
			low, high, most = min(low, first), max(high, last), max(most, c.end())
		}
	}
	if !any {
		low, high = time.Millisecond, time.Second
	}
	y := newLatencyAxis(low, high)
	s, err := newSheet(look, title, y, 0, 0, entries)
	if err != nil {
		return fmt.Errorf("drawing the plot %q: %w", title, err)
	}
	s.drawAxes(ninesTicks(most), y.ticks(), "percentile of requests")
	for i, c := range curves {
		if line := c.steps(s, y, most); len(line) > 0 {
			s.canvas.lines(s.stroke(i), [][]point{line})
			s.canvas.dots(s.stroke(i).color, 2.75, line[len(line)-1:])
		}
	}
	if !any {
		s.drawNothing(whyNothing(empty))
	}
	return s.write(w, title, describeCurves(series, curves))
}

// curve is a distribution.
type curve struct {
	cells []Cell    // those that count something
	rest  []float64 // rest[i] counts cells[i] and all above
}

func newCurve(cells []Cell) curve {
	var c curve
	for _, cell := range cells {
		if cell.Count > 0 {
			c.cells = append(c.cells, cell)
		}
	}
	byLatency := func(a, b Cell) int { return cmp.Compare(a.Highest, b.Highest) }
	if !slices.IsSortedFunc(c.cells, byLatency) {
		slices.SortStableFunc(c.cells, byLatency)
	}
	c.rest = make([]float64, len(c.cells))
	for i := len(c.cells) - 1; i >= 0; i-- {
		c.rest[i] = float64(c.cells[i].Count)
		if i+1 < len(c.cells) {
			c.rest[i] += c.rest[i+1]
		}
	}
	return c
}

// end returns how many nines n requests tell of: those of 1 − 1/n.
func (c curve) end() float64 { return nines(1, c.rest[0]) }

// steps returns the line: in each cell's span of percentiles it is level.
func (c curve) steps(s *sheet, y latencyAxis, most float64) []point {
	var line []point
	add := func(p point) {
		const small = 0.25
		if n := len(line); n == 0 || abs(p.x-line[n-1].x) >= small || abs(p.y-line[n-1].y) >= small {
			line = append(line, p)
		}
	}
	for i, cell := range c.cells {
		end := c.end()
		if i < len(c.cells)-1 {
			end = nines(c.rest[i+1], c.rest[0])
		}
		at := s.y(y.at(cell.Highest))
		add(point{s.x(nines(c.rest[i], c.rest[0]) / most), at})
		add(point{s.x(end / most), at})
	}
	return line
}

// quantile returns the lowest latency that at least this share of requests does
// not exceed, false where there are fewer than 1/(1 − q) of them.
func (c curve) quantile(q float64) (time.Duration, bool) {
	if len(c.cells) == 0 || (1-q)*c.rest[0] < 1-1e-9 {
		return 0, false
	}
	for i := range c.cells {
		if i == len(c.cells)-1 || c.rest[i+1] <= (1-q)*c.rest[0]+1e-9 {
			return c.cells[i].Highest, true
		}
	}
	return 0, false
}

// describeCurves says in words what the curves show.
func describeCurves(series []Series, curves []curve) string {
	var b strings.Builder
	b.WriteString("Latency by percentile of requests, both axes logarithmic.")
	for i, c := range curves {
		fmt.Fprintf(&b, " %s:", clean(series[i].Name))
		if len(c.cells) == 0 {
			b.WriteString(" " + whyNothing([]string{clean(series[i].Empty)}) + ".")
			continue
		}
		for _, q := range []struct {
			q    float64
			name string
		}{{0.5, "50 %"}, {0.9, "90 %"}, {0.99, "99 %"}, {0.999, "99.9 %"}} {
			if d, known := c.quantile(q.q); known {
				fmt.Fprintf(&b, " %s within %s,", q.name, roundDuration(d))
			}
		}
		fmt.Fprintf(&b, " all %.0f requests within %s.", c.rest[0], roundDuration(c.cells[len(c.cells)-1].Highest))
	}
	return b.String()
}

func abs(x float64) float64 { return max(x, -x) }
