package test

import (
	"context"
	"log/slog"
	"maps"
	"strconv"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/steadyprobe/steadyprobe/app"
	"github.com/steadyprobe/steadyprobe/config"
	"github.com/steadyprobe/steadyprobe/internal/testbed"
	"github.com/steadyprobe/steadyprobe/report"
)

// realDoor is what nginx and HAProxy have in common for these tests.
type realDoor struct {
	name   string
	http   string // address
	https  string // address
	caFile string
	server interface {
		Reload()
		Stall(time.Duration)
		Stop()
		Start()
		Log() testbed.Log
	}
	counts func() doorCounts
}

// doorCounts is what a door counted by itself.
type doorCounts struct {
	connections uint64
	requests    uint64
}

func (c doorCounts) since(o doorCounts) doorCounts {
	return doorCounts{connections: c.connections - o.connections, requests: c.requests - o.requests}
}

// doorKind starts a door of one kind.
type doorKind struct {
	name  string
	start func(t testing.TB, versions testbed.TLSVersions, resumption bool) *realDoor
}

var doorKinds = [...]doorKind{{"nginx", startNGINX}, {"HAProxy", startHAProxy}}

func startNGINX(t testing.TB, versions testbed.TLSVersions, resumption bool) *realDoor {
	t.Helper()
	n := testbed.NGINX(t, testbed.NGINXOptions{
		TLS: versions, NoSessionCache: !resumption, NoTickets: !resumption, AccessLog: true,
	})
	return &realDoor{name: "nginx", http: n.HTTP, https: n.HTTPS, caFile: n.CAFile, server: n, counts: func() doorCounts {
		c := n.Counters()
		return doorCounts{connections: c.Accepts, requests: c.Requests}
	}}
}

func startHAProxy(t testing.TB, versions testbed.TLSVersions, resumption bool) *realDoor {
	t.Helper()
	h := testbed.HAProxy(t, testbed.HAProxyOptions{TLS: versions, NoResumption: !resumption, AccessLog: true})
	return &realDoor{name: "HAProxy", http: h.HTTP, https: h.HTTPS, caFile: h.CAFile, server: h, counts: func() doorCounts {
		c := h.Counters()
		if c.Full+c.Resumed != c.TLS {
			t.Errorf("HAProxy counted %+v: a handshake is full or resumed", c)
		}
		return doorCounts{connections: c.Connections, requests: c.Requests}
	}}
}

// logSince returns what a log grew by.
func logSince(now, before testbed.Log) testbed.Log {
	now.Codes, now.Versions = maps.Clone(now.Codes), maps.Clone(now.Versions)
	now.Requests -= before.Requests
	now.Connections -= before.Connections
	now.Full -= before.Full
	now.Resumed -= before.Resumed
	for code, n := range before.Codes {
		now.Codes[code] -= n
	}
	for version, n := range before.Versions {
		now.Versions[version] -= n
	}
	return now
}

// profile is how a door is probed.
type profile struct {
	tls         bool
	rate        int
	connections int
	noReuse     bool
	noTickets   bool
	timeout     time.Duration // 0: 5 s
	backlog     time.Duration // 0: 30 s
}

// target returns a warm target, as the command run makes it.
func (d *realDoor) target(t testing.TB, p profile) config.Target {
	t.Helper()
	address, scheme := d.http, "http"
	if p.tls {
		address, scheme = d.https, "https"
	}
	return targetFor(t, scheme+"://"+address+"/", d.caFile, p)
}

func targetFor(t testing.TB, url, caFile string, p profile) config.Target {
	t.Helper()
	c, err := config.ForURL(url)
	if err != nil {
		t.Fatal(err)
	}
	if c.Rate, err = config.ParseRate(strconv.Itoa(p.rate)); err != nil {
		t.Fatal(err)
	}
	c.Connections = p.connections
	c.Connection.Reuse, c.Connection.Warm = !p.noReuse, !p.noReuse
	if p.tls {
		c.TLS.CAFile, c.TLS.Resumption = caFile, !p.noTickets
	}
	if p.timeout > 0 {
		c.Timeout = p.timeout
	}
	if p.backlog > 0 {
		c.Backlog = p.backlog
	}
	if _, err := c.Validate(); err != nil {
		t.Fatal(err)
	}
	return c
}

// once runs targets for a while and holds every report against what must be
// true of any.
func once(t testing.TB, duration time.Duration, targets ...config.Target) []report.Result {
	t.Helper()
	return onceWhile(t, duration, func() {}, targets...)
}

// onceWhile is once with something that happens meanwhile, on the test's own
// goroutine.
func onceWhile(t testing.TB, duration time.Duration, meanwhile func(), targets ...config.Target) (results []report.Result) {
	t.Helper()
	var err error
	over := make(chan struct{})
	go func() {
		defer close(over)
		results, err = app.Once(context.Background(), app.OnceOptions{
			Targets: targets, Duration: duration, Logger: slog.New(slog.DiscardHandler), Version: "test",
		})
	}()
	meanwhile()
	<-over
	if err != nil {
		t.Fatal(err)
	}
	for i := range results {
		checkReport(t, &results[i])
	}
	return results
}

// checkReport checks that a run lost nothing and counted nothing twice.
func checkReport(t testing.TB, r *report.Result) {
	t.Helper()
	due := uint64(r.Rate * r.DurationSeconds) // all rates and durations here make it whole
	if r.Scheduled != due || r.Completed != due || r.InFlight != 0 || r.Backlog != 0 {
		t.Errorf("%s: %d scheduled, %d completed, %d in flight, %d in the backlog; want %d, %[6]d, 0, 0",
			r.Target, r.Scheduled, r.Completed, r.InFlight, r.Backlog, due)
	}
	if sum := total(r.FailuresBy); sum != r.Failures {
		t.Errorf("%s: %d failures, but %d by stage and reason: %v", r.Target, r.Failures, sum, r.FailuresBy)
	}
	// A fast failure must not make an outage look fast, and a tick that was
	// never begun has no service time.
	slow := due
	for failure, n := range r.FailuresBy {
		if !strings.HasSuffix(failure, "/timeout") && failure != "schedule/expired" {
			slow -= n
		}
	}
	if begun := slow - r.FailuresBy["schedule/expired"]; r.Latency.Count != slow || r.ServiceTime.Count != begun || r.Lateness.Count != due {
		t.Errorf("%s: %d latencies, %d service times, %d latenesses; want %d, %d, %d; failures %v",
			r.Target, r.Latency.Count, r.ServiceTime.Count, r.Lateness.Count, slow, begun, due, r.FailuresBy)
	}
	if closed := total(r.ConnectionsClosedBy); closed > r.ConnectionsOpened {
		t.Errorf("%s: %d connections opened, %d closed", r.Target, r.ConnectionsOpened, closed)
	}
}

func total(counts map[string]uint64) (sum uint64) {
	for _, n := range counts {
		sum += n
	}
	return sum
}

// checkLeaks fails the test when it leaves goroutines. It is called before
// anything is started, because clean-ups run in reverse order.
func checkLeaks(t *testing.T) {
	t.Helper()
	ignore := goleak.IgnoreCurrent()
	t.Cleanup(func() { goleak.VerifyNone(t, ignore) })
}
