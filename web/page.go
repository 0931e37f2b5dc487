package web

import (
	"bytes"
	_ "embed" // the page's template
	"fmt"
	"html/template"
	"log/slog"
	"net/http"
)

//go:embed page.html
var pageTemplate string

// page is the landing page.
type page struct {
	options  *Options
	plots    *plots
	template *template.Template
}

func newPage(o *Options, p *plots) (*page, error) {
	t, err := template.New("page").Parse(pageTemplate)
	if err != nil {
		return nil, fmt.Errorf("parsing the page's template: %w", err)
	}
	return &page{options: o, plots: p, template: t}, nil
}

// ServeHTTP renders into memory first: half a page would look like a whole one.
func (p *page) ServeHTTP(w http.ResponseWriter, _ *http.Request) {
	var text bytes.Buffer
	if err := p.template.Execute(&text, newView(p.options, p.plots)); err != nil {
		p.options.Logger.Error("Rendering the page failed", slog.Any("err", err))
		http.Error(w, "The page cannot be shown, see the log.", http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	_, _ = w.Write(text.Bytes())
}
