package plot

import (
	"cmp"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"time"
)

// Timelines draws latencies over time as an SVG of the given look, from one
// instant to another, in the location of from, whose name is on the axis. The
// vertical axis is logarithmic. Which latencies they are, the title should say.
//
// Bands are shaded, and a strip above the data repeats them, scaling up in its
// upper half and scaling down in its lower; bands too narrow to be told from each
// other are in the strip alone. Each line with failures has a lane
// below the data with its name and how many failed; marks there are higher the
// more requests failed. What lies outside of the span is not drawn. Where points
// are closer than the plot can show, the lowest and the highest of each unit
// remain. Without any latency the plot says why. It fails where w does.
func Timelines(w io.Writer, look Look, title string, from, to time.Time, lines []Line, bands []Band) error {
	title = clean(title)
	x := newTimeAxis(from, to)
	inside := make([]track, len(lines))
	var y ranged
	empty, lanes := make([]string, len(lines)), 0
	for i, l := range lines {
		inside[i] = newTrack(x, l)
		for _, p := range inside[i].points {
			y.add(p.Value)
		}
		if inside[i].failed > 0 {
			lanes++
		}
		empty[i] = clean(l.Empty)
	}
	axis := y.axis()
	bands = visible(x, bands)
	s, err := newSheet(look, title, axis, stripFor(bands), lanesHeight(lanes), timelineEntries(look.Theme.palette(), lines, inside, bands))
	if err != nil {
		return fmt.Errorf("drawing the plot %q: %w", title, err)
	}
	s.drawBands(x, bands)
	zone, _ := from.Zone()
	most := int((s.frame.right - s.frame.left) / (textWidth(s.font, textSize, x.layout()) + 16))
	s.drawAxes(x.ticks(max(2, most)), axis.ticks(), "time ("+clean(zone)+")")
	for i := range inside {
		s.drawTrack(i, x, axis, inside[i].points)
	}
	s.drawLanes(x, inside, laneHeight(lanes))
	if !y.any && (lanes == 0 || cmp.Or(empty...) != "") {
		s.drawNothing(whyNothing(empty))
	}
	return s.write(w, title, describeTracks(x, lines, inside))
}

// ranged is the range of latencies that were added.
type ranged struct {
	low, high time.Duration
	any       bool
}

func (r *ranged) add(d time.Duration) {
	if d <= 0 {
		return
	}
	if !r.any {
		r.low, r.high, r.any = d, d, true
	}
	r.low, r.high = min(r.low, d), max(r.high, d)
}

func (r *ranged) axis() latencyAxis {
	if !r.any {
		return newLatencyAxis(time.Millisecond, time.Second)
	}
	return newLatencyAxis(r.low, r.high)
}

// track is what of a line is within the span.
type track struct {
	name     string
	points   []Point // ascending
	failures []Failure
	failed   uint64
	worst    Point
}

func newTrack(x timeAxis, l Line) track {
	t := track{name: clean(l.Name)}
	for _, p := range l.Points {
		if at := x.at(p.At); at >= 0 && at <= 1 {
			t.points = append(t.points, p)
			if p.Value > t.worst.Value {
				t.worst = p
			}
		}
	}
	byTime := func(a, b Point) int { return a.At.Compare(b.At) }
	if !slices.IsSortedFunc(t.points, byTime) {
		slices.SortStableFunc(t.points, byTime)
	}
	for _, f := range l.Failures {
		if at := x.at(f.At); f.Count > 0 && at >= 0 && at <= 1 {
			t.failures = append(t.failures, f)
			t.failed = addUp(t.failed, f.Count)
		}
	}
	return t
}

// addUp returns the sum, or the highest number where it is beyond.
func addUp(a, b uint64) uint64 {
	if b > math.MaxUint64-a {
		return math.MaxUint64
	}
	return a + b
}

// timelineEntries returns the legend: lines, then what else is drawn.
func timelineEntries(p palette, lines []Line, inside []track, bands []Band) []entry {
	var entries []entry
	failed := false
	for i, l := range lines {
		failed = failed || inside[i].failed > 0
		entries = append(entries, p.lineEntry(i, why(l.Name, l.Empty, inside[i].worst.Value > 0)))
	}
	if failed {
		entries = append(entries, entry{text: "failed requests (higher: more)", sample: func(c *canvas, left, y float64) {
			c.fill(p.text, []rect{
				{left + 6, y, left + 6 + 2*markHalf, y + 6},
				{left + 13, y - 6, left + 13 + 2*markHalf, y + 6},
				{left + 20, y - 2, left + 20 + 2*markHalf, y + 6},
			})
		}})
	}
	for _, kind := range []Kind{ScalingUp, ScalingDown} {
		if slices.ContainsFunc(bands, func(b Band) bool { return b.Kind == kind }) {
			entries = append(entries, entry{text: strings.ReplaceAll(string(kind), "_", " "), sample: func(c *canvas, left, y float64) {
				shade, bar := p.band(kind, left+2, left+sampleWidth-2, y-7, 6, y+7)
				c.fill(p.shade(kind).shade, []rect{shade})
				c.fill(p.shade(kind).bar, []rect{bar})
			}})
		}
	}
	return entries
}

// drawTrack draws the line i through points; one that stands alone is a dot.
func (s *sheet) drawTrack(i int, x timeAxis, y latencyAxis, points []Point) {
	columns := int(s.frame.right - s.frame.left)
	look := s.stroke(i)
	if len(points) > columns/4 { // else a line fills what it swings in
		look.width = denseWidth
	}
	var lines [][]point
	var alone, line []point
	finish := func() {
		switch len(line) {
		case 0:
		case 1:
			alone = append(alone, line...)
		default:
			lines = append(lines, line)
		}
		line = nil
	}
	for _, p := range thin(x, points, columns) {
		if p.Value <= 0 {
			finish()
			continue
		}
		line = append(line, point{s.x(x.at(p.At)), s.y(y.at(p.Value))})
	}
	finish()
	s.canvas.lines(look, lines)
	s.canvas.dots(look.color, lineWidth, alone)
}

// thin returns points, at most three for each of so many columns: the lowest
// and the highest, and a gap where there is one.
func thin(x timeAxis, points []Point, columns int) []Point {
	if len(points) <= 2*columns {
		return points
	}
	column := func(p Point) int { return min(int(x.at(p.At)*float64(columns)), columns-1) }
	var out []Point
	for len(points) > 0 {
		n := 1
		for n < len(points) && column(points[n]) == column(points[0]) {
			n++
		}
		low, high, gap := -1, -1, -1
		for i, p := range points[:n] {
			switch {
			case p.Value <= 0:
				gap = i
				continue
			case low < 0:
				low, high = i, i
			}
			if p.Value < points[low].Value {
				low = i
			}
			if p.Value > points[high].Value {
				high = i
			}
		}
		keep := []int{low, high, gap}
		slices.Sort(keep)
		for _, i := range slices.Compact(keep) {
			if i >= 0 {
				out = append(out, points[i])
			}
		}
		points = points[n:]
	}
	return out
}

// describeTracks says in words what the lines show.
func describeTracks(x timeAxis, lines []Line, tracks []track) string {
	var b strings.Builder
	layout := x.layout()
	fmt.Fprintf(&b, "Latency over time, logarithmic, from %s to %s.", x.from.Format(layout), x.from.Add(x.span).Format(layout+" MST"))
	for i, t := range tracks {
		fmt.Fprintf(&b, " %s:", t.name)
		switch {
		case t.worst.Value > 0:
			fmt.Fprintf(&b, " highest %s at %s,", roundDuration(t.worst.Value), t.worst.At.In(x.from.Location()).Format(layout))
		case t.failed == 0:
			fmt.Fprintf(&b, " %s.", whyNothing([]string{clean(lines[i].Empty)}))
			continue
		case lines[i].Empty != "":
			fmt.Fprintf(&b, " %s,", clean(lines[i].Empty))
		}
		fmt.Fprintf(&b, " %d failed.", t.failed)
	}
	return b.String()
}
