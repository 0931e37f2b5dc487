package plot

import (
	"cmp"
	"io"
	"math"

	"golang.org/x/image/font/opentype"
)

// The measures of a plot, in units of its viewBox.
const (
	widthWide, widthNarrow   = 760, 360
	heightWide, heightNarrow = 300, 230 // of the data alone
	margin                   = 12
	titleSize, textSize      = 15, 13
	lineHeight               = 18
	lineWidth                = 1.75
	denseWidth               = 1.25 // of a line with a point every few units
	sampleWidth              = 30   // of a line, in the legend
	entryGap                 = 22   // between columns of the legend
)

// entry is one entry of the legend.
type entry struct {
	text   string
	sample func(c *canvas, left, y float64)
}

// sheet is a plot being laid out and drawn: title, caption of the vertical
// axis, data, lanes below it that share its horizontal axis, ticks, caption of
// the horizontal axis, legend.
type sheet struct {
	palette
	font    *opentype.Font
	title   []string
	width   float64
	frame   rect // of the data and the lanes
	lanes   float64
	entries []entry
	columns int
	column  float64 // width of a column of the legend
	canvas  *canvas
}

// newSheet lays out a plot and draws what does not depend on its data: title
// and legend. Lanes is the height that the lanes take, strip that of a strip
// between caption and data.
func newSheet(look Look, title string, y latencyAxis, strip, lanes float64, entries []entry) (*sheet, error) {
	f, err := measure()
	if err != nil {
		return nil, err
	}
	s := &sheet{palette: look.Theme.palette(), font: f, width: widthWide, lanes: lanes, entries: entries}
	height := float64(heightWide)
	if look.Narrow {
		s.width, height = widthNarrow, heightNarrow
	}
	s.title = wrap(f, titleSize, s.width-2*margin, title)
	labels := 0.0
	for _, t := range y.ticks() {
		labels = max(labels, textWidth(f, textSize, t.label))
	}
	s.frame.left = margin + labels + 8
	s.frame.right = s.width - 30 // half a time of day
	s.frame.top = margin + float64(len(s.title))*20 + lineHeight + 9 + strip
	s.frame.bottom = s.frame.top + height + lanes
	s.layLegend()
	rows := math.Ceil(float64(len(entries)) / float64(s.columns))
	s.canvas = newCanvas(f, s.width, s.legendTop()+rows*lineHeight+margin, s.back)
	for i, line := range s.title {
		s.canvas.text(s.text, titleSize, start, point{margin, margin + 14 + float64(i)*20}, line)
	}
	s.drawLegend(int(rows))
	return s, nil
}

// legendTop is below two lines of text: labels and caption of the axis.
func (s *sheet) legendTop() float64 { return s.frame.bottom + 2*lineHeight + 10 }

// layLegend puts as many entries beside each other as the widest allows.
func (s *sheet) layLegend() {
	const beforeText = sampleWidth + 7
	room := s.width - 2*margin
	for i := range s.entries {
		s.entries[i].text = fit(s.font, textSize, room-beforeText, s.entries[i].text)
		s.column = max(s.column, beforeText+textWidth(s.font, textSize, s.entries[i].text))
	}
	s.columns = 1
	if s.column > 0 {
		s.columns = max(1, min(len(s.entries), int((room+entryGap)/(s.column+entryGap))))
	}
}

// drawLegend draws it column by column, which keeps the order readable.
func (s *sheet) drawLegend(rows int) {
	for i, e := range s.entries {
		left := margin + float64(i/rows)*(s.column+entryGap)
		y := s.legendTop() + (float64(i%rows)+0.5)*lineHeight
		e.sample(s.canvas, left, y)
		s.canvas.text(s.text, textSize, start, point{left + sampleWidth + 7, y + 4.5}, e.text)
	}
}

// dataBottom is where data ends and lanes begin.
func (s *sheet) dataBottom() float64 { return s.frame.bottom - s.lanes }

// x and y place what is from 0 to 1 along the axes.
func (s *sheet) x(at float64) float64 { return s.frame.left + at*(s.frame.right-s.frame.left) }
func (s *sheet) y(at float64) float64 { return s.dataBottom() - at*(s.dataBottom()-s.frame.top) }

// drawAxes draws grid, labels and captions.
func (s *sheet) drawAxes(x, y []tick, caption string) {
	var grid [][]point
	for _, t := range y {
		at := s.y(t.at)
		grid = append(grid, []point{{s.frame.left, at}, {s.frame.right, at}})
		if t.label != "" {
			s.canvas.text(s.soft, textSize, end, point{s.frame.left - 7, at + 4.5}, t.label)
		}
	}
	free := 0.0 // where the next label may begin
	for _, t := range x {
		at := s.x(t.at)
		grid = append(grid, []point{{at, s.frame.top}, {at, s.frame.bottom + 4}})
		half := textWidth(s.font, textSize, t.label) / 2
		at = min(max(at, half+2), s.width-2-half)
		if at-half < free {
			continue
		}
		free = at + half + 4
		s.canvas.text(s.soft, textSize, middle, point{at, s.frame.bottom + lineHeight}, t.label)
	}
	s.canvas.lines(stroke{color: s.grid, width: 1}, grid)
	s.canvas.lines(stroke{color: s.axis, width: 1}, [][]point{{{s.frame.left, s.frame.top}, {s.frame.left, s.frame.bottom}, {s.frame.right, s.frame.bottom}}})
	s.canvas.text(s.soft, textSize, start, point{margin, margin + float64(len(s.title))*20 + 13}, "latency (logarithmic)")
	s.canvas.text(s.soft, textSize, end, point{s.frame.right, s.frame.bottom + 2*lineHeight}, caption)
}

// drawNothing says why there is nothing to draw.
func (s *sheet) drawNothing(why string) {
	why = fit(s.font, titleSize, s.frame.right-s.frame.left, why)
	s.canvas.text(s.text, titleSize, middle, point{(s.frame.left + s.frame.right) / 2, (s.frame.top + s.dataBottom()) / 2}, why)
}

// whyNothing returns why there is nothing: what is said of the first that has
// something said of it.
func whyNothing(empty []string) string { return cmp.Or(cmp.Or(empty...), "no requests yet") }

// why adds to the name of a line that is not there why it is not.
func why(name, empty string, there bool) string {
	if there || empty == "" {
		return clean(name)
	}
	return clean(name) + " (" + clean(empty) + ")"
}

// stroke returns how line i is drawn.
func (p palette) stroke(i int) stroke {
	return stroke{color: p.lines[i%len(p.lines)], width: lineWidth, dashes: dashes(i)}
}

// lineEntry is the entry of line i.
func (p palette) lineEntry(i int, text string) entry {
	return entry{text: text, sample: func(c *canvas, left, y float64) {
		c.lines(p.stroke(i), [][]point{{{left, y}, {left + sampleWidth, y}}})
	}}
}

func (s *sheet) write(w io.Writer, title, description string) error {
	return s.canvas.write(w, title, description)
}
