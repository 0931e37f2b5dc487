package web

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// fakeGatherer answers with one gauge, or as told.
type fakeGatherer struct {
	gather func() ([]*dto.MetricFamily, error)
	mu     sync.Mutex
	done   int
}

func (f *fakeGatherer) Gather() ([]*dto.MetricFamily, func(), error) {
	families, err := f.gather()
	return families, func() { f.mu.Lock(); f.done++; f.mu.Unlock() }, err
}

func oneGauge() []*dto.MetricFamily {
	name, help, value := "answer", "Test.", 42.0
	return []*dto.MetricFamily{{
		Name: &name, Help: &help, Type: dto.MetricType_GAUGE.Enum(),
		Metric: []*dto.Metric{{Gauge: &dto.Gauge{Value: &value}}},
	}}
}

// The process of a test started two hours, thirteen minutes before now.
var (
	testStart = time.Date(2026, 11, 30, 17, 8, 5, 0, time.UTC)
	testNow   = time.Date(2026, 11, 30, 19, 21, 5, 0, time.UTC)
	// A reload two hours later.
	testLoaded = testStart.Add(2 * time.Hour)
)

// kit is a handler with all it asks for under the test's control.
type kit struct {
	gatherer *fakeGatherer
	since    time.Duration
	ready    bool
	config   func() ([]byte, error)
	status   Status
	targets  []Target
	churns   []Churn
	cells    func(target string, window time.Duration) []Cell
	timeline func(target string, span time.Duration) Timeline
	log      bytes.Buffer

	lifecycle bool
	control   func(churn string, do Control) error
}

func newKit() *kit {
	return &kit{
		gatherer: &fakeGatherer{gather: func() ([]*dto.MetricFamily, error) { return oneGauge(), nil }},
		ready:    true,
		config:   func() ([]byte, error) { return []byte("targets: []\n"), nil },
		status: Status{
			Version: "1.2.3", Revision: "0123abc", Started: testStart, Now: testNow, Ready: true,
			Configuration: Configuration{Loaded: testLoaded},
			Shard:         Shard{Index: 0, Shards: 1},
			Trust:         Trust{Trustworthy: true, SelfLatency: Quantiles{{0.5, 0.00009}, {0.99, 0.0003}}},
		},
		cells: func(string, time.Duration) []Cell { return nil },
		timeline: func(name string, span time.Duration) Timeline {
			return Timeline{Target: name, Span: Number(span.Seconds())}
		},
	}
}

func (k *kit) options() Options {
	return Options{
		Logger:   slog.New(slog.NewTextHandler(&k.log, nil)),
		Gatherer: k.gatherer,
		Health:   Health{SinceWake: func() time.Duration { return k.since }, Ready: func() bool { return k.ready }},
		Config:   func() ([]byte, error) { return k.config() },
		Status:   func() Status { return k.status },
		Targets:  func() []Target { return k.targets },
		Target: func(name string) (Target, bool) {
			for _, t := range k.targets {
				if t.Name == name {
					return t, true
				}
			}
			return Target{}, false
		},
		Churns:    func() []Churn { return k.churns },
		Lifecycle: k.lifecycle,
		ControlChurn: func(ctx context.Context, churn string, do Control) error {
			if _, limited := ctx.Deadline(); !limited {
				return errors.New("there is no limit to the time it may take")
			}
			return k.control(churn, do)
		},
		Distribution: func(name string, window time.Duration) ([]Cell, bool) {
			return k.cells(name, window), k.has(name)
		},
		Timeline: func(name string, span time.Duration) (Timeline, bool) {
			return k.timeline(name, span), k.has(name)
		},
	}
}

func (k *kit) has(name string) bool {
	return slices.ContainsFunc(k.targets, func(t Target) bool { return t.Name == name })
}

func (k *kit) handler(t *testing.T) http.Handler {
	t.Helper()
	h, err := New(k.options())
	if err != nil {
		t.Fatal(err)
	}
	return h
}

func ask(h http.Handler, method, path string) *http.Response {
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequestWithContext(context.Background(), method, path, nil))
	return w.Result()
}

func body(t *testing.T, r *http.Response) string {
	t.Helper()
	text, err := io.ReadAll(r.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func TestAnswers(t *testing.T) {
	const text = "text/plain; charset=utf-8"
	for _, row := range []struct {
		name       string
		method     string
		path       string
		change     func(*kit)
		wantStatus int
		wantType   string
		want       string // the whole body; "" is not compared
	}{
		{"metrics", "GET", "/metrics", nil, 200, "text/plain; version=0.0.4; charset=utf-8; escaping=underscores",
			"# HELP answer Test.\n# TYPE answer gauge\nanswer 42\n"},
		{"healthy", "GET", "/-/healthy", nil, 200, text, "steadyprobe is healthy.\n"},
		{"healthy at the limit", "GET", "/-/healthy", func(k *kit) { k.since = 10 * time.Second }, 200, text, "steadyprobe is healthy.\n"},
		{"not healthy", "GET", "/-/healthy", func(k *kit) { k.since = 10*time.Second + 1500*time.Millisecond }, 503, text,
			"steadyprobe is not healthy: the pacer woke 11.5s ago, it must wake every 10s.\n"},
		{"healthy before it is ready", "GET", "/-/healthy", func(k *kit) { k.ready = false }, 200, text, "steadyprobe is healthy.\n"},
		{"ready", "GET", "/-/ready", nil, 200, text, "steadyprobe is ready.\n"},
		{"not ready", "GET", "/-/ready", func(k *kit) { k.ready = false }, 503, text,
			"steadyprobe is not ready: the configuration is not loaded or the targets are not started.\n"},
		{"ready though not healthy", "GET", "/-/ready", func(k *kit) { k.since = time.Hour }, 200, text, "steadyprobe is ready.\n"},
		{"configuration", "GET", "/config", nil, 200, text, "targets: []\n"},
		{"configuration that fails", "GET", "/config",
			func(k *kit) {
				k.config = func() ([]byte, error) { return nil, errors.New("marshalling: secret thing") }
			},
			500, text, "The configuration cannot be shown, see the log.\n"},
		{"page", "GET", "/", nil, 200, "text/html; charset=utf-8", ""},
		{"head of the page", "HEAD", "/", nil, 200, "text/html; charset=utf-8", ""},
		{"style", "GET", "/page.css", nil, 200, "text/css; charset=utf-8", string(pageStyle)},
		{"script", "GET", "/page.js", nil, 200, "text/javascript; charset=utf-8", string(pageScript)},
		{"icon", "GET", "/icon.svg", nil, 200, "image/svg+xml", string(pageIcon)},
		{"post to a plot", "POST", "/plot/hour.svg", nil, 405, text, "Method Not Allowed\n"},
		{"head", "HEAD", "/-/ready", nil, 200, text, ""},
		{"unknown path", "GET", "/nothing", nil, 404, text, "404 page not found\n"},
		{"below a path", "GET", "/metrics/x", nil, 404, text, "404 page not found\n"},
		{"post to metrics", "POST", "/metrics", nil, 405, text, "Method Not Allowed\n"},
		{"delete the page", "DELETE", "/", nil, 405, text, "Method Not Allowed\n"},
		{"put ready", "PUT", "/-/ready", nil, 405, text, "Method Not Allowed\n"},
		{"post to an unknown path", "POST", "/nothing", nil, 404, text, "404 page not found\n"},
	} {
		t.Run(row.name, func(t *testing.T) {
			k := newKit()
			if row.change != nil {
				row.change(k)
			}
			r := ask(k.handler(t), row.method, row.path)
			if r.StatusCode != row.wantStatus {
				t.Errorf("status %d, want %d", r.StatusCode, row.wantStatus)
			}
			if got := r.Header.Get("Content-Type"); got != row.wantType {
				t.Errorf("content type %q, want %q", got, row.wantType)
			}
			if got := body(t, r); row.want != "" && got != row.want {
				t.Errorf("body %q, want %q", got, row.want)
			}
			if row.wantStatus == http.StatusMethodNotAllowed {
				if got := r.Header.Get("Allow"); got != "GET, HEAD" {
					t.Errorf("allow %q, want GET, HEAD", got)
				}
			}
			for header, want := range map[string]string{
				"X-Content-Type-Options": "nosniff", "Cache-Control": "no-store", "Referrer-Policy": "no-referrer",
			} {
				// http.Error takes the cache's instruction away, as it means the
				// answer that was not given.
				if got := r.Header.Get(header); got != want && r.StatusCode < 400 {
					t.Errorf("%s is %q, want %q", header, got, want)
				}
			}
			if got := r.Header.Get("Content-Security-Policy"); !strings.HasPrefix(got, "default-src 'none'; ") {
				t.Errorf("content security policy %q does not start from nothing", got)
			}
		})
	}
}

func TestErrorsAreLogged(t *testing.T) {
	k := newKit()
	k.config = func() ([]byte, error) { return nil, errors.New("marshalling: test") }
	k.gatherer.gather = func() ([]*dto.MetricFamily, error) { return oneGauge(), errors.New("gathering: test") }
	h := k.handler(t)
	ask(h, "GET", "/config")
	r := ask(h, "GET", "/metrics")
	if got := body(t, r); r.StatusCode != 200 || !strings.Contains(got, "answer 42") {
		t.Errorf("status %d and %q, want what could be gathered", r.StatusCode, got)
	}
	for _, want := range []string{"marshalling: test", "gathering: test"} {
		if !strings.Contains(k.log.String(), want) {
			t.Errorf("%q is not in the log:\n%s", want, k.log.String())
		}
	}
}

func TestOpenMetrics(t *testing.T) {
	k := newKit()
	r := httptest.NewRequestWithContext(context.Background(), "GET", "/metrics", nil)
	r.Header.Set("Accept", "application/openmetrics-text; version=1.0.0")
	w := httptest.NewRecorder()
	k.handler(t).ServeHTTP(w, r)
	if got := w.Header().Get("Content-Type"); !strings.HasPrefix(got, "application/openmetrics-text; version=1.0.0") {
		t.Errorf("content type %q, want OpenMetrics", got)
	}
	if got := w.Body.String(); !strings.HasSuffix(got, "# EOF\n") {
		t.Errorf("body %q does not end as OpenMetrics does", got)
	}
	if k.gatherer.done != 1 {
		t.Errorf("the families were given back %d times, want once", k.gatherer.done)
	}
}

func TestScrapesAtOnce(t *testing.T) {
	k := newKit()
	inside, leave := make(chan struct{}), make(chan struct{})
	k.gatherer.gather = func() ([]*dto.MetricFamily, error) {
		inside <- struct{}{}
		<-leave
		return oneGauge(), nil
	}
	o := k.options()
	o.MaxScrapes = 2
	h, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	var all sync.WaitGroup
	for range 2 {
		all.Go(func() {
			if r := ask(h, "GET", "/metrics"); r.StatusCode != 200 {
				t.Errorf("status %d of a scrape within the limit, want 200", r.StatusCode)
			}
		})
		<-inside
	}
	if r := ask(h, "GET", "/metrics"); r.StatusCode != 503 {
		t.Errorf("status %d of a third scrape, want 503", r.StatusCode)
	}
	close(leave)
	all.Wait()
}

func TestNewRefuses(t *testing.T) {
	for _, row := range []struct {
		name   string
		change func(*Options)
		want   string
	}{
		{"no logger", func(o *Options) { o.Logger = nil }, "there is no logger"},
		{"no gatherer", func(o *Options) { o.Gatherer = nil }, "there is no gatherer"},
		{"negative scrapes", func(o *Options) { o.MaxScrapes = -1 }, "-1 scrapes at once are too few"},
		{"no configuration", func(o *Options) { o.Config = nil }, "there is no configuration to show"},
		{"no status", func(o *Options) { o.Status = nil }, "there is nothing that tells what to show"},
		{"no targets", func(o *Options) { o.Targets = nil }, "there is nothing that tells what to show"},
		{"no churns", func(o *Options) { o.Churns = nil }, "there is nothing that tells what to show"},
		{"no control", func(o *Options) { o.Lifecycle, o.ControlChurn = true, nil }, "there is nothing that controls the churns"},
		{"no distribution", func(o *Options) { o.Distribution = nil }, "there is nothing that tells what to show"},
		{"no timeline", func(o *Options) { o.Timeline = nil }, "there is nothing that tells what to show"},
		{"no pacer", func(o *Options) { o.Health.SinceWake = nil }, "there is nothing that tells the health"},
		{"no readiness", func(o *Options) { o.Health.Ready = nil }, "there is nothing that tells the health"},
	} {
		t.Run(row.name, func(t *testing.T) {
			o := newKit().options()
			row.change(&o)
			_, err := New(o)
			if want := "setting up the web handler: " + row.want; err == nil || err.Error() != want {
				t.Errorf("got error %v, want %q", err, want)
			}
		})
	}
	if _, err := NewHealth(Health{}); err == nil {
		t.Error("a health handler that knows nothing was set up")
	}
}

func TestHealthAlone(t *testing.T) {
	k := newKit()
	h, err := NewHealth(k.options().Health)
	if err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]int{
		"/-/healthy": 200, "/-/ready": 200, "/metrics": 404, "/config": 404, "/": 404,
	} {
		if r := ask(h, "GET", path); r.StatusCode != want {
			t.Errorf("%s: status %d, want %d", path, r.StatusCode, want)
		}
	}
	k.since, k.ready = time.Minute, false
	for _, path := range []string{"/-/healthy", "/-/ready"} {
		if r := ask(h, "GET", path); r.StatusCode != 503 {
			t.Errorf("%s: status %d, want 503", path, r.StatusCode)
		}
	}
}

func TestServer(t *testing.T) {
	k := newKit()
	k.gatherer.gather = func() ([]*dto.MetricFamily, error) { panic("gatherer of a test") }
	logger := slog.New(slog.NewTextHandler(&k.log, nil))
	s := Server(k.handler(t), logger)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	served := make(chan error, 1)
	go func() { served <- s.Serve(listener) }()
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	url := "http://" + listener.Addr().String()
	r, err := client.Get(url + "/-/ready")
	if err != nil {
		t.Fatal(err)
	}
	if got := body(t, r); got != "steadyprobe is ready.\n" {
		t.Errorf("got %q from the server", got)
	}
	_ = r.Body.Close()
	if r, err := client.Get(url + "/metrics"); err == nil {
		_ = r.Body.Close()
		t.Error("a handler that panicked answered")
	}
	if err := s.Shutdown(context.Background()); err != nil {
		t.Error(err)
	}
	if err := <-served; !errors.Is(err, http.ErrServerClosed) {
		t.Errorf("serving ended with %v", err)
	}
	if got := k.log.String(); !strings.Contains(got, "level=WARN") || !strings.Contains(got, "gatherer of a test") {
		t.Errorf("the server's error is not a warning in the log:\n%s", got)
	}
}

func TestServerLimits(t *testing.T) {
	s := Server(http.NotFoundHandler(), slog.New(slog.DiscardHandler))
	if s.ReadHeaderTimeout <= 0 || s.ReadTimeout <= 0 || s.WriteTimeout <= 0 || s.IdleTimeout <= 0 || s.MaxHeaderBytes <= 0 {
		t.Errorf("a limit is missing: %+v", s)
	}
}

var _ prometheus.TransactionalGatherer = (*fakeGatherer)(nil)
