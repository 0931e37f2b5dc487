package observability

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/common/model"
	"gopkg.in/yaml.v3"

	"github.com/steadyprobe/steadyprobe/internal/dnsdoor"
	"github.com/steadyprobe/steadyprobe/internal/monitoring"
	"github.com/steadyprobe/steadyprobe/internal/testbed"
)

// scale is how many times faster than shipped the rules run in this test: an
// hour is 15 seconds, "for: 10m" is 2.5 seconds, and a range of 5 or 15 minutes is
// one of 5 seconds, because a scrape a second wants some. Time is scaled so, also
// that of Alertmanager's groups, and nothing else: the files are the shipped
// ones, with their thresholds.
//
// Offsets stay what they are: yesterday is yesterday, see past.
var scale = monitoring.Scale{Factor: 240, Least: 5 * time.Second}

// stand is all that the scenario runs on.
type stand struct {
	t          *testing.T
	haproxy    *testbed.HAProxyServer // can be made slow
	backend    *testbed.HAProxyServer // of it
	resetting  string                 // while this file is there, nginx resets
	names      *dnsdoor.Server        // of the target that moves
	probe      *testbed.ProbeServer
	hook       *testbed.Webhook
	manager    *testbed.AlertmanagerServer
	prometheus *testbed.PrometheusServer // native histograms, sends to Alertmanager
	classic    *testbed.PrometheusServer // classic ones only, and an old version
	began      time.Time
	parts      []part // that are over
}

// The targets. Those of the group "shop" are peers.
const configuration = `
limits: {max_total_rate: 1000}
defaults:
  timeout: 2s
  backlog: 5s
  connections: 50
  objective: {latency: 250ms, ratio: 0.99}
  dns: {per_address: true}
  backend: {header: X-Backend}
targets:
  # Behind nginx, over TLS, with a connection for each request. Is reset.
  - {name: resetting, url: "https://localhost:%[1]s/shop", rate: 20, labels: {front: nginx}, connection: {reuse: false}, tls: {ca_file: %[2]q}}
  # Behind HAProxy. Becomes slow, and later loses its backend.
  - {name: slow, url: "http://%[3]s/", rate: 60, labels: {front: haproxy, peer_group: shop}}
  # Nothing ever happens to this one.
  - {name: calm, url: "http://%[4]s/", rate: 60, labels: {front: nginx, peer_group: shop}}
  # Its name leads to another address from time to time.
  - {name: moving, url: "http://moving.test:%[5]s/", rate: 10, labels: {front: nginx}, dns: {refresh: 1s, server: "%[6]s"}}
  # These two fail all the time: the certificate is not trusted, there is no such name.
  - {name: untrusted, url: "https://localhost:%[1]s/", rate: 2, connection: {warm: true}}
  - {name: unresolved, url: "http://nowhere.invalid/", rate: 1, dns: {refresh: 1s}}
`

// The backends answer after 100 ms and a little, as if they were far away. What a busy test
// machine adds is then little, as the probe sees it too: it is not to be trusted
// from 5 % of the median service time on.
//
// The HAProxy in front holds every request for 400 ms more while a server that
// nobody uses is disabled, which can be done while it runs.
const (
	backendDelay  = "\thttp-request lua.wait 100\n\thttp-after-response set-header X-Backend far\n"
	haproxySwitch = "backend switch\n\ttimeout connect 1s\n\ttimeout server 1s\n\tserver fast 127.0.0.1:1\n"
	haproxyDelay  = "\thttp-request lua.wait 400 if { nbsrv(switch) eq 0 }\n"
)

// newStand starts everything. Doors and probe are urgent: the alerts on latency
// are about them, and not about what else this machine does. Alertmanager is
// there before Prometheus is.
func newStand(t *testing.T) *stand {
	t.Helper()
	s := &stand{t: t, resetting: filepath.Join(t.TempDir(), "reset"), hook: testbed.NewWebhook(t)}
	s.backend = testbed.HAProxy(t, testbed.HAProxyOptions{Urgent: true, Frontend: backendDelay})
	other := testbed.HAProxy(t, testbed.HAProxyOptions{Urgent: true, Frontend: backendDelay})
	s.haproxy = testbed.HAProxy(t, testbed.HAProxyOptions{
		Urgent: true, Backends: []string{s.backend.HTTP}, Global: haproxySwitch, Frontend: haproxyDelay,
	})
	nginx := testbed.NGINX(t, testbed.NGINXOptions{
		Urgent: true, Backends: []string{other.HTTP}, Addresses: []string{"127.0.0.2"},
		// Status 444 closes without an answer, here by a reset.
		Locations: fmt.Sprintf("\t\treset_timedout_connection on;\n\t\tlocation = /shop { if (-f %s) { return 444; } proxy_pass http://backends; }\n", s.resetting),
	})
	s.manager = testbed.Alertmanager(t, managerConfiguration(t, s.hook.URL))
	program := testbed.BuildProbe(t)
	s.names = dnsdoor.Listen(t)
	s.names.Set("moving.test", "127.0.0.1")
	_, secure, _ := strings.Cut(nginx.HTTPS, ":")
	_, plain, _ := strings.Cut(nginx.HTTP, ":")
	s.probe = testbed.Probe(t, program,
		fmt.Sprintf(configuration, secure, nginx.CAFile, s.haproxy.HTTP, nginx.HTTP, plain, s.names.Addr()))
	demo := testbed.ProbeDemo(t, program)
	native := testbed.ScrapeJob("steadyprobe", s.probe.Address) + testbed.ScrapeJob("demo", demo.Address)
	s.prometheus = testbed.Prometheus(t, testbed.PrometheusOptions{
		Global: "evaluation_interval: 1s", ScrapeConfigs: native, RuleFiles: scaledRules(t, "classic"),
		Alertmanager: s.manager.Address, Past: past(),
	})
	s.classic = testbed.Prometheus(t, testbed.PrometheusOptions{
		Global:        "evaluation_interval: 1s",
		ScrapeConfigs: regexp.MustCompile(`(?m)^.*_histograms: true\n`).ReplaceAllString(native, ""), // 2.42 knows no such setting
		RuleFiles:     scaledRules(t, "native"), Past: past(), System: true,
	})
	s.began = time.Now()
	return s
}

// slow makes HAProxy slow, or no longer.
func (s *stand) slow(on bool) {
	s.t.Helper()
	command := map[bool]string{true: "disable", false: "enable"}[on] + " server switch/fast"
	if answer := strings.TrimSpace(strings.Trim(s.haproxy.Command(command), "> \n")); answer != "" {
		s.t.Fatalf("HAProxy answered %q with %q", command, answer)
	}
}

// past is the only thing that is made up: that two of the targets had a p99 of
// 200 ms at this time of the day, yesterday and a week ago, as the shipped rules
// record it.
func past() string {
	var b strings.Builder
	b.WriteString("# TYPE steadyprobe:latency:p99_rate15m gauge\n")
	now := time.Now()
	for _, target := range []string{"slow", "calm"} {
		for _, before := range []time.Duration{7 * 24 * time.Hour, 24 * time.Hour} {
			// The rules look at the hour around that instant, which is scaled: at
			// some seconds half an hour later.
			from := now.Add(30*time.Minute - before)
			for at := -time.Minute; at < 15*time.Minute; at += time.Second {
				fmt.Fprintf(&b, "steadyprobe:latency:p99_rate15m{job=\"steadyprobe\",target=%q} 0.2 %d\n", target, from.Add(at).Unix())
			}
		}
	}
	return b.String()
}

// scaledRules writes the shipped rule files, scaled, and returns their paths:
// all but those in the folder of the other kind of histograms.
func scaledRules(t *testing.T, other string) []string {
	t.Helper()
	files, err := monitoring.RuleFiles(filepath.Join(testbed.Root(t), "alerts"))
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	var scaled []string
	for _, file := range files {
		if filepath.Base(filepath.Dir(file)) == other {
			continue
		}
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		rules, err := monitoring.ScaleRules(string(text), scale)
		if err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		to := filepath.Join(dir, fmt.Sprintf("%d-%s", len(scaled), filepath.Base(file)))
		if err := os.WriteFile(to, []byte(rules), 0o600); err != nil {
			t.Fatal(err)
		}
		scaled = append(scaled, to)
	}
	return scaled
}

// managerConfiguration returns the shipped configuration of Alertmanager with
// each of its receivers replaced by the webhook, and times scaled.
func managerConfiguration(t *testing.T, url string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(testbed.Root(t), "alerts", "alertmanager.yml"))
	if err != nil {
		t.Fatal(err)
	}
	var c map[string]any
	if err := yaml.Unmarshal(text, &c); err != nil {
		t.Fatal(err)
	}
	delete(c, "templates")
	delete(c, "global")
	for _, r := range c["receivers"].([]any) {
		name := r.(map[string]any)["name"]
		clear(r.(map[string]any))
		r.(map[string]any)["name"] = name
		r.(map[string]any)["webhook_configs"] = []any{map[string]any{"url": url, "send_resolved": true}}
	}
	scaleRoute(t, c["route"].(map[string]any))
	out, err := yaml.Marshal(c)
	if err != nil {
		t.Fatal(err)
	}
	return string(out)
}

func scaleRoute(t *testing.T, route map[string]any) {
	t.Helper()
	for _, key := range []string{"group_wait", "group_interval", "repeat_interval"} {
		if text, ok := route[key].(string); ok {
			d, err := model.ParseDuration(text)
			if err != nil {
				t.Fatal(err)
			}
			// A repetition would come after the test, so that each notice is news.
			to := max(time.Duration(float64(d)/scale.Factor), time.Second)
			if key == "repeat_interval" {
				to = time.Hour
			}
			route[key] = model.Duration(to.Round(time.Millisecond)).String()
		}
	}
	for _, inner := range asList(route["routes"]) {
		scaleRoute(t, inner.(map[string]any))
	}
}

func asList(v any) []any {
	l, _ := v.([]any)
	return l
}

// reset makes nginx reset every request for the shop, or no longer.
func (s *stand) reset(on bool) {
	s.t.Helper()
	if !on {
		if err := os.Remove(s.resetting); err != nil {
			s.t.Fatal(err)
		}
		return
	}
	if err := os.WriteFile(s.resetting, nil, 0o600); err != nil {
		s.t.Fatal(err)
	}
}
