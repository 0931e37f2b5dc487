package web

import (
	"bytes"
	"fmt"
	"io"
	"math"
	"strings"
	"time"

	"github.com/steadyprobe/steadyprobe/internal/plot"
)

// How far back the plots over time go: as far as timelines are kept.
const (
	secondsBack = 5 * time.Minute
	hourBack    = time.Hour
)

// maxBands is how many churn phases are shaded at most: more of them are a
// grey mist.
const maxBands = 100

// draw draws a plot of what is so now.
func draw(o *Options, key plotKey) ([]byte, error) {
	shown, _ := overlaid(o.Targets())
	var svg bytes.Buffer
	var err error
	look := plot.Look{Narrow: key.narrow}
	if key.dark {
		look.Theme = plot.Dark
	}
	switch key.path {
	case pathSeconds:
		err = drawTimelines(&svg, look, o, shown, over{"Worst latency of each second", time.Second, secondsBack,
			func(m Moment) Number { return m.Max }})
	case pathHour:
		err = drawTimelines(&svg, look, o, shown, over{"p99 of each 10 seconds", 10 * time.Second, hourBack,
			func(m Moment) Number { return m.P99 }})
	default:
		err = drawPercentiles(&svg, look, o, shown, key.window)
	}
	if err != nil {
		return nil, fmt.Errorf("drawing %q: %w", key.path, err)
	}
	return svg.Bytes(), nil
}

func drawPercentiles(w io.Writer, look plot.Look, o *Options, shown []Target, window choice[time.Duration]) error {
	series := make([]plot.Series, len(shown))
	for i := range shown {
		series[i].Name = shown[i].Name
		cells, _ := o.Distribution(shown[i].Name, window.value)
		series[i].Cells = make([]plot.Cell, len(cells))
		for j, c := range cells {
			series[i].Cells[j] = plot.Cell(c)
		}
	}
	return plot.Percentiles(w, look, "Latency by percentile, "+strings.NewReplacer("m", " min", "h", " h").Replace(window.name), series)
}

// over is what a plot over time shows: a figure of each span, so far back.
type over struct {
	title      string
	span, back time.Duration
	figure     func(Moment) Number
}

func drawTimelines(w io.Writer, look plot.Look, o *Options, shown []Target, what over) error {
	s := o.Status()
	now := s.Now.UTC()
	from := begin(s.Started, now, what.back)
	lines := make([]plot.Line, len(shown))
	for i := range shown {
		lines[i].Name = shown[i].Name
		t, _ := o.Timeline(shown[i].Name, what.span)
		for _, m := range t.Moments {
			lines[i].Points = append(lines[i].Points, plot.Point{At: m.From, Value: duration(what.figure(m))})
			if m.Failed > 0 {
				lines[i].Failures = append(lines[i].Failures, plot.Failure{At: m.From, Count: m.Failed})
			}
		}
	}
	return plot.Timelines(w, look, what.title, from, now, lines, bands(o.Churns(), shown, from, now))
}

// begin returns when a plot over time begins: so far back, but, while the
// process is young, not much before it started.
func begin(started, now time.Time, back time.Duration) time.Time {
	if from := now.Add(-back); started.Before(from) {
		return from
	}
	if least := now.Add(-back / 5); least.Before(started) {
		return least
	}
	return started.UTC()
}

// duration returns n seconds, 0 where there are none.
func duration(n Number) time.Duration {
	if math.IsNaN(float64(n)) {
		return 0
	}
	return time.Duration(float64(n) * float64(time.Second))
}

// bands returns the scaling phases of the churn of the targets that are shown.
// Where they have several churns there are no bands: nobody could tell whose a
// band is.
func bands(churns []Churn, shown []Target, from, now time.Time) (all []plot.Band) {
	name := ""
	for i := range shown {
		switch churn := shown[i].Churn; {
		case churn == "" || churn == name:
		case name == "":
			name = churn
		default:
			return nil
		}
	}
	for i := range churns {
		if churns[i].Name != name {
			continue
		}
		history := churns[i].History
		for j, p := range history {
			to := now
			if j+1 < len(history) {
				to = history[j+1].From
			}
			if p.Phase != phaseSettled && to.After(from) {
				all = append(all, plot.Band{From: p.From, To: to, Kind: plot.Kind(p.Phase)})
			}
		}
	}
	if len(all) > maxBands {
		return nil
	}
	return all
}
