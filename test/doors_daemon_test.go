package test

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"math"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	toolkit "github.com/prometheus/exporter-toolkit/web"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"

	"github.com/steadyprobe/steadyprobe/app"
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
	parser := expfmt.NewTextParser(model.LegacyValidation)
	return parser.TextToMetricFamilies(strings.NewReader(string(text)))
}

// sum adds up the values of a family's series that have all these labels,
// given as name, value, …; of histograms their counts.
func (s scrape) sum(name string, labels ...string) float64 {
	sum := 0.0
	for _, m := range s[name].GetMetric() {
		if !hasLabels(m, labels) {
			continue
		}
		sum += m.GetCounter().GetValue() + m.GetGauge().GetValue() + float64(m.GetHistogram().GetSampleCount())
	}
	return sum
}

func hasLabels(m *dto.Metric, labels []string) bool {
	for i := 0; i < len(labels); i += 2 {
		if label(m, labels[i]) != labels[i+1] {
			return false
		}
	}
	return true
}

func label(m *dto.Metric, name string) string {
	for _, p := range m.GetLabel() {
		if p.GetName() == name {
			return p.GetValue()
		}
	}
	return ""
}

// failures returns the failures of a target so far by stage and reason.
func (s scrape) failures(target string) map[string]uint64 {
	by := map[string]uint64{}
	for _, m := range s["steadyprobe_request_failures_total"].GetMetric() {
		if n := m.GetCounter().GetValue(); n > 0 && label(m, "target") == target {
			by[label(m, "failure_stage")+"/"+label(m, "reason")] += uint64(n)
		}
	}
	return by
}

// checkAccount holds the account of one target in one scrape against what must
// be true at every instant, and against the account before.
func (s scrape) checkAccount(target string, before scrape) error {
	of := func(name string, labels ...string) float64 { return s.sum(name, append(labels, "target", target)...) }
	scheduled, completed := of("steadyprobe_requests_scheduled_total"), of("steadyprobe_requests_total")
	inFlight, backlog := of("steadyprobe_requests_in_flight"), of("steadyprobe_requests_backlog")
	if scheduled != completed+inFlight+backlog {
		return fmt.Errorf("%s: %v scheduled, but %v completed, %v in flight and %v in the backlog", target, scheduled, completed, inFlight, backlog)
	}
	failed := of("steadyprobe_request_failures_total")
	succeeded := completed - failed
	if succeeded < 0 {
		return fmt.Errorf("%s: %v failures of %v requests", target, failed, completed)
	}
	// A sample is recorded just before it is counted, and scraped after.
	slack := inFlight + backlog + 1 + 0.5*of("steadyprobe_target_requests_per_second")
	for _, h := range []struct {
		name   string
		got    float64
		counts float64
	}{
		{"latency of successes", of("steadyprobe_latency_seconds", "outcome", "success"), succeeded},
		{"latency of failures", of("steadyprobe_latency_seconds", "outcome", "failure"), failed},
		{"service time of successes", of("steadyprobe_service_time_seconds", "outcome", "success"), succeeded},
		{"lateness", of("steadyprobe_lateness_seconds"), completed},
	} {
		if h.got < h.counts || h.got > h.counts+slack {
			return fmt.Errorf("%s: %v samples in the histogram of %s, %v counted", target, h.got, h.name, h.counts)
		}
	}
	opened, closed := of("steadyprobe_connections_opened_total"), of("steadyprobe_connections_closed_total")
	if open := of("steadyprobe_connections"); open != opened-closed {
		return fmt.Errorf("%s: %v connections opened, %v closed, but %v open", target, opened, closed, open)
	}
	for failure := range s.failures(target) {
		if strings.HasSuffix(failure, "/error") {
			return fmt.Errorf("%s: failures without a specific reason: %v", target, s.failures(target))
		}
	}
	return s.checkGrowth(before)
}

// checkGrowth checks that no counter of the program's own has shrunk. Those of
// an address go with it, and those of a target.
func (s scrape) checkGrowth(before scrape) error {
	for name, family := range before {
		if family.GetType() != dto.MetricType_COUNTER || !strings.HasPrefix(name, "steadyprobe_") || strings.HasPrefix(name, "steadyprobe_address_") {
			continue
		}
		for _, m := range family.GetMetric() {
			if name := label(m, "target"); name != "" && s.sum("steadyprobe_target_info", "target", name) == 0 {
				continue
			}
			var labels []string
			for _, p := range m.GetLabel() {
				labels = append(labels, p.GetName(), p.GetValue())
			}
			if now := s.sum(name, labels...); math.IsNaN(now) || now < m.GetCounter().GetValue() {
				return fmt.Errorf("%s%v went from %v to %v", name, labels, m.GetCounter().GetValue(), now)
			}
		}
	}
	return nil
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
