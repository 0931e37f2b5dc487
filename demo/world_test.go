package demo

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/steadyprobe/steadyprobe/config"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// quick are the settings of a world whose changes take tenths of a second.
func quick() settings {
	s := defaults()
	s.timing.start = 60 * time.Millisecond
	s.timing.drain = 250 * time.Millisecond
	s.timing.notice = 200 * time.Millisecond
	s.timing.cold = 100 * time.Millisecond
	s.timing.learn = 450 * time.Millisecond
	s.timing.reload = 100 * time.Millisecond
	return s
}

func startQuick(t *testing.T) *World {
	t.Helper()
	w, err := start(Options{}, quick())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(w.Close)
	return w
}

// targets returns what the configuration of w says, by name.
func targets(t *testing.T, w *World) map[string]config.Target {
	t.Helper()
	parsed, warnings, err := config.Parse(w.Configuration(), filepath.Join("elsewhere", "steadyprobe.yml"))
	if err != nil || len(warnings) > 0 {
		t.Fatalf("the configuration is not good: %v, warnings %v\n%s", err, warnings, w.Configuration())
	}
	byName := map[string]config.Target{}
	for _, target := range parsed.Targets {
		byName[target.Name] = target
	}
	return byName
}

// client returns a client that trusts that authority only, in PEM, and
// never follows anything but what it was asked for.
func client(t *testing.T, authority string) *http.Client {
	t.Helper()
	transport := &http.Transport{MaxIdleConnsPerHost: 50}
	if authority != "" {
		pool := x509.NewCertPool()
		if !pool.AppendCertsFromPEM([]byte(authority)) {
			t.Fatal("the authority is no certificate")
		}
		transport.TLSClientConfig = &tls.Config{RootCAs: pool}
	}
	t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport, Timeout: 3 * time.Second}
}

// get returns status, who answered, and the body.
func get(c *http.Client, url string) (status int, backend, body string, err error) {
	return request(c, http.MethodGet, url)
}

func request(c *http.Client, method, url string) (status int, backend, body string, err error) {
	r, err := http.NewRequest(method, url, nil)
	if err != nil {
		return 0, "", "", err
	}
	response, err := c.Do(r)
	if err != nil {
		return 0, "", "", err
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	return response.StatusCode, response.Header.Get("X-Backend"), string(text), err
}

func TestDoors(t *testing.T) {
	w := startQuick(t)
	all := targets(t, w)
	tests := []struct{ name, front, ca string }{
		{name: "steady-http", front: "steady"},
		{name: "steady-https", front: "steady", ca: all["steady-https"].TLS.CA},
		{name: "reloading-http", front: "reloading"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			target, ok := all[test.name]
			if !ok {
				t.Fatalf("the configuration has no such target")
			}
			if target.Labels["front"] != test.front || target.Rate.String() != "200" || target.Connections != 20 ||
				target.Churn != "demo-backend" || target.Timeout != 2*time.Second ||
				target.Objective != (config.Objective{Latency: 50 * time.Millisecond, Ratio: 0.999}) {
				t.Errorf("target is %+v", target)
			}
			c := client(t, test.ca)
			seen := map[string]int{}
			for range 8 { // two rounds
				status, backend, body, err := get(c, target.URL.String())
				if err != nil || status != 200 || body != "hello from "+backend+"\n" {
					t.Fatalf("got %d %q from %q, %v", status, body, backend, err)
				}
				seen[backend]++
			}
			for _, name := range []string{"backend-1", "backend-2", "backend-3", "backend-4"} {
				if seen[name] != 2 {
					t.Errorf("%s answered %d of 8 requests, want 2: %v", name, seen[name], seen)
				}
			}
		})
	}
	t.Run("steady-https is not trusted without the authority", func(t *testing.T) {
		var unknown x509.UnknownAuthorityError
		if _, _, _, err := get(client(t, ""), all["steady-https"].URL.String()); !errors.As(err, &unknown) {
			t.Errorf("got %v, want an unknown authority", err)
		}
	})
	t.Run("sessions are resumed", func(t *testing.T) {
		c := client(t, all["steady-https"].TLS.CA)
		transport := c.Transport.(*http.Transport)
		transport.DisableKeepAlives = true
		transport.TLSClientConfig.ClientSessionCache = tls.NewLRUClientSessionCache(1)
		for i, resumed := range []bool{false, true} {
			response, err := c.Get(all["steady-https"].URL.String())
			if err != nil {
				t.Fatal(err)
			}
			_, _ = io.Copy(io.Discard, response.Body) // the ticket comes with it
			response.Body.Close()
			if response.TLS.DidResume != resumed {
				t.Errorf("handshake %d: resumed is %v", i, !resumed)
			}
		}
	})
}

func TestConfigurationOfChurn(t *testing.T) {
	w := startQuick(t)
	parsed, _, err := config.Parse(w.Configuration(), "steadyprobe.yml")
	if err != nil {
		t.Fatal(err)
	}
	if len(parsed.Targets) != 3 || len(parsed.Churns) != 1 || parsed.Churns[0].Name != "demo-backend" ||
		parsed.Churns[0].DryRun || parsed.Churns[0].Settle != 3*time.Second {
		t.Errorf("got %d targets and churns %+v", len(parsed.Targets), parsed.Churns)
	}
	text := w.Configuration()
	text[0] = 'X'
	if bytes.Equal(text, w.Configuration()) {
		t.Error("who changes the text changes that of the world")
	}
}

// outcomes is what the users of a door felt.
type outcomes struct {
	mu       sync.Mutex
	total    int
	failures []failure
}

type failure struct {
	at   time.Time
	text string
}

// load sends a request every few milliseconds until ctx is done, each from a
// goroutine of its own. It posts, because net/http would silently send a GET
// again when its connection died.
func load(ctx context.Context, c *http.Client, url string) *outcomes {
	o := &outcomes{}
	var running sync.WaitGroup
	ticker := time.NewTicker(5 * time.Millisecond)
	defer ticker.Stop()
	for ctx.Err() == nil {
		<-ticker.C
		running.Go(func() {
			status, _, _, err := request(c, http.MethodPost, url)
			o.mu.Lock()
			defer o.mu.Unlock()
			o.total++
			switch {
			case err != nil:
				o.failures = append(o.failures, failure{time.Now(), err.Error()})
			case status != 200:
				o.failures = append(o.failures, failure{time.Now(), http.StatusText(status)})
			}
		})
	}
	running.Wait()
	return o
}

func TestChurnUnderLoad(t *testing.T) {
	w := startQuick(t)
	all := targets(t, w)
	ctx, stop := context.WithCancel(t.Context())
	results := map[string]*outcomes{}
	var mu sync.Mutex
	var running sync.WaitGroup
	for name, target := range all {
		c := client(t, target.TLS.CA)
		running.Go(func() {
			o := load(ctx, c, target.URL.String())
			mu.Lock()
			defer mu.Unlock()
			results[name] = o
		})
	}
	var changes []time.Time
	time.Sleep(100 * time.Millisecond) // settled
	for _, replicas := range []int{2, 4} {
		changes = append(changes, time.Now())
		if err := w.Backends().Scale(ctx, replicas); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Second) // at most 60 ms start, 450 learn, 25 load, 100 reload
	}
	time.Sleep(400 * time.Millisecond) // settled again
	stop()
	running.Wait()

	for _, name := range []string{"steady-http", "steady-https"} {
		if o := results[name]; len(o.failures) > 0 || o.total < 100 {
			t.Errorf("%s: %d of %d failed: %v", name, len(o.failures), o.total, o.failures)
		}
	}
	o := results["reloading-http"]
	kinds := map[string]int{}
	for _, f := range o.failures {
		since := f.at.Sub(changes[0])
		if f.at.After(changes[1]) {
			since = f.at.Sub(changes[1])
		}
		if since < 0 || since > time.Second {
			t.Errorf("reloading-http failed %v after a change: %s", since, f.text)
		}
		for _, text := range []string{"EOF", "reset", "broken pipe", "server closed idle connection"} {
			if strings.Contains(f.text, text) { // whichever the client met first
				f.text = "cut"
			}
		}
		kinds[f.text]++
	}
	t.Logf("reloading-http: %d requests, failures %v", o.total, kinds)
	if kinds["Bad Gateway"] == 0 || kinds["cut"] == 0 || len(kinds) != 2 {
		t.Errorf("reloading-http: %d requests, failures %v; want some bad gateways and some cut", o.total, kinds)
	}
}

func TestCloseLeavesNothing(t *testing.T) {
	defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
	w, err := start(Options{}, quick())
	if err != nil {
		t.Fatal(err)
	}
	all := targets(t, w)
	ports := append([]string(nil), w.Backends().endpoints()...)
	var idle []net.Conn
	for _, target := range all {
		ports = append(ports, target.URL.Host())
		c, err := net.Dial("tcp", target.URL.Host())
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		idle = append(idle, c)
	}
	// In the middle of a change and of a request.
	if err := w.Backends().Scale(t.Context(), 2); err != nil {
		t.Fatal(err)
	}
	if err := w.Backends().Scale(t.Context(), 4); err != nil {
		t.Fatal(err)
	}
	if _, err := io.WriteString(idle[0], "GET / HTTP/1.1\r\nHost: here\r\n\r\n"); err != nil {
		t.Fatal(err)
	}

	var closing sync.WaitGroup
	for range 2 {
		closing.Go(w.Close)
	}
	closing.Wait()
	w.Close()

	for _, address := range ports {
		if c, err := net.Dial("tcp", address); err == nil {
			c.Close()
			t.Errorf("somebody listens on %s", address)
		}
	}
	for _, c := range idle {
		_ = c.SetReadDeadline(time.Now().Add(2 * time.Second))
		if _, err := io.Copy(io.Discard, c); errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("the connection to %s is open", c.RemoteAddr())
		}
	}
	if err := w.Backends().Scale(t.Context(), 2); err == nil || err.Error() != "scaling the demo's backends: not_found: the demo has ended" {
		t.Errorf("scaling after the end: %v", err)
	}
	if _, err := w.Backends().Observe(t.Context()); err == nil || err.Error() != "observing the demo's backends: not_found: the demo has ended" {
		t.Errorf("observing after the end: %v", err)
	}
}

func TestStartErrors(t *testing.T) {
	// after returns a way to listen that works that many times.
	after := func(works int) func() (net.Listener, error) {
		return func() (net.Listener, error) {
			if works--; works < 0 {
				return nil, errors.New("too many open files")
			}
			return net.Listen("tcp", "127.0.0.1:0")
		}
	}
	const want = "finding a free port on 127.0.0.1: too many open files; the demo needs seven ports there and about 300 file descriptors"
	tests := []struct {
		name   string
		listen func() (net.Listener, error)
		error  string // PATH stands for that of the certificate
	}{
		{name: "no port for the third backend", listen: after(2),
			error: "starting the demo: starting a backend: " + want},
		{name: "no port for the second door", listen: after(5),
			error: `starting the demo: opening door "steady over https": ` + want},
		{name: "no port for the last door", listen: after(6),
			error: `starting the demo: opening door "reloading": ` + want},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
			s := quick()
			s.listen = test.listen
			w, err := start(Options{Logger: slog.New(slog.DiscardHandler)}, s)
			if err == nil {
				w.Close()
				t.Fatal("it started")
			}
			if err.Error() != test.error {
				t.Errorf("got  %s\nwant %s", err, test.error)
			}
		})
	}
}
