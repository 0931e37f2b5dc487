package web

import (
	"fmt"
	"math"
	"net/url"
	"slices"
	"strconv"
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

// plotView is a plot: its address but for theme and form, the gist of it in
// words, and its size in both forms.
type plotView struct {
	Path, Alt    string
	Wide, Narrow size
	NarrowWhere  string // a media query
}

// Where plots are narrow: on a phone, and the one that stands beside others.
const (
	onPhone    = "(max-width: 36rem)"
	besideOnes = onPhone + " or (min-width: 70rem)"
)

// views returns nil where there is nothing to plot.
func (p *plots) views(targets []Target, now time.Time) *plotViews {
	shown, of := overlaid(targets)
	if len(shown) == 0 {
		return nil
	}
	five := windows()[0]
	v := &plotViews{
		Percentiles: p.view(plotKey{path: pathPercentiles, window: five}, now, percentilesAlt(shown)),
		Seconds: p.view(plotKey{path: pathSeconds}, now, timelineAlt("Worst latency of each second", p.options, shown, time.Second,
			func(m Moment) Number { return m.Max })),
		Hour: p.view(plotKey{path: pathHour}, now, timelineAlt("p99 of each 10 seconds", p.options, shown, 10*time.Second,
			func(m Moment) Number { return m.P99 })),
	}
	if of > len(shown) {
		v.Note = fmt.Sprintf("Plots show %d of %s targets: the least well.", len(shown), count(uint64(of)))
	}
	return v
}

// view has an address that changes with the time, so that browsers ask again.
func (p *plots) view(key plotKey, now time.Time, alt string) plotView {
	query := url.Values{"t": {strconv.FormatInt(now.Unix(), 10)}}
	if key.window.name != "" {
		query.Set("window", key.window.name)
	}
	v := plotView{Path: key.path + "?" + query.Encode(), Alt: alt, Wide: p.size(key), NarrowWhere: onPhone}
	if key.path == pathPercentiles {
		v.NarrowWhere = besideOnes
	}
	key.narrow = true
	v.Narrow = p.size(key)
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
