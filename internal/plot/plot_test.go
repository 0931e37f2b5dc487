package plot

import (
	"bytes"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

var noon = time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)

// looks are all that there are.
func looks() []Look {
	return []Look{{Light, false}, {Light, true}, {Dark, false}, {Dark, true}}
}

// drawing is an SVG taken apart, its coordinates counted from the upper left.
type drawing struct {
	width, height float64
	title, desc   string
	texts         []label
	shapes        []shape
}

type label struct {
	at     point
	size   float64
	anchor anchor
	text   string
}

// shape is a path: the corners of its lines, the extent of its circles.
type shape struct {
	stroke, fill, dashes string
	lines                [][]point
	circles              []rect
}

var commands = regexp.MustCompile(`([MLAZ])([^MLAZ]*)`)

// parse reads an SVG strictly, and only the elements that plots are made of.
func parse(t *testing.T, svg []byte) drawing {
	t.Helper()
	d := xml.NewDecoder(bytes.NewReader(svg))
	var out drawing
	attribute := func(e xml.StartElement, name string) string {
		for _, a := range e.Attr {
			if a.Name.Local == name {
				return a.Value
			}
		}
		return ""
	}
	var open xml.StartElement
	for {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			return out
		}
		if err != nil {
			t.Fatalf("reading the SVG: %v\n%s", err, svg)
		}
		switch e := token.(type) {
		case xml.StartElement:
			open = e
			switch e.Name.Local {
			case "svg":
				if _, err := fmt.Sscanf(attribute(e, "viewBox"), "0 0 %g %g", &out.width, &out.height); err != nil {
					t.Fatalf("reading the view box: %v", err)
				}
				if attribute(e, "width") != "" || attribute(e, "height") != "" {
					t.Error("the SVG has a size of its own")
				}
			case "g":
				want := fmt.Sprintf("scale(1, -1) translate(0, -%.5g)", out.height)
				if got := attribute(e, "transform"); got != want {
					t.Fatalf("the group has the transformation %q, want %q", got, want)
				}
			case "text":
				l := label{anchor: anchor(attribute(e, "text-anchor")), at: point{number(t, attribute(e, "x")), out.height + number(t, attribute(e, "y"))}}
				l.size = number(t, strings.TrimSuffix(attribute(e, "font-size"), "px"))
				out.texts = append(out.texts, l)
			case "path":
				s := shape{stroke: attribute(e, "stroke"), fill: attribute(e, "fill"), dashes: attribute(e, "stroke-dasharray")}
				s.parse(t, attribute(e, "d"), out.height)
				out.shapes = append(out.shapes, s)
			case "title", "desc":
			default:
				t.Errorf("there is an element %q", e.Name.Local)
			}
			for _, a := range e.Attr {
				if name := a.Name.Local; name == "style" || strings.HasPrefix(name, "on") || strings.Contains(name, "href") {
					t.Errorf("%s has the attribute %q", e.Name.Local, name)
				}
			}
		case xml.EndElement:
			open = xml.StartElement{}
		case xml.CharData:
			switch open.Name.Local {
			case "title":
				out.title += string(e)
			case "desc":
				out.desc += string(e)
			case "text":
				out.texts[len(out.texts)-1].text += string(e)
			}
		}
	}
}

func (s *shape) parse(t *testing.T, d string, height float64) {
	for _, c := range commands.FindAllStringSubmatch(d, -1) {
		fields := strings.FieldsFunc(c[2], func(r rune) bool { return r == ',' || r == ' ' })
		var v []float64
		for _, f := range fields {
			v = append(v, number(t, f))
		}
		switch c[1] {
		case "M":
			s.lines = append(s.lines, []point{{v[0], height - v[1]}})
		case "L":
			n := len(s.lines) - 1
			s.lines[n] = append(s.lines[n], point{v[0], height - v[1]})
		case "A": // half a circle, from one side of it to the other
			from, to := s.lines[len(s.lines)-1][0], point{v[5], height - v[6]}
			if to.x < from.x-0.1 {
				s.circles = append(s.circles, rect{to.x, to.y - v[0], from.x, to.y + v[0]})
			}
		}
	}
}

func number(t *testing.T, s string) float64 {
	t.Helper()
	v, err := strconv.ParseFloat(s, 64)
	if err != nil || math.IsNaN(v) || math.IsInf(v, 0) {
		t.Fatalf("%q is no number", s)
	}
	return v
}

// outside reports what is drawn outside of the canvas.
func (d drawing) outside() []string {
	f, err := measure()
	if err != nil {
		return []string{err.Error()}
	}
	var out []string
	check := func(r rect, what string) {
		const slack = 0.02 // of rounding
		if r.left < -slack || r.top < -slack || r.right > d.width+slack || r.bottom > d.height+slack {
			out = append(out, fmt.Sprintf("%s at %v is outside of %v × %v", what, r, d.width, d.height))
		}
	}
	for _, l := range d.texts {
		left, width := l.at.x, textWidth(f, l.size, l.text)
		switch l.anchor {
		case middle:
			left -= width / 2
		case end:
			left -= width
		}
		check(rect{left, l.at.y - l.size, left + width, l.at.y + l.size*0.25}, strconv.Quote(l.text))
	}
	for _, s := range d.shapes {
		for _, line := range s.lines {
			for _, p := range line {
				check(rect{p.x, p.y, p.x, p.y}, "a line")
			}
		}
		for _, c := range s.circles {
			check(c, "a dot")
		}
	}
	return out
}

// find returns the text's place.
func (d drawing) find(t *testing.T, text string) point {
	t.Helper()
	for _, l := range d.texts {
		if l.text == text {
			return l.at
		}
	}
	t.Fatalf("there is no text %q among %v", text, d.texts)
	return point{}
}

// stroked returns the shapes that are drawn as line i is: the sample of the
// legend comes first.
func (d drawing) stroked(look Look, i int) []shape {
	c := look.Theme.palette().lines[i%8]
	var pattern []string
	for _, v := range dashes(i) {
		pattern = append(pattern, strconv.FormatFloat(v, 'g', -1, 64))
	}
	var out []shape
	for _, s := range d.shapes {
		if s.stroke == fmt.Sprintf("#%02X%02X%02X", c.R, c.G, c.B) && s.dashes == strings.Join(pattern, ",") {
			out = append(out, s)
		}
	}
	return out
}

func percentiles(t *testing.T, look Look, title string, series []Series) ([]byte, drawing) {
	t.Helper()
	var b bytes.Buffer
	if err := Percentiles(&b, look, title, series); err != nil {
		t.Fatal(err)
	}
	return b.Bytes(), parse(t, b.Bytes())
}

func timelines(t *testing.T, look Look, title string, from, to time.Time, lines []Line, bands []Band) ([]byte, drawing) {
	t.Helper()
	var b bytes.Buffer
	if err := Timelines(&b, look, title, from, to, lines, bands); err != nil {
		t.Fatal(err)
	}
	return b.Bytes(), parse(t, b.Bytes())
}

// sampleSeries returns n series of some 12,000 requests.
func sampleSeries(n int) []Series {
	r := rand.New(rand.NewPCG(1, 2))
	out := make([]Series, n)
	for i := range out {
		out[i].Name = fmt.Sprintf("door-%d", i)
		d := 150 * time.Microsecond
		for count := 6000.0; count >= 1; count *= 0.5 + 0.4*r.Float64() {
			out[i].Cells = append(out[i].Cells, Cell{d, uint64(count)})
			d += d/time.Duration(4+r.IntN(30)) + 1
		}
	}
	return out
}

// sampleLines returns n lines with a point a second, failures and churn.
func sampleLines(n, points int) (from, to time.Time, lines []Line, bands []Band) {
	r := rand.New(rand.NewPCG(1, 2))
	from, to = noon, noon.Add(time.Duration(points)*time.Second)
	for i := range n {
		l := Line{Name: fmt.Sprintf("door-%d", i)}
		for s := range points {
			at := from.Add(time.Duration(s) * time.Second)
			l.Points = append(l.Points, Point{at, time.Duration(3e5 * math.Exp(5*r.Float64()))})
			if s%20 < 3 && i%2 == 1 {
				l.Failures = append(l.Failures, Failure{at, r.Uint64N(40)})
			}
		}
		lines = append(lines, l)
	}
	for at := from; at.Before(to); at = at.Add(20 * time.Second) {
		bands = append(bands, Band{at, at.Add(6 * time.Second), ScalingUp}, Band{at.Add(10 * time.Second), at.Add(17 * time.Second), ScalingDown})
	}
	return from, to, lines, bands
}

func TestNothingIsDrawnOutside(t *testing.T) {
	long := strings.Repeat("a door with a long name ", 20)
	for _, look := range looks() {
		for _, n := range []int{0, 1, 2, 8, 9, 50} {
			_, d := percentiles(t, look, long, append(sampleSeries(n), Series{Name: long}))
			from, to, lines, bands := sampleLines(n, 300)
			_, e := timelines(t, look, long, from, to, append(lines, Line{Name: long}), bands)
			for _, bad := range append(d.outside(), e.outside()...) {
				t.Errorf("%+v with %d lines: %s", look, n, bad)
			}
		}
	}
}

func TestLegendDoesNotCoverTheData(t *testing.T) {
	for _, look := range looks() {
		_, d := percentiles(t, look, "", sampleSeries(50))
		bottom := 0.0
		for i := range 50 {
			shapes := d.stroked(look, i)
			if len(shapes) != 2 { // legend, data
				t.Fatalf("line %d is drawn %d times", i, len(shapes))
			}
			for _, p := range shapes[1].lines[0] {
				bottom = max(bottom, p.y)
			}
		}
		for i := range 50 {
			if y := d.find(t, fmt.Sprintf("door-%d", i)).y - textSize; y <= bottom {
				t.Errorf("the name of line %d begins at %v, data ends at %v", i, y, bottom)
			}
		}
	}
}

func TestNamesAreEscapedAndCleaned(t *testing.T) {
	tests := []struct{ name, in, want string }{
		{"markup", `<&"'>`, `<&"'>`},
		{"a tag", `</text><script>alert(1)</script>`, `</text><script>alert(1)</script>`},
		{"what looks like a style", `style="a:b"`, `style="a:b"`},
		{"lines", "a\nb\tc\rd", "a b c d"},
		{"control characters", "a\x00b\x1bc\x7fd", "a\ufffdb\ufffdc\ufffdd"},
		{"no UTF-8", "a\xffb", "a\ufffdb"},
		{"no character of XML", "a\uffffb", "a\ufffdb"},
		{"letters of the world", "дверь 門", "дверь 門"},
		{"nothing", "", ""},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			_, d := percentiles(t, Look{}, test.in, []Series{{Name: test.in, Cells: []Cell{{time.Millisecond, 1}}}})
			_, e := timelines(t, Look{}, test.in, noon, noon.Add(time.Minute), []Line{{Name: test.in}}, nil)
			for _, d := range []drawing{d, e} {
				if d.title != test.want {
					t.Errorf("the title is %q, want %q", d.title, test.want)
				}
				if !strings.Contains(d.desc, " "+test.want+":") {
					t.Errorf("the description %q does not name %q", d.desc, test.want)
				}
				if test.want != "" {
					d.find(t, test.want)
				}
			}
		})
	}
}

func TestEqualInputIsDrawnEqually(t *testing.T) {
	series := sampleSeries(12)
	from, to, lines, bands := sampleLines(12, 300)
	draw := func() string {
		var b bytes.Buffer
		for _, look := range looks() {
			if err := errors.Join(Percentiles(&b, look, "a", series), Timelines(&b, look, "b", from, to, lines, bands)); err != nil {
				t.Error(err)
			}
		}
		return b.String()
	}
	want := draw()
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			if draw() != want {
				t.Error("the same input was drawn differently")
			}
		})
	}
	all.Wait()
}

type brokenWriter struct{}

func (brokenWriter) Write([]byte) (int, error) { return 0, io.ErrClosedPipe }

func TestErrorsOfTheWriter(t *testing.T) {
	if err := Percentiles(brokenWriter{}, Look{}, "a", nil); !errors.Is(err, io.ErrClosedPipe) {
		t.Errorf("Percentiles returned %v", err)
	}
	if err := Timelines(brokenWriter{}, Look{}, "a", noon, noon, nil, nil); !errors.Is(err, io.ErrClosedPipe) {
		t.Errorf("Timelines returned %v", err)
	}
}

func FuzzPlots(f *testing.F) {
	f.Add("door", int64(1e6), int64(2e9), uint64(10), uint64(1), int64(0), int64(300e9), uint8(3))
	f.Add("<&\"", int64(-1), int64(0), uint64(0), uint64(math.MaxUint64), int64(math.MinInt64), int64(math.MaxInt64), uint8(0))
	f.Add("\xff", int64(math.MaxInt64), int64(math.MinInt64), uint64(math.MaxUint64), uint64(math.MaxUint64), int64(5), int64(5), uint8(49))
	f.Fuzz(func(t *testing.T, name string, a, b int64, m, n uint64, from, to int64, lines uint8) {
		look := Look{Theme: Theme(lines % 3), Narrow: lines%2 == 1}
		start, stop := time.Unix(0, from).UTC(), time.Unix(0, to).UTC()
		series := make([]Series, lines%51)
		tracks := make([]Line, lines%51)
		for i := range series {
			d, e := time.Duration(a+int64(i)), time.Duration(b)
			series[i] = Series{name, []Cell{{d, m}, {e, n}, {d * 2, uint64(i)}}, name}
			tracks[i] = Line{name, []Point{{start, d}, {stop, e}, {time.Unix(0, a), e}}, []Failure{{start, m}, {stop, n}, {time.Unix(0, b), 1}}, name}
		}
		bands := []Band{{start, stop, ScalingUp}, {stop, start, ScalingDown}, {time.Unix(0, a), time.Unix(0, b), ScalingDown}, {start, stop, Kind(name)}}
		_, p := percentiles(t, look, name, series)
		_, q := timelines(t, look, name, start, stop, tracks, bands)
		for _, bad := range append(p.outside(), q.outside()...) {
			t.Error(bad)
		}
	})
}

func BenchmarkPercentiles(b *testing.B) {
	series := sampleSeries(8)
	for i := range series { // 300 cells each
		series[i].Cells = nil
		for j := range 300 {
			series[i].Cells = append(series[i].Cells, Cell{time.Duration(1e5 * math.Exp(float64(j+i)/40)), uint64(1 + 300 - j)})
		}
	}
	b.ReportAllocs()
	for b.Loop() {
		if err := Percentiles(io.Discard, Look{}, "Latency by percentile", series); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkTimelines(b *testing.B) {
	for _, n := range []int{2, 8, 50} {
		b.Run(fmt.Sprintf("%d lines of 300 points", n), func(b *testing.B) {
			from, to, lines, bands := sampleLines(n, 300)
			b.ReportAllocs()
			for b.Loop() {
				if err := Timelines(io.Discard, Look{}, "Worst latency of each second", from, to, lines, bands); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
