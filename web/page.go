package web

import (
	"bytes"
	_ "embed" // the page's template
	"fmt"
	"html/template"
	"log/slog"
	"net/http"
	"time"
)

//go:embed page.html
var pageTemplate string

const (
	// pageFresh is how long the page is shown again before it is made anew.
	pageFresh = time.Second
	// maxViewers is how many ask for the page, or for a plot, at once.
	maxViewers = 32
)

// page is the landing page.
type page struct {
	options  *Options
	plots    *plots
	template *template.Template
	made     *cache[string] // of one key
}

func newPage(o *Options, p *plots) (*page, error) {
	t, err := template.New("page").Parse(pageTemplate)
	if err != nil {
		return nil, fmt.Errorf("parsing the page's template: %w", err)
	}
	return &page{options: o, plots: p, template: t, made: newCache[string](pageFresh)}, nil
}

func (p *page) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	text, err := p.made.get(r.Context(), "", p.make)
	if r.Context().Err() != nil {
		return // nobody waits for it any more
	}
	if err != nil {
		p.options.Logger.Error("Making the page failed", slog.Any("err", err))
		http.Error(w, "The page cannot be shown, see the log.", http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	_, _ = w.Write(text)
}

// make renders into memory: half a page would look like a whole one.
func (p *page) make() ([]byte, error) {
	var text bytes.Buffer
	if err := p.template.Execute(&text, newView(p.options, p.plots)); err != nil {
		return nil, fmt.Errorf("rendering: %w", err)
	}
	return text.Bytes(), nil
}
