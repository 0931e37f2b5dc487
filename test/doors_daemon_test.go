package test

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	toolkit "github.com/prometheus/exporter-toolkit/web"

	dto "github.com/prometheus/client_model/go"

	"github.com/steadyprobe/steadyprobe/app"
	"github.com/steadyprobe/steadyprobe/internal/testbed"
)

// daemon is a running daemon of this process.
type daemon struct {
	t       *testing.T
	address string // of its endpoints
	file    string // of its configuration
	client  *http.Client
	stop    func()
}

// startDaemon runs the daemon with a configuration until the test ends, or
// until stop is called. It returns when its targets are started.
func startDaemon(t *testing.T, configuration string) *daemon {
	t.Helper()
	file := filepath.Join(t.TempDir(), "steadyprobe.yml")
	if err := os.WriteFile(file, []byte(configuration), 0o600); err != nil {
		t.Fatal(err)
	}
	none, off, listen := "", false, []string{"127.0.0.1:0"}
	listening, over := make(chan string, 1), make(chan error, 1)
	ctx, cancel := context.WithCancel(context.Background())
	go func() {
		over <- app.Run(ctx, app.Options{
			ConfigFile: file,
			Lifecycle:  true,
			Web:        &toolkit.FlagConfig{WebListenAddresses: &listen, WebSystemdSocket: &off, WebConfigFile: &none},
			Logger:     slog.New(slog.DiscardHandler),
			Version:    "test",
			Listening:  func(main []net.Addr, _ net.Addr) { listening <- main[0].String() },
		})
	}()
	d := &daemon{t: t, file: file, client: &http.Client{Timeout: 30 * time.Second}}
	d.stop = sync.OnceFunc(func() {
		cancel()
		d.client.CloseIdleConnections()
		if err := <-over; err != nil {
			t.Errorf("the daemon ended with %v", err)
		}
	})
	t.Cleanup(d.stop)
	select {
	case d.address = <-listening:
	case err := <-over:
		over <- nil
		t.Fatalf("the daemon did not start: %v", err)
	}
	d.waitReady()
	return d
}

func (d *daemon) waitReady() {
	d.t.Helper()
	for end := time.Now().Add(30 * time.Second); time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
		resp, err := d.client.Get("http://" + d.address + "/-/ready")
		if err != nil {
			d.t.Fatal(err)
		}
		_, _ = io.Copy(io.Discard, resp.Body)
		resp.Body.Close()
		if resp.StatusCode == http.StatusOK {
			return
		}
	}
	d.t.Fatal("the daemon is not ready within 30 s")
}

// get returns a page of the daemon.
func (d *daemon) get(path string) ([]byte, error) {
	resp, err := d.client.Get("http://" + d.address + path)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err == nil && resp.StatusCode != http.StatusOK {
		err = fmt.Errorf("getting %q: %s: %s", path, resp.Status, text)
	}
	return text, err
}

// scrape is what /metrics said, by family.
type scrape map[string]*dto.MetricFamily

func (d *daemon) scrape() (scrape, error) {
	text, err := d.get("/metrics")
	if err != nil {
		return nil, err
	}
	s, err := testbed.ParseScrape(text)
	return scrape(s), err
}

func (s scrape) sum(name string, labels ...string) float64 {
	return testbed.Scrape(s).Sum(name, labels...)
}

func label(m *dto.Metric, name string) string { return testbed.Label(m, name) }

func (s scrape) failures(target string) map[string]uint64 { return testbed.Scrape(s).Failures(target) }

func (s scrape) checkAccount(target string, before scrape) error {
	return testbed.Scrape(s).CheckAccount(target, testbed.Scrape(before))
}

// watch scrapes the daemon again and again and checks the accounts of targets,
// until the function that it returns is called. That returns the last scrape
// and how many there were.
func (d *daemon) watch(every time.Duration, targets ...string) (end func() (scrape, int)) {
	stop, over := make(chan struct{}), make(chan struct{})
	var last scrape
	scrapes := 0
	go func() {
		defer close(over)
		for {
			now, err := d.scrape()
			for _, target := range targets {
				if err == nil {
					err = now.checkAccount(target, last)
				}
			}
			if err != nil {
				d.t.Errorf("scrape %d: %v", scrapes, err)
				return
			}
			last = now
			scrapes++
			select {
			case <-stop:
				return
			case <-time.After(every):
			}
		}
	}()
	return func() (scrape, int) {
		close(stop)
		<-over
		return last, scrapes
	}
}

// targetConfiguration returns one item of targets.
func (d *realDoor) targetConfiguration(name string, p profile) string {
	url, tls := "http://"+d.http+"/", ""
	if p.tls {
		url, tls = "https://"+d.https+"/", fmt.Sprintf("\n    tls: {ca_file: %q}", d.caFile)
	}
	return fmt.Sprintf(`
  - name: %s
    url: %s
    rate: %d
    connections: %d
    connection: {reuse: %v, warm: %v}%s
`, name, url, p.rate, p.connections, !p.noReuse, !p.noReuse, tls)
}
