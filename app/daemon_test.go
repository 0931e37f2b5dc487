package app

import (
	"errors"
	"net"
	"net/http"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/steadyprobe/steadyprobe/config"
	"github.com/steadyprobe/steadyprobe/exporter"
	"github.com/steadyprobe/steadyprobe/internal/faultdoor"
	"github.com/steadyprobe/steadyprobe/internal/testcert"
)

func TestRunServes(t *testing.T) {
	door := faultdoor.Listen(t, good())
	url := strings.Replace(door.URL("http"), "//", "//user:hunter2@", 1) + "/path?token=hunter2"
	o := options(configured(t, "targets:\n"+targetOf("one", url, `rate: 200, connections: 3, http: {headers: {X-Key: hunter2}}`)), "127.0.0.1:0")
	o.HealthAddress = "127.0.0.1:0"
	r := start(t, o)
	eventually(t, "requests", func() bool { return door.Counts().Answers >= 3 })

	for _, path := range []string{"/-/ready", "/-/healthy"} {
		for _, base := range []string{r.url, r.health} {
			if status, body := get(base + path); status != http.StatusOK {
				t.Errorf("%s answered %d %s", path, status, body)
			}
		}
	}
	if status, _ := get(r.health + "/metrics"); status != http.StatusNotFound {
		t.Errorf("the plain health endpoint answered /metrics with %d", status)
	}
	for path, want := range map[string]string{
		"/metrics": `steadyprobe_target_info{arrival="uniform",loop="open",pacing="precise",reuse="true",target="one",url="` + door.URL("http") + `/path"} 1`,
		"/config":  "<secret>",
		"/":        "1.2.3",
	} {
		status, body := get(r.url + path)
		if status != http.StatusOK || !strings.Contains(body, want) {
			t.Errorf("%s answered %d without %s", path, status, want)
		}
		if strings.Contains(body, "hunter2") {
			t.Errorf("%s shows a secret", path)
		}
	}
	_, page := get(r.url + "/metrics")
	scheduled := metric(page, "steadyprobe_requests_scheduled_total")
	if done := metric(page, "steadyprobe_requests_total") + metric(page, "steadyprobe_requests_in_flight") + metric(page, "steadyprobe_requests_backlog"); scheduled == 0 || scheduled != done {
		t.Errorf("scheduled %v, but completed, in flight and backlog are %v", scheduled, done)
	}

	r.stop()
	if status, _ := get(r.url + "/-/healthy"); status != 0 {
		t.Errorf("the endpoint answered %d after the end", status)
	}
	if c := door.Counts(); c.Requests != c.Answers {
		t.Errorf("the door was sent %d requests and could answer %d of them", c.Requests, c.Answers)
	}
}

// A door holds the only connection's request until it is released, and 100 come
// in a second: when the daemon is told to stop, one is in flight and others
// wait.
func TestStopLetsRequestsFinish(t *testing.T) {
	release := make(chan struct{})
	door := faultdoor.Listen(t, faultdoor.HTTP(func(c *faultdoor.Conn, r *faultdoor.Request) error {
		<-release
		return c.Answer(r, faultdoor.Answer{})
	}))
	r := start(t, options(configured(t, "targets:\n"+targetOf("one", door.URL("http"), `rate: 100, connections: 1, timeout: 1h`)), "127.0.0.1:0"))
	eventually(t, "a backlog", func() bool {
		_, page := get(r.url + "/metrics")
		return metric(page, "steadyprobe_requests_backlog{") >= 2
	})
	r.cancel()
	// The page answers while the request in flight has its time.
	var page string
	eventually(t, "the backlog to be given up", func() bool {
		var status int
		if status, page = get(r.url + "/metrics"); status != http.StatusOK {
			t.Fatalf("the page answered %d %s before the request in flight was completed", status, page)
		}
		return metric(page, `steadyprobe_request_failures_total{churn_phase="",failure_stage="schedule",reason="shutdown"`) >= 2
	})
	if waiting, flying := metric(page, "steadyprobe_requests_backlog{"), metric(page, "steadyprobe_requests_in_flight{"); waiting != 0 || flying != 1 {
		t.Errorf("%v ticks in the backlog and %v in flight of a daemon that stops, want 0 and 1", waiting, flying)
	}
	if status, _ := get(r.url + "/-/ready"); status != http.StatusServiceUnavailable {
		t.Errorf("ready answered %d while stopping", status)
	}
	if status, _ := get(r.url + "/-/healthy"); status != http.StatusOK {
		t.Errorf("healthy answered %d while stopping", status)
	}
	close(release)
	r.stop()
	if c := door.Counts(); c.Answers != 1 || c.Requests != 1 {
		t.Errorf("the door was sent %d requests and could answer %d of them, want 1", c.Requests, c.Answers)
	}
}

// Doors that are dead, silent or far away hold up neither the daemon, nor
// another target, nor the end.
func TestDoorsThatDoNotWarmUp(t *testing.T) {
	silent := faultdoor.Listen(t, faultdoor.Silent())
	healthy := faultdoor.Listen(t, good())
	r := start(t, options(configured(t, "defaults: {timeout: 1h, connection: {warm: true}}\ntargets:\n"+
		targetOf("silent", silent.URL("https"), "rate: 10")+
		targetOf("dead", "http://"+faultdoor.Refused(t), "rate: 10")+
		targetOf("healthy", healthy.URL("http"), "rate: 200, connections: 2")), "127.0.0.1:0"))
	eventually(t, "the healthy target", func() bool { return healthy.Counts().Answers >= 5 })
	eventually(t, "openings to the silent door", func() bool { return silent.Counts().Accepted >= 10 })
	if status, body := get(r.url + "/-/ready"); status != http.StatusOK {
		t.Errorf("ready answered %d %s beside a silent door", status, body)
	}
	_, page := get(r.url + "/metrics")
	if n := metric(page, `steadyprobe_requests_scheduled_total{target="silent"`); n != 0 {
		t.Errorf("the silent target has %v ticks before it is warm", n)
	}
	eventually(t, "the dead target", func() bool {
		_, page := get(r.url + "/metrics")
		return metric(page, `steadyprobe_request_failures_total{churn_phase="",failure_stage="connect",reason="refused",target="dead"`) >= 1
	})
	r.stop()
}

func TestTwoDaemonsInOneProcess(t *testing.T) {
	procs := runtime.GOMAXPROCS(0)
	door := faultdoor.Listen(t, good())
	file := configured(t, "targets:\n"+targetOf("one", door.URL("http"), "rate: 100"))
	first := start(t, options(file, "127.0.0.1:0"))
	second := start(t, options(file, "127.0.0.1:0"))
	for _, r := range []*daemonRun{first, second} {
		eventually(t, "requests of both", func() bool {
			_, page := get(r.url + "/metrics")
			return metric(page, "steadyprobe_requests_total{") >= 3
		})
	}
	first.stop()
	second.stop()
	if now := runtime.GOMAXPROCS(0); now != procs {
		t.Errorf("GOMAXPROCS is %d after both, was %d", now, procs)
	}
}

func TestRunListensOnSeveralAddresses(t *testing.T) {
	file := configured(t, "targets:\n"+targetOf("one", "http://"+faultdoor.Refused(t), "rate: 1"))
	o := options(file, "127.0.0.1:0", "127.0.0.1:0")
	web := configured(t, "basic_auth_users: {}\n")
	o.Web.WebConfigFile = &web
	var urls []string
	o.Listening = func(main []net.Addr, _ net.Addr) {
		for _, a := range main {
			urls = append(urls, "http://"+a.String())
		}
	}
	listening := o.Listening
	done := make(chan struct{})
	o.Listening = func(main []net.Addr, health net.Addr) { listening(main, health); close(done) }
	ctx, cancel := contextFor(t)
	ended := make(chan error, 1)
	go func() { ended <- Run(ctx, o) }()
	<-done
	for _, url := range urls {
		eventually(t, url, func() bool { status, _ := get(url + "/-/ready"); return status == http.StatusOK })
	}
	if len(urls) != 2 || urls[0] == urls[1] {
		t.Errorf("the daemon listens on %v", urls)
	}
	cancel()
	if err := <-ended; err != nil {
		t.Errorf("the daemon ended with %v", err)
	}
}

func TestRunCannotStart(t *testing.T) {
	busy, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = busy.Close() })
	taken := busy.Addr().String()
	free := faultdoor.Refused(t)
	file := configured(t, "targets:\n"+targetOf("one", "http://127.0.0.1:1/", "rate: 1"))
	none := ""
	for _, row := range []struct {
		name   string
		change func(*Options)
		want   string
		is     error
	}{
		{"no file", func(o *Options) { o.ConfigFile = "" }, "starting: there is no configuration file: name one with --config.file", nil},
		{"no logger", func(o *Options) { o.Logger = nil }, "starting: there is no logger", nil},
		{"no web flags", func(o *Options) { o.Web = nil }, "starting: there are no web flags", nil},
		{"no address", func(o *Options) { *o.Web.WebListenAddresses = nil }, "starting: there is no address to listen on", nil},
		{"missing file", func(o *Options) { o.ConfigFile = "missing.yml" }, "loading --config.file: missing.yml: does not exist; name a readable YAML file", nil},
		{"bad file", func(o *Options) { o.ConfigFile = configured(t, "targets: 1\n") }, "steadyprobe.yml:1: targets: ", nil},
		{"port in use", func(o *Options) { *o.Web.WebListenAddresses = []string{free, taken} }, `listening on --web.listen-address "` + taken + `": `, syscall.EADDRINUSE},
		{"health port in use", func(o *Options) { o.HealthAddress = taken }, `listening on --web.health.listen-address "` + taken + `": `, syscall.EADDRINUSE},
		{"an address that is empty", func(o *Options) { *o.Web.WebListenAddresses = []string{free, ""} }, "listening on --web.listen-address: the address is empty; write HOST:PORT with", nil},
		{"no such address", func(o *Options) { *o.Web.WebListenAddresses = []string{"127.0.0.1"} }, `listening on --web.listen-address "127.0.0.1": address 127.0.0.1: missing port in address; write HOST:PORT with`, nil},
		{"no such port", func(o *Options) { *o.Web.WebListenAddresses = []string{"127.0.0.1:no"} }, `; write HOST:PORT with`, nil},
		{"bad web configuration", func(o *Options) { bad := configured(t, "nonsense: 1\n"); o.Web.WebConfigFile = &bad }, "steadyprobe.yml\": ", nil},
		{"web configuration missing", func(o *Options) { bad := "missing.yml"; o.Web.WebConfigFile = &bad }, `reading --web.config.file "missing.yml": `, nil},
		{"port that was free all the time", func(o *Options) { o.Web.WebConfigFile = &none; o.HealthAddress = taken }, "", syscall.EADDRINUSE},
	} {
		t.Run(row.name, func(t *testing.T) {
			o := options(file, free)
			row.change(&o)
			ctx, cancel := contextFor(t)
			defer cancel()
			err := Run(ctx, o)
			if err == nil || !strings.Contains(err.Error(), row.want) {
				t.Fatalf("got %v, want %s", err, row.want)
			}
			if row.is != nil && !errors.Is(err, row.is) {
				t.Errorf("%v is not %v", err, row.is)
			}
			// Whatever was opened is given back.
			l, err := net.Listen("tcp", free)
			if err != nil {
				t.Fatalf("the port is still in use: %v", err)
			}
			_ = l.Close()
		})
	}
}

func TestRunStoppedAtOnce(t *testing.T) {
	door := faultdoor.Listen(t, good())
	ctx, cancel := contextFor(t)
	cancel()
	if err := Run(ctx, options(configured(t, "targets:\n"+targetOf("one", door.URL("http"), "rate: 1000, connection: {warm: true}")), "127.0.0.1:0")); err != nil {
		t.Errorf("the daemon ended with %v", err)
	}
	if n := door.Counts().Requests; n != 0 {
		t.Errorf("the door was sent %d requests", n)
	}
}

func TestRestartOnTheSamePort(t *testing.T) {
	address := faultdoor.Refused(t)
	file := configured(t, "targets:\n"+targetOf("one", "http://127.0.0.1:1/", "rate: 1"))
	for range 3 {
		r := start(t, options(file, address))
		eventually(t, "the daemon", func() bool { status, _ := get(r.url + "/-/ready"); return status == http.StatusOK })
		r.stop()
	}
}

func TestRunVerifiesTheDoor(t *testing.T) {
	ca := testcert.NewCA(t, "door", testcert.Options{})
	door := faultdoor.Listen(t, faultdoor.TLS(serverTLS(ca.Leaf(t, testcert.Options{})), good()))
	r := start(t, options(configured(t, "targets:\n"+
		targetOf("known", door.URL("https"), "rate: 100, connections: 2, tls: {ca_file: "+ca.WriteCA(t)+"}")+
		targetOf("unknown", door.URL("https"), "rate: 100, connections: 2")), "127.0.0.1:0"))
	eventually(t, "both targets", func() bool {
		_, page := get(r.url + "/metrics")
		return metric(page, `steadyprobe_tls_certificate_verified{target="known"`) == 1 &&
			metric(page, `steadyprobe_responses_total{code="200",protocol="http1.1",target="known"`) > 0 &&
			metric(page, `steadyprobe_request_failures_total{churn_phase="",failure_stage="tls",reason="certificate",target="unknown"`) > 0
	})
}

func TestSlowScrapersAreCutOff(t *testing.T) {
	began, release := make(chan struct{}), make(chan struct{})
	e := &endpoints{logger: quiet(), failed: make(chan error, 1)}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	hangs := http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		close(began)
		select {
		case <-r.Context().Done():
		case <-release:
		}
	})
	e.start(hangs, func(s *http.Server) error { return s.Serve(l) })
	status := make(chan int, 1)
	go func() { s, _ := get("http://" + l.Addr().String()); status <- s }()
	<-began
	ctx, cancel := contextFor(t)
	cancel() // their time is over
	e.close(ctx)
	if s := <-status; s != 0 {
		t.Errorf("the scraper that hung was answered %d", s)
	}
	close(release)
}

func TestFirstFailureOfAnEndpointIsTold(t *testing.T) {
	e := &endpoints{logger: quiet(), failed: make(chan error, 1)}
	cause := errors.New("broken")
	for range 2 {
		e.start(http.NotFoundHandler(), func(*http.Server) error { return cause })
	}
	e.start(http.NotFoundHandler(), func(*http.Server) error { return http.ErrServerClosed })
	if err := <-e.failed; !errors.Is(err, cause) {
		t.Errorf("told %v", err)
	}
	ctx, cancel := contextFor(t)
	defer cancel()
	e.close(ctx)
}

func TestDistrustNamesWhatIsShort(t *testing.T) {
	got := distrust([]exporter.Saturation{
		{Resource: "cpu", Saturated: true, Seconds: 0.4},
		{Resource: "memory", Seconds: 7},
		{Resource: "file_descriptors", Saturated: true, Seconds: 12.4},
	})
	if want := []string{"The probe is short of processor time since a moment ago.",
		"The probe is short of file descriptors, for 12 s in all since it started."}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

// What the configuration accepts the daemon can be built from, at both ends of
// every range of the exporter's settings.
func TestDaemonFromExtremeSettings(t *testing.T) {
	for _, row := range []struct{ name, metrics string }{
		{"least", "{native_schema: 0, native_max_buckets: 10}"},
		{"most", "{native_schema: 5, native_max_buckets: 1000}"},
		{"least buckets at the finest schema", "{native_schema: 5, native_max_buckets: 10}"},
		{"boundaries", "{buckets: {latency: [0.000000001, 86400], service_time: [86400], handshake: [86400], phase: [86400], lateness: [86400]}}"},
		{"classic alone", "{native: false}"},
		{"native alone", "{classic: false}"},
	} {
		t.Run(row.name, func(t *testing.T) {
			door := faultdoor.Listen(t, good())
			r := start(t, options(configured(t, "metrics: "+row.metrics+"\ntargets:\n"+
				targetOf("least", door.URL("http"), "rate: 0.001, connections: 1, timeout: 1ms, backlog: 1ms, catch_up: 1, dns: {refresh: 1s}, objective: {latency: 1ms, ratio: 0.0001}")+
				targetOf("most", door.URL("http"), "rate: 100, timeout: 1d, backlog: 1d, catch_up: 1000000, dns: {refresh: 1d}, connection: {max_age: 1y}, objective: {latency: 2d, ratio: 0.9999}, expect: {max_body: 1024GiB}")), "127.0.0.1:0"))
			if status, page := get(r.url + "/metrics"); status != http.StatusOK || metric(page, "steadyprobe_target_requests_per_second") != 100.001 {
				t.Errorf("the page answered %d:\n%.500s", status, page)
			}
		})
	}
}

// A label of the user must not hide one that a metric of a target has, whatever
// is added to the catalogue.
func TestLabelsOfMetricsAreKept(t *testing.T) {
	kept := map[string]bool{"target": true, "le": true, "quantile": true, "job": true, "instance": true}
	for _, m := range exporter.Catalogue() {
		if m.Scope == exporter.PerTarget {
			for _, label := range m.Labels {
				kept[label] = true
			}
		}
	}
	for label := range kept {
		text := "targets:\n" + targetOf("one", "http://127.0.0.1:1/", "rate: 1, labels: {"+label+": x}")
		_, _, err := config.Parse([]byte(text), "test.yml")
		if err == nil || !strings.Contains(err.Error(), "labels."+label+": is a label that steadyprobe or Prometheus sets") {
			t.Errorf("a target may have the label %s: %v", label, err)
		}
	}
	if len(kept) < 20 {
		t.Errorf("the catalogue has %d labels, which is too few to be all", len(kept))
	}
}

func TestStatusesOfATarget(t *testing.T) {
	door := faultdoor.Listen(t, good())
	c := target1(t, door.URL("http"))
	c.Expect.Status = []string{"2xx", "404"}
	set := statuses(c.Expect)
	var accepted []int
	for _, code := range []uint16{199, 200, 299, 300, 403, 404, 405} {
		if set.Has(code) {
			accepted = append(accepted, int(code))
		}
	}
	if want := []int{200, 299, 404}; !slices.Equal(accepted, want) {
		t.Errorf("accepted %v, want %v", accepted, want)
	}
}
