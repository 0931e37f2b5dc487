package web

import (
	"bytes"
	"fmt"
	"io"
	"math"
	"slices"
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
		err = drawTimelines(&svg, look, o, shown, bySecond())
	case pathHour:
		err = drawTimelines(&svg, look, o, shown, byHour())
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
		series[i].Empty = withoutLatency(&shown[i], window.value)
		series[i].Cells = make([]plot.Cell, len(cells))
		for j, c := range cells {
			series[i].Cells[j] = plot.Cell(c)
		}
	}
	s := o.Status()
	return plot.Percentiles(w, look, "Latency by percentile, the last "+lately(&s, window.value), series)
}

// allFailed is why requests were completed and no latency is to be seen.
const allFailed = "no latency: all requests failed"

// withoutLatency says why a window of a target would have no latency, empty
// where there were no requests.
func withoutLatency(t *Target, window time.Duration) string {
	if window <= secondsBack && t.recent() > 0 || window > secondsBack && t.Failed > 0 {
		return allFailed
	}
	return ""
}

// lately names a span up to now, or the age of the process where it is younger.
func lately(s *Status, span time.Duration) string {
	old := max(s.Now.Sub(s.Started), time.Second)
	switch {
	case old < span && old < 2*time.Minute:
		return fmt.Sprintf("%d s", old/time.Second)
	case old < span:
		return fmt.Sprintf("%d min", old/time.Minute)
	case span == time.Minute:
		return "minute"
	case span == time.Hour:
		return "hour"
	}
	return fmt.Sprintf("%d minutes", span/time.Minute)
}

// over is what a plot over time shows: a figure of each span, so far back.
type over struct {
	title      string
	span, back time.Duration
	figure     func(Moment) Number
	few        string // why spans with requests have no figure
}

// bySecond is the last minutes, byHour the last hour.
func bySecond() over {
	return over{"Worst latency of each second", time.Second, secondsBack, func(m Moment) Number { return m.Max }, ""}
}

func byHour() over {
	return over{"p99 of each 10 seconds", 10 * time.Second, hourBack, func(m Moment) Number { return m.P99 },
		"no p99: too few requests"}
}

// history returns the past of a target. Of spans longer than a second it ends
// with the seconds since the last of them, which count failures and have no
// figure, so that two plots of a young process tell of as many.
func history(o *Options, target string, span time.Duration) []Moment {
	t, _ := o.Timeline(target, span)
	if span <= time.Second || len(t.Moments) == 0 {
		return t.Moments
	}
	// An instant is shown by the wall clock of the moment when it is asked for.
	const about = time.Second / 2
	end := t.Moments[len(t.Moments)-1].From.Add(span - about)
	moments := slices.Clone(t.Moments)
	rest, _ := o.Timeline(target, time.Second)
	for _, m := range rest.Moments {
		if m.From.After(end) {
			m.P50, m.P99, m.Max = none(), none(), none()
			moments = append(moments, m)
		}
	}
	return moments
}

func drawTimelines(w io.Writer, look plot.Look, o *Options, shown []Target, what over) error {
	s := o.Status()
	now := s.Now.UTC()
	from := begin(s.Started, now, what.back)
	lines := make([]plot.Line, len(shown))
	for i := range shown {
		lines[i].Name = shown[i].Name
		completed, failed := uint64(0), uint64(0)
		for _, m := range history(o, shown[i].Name, what.span) {
			// Spans do not begin with the process, nor with the plot: the oldest
			// one is shown whole.
			if m.From.Before(from) && from.Sub(m.From) < 2*what.span {
				from = m.From.UTC()
			}
			completed, failed = completed+m.Completed, failed+m.Failed
			lines[i].Points = append(lines[i].Points, plot.Point{At: m.From, Value: duration(what.figure(m))})
			if m.Failed > 0 {
				lines[i].Failures = append(lines[i].Failures, plot.Failure{At: m.From, Count: m.Failed})
			}
		}
		switch {
		case completed > failed:
			lines[i].Empty = what.few
		case completed > 0:
			lines[i].Empty = allFailed
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
	if least := now.Add(-time.Minute); least.Before(started) {
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
