package web

import (
	"bytes"
	"log/slog"
	"math"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// The plots of the page; relative, as all its links.
const (
	pathPercentiles = "plot/percentiles.svg"
	pathSeconds     = "plot/seconds.svg"
	pathHour        = "plot/hour.svg"
)

// plotFresh is how long a plot is shown again before it is drawn anew: a little
// less than the page's refresh.
const plotFresh = 4 * time.Second

// plots draws what the page shows.
type plots struct {
	options *Options
	draw    func(*Options, plotKey) ([]byte, error)
	drawn   *cache[plotKey]
}

// plotKey says which plot: there are few of them, so what is kept is bounded.
type plotKey struct {
	path   string
	window choice[time.Duration] // of percentiles, else none
	dark   bool
	narrow bool
}

// size is how wide and high a plot is, in pixels of CSS.
type size struct{ Width, Height int }

func newPlots(o *Options) *plots {
	own := *o
	own.Targets = shared(o.Targets)
	return &plots{options: &own, draw: draw, drawn: newCache[plotKey](plotFresh)}
}

// sharedFor is how long plots share what targets were: those of one page are
// asked for together.
const sharedFor = time.Second

// shared returns targets with an answer that is given again for a while, because
// it looks at all that every target has measured. It may not be called
// concurrently; plots are drawn one at a time.
func shared(targets func() []Target) func() []Target {
	var at time.Time
	var last []Target
	return func() []Target {
		if at.IsZero() || time.Since(at) >= sharedFor {
			at, last = time.Now(), targets()
		}
		return last
	}
}

func (p *plots) register(mux *http.ServeMux) {
	h := limited(maxViewers, tooMany, stalling(http.HandlerFunc(p.serve)))
	for _, path := range []string{pathPercentiles, pathSeconds, pathHour} {
		mux.Handle("GET /"+path, h)
	}
}

// themes are those of a plot, the first is the default; true is dark.
func themes() choices[bool] { return choices[bool]{{"light", false}, {"dark", true}} }

// forms are those of a plot, the first is the default; true is narrow.
func forms() choices[bool] { return choices[bool]{{"wide", false}, {"narrow", true}} }

func (p *plots) serve(w http.ResponseWriter, r *http.Request) {
	key, err := keyOf(r)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	svg, err := p.drawn.get(r.Context(), key, func() ([]byte, error) { return p.draw(p.options, key) })
	if r.Context().Err() != nil {
		return // nobody waits for it any more
	}
	if err != nil {
		p.options.Logger.Error("Drawing a plot failed", slog.String("plot", key.path), slog.Any("err", err))
		http.Error(w, "The plot cannot be drawn, see the log.", http.StatusInternalServerError)
		return
	}
	// A plot that is opened by itself has styles of its own and nothing else.
	w.Header().Set("Content-Security-Policy", "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'")
	w.Header().Set("Content-Type", "image/svg+xml")
	_, _ = w.Write(svg)
}

func keyOf(r *http.Request) (plotKey, error) {
	query, err := parse(r)
	if err != nil {
		return plotKey{}, err
	}
	theme, err := themes().of(query, "theme")
	if err != nil {
		return plotKey{}, err
	}
	form, err := forms().of(query, "form")
	if err != nil {
		return plotKey{}, err
	}
	key := plotKey{path: strings.TrimPrefix(r.URL.Path, "/"), dark: theme.value, narrow: form.value}
	if key.path == pathPercentiles {
		key.window, err = windows().of(query, "window")
	}
	return key, err
}

// size returns how large a plot was when it was last drawn, in either theme, or
// else what is usual: a page that keeps room for it does not jump.
func (p *plots) size(key plotKey) size {
	for _, key.dark = range []bool{false, true} {
		if s, ok := sizeOf(p.drawn.last(key)); ok {
			return s
		}
	}
	if key.narrow {
		return size{360, 410}
	}
	return size{760, 440}
}

// sizeOf reads the viewBox of an SVG.
func sizeOf(svg []byte) (size, bool) {
	_, rest, _ := bytes.Cut(svg, []byte(`viewBox="`))
	box, _, found := bytes.Cut(rest, []byte(`"`))
	fields := strings.Fields(string(box))
	if !found || len(fields) != 4 {
		return size{}, false
	}
	width, err := strconv.ParseFloat(fields[2], 64)
	height, err2 := strconv.ParseFloat(fields[3], 64)
	return size{int(math.Round(width)), int(math.Round(height))}, err == nil && err2 == nil
}
