package plot

import (
	"fmt"
	"math"
	"strings"
	"testing"
	"time"
)

// same says whether two lines are the same but for rounding and for points that
// are drawn twice.
func same(got, want []point) bool {
	var once []point
	for _, p := range got {
		if n := len(once); n == 0 || math.Hypot(p.x-once[n-1].x, p.y-once[n-1].y) > 0.02 {
			once = append(once, p)
		}
	}
	if len(once) != len(want) {
		return false
	}
	for i := range want {
		if math.Hypot(once[i].x-want[i].x, once[i].y-want[i].y) > 0.03 {
			return false
		}
	}
	return true
}

func TestPercentilesAreExact(t *testing.T) {
	const ms = time.Millisecond
	for _, look := range looks() {
		// 90 of 100 within 1 ms, 99 within 10 ms, all within 100 ms.
		_, d := percentiles(t, look, "", []Series{{"a", []Cell{{ms, 90}, {10 * ms, 9}, {100 * ms, 1}}, ""}, {"b", []Cell{{50 * ms, 10}}, ""}})
		// Labels are centred below what they name, and 4.5 below its height.
		x0, x90 := d.find(t, "0 %").x, d.find(t, "90 %").x
		x99 := 2*x90 - x0 // nines have equal distances
		y := func(label string) float64 { return d.find(t, label).y - 4.5 }
		want := []point{{x0, y("1 ms")}, {x90, y("1 ms")}, {x90, y("10 ms")}, {x99, y("10 ms")}, {x99, y("100 ms")}}
		if got := d.stroked(look, 0)[1].lines[0]; !same(got, want) {
			t.Errorf("%+v: the line is %v, want %v", look, got, want)
		}
		// 10 requests tell nothing beyond 90 %.
		want = []point{{x0, y("50 ms")}, {x90, y("50 ms")}}
		if got := d.stroked(look, 1)[1].lines[0]; !same(got, want) {
			t.Errorf("%+v: the line of 10 requests is %v, want %v", look, got, want)
		}
	}
}

func TestPercentilesOfOddInput(t *testing.T) {
	const ms = time.Millisecond
	tests := []struct {
		name  string
		cells []Cell
		dots  int
		says  string
	}{
		{"nil", nil, 0, " a: no requests yet."},
		{"nothing counted", []Cell{{ms, 0}}, 0, " a: no requests yet."},
		{"one request", []Cell{{ms, 1}}, 1, " a: all 1 requests within 1 ms."},
		{"two requests, 1/(1-0.5) are enough for the median", []Cell{{ms, 1}, {2 * ms, 1}}, 1, " a: 50 % within 1 ms, all 2 requests within 2 ms."},
		{"no time", []Cell{{0, 5}}, 1, " all 5 requests within 0 µs."},
		{"less than no time", []Cell{{-5, 5}, {ms, 5}}, 1, " all 10 requests within 1 ms."},
		{"descending", []Cell{{2 * ms, 1}, {ms, 9}}, 1, " a: 50 % within 1 ms, 90 % within 1 ms, all 10 requests within 2 ms."},
		{"as much as there is", []Cell{{math.MaxInt64, math.MaxUint64}, {1, math.MaxUint64}}, 1, " all 36893488147419103232 requests within 9223372037 s."},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			_, d := percentiles(t, Look{}, "", []Series{{"a", test.cells, ""}})
			dots := 0
			for _, s := range d.shapes {
				dots += len(s.circles)
			}
			if dots != test.dots {
				t.Errorf("%d lines have an end, want %d", dots, test.dots)
			}
			if !strings.Contains(d.desc, test.says) {
				t.Errorf("the description is %q, want %q in it", d.desc, test.says)
			}
			empty := false
			for _, l := range d.texts {
				empty = empty || l.text == "no requests yet"
			}
			if empty != (test.dots == 0) {
				t.Errorf("it says that there are no requests: %v", empty)
			}
			for _, bad := range d.outside() {
				t.Error(bad)
			}
		})
	}
}

func TestPercentilesOfManyCellsStayTrue(t *testing.T) {
	// 20,000 cells of one request each, 1 µs apart from 1 ms, are more than can
	// be seen: what is left out is within a quarter of a unit.
	var cells []Cell
	for i := range 20000 {
		cells = append(cells, Cell{time.Millisecond + time.Duration(i)*time.Microsecond, 1})
	}
	svg, d := percentiles(t, Look{}, "", []Series{{"a", cells, ""}})
	if len(svg) > 60000 {
		t.Errorf("the plot has %d bytes", len(svg))
	}
	c := newCurve(cells)
	axis := newLatencyAxis(cells[0].Highest, cells[len(cells)-1].Highest)
	s, err := newSheet(Look{}, "", axis, 0, 0, nil)
	if err != nil {
		t.Fatal(err)
	}
	line := d.stroked(Look{}, 0)[1].lines[0]
	for i, cell := range cells {
		p := point{s.x(nines(c.rest[i], c.rest[0]) / c.end()), s.y(axis.at(cell.Highest))}
		nearest := math.Inf(1)
		for _, q := range line {
			nearest = min(nearest, math.Hypot(p.x-q.x, p.y-q.y))
		}
		// The corners of a step that is drawn are its ends.
		if nearest > 0.25*math.Sqrt2+0.02 {
			t.Fatalf("cell %d at %v is %v from the line", i, p, nearest)
		}
	}
}

func TestNinesTicks(t *testing.T) {
	tests := []struct {
		most float64
		want string
	}{
		{1, "0 %@0.00 50 %@0.30 90 %@1.00"},
		{2.5, "0 %@0.00 50 %@0.12 90 %@0.40 99 %@0.80"},
		{5, "0 %@0.00 50 %@0.06 90 %@0.20 99 %@0.40 99.9 %@0.60 99.99 %@0.80 99.999 %@1.00"},
	}
	for _, test := range tests {
		if got := text(ninesTicks(test.most)); got != test.want {
			t.Errorf("up to %v nines: %s, want %s", test.most, got, test.want)
		}
	}
}

// text writes ticks that have labels.
func text(ticks []tick) string {
	var out []string
	for _, k := range ticks {
		if k.label != "" {
			out = append(out, fmt.Sprintf("%s@%.2f", k.label, k.at))
		}
	}
	return strings.Join(out, " ")
}

func TestWhyThereIsNothing(t *testing.T) {
	const failed = "no latency: all requests failed"
	well := []Cell{{time.Millisecond, 90}}
	tests := []struct {
		name   string
		series []Series
		text   string // in the middle of the plot
		legend string // of b
	}{
		{"one of two", []Series{{"a", well, ""}, {"b", nil, failed}}, "", "b (no latency: all requests failed)"},
		{"both", []Series{{"a", nil, ""}, {"b", nil, failed}}, failed, "b (no latency: all requests failed)"},
		{"it has some", []Series{{"b", well, failed}}, "", "b"},
		{"nothing is said", []Series{{"a", nil, ""}, {"b", nil, ""}}, "no requests yet", "b"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			for _, look := range looks() {
				_, d := percentiles(t, look, "", test.series)
				d.find(t, test.legend)
				if test.text != "" {
					d.find(t, test.text)
				}
				for _, l := range d.texts {
					if test.text == "" && (l.text == failed || l.text == "no requests yet") {
						t.Errorf("it says %q", l.text)
					}
				}
				if says := strings.Contains(d.desc, " b: "+failed+"."); says != strings.Contains(test.legend, failed) {
					t.Errorf("the description is %q", d.desc)
				}
			}
		})
	}
}
