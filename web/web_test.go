package web

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"io"
	"log/slog"
	"math"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	"go.uber.org/goleak"

	"github.com/steadyprobe/steadyprobe/probe"
	"github.com/steadyprobe/steadyprobe/probe/record"
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

// kit is a handler with all it asks for under the test's control.
type kit struct {
	gatherer *fakeGatherer
	since    time.Duration
	ready    bool
	config   func() ([]byte, error)
	targets  []Target
	distrust []string
	log      bytes.Buffer
}

func newKit() *kit {
	return &kit{
		gatherer: &fakeGatherer{gather: func() ([]*dto.MetricFamily, error) { return oneGauge(), nil }},
		ready:    true,
		config:   func() ([]byte, error) { return []byte("targets: []\n"), nil },
	}
}

func (k *kit) options() Options {
	return Options{
		Logger:   slog.New(slog.NewTextHandler(&k.log, nil)),
		Gatherer: k.gatherer,
		Version:  "1.2.3",
		Health:   Health{SinceWake: func() time.Duration { return k.since }, Ready: func() bool { return k.ready }},
		Config:   func() ([]byte, error) { return k.config() },
		Targets:  func() []Target { return k.targets },
		Distrust: func() []string { return k.distrust },
	}
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
		{"no targets", func(o *Options) { o.Targets = nil }, "there are no targets to show"},
		{"no trust", func(o *Options) { o.Distrust = nil }, "there is nothing that tells whether the figures are to be trusted"},
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

func pageTarget() Target {
	t := Target{Name: `shop <b>`, URL: `https://shop.example.com/a?b=1&c="`, Rate: 0.2, Connections: 50}
	t.Ledger.Scheduled, t.Ledger.Connections = 12, 3
	t.Ledger.Completed[probe.NoChurn][probe.Success] = 7
	t.Ledger.Completed[probe.Settled][probe.ReadTimeout] = 1
	t.Ledger.Completed[probe.ScalingUp][probe.ReadTimeout] = 1
	t.Ledger.Completed[probe.NoChurn][probe.ConnectRefused] = 1
	for w := range t.Windows {
		for q := range t.Windows[w] {
			t.Windows[w][q] = math.NaN()
		}
	}
	t.Windows[0][0], t.Windows[0][2], t.Windows[1][0] = 0.00013, 0.0182, 1.5
	return t
}

func TestPageRow(t *testing.T) {
	k := newKit()
	k.targets = []Target{pageTarget()}
	text := body(t, ask(k.handler(t), "GET", "/"))
	// 7 + 2 + 1 = 10 completed, 3 failed, read/timeout twice.
	const want = `<tr>
<th scope="row">shop &lt;b&gt;</th>
<td class="word url">https://shop.example.com/a?b=1&amp;c=&#34;</td>
<td>0.2</td>
<td>12</td>
<td>10</td>
<td class="bad">3</td>
<td class="word">read/timeout</td>
<td>130 µs</td>
<td>18.2 ms</td>
<td>1.50 s</td>
<td>–</td>
<td>3 of 50</td>
</tr>
`
	if !strings.Contains(text, want) {
		t.Errorf("the row is not on the page:\n%s\nwant\n%s", text, want)
	}
	for _, link := range []string{`href="metrics"`, `href="config"`, `href="-/healthy"`, `href="-/ready"`, `<small>1.2.3</small>`} {
		if !strings.Contains(text, link) {
			t.Errorf("%s is not on the page", link)
		}
	}
	for _, not := range []string{"<script", `role="alert"`, "There are no targets"} {
		if strings.Contains(text, not) {
			t.Errorf("%s is on the page", not)
		}
	}
}

func TestPageRowOfAClosedLoop(t *testing.T) {
	closed := pageTarget()
	closed.Rate, closed.Closed = 0, true
	k := newKit()
	k.targets = []Target{closed}
	text := body(t, ask(k.handler(t), "GET", "/"))
	const want = `<td>max</td>
<td>12</td>
<td>10</td>
<td class="bad">3</td>
<td class="word">read/timeout</td>
<td>–</td>
<td>–</td>
<td>–</td>
<td>–</td>
<td>3 of 50</td>
`
	if !strings.Contains(text, want) {
		t.Errorf("the row is not on the page:\n%s\nwant\n%s", text, want)
	}
}

func TestPageInTrouble(t *testing.T) {
	k := newKit()
	k.since, k.ready = time.Minute, false
	text := body(t, ask(k.handler(t), "GET", "/"))
	for _, want := range []string{
		`<p class="bad" role="alert">steadyprobe is not healthy: the pacer woke 1m0s ago, it must wake every 10s.</p>`,
		`<p class="bad" role="alert">steadyprobe is not ready: the configuration is not loaded or the targets are not started.</p>`,
		`<p>There are no targets.</p>`,
	} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is not on the page:\n%s", want, text)
		}
	}
}

// TestPageSaysWhetherToTrustIt has the notice above the table.
func TestPageSaysWhetherToTrustIt(t *testing.T) {
	for _, row := range []struct {
		name      string
		distrust  []string
		want, not string
	}{
		{"trusted", nil, "<div role=\"status\">\n<p>The figures are trustworthy: the probe is short of nothing.</p>\n</div>\n<div class=\"wide\"", "not to be trusted"},
		{"not trusted", []string{"One <b>.", "Two."},
			"<div role=\"status\">\n<p class=\"bad\">The figures are not to be trusted:</p>\n<ul>\n<li>One &lt;b&gt;.</li>\n<li>Two.</li>\n</ul>\n</div>\n<div class=\"wide\"", "are trustworthy"},
	} {
		t.Run(row.name, func(t *testing.T) {
			k := newKit()
			k.targets, k.distrust = []Target{pageTarget()}, row.distrust
			text := body(t, ask(k.handler(t), "GET", "/"))
			if !strings.Contains(text, row.want) || strings.Contains(text, row.not) {
				t.Errorf("%q is not on the page, or %q is:\n%s", row.want, row.not, text)
			}
		})
	}
}

// TestPageStyle checks what a browser checks before it uses a style.
func TestPageStyle(t *testing.T) {
	r := ask(newKit().handler(t), "GET", "/")
	_, style, _ := strings.Cut(body(t, r), "<style>")
	style, _, found := strings.Cut(style, "</style>")
	if !found || !strings.Contains(style, "color-scheme") {
		t.Fatalf("there is no style: %q", style)
	}
	hash := sha256.Sum256([]byte(style))
	want := "style-src 'sha256-" + base64.StdEncoding.EncodeToString(hash[:]) + "'"
	if got := r.Header.Get("Content-Security-Policy"); !strings.HasSuffix(got, "; "+want) {
		t.Errorf("content security policy %q does not allow the page's style: %s", got, want)
	}
}

func TestSeconds(t *testing.T) {
	for _, row := range []struct {
		s    float64
		want string
	}{
		{math.NaN(), "–"},
		{0, "0 µs"},
		{0.0000304, "30 µs"},
		{0.000999, "999 µs"},
		{0.0009996, "1.00 ms"},
		{0.00999, "9.99 ms"},
		{0.009996, "10.0 ms"},
		{0.0999, "99.9 ms"},
		{0.09996, "100 ms"},
		{0.999, "999 ms"},
		{0.9996, "1.00 s"},
		{60, "60.00 s"},
	} {
		if got := seconds(row.s); got != row.want {
			t.Errorf("%v s is shown as %q, want %q", row.s, got, row.want)
		}
	}
}

// TestWindowsOfThePage fails where the recorder no longer keeps what the page
// shows.
func TestWindowsOfThePage(t *testing.T) {
	var target Target
	for w := range target.Windows {
		for q := range target.Windows[w] {
			target.Windows[w][q] = record.Windows[w].Seconds() + record.Quantiles[q]
		}
	}
	got := strings.Join(newRow(&target).Quantiles, ", ")
	if want := "60.50 s, 60.99 s, 300.50 s, 300.99 s"; got != want {
		t.Errorf("the page shows %s, want %s", got, want)
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
