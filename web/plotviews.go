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
	Minutes, Back              string // how far back they go
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
func (p *plots) views(targets []Target, s *Status) *plotViews {
	shown, of := overlaid(targets)
	if len(shown) == 0 {
		return nil
	}
	five := windows()[0]
	v := &plotViews{
		Minutes: lately(s, secondsBack), Back: lately(s, hourBack),
		Seconds: p.view(plotKey{path: pathSeconds}, s.Now, timelineAlt(bySecond(), p.options, shown)),
		Hour:    p.view(plotKey{path: pathHour}, s.Now, timelineAlt(byHour(), p.options, shown)),
	}
	v.Percentiles = p.view(plotKey{path: pathPercentiles, window: five}, s.Now, percentilesAlt(shown, v.Minutes))
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

func percentilesAlt(targets []Target, minutes string) string {
	parts := make([]string, len(targets))
	for i := range targets {
		parts[i] = targets[i].Name + " " + seconds(targets[i].latency("5m").at(0.99))
	}
	return "Latency by percentile over the last " + minutes + ". p99: " + strings.Join(parts, ", ") + "."
}

// timelineAlt says what was highest, of whom and when.
func timelineAlt(what over, o *Options, targets []Target) string {
	highest, name, when, failed := none(), "", time.Time{}, uint64(0)
	for i := range targets {
		for _, m := range history(o, targets[i].Name, what.span) {
			failed += m.Failed
			if v := what.figure(m); v > highest || math.IsNaN(float64(highest)) && !math.IsNaN(float64(v)) {
				highest, name, when = v, targets[i].Name, m.From
			}
		}
	}
	if name == "" && failed == 0 {
		return what.title + ": there is none yet."
	}
	if name == "" {
		return fmt.Sprintf("%s: there is none. %s requests failed.", what.title, count(failed))
	}
	return fmt.Sprintf("%s: the highest is %s, of %s at %s. %s requests failed.", what.title, seconds(highest), name, clock(when), count(failed))
}
