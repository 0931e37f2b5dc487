package web

import (
	"fmt"
	"math"
	"net/url"
	"slices"
	"strings"
	"time"
)

// maxOverlaid is how many targets a plot shows at most: more lines than that
// cannot be told apart.
const maxOverlaid = 8

// plotViews are the plots as the page shows them.
type plotViews struct {
	Note                       string
	Percentiles, Seconds, Hour plotView
}

// plotView is a plot, with its address but for the theme, and the gist of it in
// words.
type plotView struct {
	Path, Alt     string
	Width, Height int
}

// newPlotViews returns nil where there is nothing to plot.
func newPlotViews(o *Options, targets []Target, now time.Time) *plotViews {
	shown, of := overlaid(targets)
	if len(shown) == 0 {
		return nil
	}
	v := &plotViews{
		Percentiles: plotView{plotURL(pathPercentiles, url.Values{"window": {"5m"}}, now), percentilesAlt(shown), halfWidth, halfHeight},
		Seconds: plotView{plotURL(pathSeconds, url.Values{}, now), timelineAlt("Worst latency of each second", o, shown, time.Second,
			func(m Moment) Number { return m.Max }), wideWidth, wideHeight},
		Hour: plotView{plotURL(pathHour, url.Values{}, now), timelineAlt("p99 of each 10 seconds", o, shown, 10*time.Second,
			func(m Moment) Number { return m.P99 }), halfWidth, halfHeight},
	}
	if of > len(shown) {
		v.Note = fmt.Sprintf("Plots show %d of %d targets: the least well.", len(shown), of)
	}
	return v
}

// overlaid returns the targets that plots show, in the order of the
// configuration, and how many could be shown. A closed loop has no latency.
func overlaid(targets []Target) (shown []Target, of int) {
	open := slices.DeleteFunc(slices.Clone(targets), func(t Target) bool { return t.Loop == loopClosed })
	if len(open) <= maxOverlaid {
		return open, len(open)
	}
	chosen := map[string]bool{}
	for _, t := range byNeed(open)[:maxOverlaid] {
		chosen[t.Name] = true
	}
	return slices.DeleteFunc(slices.Clone(open), func(t Target) bool { return !chosen[t.Name] }), len(open)
}

func percentilesAlt(targets []Target) string {
	parts := make([]string, len(targets))
	for i := range targets {
		parts[i] = targets[i].Name + " " + seconds(targets[i].latency("5m").at(0.99))
	}
	return "Latency by percentile over the last 5 minutes. p99: " + strings.Join(parts, ", ") + "."
}

// timelineAlt says what was highest, of whom and when.
func timelineAlt(what string, o *Options, targets []Target, span time.Duration, of func(Moment) Number) string {
	highest, name, when, failed := none(), "", time.Time{}, uint64(0)
	for i := range targets {
		t, _ := o.Timeline(targets[i].Name, span)
		for _, m := range t.Moments {
			failed += m.Failed
			if v := of(m); v > highest || math.IsNaN(float64(highest)) && !math.IsNaN(float64(v)) {
				highest, name, when = v, t.Target, m.From
			}
		}
	}
	if name == "" {
		return what + ": there is none yet."
	}
	return fmt.Sprintf("%s: the highest is %s, of %s at %s. %s requests failed.", what, seconds(highest), name, clock(when), count(failed))
}
