package app

import (
	"bytes"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/steadyprobe/steadyprobe/config"
	"github.com/steadyprobe/steadyprobe/internal/faultdoor"
	"github.com/steadyprobe/steadyprobe/probe"
	"github.com/steadyprobe/steadyprobe/probe/schedule"
)

// logged is a log that may be read while it is written.
type logged struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *logged) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *logged) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

func (l *logged) logger() *slog.Logger {
	return slog.New(slog.NewTextHandler(l, &slog.HandlerOptions{Level: slog.LevelDebug}))
}

// write replaces what a file holds in one step, as tools do that rotate secrets.
func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path+".new", []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	replace(t, path, path+".new")
}

// heard is what a door was told.
type heard struct {
	mu   sync.Mutex
	last map[string]string // by path
}

func (h *heard) answer(c *faultdoor.Conn, r *faultdoor.Request) error {
	h.mu.Lock()
	if h.last == nil {
		h.last = map[string]string{}
	}
	h.last[r.URL.Path] = r.Header.Get("Authorization") + " " + strings.Join(r.Header.Values("X-Key"), ",") + " " + strconv.FormatInt(r.ContentLength, 10)
	h.mu.Unlock()
	return c.Answer(r, faultdoor.Answer{Body: []byte("ok\n")})
}

func (h *heard) of(path string) string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.last[path]
}

// TestSecretFilesAreReadAgain rotates what requests say, without a reload.
// Connections stay, and what cannot be used changes nothing and is told once.
func TestSecretFilesAreReadAgain(t *testing.T) {
	var h heard
	door := faultdoor.Listen(t, faultdoor.HTTP(h.answer))
	folder := t.TempDir()
	token, key, body := filepath.Join(folder, "token"), filepath.Join(folder, "key"), filepath.Join(folder, "body")
	write(t, token, "hunter1")
	write(t, key, "planted1\n")
	write(t, body, "1234")
	var log logged
	o := options(configured(t, "targets:\n"+
		targetOf("one", door.URL("http")+"/one", "rate: 200, connections: 2, connection: {warm: true}, http: {method: POST, authorization: {credentials_file: "+token+"}, headers: {X-Key: {files: ["+key+"]}}, body_file: "+body+"}")+
		targetOf("two", door.URL("http")+"/two", "rate: 200, connections: 2, connection: {warm: true}, http: {basic_auth: {username: u, password_file: "+token+"}}")), "127.0.0.1:0")
	o.Logger = log.logger()
	r := start(t, o)
	says := func(what, one, two string) {
		t.Helper()
		eventually(t, what, func() bool { return h.of("/one") == one && h.of("/two") == two })
	}
	says("the first secrets", "Bearer hunter1 planted1 4", "Basic dTpodW50ZXIx  0")
	accepted := door.Counts().Accepted
	write(t, token, "hunter2")
	write(t, key, "planted2")
	says("the second secrets", "Bearer hunter2 planted2 4", "Basic dTpodW50ZXIy  0")
	// A file that is gone: the target that needs it says what it said.
	if err := os.Remove(key); err != nil {
		t.Fatal(err)
	}
	eventually(t, "a warning", func() bool { return strings.Contains(log.String(), "cannot be used") })
	write(t, token, "hunter3")
	says("the target that can", "Bearer hunter2 planted2 4", "Basic dTpodW50ZXIz  0")
	write(t, key, "planted3")
	says("both", "Bearer hunter3 planted3 4", "Basic dTpodW50ZXIz  0")
	if n := door.Counts().Accepted; n != accepted {
		t.Errorf("%d connections were opened for other words", n-accepted)
	}
	// A request that takes a writer of its own takes connections of its own.
	write(t, body, strings.Repeat("x", 20_000))
	says("a long body", "Bearer hunter3 planted3 20000", "Basic dTpodW50ZXIz  0")
	eventually(t, "its connections", func() bool { return door.Counts().Accepted == accepted+2 })
	_, page := get(r.url + "/metrics")
	if failed := metric(page, "steadyprobe_request_failures_total"); failed != 0 {
		t.Errorf("%v requests failed", failed)
	}
	_, shown := get(r.url + "/config")
	r.stop()
	if n := strings.Count(log.String(), "cannot be used"); n != 1 {
		t.Errorf("told %d times that a file cannot be used, want once:\n%s", n, log.String())
	}
	for _, secret := range []string{"hunter", "planted", "dTpo"} {
		if strings.Contains(log.String()+page+shown, secret) {
			t.Errorf("a secret is shown, %q", secret)
		}
	}
}

// Signals that come faster than a reload takes are not lost, but for those that
// the next reload serves too.
func TestSignalStorm(t *testing.T) {
	door := faultdoor.Listen(t, good())
	file := configured(t, "targets:\n"+targetOf("one", door.URL("http"), "rate: 500, connections: 5, connection: {warm: true}"))
	signals := make(chan os.Signal, 1) // as signal.Notify wants it
	var log logged
	o := options(file, "127.0.0.1:0")
	o.Reload, o.Logger = signals, log.logger()
	r := start(t, o)
	eventually(t, "requests", func() bool { return door.Counts().Answers > 50 })
	accepted := door.Counts().Accepted
	for range 100_000 {
		select {
		case signals <- syscall.SIGHUP:
		default:
		}
	}
	write(t, file, "targets:\n"+
		targetOf("one", door.URL("http"), "rate: 500, connections: 5, connection: {warm: true}")+
		targetOf("last", "http://"+faultdoor.Refused(t), "rate: 1"))
	signals <- syscall.SIGHUP
	eventually(t, "the last signal", func() bool {
		status, _ := get(r.url + "/api/v1/targets/last")
		return status == http.StatusOK
	})
	if n := door.Counts().Accepted; n != accepted {
		t.Errorf("%d connections were opened", n-accepted)
	}
	_, page := get(r.url + "/metrics")
	if failed := metric(page, `steadyprobe_request_failures_total{churn_phase="",failure_stage="read"`); failed != 0 {
		t.Errorf("%v requests failed", failed)
	}
	r.stop()
	if n := strings.Count(log.String(), "cause=signal"); n < 2 {
		t.Errorf("%d reloads, want at least the first and the last", n)
	}
}

// What is asked of a daemon that is stopping, or cannot wait, has an answer.
func TestAskTooLate(t *testing.T) {
	d := builtDaemon(t, "targets:\n"+targetOf("one", "http://127.0.0.1:1/", "rate: 1"))
	ctx, cancel := contextFor(t)
	d.start(ctx)
	gone, leave := contextFor(t)
	leave()
	if _, err := d.reloader.ask(gone); err == nil {
		t.Error("who is gone was not told so")
	}
	cancel()
	d.stop()
	if _, err := d.reloader.ask(t.Context()); err == nil || err.Error() != "reloading: the process is stopping" {
		t.Errorf("got %v", err)
	}
}

// builtDaemon returns a daemon that is to be started.
func builtDaemon(t *testing.T, text string) *daemon {
	t.Helper()
	o := options(configured(t, text))
	loaded, err := load(o.ConfigFile, o.Logger)
	if err != nil {
		t.Fatal(err)
	}
	d := &daemon{options: o, config: loaded, loaded: time.Now()}
	if err := d.build(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(d.engine.close)
	t.Cleanup(d.closeDiscovery)
	return d
}

// Files are compared on a clock where that is asked for. One that is bad is
// reported once, however often it is looked at.
func TestAutoReload(t *testing.T) {
	folder := t.TempDir()
	secret := filepath.Join(folder, "secret")
	write(t, secret, "first")
	text := "targets:\n" + targetOf("one", "http://127.0.0.1:1/", "rate: 1, http: {headers: {A: {files: ["+secret+"]}}}")
	file := configured(t, text)
	var log logged
	o := options(file, "127.0.0.1:0")
	o.AutoReload, o.Logger = time.Second, log.logger()
	r := start(t, o)
	write(t, file, text+"  - {name: two, rate: -1}\n")
	eventually(t, "the bad file", func() bool { return strings.Contains(log.String(), "was not reloaded") })
	write(t, secret, "second") // which is of the bad file too
	eventually(t, "another look", func() bool { return strings.Count(log.String(), "targets[1].url: is missing") == 2 })
	write(t, file, text+targetOf("two", "http://127.0.0.1:1/", "rate: 1"))
	eventually(t, "the good file", func() bool {
		status, _ := get(r.url + "/api/v1/targets/two")
		return status == http.StatusOK
	})
	r.stop()
	if n := strings.Count(log.String(), "targets[1].url: is missing"); n != 2 {
		t.Errorf("reported %d times, want once for each state of the files:\n%s", n, log.String())
	}
}

// What a target has counted stays whatever it becomes, and what it counts from
// then on is of what it has become.
func TestReloadKeepsFigures(t *testing.T) {
	door := faultdoor.Listen(t, faultdoor.HTTP(faultdoor.Reply(faultdoor.Answer{Header: []string{"X-Backend: web-1"}, Body: []byte("ok\n")})))
	text := func(settings string) string {
		return "limits: {allow_closed_loop: true}\ntargets:\n" + targetOf("one", door.URL("http"), settings)
	}
	file := configured(t, text("rate: 500, connections: 2"))
	o := options(file, "127.0.0.1:0")
	o.Lifecycle = true
	r := start(t, o)
	before := ""
	to := func(settings string, so func(page string) bool) {
		t.Helper()
		write(t, file, text(settings))
		if status, answer := r.reload(); status != http.StatusOK {
			t.Fatalf("%s: answered %d %s", settings, status, answer)
		}
		var page string
		eventually(t, settings, func() bool { _, page = get(r.url + "/metrics"); return so(page) })
		for _, name := range []string{"requests_scheduled_total", "requests_total", "responses_total", "latency_seconds_count", "lateness_seconds_count",
			"connections_opened_total", "connections_closed_total", "sent_bytes_total", "backend_responses_total", "service_time_seconds_count"} {
			if was, is := metric(before, "steadyprobe_"+name), metric(page, "steadyprobe_"+name); is < was {
				t.Errorf("%s: %s went from %v to %v", settings, name, was, is)
			}
		}
		if failed := metric(page, "steadyprobe_request_failures_total"); failed != 0 {
			t.Errorf("%s: %v failures", settings, failed)
		}
		before = page
	}
	more := func(name string, than float64) func(string) bool {
		return func(page string) bool { return metric(page, "steadyprobe_"+name) > than }
	}
	to("rate: 500, connections: 2, objective: {latency: 1s}", more("requests_within_objective_total", 20))
	to("rate: 500, connections: 2, backend: {header: X-Backend}", more(`backend_responses_total{backend="web-1"`, 20))
	answers := metric(before, "steadyprobe_backend_responses_total")
	to("rate: 500, connections: 2, backend: {header: X-Backend, most: 7}, dns: {per_address: true}", more(`address_requests_total{address="127.0.0.1"`, 20))
	to("rate: 500, connections: 2", more("requests_total", metric(before, "steadyprobe_requests_total")+20))
	if n := metric(before, "steadyprobe_backend_responses_total"); n < answers {
		t.Errorf("%v answers by backend where none is told apart any more, want the %v that there were", n, answers)
	}
	if strings.Contains(before, "steadyprobe_address_requests_total{") {
		t.Error("there are series of addresses that nobody asks for")
	}
	to("rate: max, connections: 2", more("requests_total", metric(before, "steadyprobe_requests_total")+1000))
	latencies := metric(before, "steadyprobe_latency_seconds_count")
	to("rate: max, connections: 3", more("requests_total", metric(before, "steadyprobe_requests_total")+1000))
	if n := metric(before, "steadyprobe_latency_seconds_count"); n != latencies {
		t.Errorf("the closed loop has added %v latencies", n-latencies)
	}
	to("rate: 500, connections: 2, arrival: poisson", more("latency_seconds_count", latencies+20))
	to("rate: 500, connections: 2, pacing: economy", more("latency_seconds_count", metric(before, "steadyprobe_latency_seconds_count")+20))
}

// failing is an opener whose openings fail at once.
type failing struct{}

func (failing) Open(l *probe.Link) {
	go func() {
		s := probe.Sample{Outcome: probe.ConnectRefused}
		s.Tick, _ = l.Bound()
		l.Failed(&s)
	}()
}

type forgetful struct{}

func (forgetful) Record(*probe.Sample)        {}
func (forgetful) RecordOpening(*probe.Sample) {}

// TestChangesAddUp changes rates again and again, also from one kind and number
// of pacers to another: the ticks are the rates over their times, and one at
// most more or less for each change, where one is due at the instant of it.
func TestChangesAddUp(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, 0))
	rates := []string{"0.5", "1", "33.3", "500", "1000", "2500"}
	for round := range 20 {
		synctest.Test(t, func(t *testing.T) {
			share := part{of: 1}
			if round%4 == 3 {
				share = part{index: 1, of: 3, common: true, phase: 7} // of three processes
			}
			clock := probe.NewClock()
			p := newPacing(clock, schedule.Portable(clock), quiet())
			defer p.close()
			p.most = 3
			shared := &traffic{}
			prober := probe.New(probe.Target{Rate: 1, Connections: 1, Backlog: time.Hour}, clock, failing{}, forgetful{})
			settings := func(i int) *target {
				c := config.Target{Pacing: "precise"}
				if rng.IntN(4) == 0 {
					c.Pacing = "economy"
				}
				text := rates[rng.IntN(len(rates))]
				if i%5 == 4 {
					text = "21000" // of several pacers
				}
				setRate(t, &c, text)
				rate, err := schedule.NewRate(c.Rate.Rat())
				if err != nil {
					t.Fatal(err)
				}
				return &target{config: c, rate: rate, part: share, traffic: shared, prober: prober}
			}
			now := settings(0)
			origin := clock.Now().Add(schedule.Lead)
			p.add(now, origin, 0)
			due, since := 1.0, origin // there is a tick at the origin
			const changes = 12
			for i := range changes {
				time.Sleep(time.Duration(rng.Int64N(int64(3 * time.Second / 2))))
				next := settings(i + 1)
				p.change(next, uint64(i))
				if at := shared.changed; !next.sameTicks(now) {
					due += now.perSecond() * at.Sub(since).Seconds()
					since = at
				} else if next.rate != now.rate {
					t.Error("another rate has the same ticks")
				}
				now = next
			}
			time.Sleep(10 * time.Second)
			due += now.perSecond() * clock.Now().Sub(since).Seconds()
			p.remove([]*target{now})
			got := float64(prober.Ledger().Scheduled)
			// Removing takes up to 100 ms, in which ticks are given; economical
			// pacing is up to 1 ms late.
			if slack := 1 + 0.11*now.rate.Float(); got < due-changes-0.001*now.rate.Float() || got > due+changes+slack {
				t.Errorf("%v ticks, want %.1f", got, due)
			}
			for i, one := range append(p.precise, p.economy) {
				if one != nil && (one.rate > 1e-6 || one.rate < -1e-6) {
					t.Errorf("pacer %d has a rate of %v when all are removed", i, one.rate)
				}
			}
			prober.Close(t.Context())
		})
	}
}
