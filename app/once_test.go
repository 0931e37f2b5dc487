package app

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/steadyprobe/steadyprobe/config"
	"github.com/steadyprobe/steadyprobe/internal/faultdoor"
	"github.com/steadyprobe/steadyprobe/internal/testcert"
	"github.com/steadyprobe/steadyprobe/report"
)

func contextFor(t testing.TB) (context.Context, context.CancelFunc) {
	return context.WithTimeout(t.Context(), patience)
}

func serverTLS(c tls.Certificate) *tls.Config {
	return &tls.Config{Certificates: []tls.Certificate{c}}
}

// target1 returns a target with one warm connection and 100 requests/s.
func target1(t *testing.T, url string) config.Target {
	t.Helper()
	c, err := config.ForURL(url)
	if err != nil {
		t.Fatal(err)
	}
	c.Connections, c.Connection.Warm = 1, true
	setRate(t, &c, "100")
	return c
}

func setRate(t *testing.T, c *config.Target, rate string) {
	t.Helper()
	r, err := config.ParseRate(rate)
	if err != nil {
		t.Fatal(err)
	}
	c.Rate = r
}

// validated returns the targets as a run takes them.
func validated(t *testing.T, targets ...config.Target) []config.Target {
	t.Helper()
	for i := range targets {
		if _, err := targets[i].Validate(); err != nil {
			t.Fatal(err)
		}
	}
	return targets
}

// onceFor runs the targets for a while, and holds each result to the identities
// that hold for all.
func onceFor(ctx context.Context, t *testing.T, o OnceOptions) []report.Result {
	t.Helper()
	o.Logger = quiet()
	validated(t, o.Targets...)
	results, err := Once(ctx, o)
	if err != nil {
		t.Fatal(err)
	}
	if len(results) != len(o.Targets) {
		t.Fatalf("%d results of %d targets", len(results), len(o.Targets))
	}
	for _, r := range results {
		if want := ctx.Err() != nil; r.Interrupted != want {
			t.Errorf("%s: interrupted %v, want %v", r.Target, r.Interrupted, want)
		}
		if r.Scheduled != r.Completed || r.InFlight != 0 || r.Backlog != 0 {
			t.Errorf("%s: scheduled %d, completed %d, in flight %d, backlog %d", r.Target, r.Scheduled, r.Completed, r.InFlight, r.Backlog)
		}
		var failures uint64
		for _, n := range r.FailuresBy {
			failures += n
		}
		if failures != r.Failures || r.Lateness.Count != r.Completed && r.Loop != "closed" {
			t.Errorf("%s: %d failures, %v; lateness of %d of %d", r.Target, r.Failures, r.FailuresBy, r.Lateness.Count, r.Completed)
		}
	}
	return results
}

// The ticks of a window are those with t0 + i/rate before its end: the product
// of rate and duration, rounded up.
func TestOnceSendsRateTimesDuration(t *testing.T) {
	for _, row := range []struct {
		name, rate  string
		connections int
		duration    time.Duration
		want        uint64
	}{
		{"one", "1", 1, 50 * time.Millisecond, 1},            // ceil(0.05)
		{"slow", "0.2", 1, 20 * time.Millisecond, 1},         // ceil(0.004)
		{"even", "100", 2, 100 * time.Millisecond, 10},       // 10
		{"odd", "33.3", 3, 100 * time.Millisecond, 4},        // ceil(3.33)
		{"just more", "100", 2, 100_000_001, 11},             // the eleventh is due at 100 ms
		{"fast", "2000", 20, 100 * time.Millisecond, 200},    // 200
		{"more connections", "100", 7, 70_000_000, 7},        // 7
		{"beat", "333.333", 5, 90 * time.Millisecond, 30},    // ceil(29.99997)
		{"many a millisecond", "10000", 50, 30_000_000, 300}, // 300
	} {
		t.Run(row.name, func(t *testing.T) {
			door := faultdoor.Listen(t, good())
			c := target1(t, door.URL("http"))
			c.Connections = row.connections
			setRate(t, &c, row.rate)
			r := onceFor(t.Context(), t, OnceOptions{Targets: []config.Target{c}, Duration: row.duration})[0]
			if n := door.Counts().Requests; r.Scheduled != row.want || n != row.want {
				t.Errorf("scheduled %d, the door was sent %d, want %d", r.Scheduled, n, row.want)
			}
			if r.Failures != 0 || r.Responses["200"] != row.want || r.Latency.Count != row.want || r.ServiceTime.Count != row.want {
				t.Errorf("%v failures, responses %v, latency of %d, service time of %d", r.FailuresBy, r.Responses, r.Latency.Count, r.ServiceTime.Count)
			}
			if n := door.Counts().Accepted; r.ConnectionsOpened != n || n != uint64(row.connections) {
				t.Errorf("opened %d connections, the door accepted %d, want %d", r.ConnectionsOpened, n, row.connections)
			}
			if r.DurationSeconds != row.duration.Seconds() {
				t.Errorf("took %v s, want %v", r.DurationSeconds, row.duration.Seconds())
			}
		})
	}
}

func TestOnceDoesNotReportTheWarmUp(t *testing.T) {
	door := faultdoor.Listen(t, good())
	c := target1(t, door.URL("http"))
	r := onceFor(t.Context(), t, OnceOptions{Targets: []config.Target{c}, WarmUp: 100 * time.Millisecond, Duration: 50 * time.Millisecond})[0]
	// 10 before the window, 5 in it.
	if got := door.Counts(); got.Requests != 15 || r.Scheduled != 5 || r.Responses["200"] != 5 || r.Latency.Count != 5 {
		t.Errorf("the door was sent %d; scheduled %d, responses %v, latency of %d", got.Requests, r.Scheduled, r.Responses, r.Latency.Count)
	}
	if r.ConnectionsOpened != 1 {
		t.Errorf("opened %d connections, the run has one", r.ConnectionsOpened)
	}
}

func TestOnceSeveralTargets(t *testing.T) {
	healthy, stalled := faultdoor.Listen(t, good()), faultdoor.Listen(t, faultdoor.Silent())
	a, b, dead := target1(t, healthy.URL("http")), target1(t, stalled.URL("http")), target1(t, "http://"+faultdoor.Refused(t))
	b.Timeout = 100 * time.Millisecond
	b.Backlog = 50 * time.Millisecond
	results := onceFor(t.Context(), t, OnceOptions{Targets: []config.Target{a, b, dead}, Duration: 100 * time.Millisecond})
	for i, want := range []map[string]uint64{
		{},
		// The first tick has the only connection until it times out after 100 ms.
		// Those of 10 to 40 ms have waited 50 ms by then. The tick of 50 ms
		// expires as that connection ends, or a moment later it is begun on the
		// next, which is what the sum below allows for.
		nil,
		{"connect/refused": 10},
	} {
		r := results[i]
		if r.Scheduled != 10 {
			t.Errorf("%s: scheduled %d, want 10", r.Target, r.Scheduled)
		}
		if want == nil {
			if n := r.FailuresBy["schedule/expired"]; n < 4 || n+r.FailuresBy["read/timeout"] != 10 {
				t.Errorf("%s: failures %v", r.Target, r.FailuresBy)
			}
			continue
		}
		if len(r.FailuresBy) != len(want) || r.FailuresBy["connect/refused"] != want["connect/refused"] {
			t.Errorf("%s: failures %v, want %v", r.Target, r.FailuresBy, want)
		}
	}
}

// A door that takes the only connection and never answers: all later ticks
// expire in the backlog, at their elapsed time and without a service time.
func TestOnceBacklogExpires(t *testing.T) {
	door := faultdoor.Listen(t, faultdoor.Silent())
	c := target1(t, door.URL("http"))
	c.Timeout, c.Backlog = 300*time.Millisecond, 50*time.Millisecond
	r := onceFor(t.Context(), t, OnceOptions{Targets: []config.Target{c}, Duration: 100 * time.Millisecond})[0]
	if r.FailuresBy["read/timeout"] != 1 || r.FailuresBy["schedule/expired"] != 9 || r.Failures != 10 {
		t.Errorf("failures %v", r.FailuresBy)
	}
	if r.Latency.Count != 10 || r.ServiceTime.Count != 1 || r.Latency.P50 < 0.05 || r.Latency.Max < 0.3 {
		t.Errorf("latency %+v, service time of %d", r.Latency, r.ServiceTime.Count)
	}
	if r.ScheduleKept {
		t.Error("the schedule counts as kept although ticks expired")
	}
}

func TestOnceInterrupted(t *testing.T) {
	door := faultdoor.Listen(t, good())
	ctx, cancel := contextFor(t)
	defer cancel()
	go func() {
		for door.Counts().Answers < 5 && ctx.Err() == nil {
			time.Sleep(time.Millisecond)
		}
		cancel()
	}()
	c := target1(t, door.URL("http"))
	r := onceFor(ctx, t, OnceOptions{Targets: []config.Target{c}, Duration: time.Hour})[0]
	if got := door.Counts(); r.Scheduled < 5 || r.Completed != got.Requests || got.Answers != got.Requests {
		t.Errorf("completed %d, the door was sent %d and answered %d", r.Completed, got.Requests, got.Answers)
	}
	// At 100/s a window with n ticks is longer than (n-1) × 10 ms.
	if least := float64(r.Scheduled-1) * 0.01; r.DurationSeconds < least || r.DurationSeconds > patience.Seconds() {
		t.Errorf("a window of %v s for %d ticks", r.DurationSeconds, r.Scheduled)
	}
}

// A stalled door holds the only connection when the run is interrupted: the
// report tells what had no outcome then, and what became of it.
func TestOnceInterruptedBeforeAStalledDoor(t *testing.T) {
	door := faultdoor.Listen(t, faultdoor.Silent())
	ctx, cancel := contextFor(t)
	defer cancel()
	c := target1(t, door.URL("http"))
	c.Timeout = 1500 * time.Millisecond
	r := onceFor(ctx, t, OnceOptions{
		Targets:  []config.Target{c},
		Duration: time.Hour,
		Progress: func(report.Progress) { cancel() }, // after 1 s
	})[0]
	waiting := r.Scheduled - 1
	if u := r.Unfinished; waiting < 50 || u.InFlight != 1 || u.Backlog != waiting {
		t.Errorf("of %d ticks %+v had no outcome when the window ended, want 1 in flight and the others in the backlog", r.Scheduled, u)
	}
	if r.FailuresBy["read/timeout"] != 1 || r.FailuresBy["schedule/shutdown"] != waiting {
		t.Errorf("failures %v of %d ticks", r.FailuresBy, r.Scheduled)
	}
	if want := 1 / r.DurationSeconds; r.AchievedRate != want {
		t.Errorf("achieved %v requests/s, want %v", r.AchievedRate, want)
	}
}

func TestOnceInterruptedWhileWarmingUp(t *testing.T) {
	door := faultdoor.Listen(t, faultdoor.Silent())
	ctx, cancel := contextFor(t)
	defer cancel()
	go func() {
		for door.Counts().Accepted < 3 && ctx.Err() == nil {
			time.Sleep(time.Millisecond)
		}
		cancel()
	}()
	c := target1(t, door.URL("https"))
	c.Connections, c.Timeout = 3, time.Hour
	r := onceFor(ctx, t, OnceOptions{Targets: []config.Target{c}, WarmUp: time.Hour, Duration: time.Hour})[0]
	if r.Scheduled != 0 || r.DurationSeconds != 0 || r.ConnectionsOpened != 0 {
		t.Errorf("scheduled %d in %v s over %d connections", r.Scheduled, r.DurationSeconds, r.ConnectionsOpened)
	}
}

// When the window is over and a stalled door holds the last ticks, an interrupt
// ends the wait for the backlog, and what is in flight still gets its time.
func TestOnceInterruptedWhileSettling(t *testing.T) {
	door := faultdoor.Listen(t, faultdoor.Silent())
	ctx, cancel := contextFor(t)
	defer cancel()
	c := target1(t, door.URL("http"))
	// The window is from 100 to 150 ms, its first tick is in flight until 1.6 s,
	// and progress is told, and ctx done, after 1 s.
	c.Timeout, c.Backlog = 1500*time.Millisecond, time.Hour
	r := onceFor(ctx, t, OnceOptions{
		Targets:  []config.Target{c},
		Duration: 50 * time.Millisecond,
		Progress: func(report.Progress) { cancel() },
	})[0]
	if r.FailuresBy["read/timeout"] != 1 || r.FailuresBy["schedule/shutdown"] != 4 || r.Failures != 5 {
		t.Errorf("failures %v", r.FailuresBy)
	}
	if r.DurationSeconds != 0.05 {
		t.Errorf("a window of %v s, want 0.05", r.DurationSeconds)
	}
}

// Handshakes count from the start, as connections do, whether an opening
// belonged to a tick of the warm-up or to none.
func TestOnceCountsAllHandshakes(t *testing.T) {
	ca := testcert.NewCA(t, "door", testcert.Options{})
	for _, warm := range []bool{true, false} {
		t.Run(fmt.Sprintf("warm %v", warm), func(t *testing.T) {
			door := faultdoor.Listen(t, faultdoor.TLS(serverTLS(ca.Leaf(t, testcert.Options{})), good()))
			c := target1(t, door.URL("https"))
			c.Connections, c.Connection.Warm, c.TLS.CAFile = 4, warm, ca.WriteCA(t)
			r := onceFor(t.Context(), t, OnceOptions{Targets: []config.Target{c}, WarmUp: 50 * time.Millisecond, Duration: 50 * time.Millisecond})[0]
			got := door.Counts()
			if r.TLS.Handshakes != 4 || got.Handshakes != 4 || r.TLS.Resumed != got.Resumed || r.ConnectionsOpened != 4 {
				t.Errorf("%+v over %d connections, the door counted %+v, want 4", r.TLS, r.ConnectionsOpened, got)
			}
			if r.Scheduled != 5 || r.Latency.Count != 5 || got.Requests != 10 {
				t.Errorf("scheduled %d, latency of %d, the door was sent %d", r.Scheduled, r.Latency.Count, got.Requests)
			}
		})
	}
}

// countingConn counts what a door reads and writes.
type countingConn struct {
	net.Conn
	read, written *atomic.Uint64
}

func (c countingConn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	c.read.Add(uint64(n))
	return n, err
}

func (c countingConn) Write(p []byte) (int, error) {
	n, err := c.Conn.Write(p)
	c.written.Add(uint64(n))
	return n, err
}

func TestOnceCountsTheBytesOfTheDoor(t *testing.T) {
	for _, row := range []struct {
		name  string
		reuse bool
		body  string
	}{
		{"reused connections", true, ""},
		{"a connection each", false, ""},
		{"a long body", true, strings.Repeat("x", 100_000)},
	} {
		t.Run(row.name, func(t *testing.T) {
			var read, written atomic.Uint64
			door := faultdoor.New(faultdoor.HTTP(faultdoor.Reply(faultdoor.Answer{Body: make([]byte, 5000)})))
			l, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			accepting := make(chan struct{})
			go func() {
				defer close(accepting)
				for {
					nc, err := l.Accept()
					if err != nil {
						return
					}
					go door.Serve(countingConn{nc, &read, &written})
				}
			}()
			t.Cleanup(func() { _ = l.Close(); <-accepting; door.Close() })
			c := target1(t, "http://"+l.Addr().String())
			c.Connections, c.Connection.Reuse, c.Connection.Warm = 3, row.reuse, row.reuse
			c.HTTP.Method, c.HTTP.Body = "POST", config.NewSecret(row.body)
			r := onceFor(t.Context(), t, OnceOptions{Targets: []config.Target{c}, Duration: 100 * time.Millisecond})[0]
			if r.Failures != 0 || r.SentBytes != read.Load() || r.ReceivedBytes != written.Load() {
				t.Errorf("failures %v; sent %d and received %d bytes, the door read %d and wrote %d", r.FailuresBy, r.SentBytes, r.ReceivedBytes, read.Load(), written.Load())
			}
		})
	}
}

func TestOnceTellsItsProgress(t *testing.T) {
	door := faultdoor.Listen(t, good())
	var told []report.Progress
	onceFor(t.Context(), t, OnceOptions{
		Targets:  []config.Target{target1(t, door.URL("http")), target1(t, door.URL("http"))},
		Duration: 1100 * time.Millisecond,
		Progress: func(p report.Progress) { told = append(told, p) },
	})
	if len(told) != 1 {
		t.Fatalf("told %d times in 1.2 s, want once", len(told))
	}
	p := told[0]
	l := &p.Ledger
	if p.Total != 1100*time.Millisecond || p.Elapsed <= 0 || l.Scheduled == 0 || l.Scheduled != l.Done()+l.InFlight+l.Backlog {
		t.Errorf("told %+v", p)
	}
}

// A door that never answers is waited for after the window, and that is told.
func TestOnceTellsThatItWaits(t *testing.T) {
	door := faultdoor.Listen(t, faultdoor.Silent())
	c := target1(t, door.URL("http"))
	c.Timeout = 1500 * time.Millisecond
	var told []report.Progress
	onceFor(t.Context(), t, OnceOptions{
		Targets:  []config.Target{c},
		Duration: 10 * time.Millisecond, // one tick, in flight until 1.6 s
		Progress: func(p report.Progress) { told = append(told, p) },
	})
	if len(told) != 1 || !told[0].Waiting || told[0].Open() != 1 {
		t.Errorf("told %+v, want once, after 1 s, that one request is waited for", told)
	}
}

// What is in flight as the window ends, or when the run is interrupted, is no
// wait to speak of where the door answers.
func TestOnceDoesNotTellOfAMoment(t *testing.T) {
	door := faultdoor.Listen(t, faultdoor.HTTP(func(c *faultdoor.Conn, r *faultdoor.Request) error {
		time.Sleep(8 * time.Millisecond)
		return c.Answer(r, faultdoor.Answer{})
	}))
	for _, duration := range []time.Duration{900 * time.Millisecond, time.Hour} { // the tickers meet after 1 s
		ctx, cancel := contextFor(t)
		defer cancel()
		onceFor(ctx, t, OnceOptions{Targets: []config.Target{target1(t, door.URL("http"))}, Duration: duration, Progress: func(p report.Progress) {
			if p.Waiting {
				t.Errorf("told %+v", p)
			}
			if duration == time.Hour {
				cancel()
			}
		}})
	}
}

// The same door twice is two results that can be told apart.
func TestOnceNamesItsResults(t *testing.T) {
	door := faultdoor.Listen(t, good())
	c := target1(t, door.URL("http"))
	results := onceFor(t.Context(), t, OnceOptions{Targets: []config.Target{c, c}, Duration: 10 * time.Millisecond})
	if results[0].Target != c.Name || results[1].Target != c.Name+" #2" {
		t.Errorf("the results are %q and %q", results[0].Target, results[1].Target)
	}
}

func TestOnceCannotRun(t *testing.T) {
	good := target1(t, "http://127.0.0.1:1/")
	for _, row := range []struct {
		name   string
		change func(*OnceOptions)
		want   string
	}{
		{"no target", func(o *OnceOptions) { o.Targets = nil }, "starting the run: there is no URL to probe"},
		{"no duration", func(o *OnceOptions) { o.Duration = 0 }, "starting the run: duration 0s must be positive"},
		{"warm-up in the past", func(o *OnceOptions) { o.WarmUp = -1 }, "starting the run: warm-up -1ns must not be negative"},
		{"no logger", func(o *OnceOptions) { o.Logger = nil }, "starting the run: there is no logger"},
		{"not validated", func(o *OnceOptions) {
			bad := good
			bad.Name, bad.ConnectTo = "bad", "nowhere"
			o.Targets = []config.Target{good, bad}
		}, `building target "bad": `},
	} {
		t.Run(row.name, func(t *testing.T) {
			o := OnceOptions{Targets: []config.Target{good}, Duration: time.Second, Logger: quiet()}
			row.change(&o)
			if _, err := Once(t.Context(), o); err == nil || !strings.Contains(err.Error(), row.want) {
				t.Errorf("got %v, want %s", err, row.want)
			}
		})
	}
}
