package web

import (
	"bytes"
	"crypto/sha256"
	_ "embed" // the page's template and style
	"encoding/base64"
	"fmt"
	"html/template"
	"log/slog"
	"math"
	"net/http"
	"strconv"
)

//go:embed page.html
var pageTemplate string

//go:embed page.css
var pageStyle string

// page is the landing page.
type page struct {
	options     *Options
	template    *template.Template
	styleSource string // names the one style that the page may use
}

func newPage(o *Options) (*page, error) {
	t, err := template.New("page").Parse(pageTemplate)
	if err != nil {
		return nil, fmt.Errorf("parsing the page's template: %w", err)
	}
	hash := sha256.Sum256([]byte(pageStyle))
	return &page{
		options:     o,
		template:    t,
		styleSource: "'sha256-" + base64.StdEncoding.EncodeToString(hash[:]) + "'",
	}, nil
}

// view is what the template shows.
type view struct {
	Style    template.CSS
	Version  string
	Status   []status
	Links    []link
	Distrust []string
	Rows     []row
}

type status struct {
	OK       bool
	Sentence string
}

type link struct{ Path, Text string }

type row struct {
	Name, URL, Rate                string
	Scheduled, Completed, Failures uint64
	TopFailure                     string
	Quantiles                      []string // p50 and p99 of 1 m, then of 5 m
	Connections                    string
}

// ServeHTTP renders into memory first: half a page would look like a whole one.
func (p *page) ServeHTTP(w http.ResponseWriter, _ *http.Request) {
	var text bytes.Buffer
	if err := p.template.Execute(&text, p.view()); err != nil {
		p.options.Logger.Error("Rendering the page failed", slog.Any("err", err))
		http.Error(w, "The page cannot be shown, see the log.", http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	_, _ = w.Write(text.Bytes())
}

func (p *page) view() view {
	v := view{
		Style:   template.CSS(pageStyle),
		Version: p.options.Version,
		Links: []link{
			{pathMetrics, "Metrics"}, {pathConfig, "Configuration"}, {pathHealthy, "Health"}, {pathReady, "Readiness"},
		},
		Distrust: p.options.Status().Trust.Reasons,
	}
	for _, of := range []func() (string, bool){p.options.Health.healthy, p.options.Health.ready} {
		sentence, ok := of()
		v.Status = append(v.Status, status{ok, sentence})
	}
	for _, t := range p.options.Targets() {
		v.Rows = append(v.Rows, newRow(&t))
	}
	return v
}

func newRow(t *Target) row {
	r := row{
		Name:        t.Name,
		URL:         t.URL,
		Rate:        strconv.FormatFloat(float64(t.Rate), 'f', -1, 64),
		Scheduled:   t.Scheduled,
		Completed:   t.Completed,
		Failures:    t.Failed,
		Quantiles:   []string{quantile(t, 0.5, "1m"), quantile(t, 0.99, "1m"), quantile(t, 0.5, "5m"), quantile(t, 0.99, "5m")},
		Connections: fmt.Sprintf("%d of %d", t.Connections.Open, t.Connections.Limit),
	}
	if len(t.Failures) > 0 {
		r.TopFailure = t.Failures[0].Stage + "/" + t.Failures[0].Reason
	}
	if t.Loop == "closed" {
		r.Rate = "max"
	}
	return r
}

func quantile(t *Target, q float64, window string) string {
	for _, w := range t.Latency {
		for _, of := range w.Quantiles {
			if w.Window == window && of.Q == q {
				return seconds(float64(of.Seconds))
			}
		}
	}
	return seconds(math.NaN())
}

// seconds returns s with a unit and about three digits.
func seconds(s float64) string {
	switch {
	case math.IsNaN(s):
		return "–"
	case s < 0.0009995:
		return strconv.FormatFloat(s*1e6, 'f', 0, 64) + " µs"
	case s < 0.009995:
		return strconv.FormatFloat(s*1e3, 'f', 2, 64) + " ms"
	case s < 0.09995:
		return strconv.FormatFloat(s*1e3, 'f', 1, 64) + " ms"
	case s < 0.9995:
		return strconv.FormatFloat(s*1e3, 'f', 0, 64) + " ms"
	}
	return strconv.FormatFloat(s, 'f', 2, 64) + " s"
}
