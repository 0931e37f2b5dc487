package app

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	toolkit "github.com/prometheus/exporter-toolkit/web"
	"go.uber.org/goleak"

	"github.com/steadyprobe/steadyprobe/internal/faultdoor"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// patience bounds how long a test waits for what must come.
const patience = 30 * time.Second

// eventually asks until it is so.
func eventually(t *testing.T, what string, so func() bool) {
	t.Helper()
	for deadline := time.Now().Add(patience); !so(); time.Sleep(2 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("waited %v for %s", patience, what)
		}
	}
}

func quiet() *slog.Logger { return slog.New(slog.DiscardHandler) }

// good answers every request.
func good() faultdoor.Behaviour {
	return faultdoor.HTTP(faultdoor.Reply(faultdoor.Answer{Body: []byte("ok\n")}))
}

// configured writes a configuration and returns its path.
func configured(t *testing.T, text string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "steadyprobe.yml")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// options of a daemon that listens on these addresses.
func options(file string, addresses ...string) Options {
	none, off := "", false
	return Options{
		ConfigFile: file,
		Web:        &toolkit.FlagConfig{WebListenAddresses: &addresses, WebSystemdSocket: &off, WebConfigFile: &none},
		Logger:     quiet(),
		Version:    "1.2.3",
	}
}

// daemonRun is a daemon that a test has started.
type daemonRun struct {
	t      *testing.T
	url    string
	health string
	cancel context.CancelFunc
	ended  chan error
}

// start runs a daemon that listens on a free port, unless the options say
// otherwise, and stops it when the test ends.
func start(t *testing.T, o Options) *daemonRun {
	t.Helper()
	r := &daemonRun{t: t, ended: make(chan error, 1)}
	listening := make(chan struct{})
	o.Listening = func(main []net.Addr, health net.Addr) {
		r.url = "http://" + main[0].String()
		if health != nil {
			r.health = "http://" + health.String()
		}
		close(listening)
	}
	ctx, cancel := context.WithCancel(context.Background())
	r.cancel = cancel
	go func() { r.ended <- Run(ctx, o) }()
	select {
	case <-listening:
	case err := <-r.ended:
		cancel()
		t.Fatalf("the daemon did not start: %v", err)
	}
	t.Cleanup(func() { r.stop() })
	return r
}

// stop cancels the daemon and waits for its end, which must be a clean one. It
// may be called again.
func (r *daemonRun) stop() {
	r.t.Helper()
	r.cancel()
	if err, first := <-r.ended; first {
		close(r.ended)
		if err != nil {
			r.t.Errorf("the daemon ended with %v", err)
		}
	}
}

// reload asks the daemon for a reload and returns the answer, 0 where there is
// none.
func (r *daemonRun) reload() (status int, body string) {
	return ask(http.MethodPost, r.url+"/-/reload")
}

// get returns the answer of an endpoint, 0 where there is none.
func get(url string) (status int, body string) { return ask(http.MethodGet, url) }

// ask returns the answer to a request, 0 where there is none.
func ask(method, url string) (status int, body string) {
	request, err := http.NewRequest(method, url, nil)
	if err != nil {
		return 0, err.Error()
	}
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: patience}
	answer, err := client.Do(request)
	if err != nil {
		return 0, err.Error()
	}
	defer func() { _ = answer.Body.Close() }()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		return 0, err.Error()
	}
	return answer.StatusCode, string(text)
}

// metric returns the sum of all series of an exposition whose line begins so.
func metric(exposition, prefix string) (sum float64) {
	for line := range strings.Lines(exposition) {
		if !strings.HasPrefix(line, prefix) {
			continue
		}
		fields := strings.Fields(line)
		if v, err := strconv.ParseFloat(fields[len(fields)-1], 64); err == nil {
			sum += v
		}
	}
	return sum
}

// targetOf returns the YAML of one target in flow style.
func targetOf(name, url, rest string) string {
	return fmt.Sprintf("  - {name: %s, url: %q, %s}\n", name, url, rest)
}
