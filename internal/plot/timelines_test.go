package plot

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"
)

func after(seconds float64) time.Time {
	return noon.Add(time.Duration(seconds * float64(time.Second)))
}

func TestTimelinesAreExact(t *testing.T) {
	const ms = time.Millisecond
	for _, look := range looks() {
		lines := []Line{{Name: "a", Points: []Point{
			{after(-1), 999 * time.Second}, // before
			{after(0), ms}, {after(60), 10 * ms},
			{after(90), 0}, // a gap
			{after(120), 100 * ms},
			{after(150), -5}, // a gap
			{after(180), ms}, {after(240), ms},
			{after(241), 999 * time.Second}, // after
		}}}
		_, d := timelines(t, look, "", noon, after(240), lines, nil)
		x0, x2 := d.find(t, "12:00").x, d.find(t, "12:02").x
		x := func(seconds float64) float64 { return x0 + (x2-x0)*seconds/120 }
		y := func(label string) float64 { return d.find(t, label).y - 4.5 }
		got := d.stroked(look, 0)[1].lines
		want := [][]point{{{x(0), y("1 ms")}, {x(60), y("10 ms")}}, {{x(180), y("1 ms")}, {x(240), y("1 ms")}}}
		if !slices.EqualFunc(got, want, same) {
			t.Errorf("%+v: the lines are %v, want %v", look, got, want)
		}
		// What stands alone between two gaps is a dot.
		var dots []rect
		for _, s := range d.shapes {
			dots = append(dots, s.circles...)
		}
		if len(dots) != 1 || math.Abs((dots[0].left+dots[0].right)/2-x(120)) > 0.02 || math.Abs((dots[0].top+dots[0].bottom)/2-y("100 ms")) > 0.02 {
			t.Errorf("%+v: the dots are %v, want one at %v, %v", look, dots, x(120), y("100 ms"))
		}
		if want := " a: highest 100 ms at 12:02:00, 0 failed."; !strings.HasSuffix(d.desc, want) {
			t.Errorf("the description is %q, want %q at its end", d.desc, want)
		}
	}
}

func TestTimelinesShowFailures(t *testing.T) {
	lines := []Line{
		{Name: "well", Points: []Point{{after(0), time.Millisecond}, {after(60), time.Millisecond}}},
		{Name: "down", Failures: []Failure{{after(90), 1}, {after(30), 100}, {after(30), 28}, {after(-5), 7}, {after(121), 7}, {after(60), 0}}},
	}
	_, d := timelines(t, Look{}, "", noon, after(120), lines, nil)
	d.find(t, "well")
	d.find(t, "down: 129 failed") // 1 + 100 + 28
	d.find(t, "failed requests (higher: more)")
	x0, x1 := d.find(t, "12:00:00").x, d.find(t, "12:01:00").x
	c := Light.palette().lines[1]
	var marks [][]point
	for _, s := range d.shapes {
		if s.fill == fmt.Sprintf("#%02X%02X%02X", c.R, c.G, c.B) {
			marks = append(marks, s.lines...)
		}
	}
	if len(marks) != 2 {
		t.Fatalf("there are %d marks, want 2", len(marks))
	}
	height := func(mark []point) float64 { return mark[2].y - mark[0].y }
	for i, seconds := range []float64{30, 90} {
		if want := x0 + (x1-x0)*seconds/60; marks[i][0].x > want+0.02 || marks[i][1].x < want-0.02 {
			t.Errorf("mark %d is from %v to %v, want %v within", i, marks[i][0].x, marks[i][1].x, want)
		}
	}
	// A lane is 16 high, a mark 14 (0.35 + 0.65 ln(1+n)/ln(1+128)): 14 for 128,
	// 14 (0.35 + 0.65 × 0.6931/4.8598) = 6.198 for 1.
	for i, want := range []float64{14, 6.198} {
		if got := height(marks[i]); math.Abs(got-want) > 0.03 {
			t.Errorf("mark %d is %v high, want %v", i, got, want)
		}
	}
	// What is at the left of the marks has a name; the line has a sample in the
	// legend alone.
	if got := len(d.stroked(Look{}, 1)); got != 1 {
		t.Errorf("the line without points has %d samples, want 1", got)
	}
}

func TestTimelinesShadeBands(t *testing.T) {
	bands := []Band{
		{after(60), after(90), ScalingDown},
		{after(-60), after(30), ScalingUp}, // cut
		{after(30), after(30), ScalingUp},  // nothing
		{after(200), after(300), ScalingUp},
		{after(90), after(60), ScalingDown}, // backwards
		{after(0), after(120), "settled"},   // is not drawn
	}
	_, d := timelines(t, Look{}, "", noon, after(120), nil, bands)
	x0, x1 := d.find(t, "12:00:00").x, d.find(t, "12:01:00").x
	x := func(seconds float64) float64 { return x0 + (x1-x0)*seconds/60 }
	p := Light.palette()
	for _, test := range []struct {
		name     string
		colours  band
		from, to float64
	}{{"up", p.up, 0, 30}, {"down", p.down, 60, 90}} {
		for _, c := range []string{
			fmt.Sprintf("#%02X%02X%02X", test.colours.shade.R, test.colours.shade.G, test.colours.shade.B),
			fmt.Sprintf("#%02X%02X%02X", test.colours.bar.R, test.colours.bar.G, test.colours.bar.B),
		} {
			var shapes []shape
			for _, s := range d.shapes {
				if s.fill == c {
					shapes = append(shapes, s)
				}
			}
			if len(shapes) != 2 || len(shapes[1].lines)+len(shapes[0].lines) != 2 {
				t.Fatalf("%s is drawn as %v, want one in the plot and one in the legend", test.name, shapes)
			}
			if got := shapes[1].lines[0]; math.Abs(got[0].x-x(test.from))+math.Abs(got[1].x-x(test.to)) > 0.04 &&
				math.Abs(shapes[0].lines[0][0].x-x(test.from))+math.Abs(shapes[0].lines[0][1].x-x(test.to)) > 0.04 {
				t.Errorf("%s is drawn as %v, want from %v to %v", test.name, shapes, x(test.from), x(test.to))
			}
		}
	}
	// In the strip, one is above the other, in plot and legend.
	heights := func(c string) (out []float64) {
		for _, s := range d.shapes {
			if s.fill == c {
				out = append(out, s.lines[0][0].y, s.lines[0][2].y)
			}
		}
		return out
	}
	up, down := heights("#8B929A"), heights("#4C535B")
	for i := 0; i < 4; i += 2 {
		if up[i] >= up[i+1] || up[i+1] > down[i]+0.02 || down[i] >= down[i+1] {
			t.Errorf("scaling up is from %v to %v, scaling down from %v to %v", up[i], up[i+1], down[i], down[i+1])
		}
	}
	d.find(t, "scaling up")
	d.find(t, "scaling down")
	d.find(t, "no requests yet")
	if slices.ContainsFunc(d.texts, func(l label) bool { return strings.Contains(l.text, "settled") }) {
		t.Error("settled has an entry")
	}
}

func TestNarrowBandsAreInTheStripAlone(t *testing.T) {
	var bands []Band
	for s := 0.0; s < 3600; s += 20 {
		bands = append(bands, Band{after(s), after(s + 6), ScalingUp})
	}
	c := Light.palette().up
	for seconds, want := range map[float64]int{
		300:  2 + 2, // shade and bar, in plot and legend: 6 s of 300 are 13 units
		3600: 1 + 2, // 1.1 units
	} {
		_, d := timelines(t, Look{}, "", noon, after(seconds), nil, bands)
		got := 0
		for _, s := range d.shapes {
			if s.fill == fmt.Sprintf("#%02X%02X%02X", c.shade.R, c.shade.G, c.shade.B) || s.fill == fmt.Sprintf("#%02X%02X%02X", c.bar.R, c.bar.G, c.bar.B) {
				got++
			}
		}
		if got != want {
			t.Errorf("bands over %v s are drawn by %d shapes, want %d", seconds, got, want)
		}
	}
}

func TestManyBandsAreFew(t *testing.T) {
	var bands []Band
	for i := range 100000 {
		at := noon.Add(time.Duration(i) * time.Millisecond)
		bands = append(bands, Band{at, at.Add(time.Millisecond / 2), []Kind{ScalingUp, ScalingDown}[i%2]})
	}
	svg, _ := timelines(t, Look{}, "", noon, after(100), nil, bands)
	if len(svg) > 10000 {
		t.Errorf("the plot has %d bytes", len(svg))
	}
}

func TestThinKeepsExtremesAndGaps(t *testing.T) {
	x := newTimeAxis(noon, after(100))
	var points []Point
	for i := range 10000 {
		points = append(points, Point{after(float64(i) / 100), time.Duration(1000 + i%7)})
	}
	points[1234].Value = 5      // in column 12
	points[1235].Value = 900000 // too
	points[5678].Value = 0      // in column 56
	got := thin(x, points, 100)
	if len(got) > 300 {
		t.Errorf("%d points are left in 100 columns", len(got))
	}
	for _, want := range []Point{points[1234], points[1235], points[5678]} {
		if !slices.Contains(got, want) {
			t.Errorf("the point %v is lost", want)
		}
	}
	if !slices.IsSortedFunc(got, func(a, b Point) int { return a.At.Compare(b.At) }) {
		t.Error("the points are out of order")
	}
	few := points[:200]
	if got := thin(x, few, 100); len(got) != len(few) {
		t.Errorf("of 200 points %d are left, though 100 columns hold them", len(got))
	}
}

func TestTimelinesInALocation(t *testing.T) {
	east := time.FixedZone("CET", 3600)
	lines := []Line{{Name: "a", Points: []Point{{after(5), time.Second}}}}
	_, d := timelines(t, Look{}, "", noon.In(east), after(60), lines, nil)
	d.find(t, "time (CET)")
	d.find(t, "13:00:00")
	for _, want := range []string{"from 13:00:00 to 13:01:00 CET.", "highest 1 s at 13:00:05,"} {
		if !strings.Contains(d.desc, want) {
			t.Errorf("the description is %q, want %q in it", d.desc, want)
		}
	}
}

func TestTimelinesSayWhyThereIsNothing(t *testing.T) {
	const few = "no p99: too few requests"
	fails := []Failure{{after(30), 3}}
	tests := []struct {
		name string
		line Line
		text string // in the middle of the plot
		desc string
	}{
		{"no requests", Line{Name: "a"}, "no requests yet", " a: no requests yet."},
		{"too few requests", Line{Name: "a", Empty: few}, few, " a: " + few + "."},
		{"too few requests, some failed", Line{Name: "a", Failures: fails, Empty: few}, few, " a: " + few + ", 3 failed."},
		{"failures, nothing is said", Line{Name: "a", Failures: fails}, "", " a: 3 failed."},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			_, d := timelines(t, Look{Narrow: true}, "", noon, after(60), []Line{test.line}, nil)
			if test.text != "" {
				d.find(t, test.text)
			}
			for _, l := range d.texts {
				if test.text == "" && l.text == "no requests yet" {
					t.Error("it says that there are no requests")
				}
			}
			if !strings.HasSuffix(d.desc, test.desc) {
				t.Errorf("the description is %q, want %q at its end", d.desc, test.desc)
			}
		})
	}
}
