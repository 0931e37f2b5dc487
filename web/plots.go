package web

import (
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"
)

// The plots of the page; relative, as all its links.
const (
	pathPercentiles = "plot/percentiles.svg"
	pathSeconds     = "plot/seconds.svg"
	pathHour        = "plot/hour.svg"
)

const (
	// maxPlots is how many plots are asked for at once; one of them is drawn,
	// so that a crowd of viewers takes no more than one processor from the probe.
	maxPlots = 32
	// freshness is how long a plot is shown again before it is drawn anew, a
	// little less than the page's refresh.
	freshness = 4 * time.Second
)

// plots draws what the page shows, each at most once in a while however many
// look at it.
type plots struct {
	options *Options
	draw    func(*Options, plotKey) ([]byte, error)

	mu    sync.Mutex // held while one is drawn
	drawn map[plotKey]drawn
}

// plotKey says which plot: there are few of them, so what is kept is bounded.
type plotKey struct {
	path   string
	window string // of percentiles, else empty
	dark   bool
}

type drawn struct {
	at  time.Time
	svg []byte
}

func newPlots(o *Options) *plots {
	return &plots{options: o, draw: draw, drawn: map[plotKey]drawn{}}
}

func (p *plots) register(mux *http.ServeMux) {
	h := limited(maxPlots, tooMany, stalling(http.HandlerFunc(p.serve)))
	for _, path := range []string{pathPercentiles, pathSeconds, pathHour} {
		mux.Handle("GET /"+path, h)
	}
}

// themes are those of a plot, the first is the default.
func themes() choices[bool] { return choices[bool]{{"light", false}, {"dark", true}} }

func (p *plots) serve(w http.ResponseWriter, r *http.Request) {
	key, err := keyOf(r)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	svg, err := p.get(key)
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
	key := plotKey{path: strings.TrimPrefix(r.URL.Path, "/"), dark: theme.value}
	if key.path == pathPercentiles {
		window, err := windows().of(query, "window")
		if err != nil {
			return plotKey{}, err
		}
		key.window = window.name
	}
	return key, nil
}

func (p *plots) get(key plotKey) ([]byte, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if d, ok := p.drawn[key]; ok && time.Since(d.at) < freshness {
		return d.svg, nil
	}
	svg, err := p.draw(p.options, key)
	if err != nil {
		return nil, fmt.Errorf("drawing %q: %w", key.path, err)
	}
	p.drawn[key] = drawn{time.Now(), svg}
	return svg, nil
}

// plotURL returns where a plot is. What changes with the time makes browsers
// ask again.
func plotURL(path string, query url.Values, now time.Time) string {
	query.Set("t", fmt.Sprint(now.Unix()))
	return path + "?" + query.Encode()
}
