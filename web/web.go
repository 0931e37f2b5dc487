// Package web holds the HTTP side of the daemon: metrics, health, the masked
// configuration, an API and a page for people. It knows nothing of how targets are
// run; what it shows it asks for when a request comes.
package web

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// The paths, as relative links, so that they hold behind a proxy that adds a
// prefix.
const (
	pathMetrics = "metrics"
	pathHealthy = "-/healthy"
	pathReady   = "-/ready"
	pathConfig  = "config"
)

// maxConfigs is how many ask for the configuration at once.
const maxConfigs = 2

// DefaultMaxScrapes is how many scrapes are served at once where nothing is
// set: a pair of Prometheus servers, a person, and one that hangs.
const DefaultMaxScrapes = 4

// Options is what the handler asks. The functions are called concurrently, at
// every request.
type Options struct {
	Logger     *slog.Logger
	Gatherer   prometheus.TransactionalGatherer
	MaxScrapes int // at once, more get status 503; 0: DefaultMaxScrapes
	Health     Health
	Config     func() ([]byte, error) // YAML, every secret masked
	Status     func() Status
	Targets    func() []Target // in the order of the configuration
	Target     func(name string) (t Target, ok bool)
	Churns     func() []Churn  // in the order of the configuration
	Discovery  func() []Source // in the order of the configuration; nil: there is none
	// Lifecycle lets who may ask the API control the churns by ControlChurn,
	// which returns when the churn has accepted, and whose error may be a
	// [ControlError]. Without it ControlChurn may be nil.
	Lifecycle    bool
	ControlChurn func(ctx context.Context, churn string, do Control) error
	// Distribution returns the latencies of a target's window (1 m, 5 m or 1
	// h), ascending, as exact as they are kept; false: there is no such target or
	// window.
	Distribution func(target string, window time.Duration) ([]Cell, bool)
	// Timeline returns a target's past in spans of 1 s (the last 5 minutes) or
	// of 10 s (the last hour); false: there is no such target.
	Timeline func(target string, span time.Duration) (Timeline, bool)
	// Profiles adds the profiles of the Go runtime.
	Profiles bool
	// Reload reloads the configuration and returns what has changed, in a
	// sentence; an error has changed nothing, and is told to who has asked. nil: who
	// asks for a reload is refused.
	Reload func(context.Context) (string, error)
}

func (o *Options) validate() error {
	switch {
	case o.Logger == nil:
		return errors.New("there is no logger")
	case o.Gatherer == nil:
		return errors.New("there is no gatherer")
	case o.MaxScrapes < 0:
		return fmt.Errorf("%d scrapes at once are too few", o.MaxScrapes)
	case o.Config == nil:
		return errors.New("there is no configuration to show")
	case o.Status == nil, o.Targets == nil, o.Target == nil, o.Churns == nil, o.Distribution == nil, o.Timeline == nil:
		return errors.New("there is nothing that tells what to show")
	case o.Lifecycle && o.ControlChurn == nil:
		return errors.New("there is nothing that controls the churns")
	}
	return o.Health.validate()
}

// New returns the handler of the main listen address. All paths answer GET and
// HEAD only, but for that of a reload and those that control churns. It fails
// where an option is missing.
func New(o Options) (http.Handler, error) {
	if err := o.validate(); err != nil {
		return nil, fmt.Errorf("setting up the web handler: %w", err)
	}
	plots := newPlots(&o)
	page, err := newPage(&o, plots)
	if err != nil {
		return nil, err
	}
	mux := http.NewServeMux()
	mux.Handle("GET /"+pathMetrics, metrics(&o))
	mux.Handle("GET /"+pathConfig, limited(maxConfigs, tooMany, stalling(config(&o))))
	mux.Handle("/"+pathReload, reload(&o))
	mux.Handle("GET /{$}", limited(maxViewers, tooMany, stalling(page)))
	(&api{&o}).register(mux)
	plots.register(mux)
	registerAssets(mux)
	o.Health.register(mux)
	if o.Profiles {
		registerProfiles(mux)
	}
	return guarded(mux, "default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; "+
		"connect-src 'self'; img-src 'self'; script-src 'self'; style-src 'self'"), nil
}

// metrics serves scrapes. Whatever could be gathered is served, because one
// broken family must not blind everybody to all others. promhttp's own timeout
// is not used: it would keep the whole answer in memory a second time.
func metrics(o *Options) http.Handler {
	return stalling(promhttp.HandlerForTransactional(o.Gatherer, promhttp.HandlerOpts{
		ErrorLog:            &quietLog{logger: o.Logger, message: "A scrape was not answered in full"},
		ErrorHandling:       promhttp.ContinueOnError,
		MaxRequestsInFlight: o.scrapes(),
		EnableOpenMetrics:   true,
	}))
}

// scrapes returns how many scrapes are served at once.
func (o *Options) scrapes() int {
	if o.MaxScrapes == 0 {
		return DefaultMaxScrapes
	}
	return o.MaxScrapes
}

// config serves the configuration as text, which browsers show, where YAML's
// own media type would be downloaded.
func config(o *Options) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		text, err := o.Config()
		if err != nil {
			o.Logger.Error("Showing the configuration failed", "err", err)
			http.Error(w, "The configuration cannot be shown, see the log.", http.StatusInternalServerError)
			return
		}
		writeText(w, http.StatusOK, text)
	})
}

// guarded adds to every answer what keeps browsers from doing more with it
// than showing it once, and refuses large bodies.
func guarded(h http.Handler, policy string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		header := w.Header()
		header.Set("Cache-Control", "no-store")
		header.Set("Content-Security-Policy", policy)
		header.Set("Referrer-Policy", "no-referrer")
		header.Set("X-Content-Type-Options", "nosniff")
		if r.ContentLength > maxBodyBytes {
			http.Error(w, "Nothing here takes a body of that size.", http.StatusRequestEntityTooLarge)
			return
		}
		r.Body = http.MaxBytesReader(w, r.Body, maxBodyBytes)
		h.ServeHTTP(w, r)
	})
}

// writeText answers with plain text. A client that is gone is nobody's error.
func writeText(w http.ResponseWriter, status int, text []byte) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.WriteHeader(status)
	_, _ = w.Write(text)
}
