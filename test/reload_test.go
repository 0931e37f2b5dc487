package test

import (
	"fmt"
	"io"
	"net/http"
	"os"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/steadyprobe/steadyprobe/internal/testbed"
)

// reload writes a configuration and has the daemon load it. It returns the
// status of the answer and what that says.
func (d *daemon) reload(configuration string) (status int, text string) {
	d.t.Helper()
	if err := os.WriteFile(d.file, []byte(configuration), 0o600); err != nil {
		d.t.Fatal(err)
	}
	return d.reloadAgain()
}

func (d *daemon) reloadAgain() (status int, text string) {
	resp, err := d.client.Post("http://"+d.address+"/-/reload", "", nil)
	if err != nil {
		d.t.Error(err)
		return 0, ""
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(resp.Body)
	if err != nil {
		d.t.Error(err)
	}
	return resp.StatusCode, string(answer)
}

// reloaded is reload that must succeed and say what has changed.
func (d *daemon) reloaded(configuration, want string) {
	d.t.Helper()
	if status, text := d.reload(configuration); status != http.StatusOK || text != want+"\n" {
		d.t.Errorf("the reload was answered %d %q, want 200 %q", status, text, want)
	}
}

// reloadDoor is an nginx that keeps connections for as long as a test takes.
func reloadDoor(t *testing.T) *testbed.NGINXServer {
	t.Helper()
	return testbed.NGINX(t, testbed.NGINXOptions{TLS: testbed.TLSBoth, KeepaliveRequests: 1_000_000, AccessLog: true})
}

// steadyTarget returns a target that no reload of these tests changes.
func steadyTarget(door *testbed.NGINXServer) string {
	return fmt.Sprintf("  - {name: steady, url: \"http://%s/\", rate: 1000, connections: 20, connection: {warm: true}}\n", door.HTTP)
}

// TestReloadOfAnotherTarget changes, removes and adds other targets under
// 1,000 requests/s. The unchanged one keeps its connections, by the count of the
// door, and its counters, and loses no tick.
func TestReloadOfAnotherTarget(t *testing.T) {
	checkLeaks(t)
	door, other := reloadDoor(t), reloadDoor(t)
	steady := "targets:\n" + steadyTarget(door)
	changing := func(i int, settings string) string {
		return steady + fmt.Sprintf("  - {name: other-%d, url: \"http://%s/\", connections: 10, %s}\n", i, other.HTTP, settings)
	}
	d := startDaemon(t, changing(0, "rate: 100"))
	waitFor(t, "the first requests", func() bool { return metricOf(t, d, "steadyprobe_requests_total", "target", "steady") > 100 })
	end := d.watch(20*time.Millisecond, "steady")
	accepts := door.Counters().Accepts
	began, before := time.Now(), metricOf(t, d, "steadyprobe_requests_scheduled_total", "target", "steady")
	for i := range 4 {
		d.reloaded(changing(i, "rate: 200, timeout: 2s, connection: {warm: true}"), "Targets: 0 added, 0 removed, 1 changed, 1 kept.")
		time.Sleep(100 * time.Millisecond)
		d.reloaded(steady, "Targets: 0 added, 1 removed, 0 changed, 1 kept.")
		d.reloaded(changing(i+1, "rate: 100"), "Targets: 1 added, 0 removed, 0 changed, 1 kept.")
		time.Sleep(100 * time.Millisecond)
	}
	now := metricOf(t, d, "steadyprobe_requests_scheduled_total", "target", "steady")
	took := time.Since(began)
	// Each of the two scrapes is some milliseconds away from the clock's reading.
	if due := took.Seconds() * 1000; now-before < due-100 || now-before > due+100 {
		t.Errorf("%v ticks in %v, want %.0f", now-before, took, due)
	}
	if got := door.Counters().Accepts; got != accepts {
		t.Errorf("the door has accepted %d connections more", got-accepts)
	}
	last, scrapes := end()
	if failed := last.failures("steady"); len(failed) > 0 || scrapes < 10 {
		t.Errorf("failures %v in %d scrapes", failed, scrapes)
	}
	if closed := last.sum("steadyprobe_connections_closed_total", "target", "steady"); closed != 0 {
		t.Errorf("%v connections of the unchanged target were closed", closed)
	}
	d.stop()
	if c := door.Log(); float64(c.Requests) < now || c.Codes[200] != c.Requests {
		t.Errorf("the door has logged %d requests, %v with 200; the probe had scheduled %v before it was stopped", c.Requests, c.Codes, now)
	}
}

// metricOf returns the sum of a family's series with these labels.
func metricOf(t *testing.T, d *daemon, name string, labels ...string) float64 {
	t.Helper()
	s, err := d.scrape()
	if err != nil {
		t.Fatal(err)
	}
	return s.sum(name, labels...)
}

func waitFor(t *testing.T, what string, so func() bool) {
	t.Helper()
	for end := time.Now().Add(30 * time.Second); !so(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("waited 30 s for %s", what)
		}
	}
}

// TestReloadOfARate changes a rate from 1,000 to 500 to 1,000 requests/s. The
// connections stay, by the count of the door, and the ticks are those of the
// rates over their times.
func TestReloadOfARate(t *testing.T) {
	checkLeaks(t)
	door := reloadDoor(t)
	at := func(rate int) string {
		return "targets:\n" + strings.Replace(steadyTarget(door), "rate: 1000", fmt.Sprintf("rate: %d", rate), 1)
	}
	d := startDaemon(t, at(1000))
	waitFor(t, "the first requests", func() bool { return metricOf(t, d, "steadyprobe_requests_total") > 100 })
	end := d.watch(20*time.Millisecond, "steady")
	accepts := door.Counters().Accepts
	before, due, changed := metricOf(t, d, "steadyprobe_requests_scheduled_total"), 0.0, time.Now()
	rate := 1000.0
	for i, next := range []float64{500, 1000, 500, 1000} {
		time.Sleep(700 * time.Millisecond)
		d.reloaded(at(int(next)), "Targets: 0 added, 0 removed, 1 changed, 0 kept.")
		// A change holds 100 ms after it is told.
		now := time.Now().Add(100 * time.Millisecond)
		due += rate * now.Sub(changed).Seconds()
		rate, changed = next, now
		if got := metricOf(t, d, "steadyprobe_target_requests_per_second"); got != next {
			t.Errorf("after reload %d the rate is shown as %v, want %v", i, got, next)
		}
	}
	time.Sleep(500 * time.Millisecond)
	due += rate * time.Since(changed).Seconds()
	// Between the answer to a reload and the reading of the clock here there may
	// be some milliseconds, and twice as much in the first and the last scrape.
	if got := metricOf(t, d, "steadyprobe_requests_scheduled_total") - before; got < due-100 || got > due+100 {
		t.Errorf("%v ticks, want %.0f", got, due)
	}
	if got := door.Counters().Accepts; got != accepts {
		t.Errorf("the door has accepted %d connections more", got-accepts)
	}
	last, _ := end()
	if failed := last.failures("steady"); len(failed) > 0 {
		t.Errorf("failures %v", failed)
	}
	d.stop()
}

// TestReloadOfADoor changes all about how a door is spoken to, under load:
// nothing fails, everything is answered by who is meant, and nothing is counted
// anew.
func TestReloadOfADoor(t *testing.T) {
	checkLeaks(t)
	door, second := reloadDoor(t), reloadDoor(t)
	with := func(url, settings string) string {
		return fmt.Sprintf("targets:\n  - {name: door, url: %q, rate: 500, timeout: 10s, %s}\n", url, settings)
	}
	const usual = "connections: 20, connection: {warm: true}"
	d := startDaemon(t, with("http://"+door.HTTP+"/", usual))
	waitFor(t, "the first requests", func() bool { return metricOf(t, d, "steadyprobe_requests_total") > 100 })
	end := d.watch(20*time.Millisecond, "door")
	for i, next := range []struct{ url, settings string }{
		{"https://" + door.HTTPS + "/", usual + fmt.Sprintf(", tls: {ca_file: %q}", door.CAFile)},
		{"https://" + door.HTTPS + "/", usual + fmt.Sprintf(", tls: {ca_file: %q, max_version: TLS12}", door.CAFile)},
		{"http://" + second.HTTP + "/other", usual},
		{"http://" + second.HTTP + "/other", "connections: 5, connection: {warm: true}"},
		{"http://" + second.HTTP + "/other", "connections: 40, connection: {warm: true}"},
		{"http://" + second.HTTP + "/other", "connections: 40, connection: {reuse: false}"},
		{"http://" + second.HTTP + "/other", "connections: 20, http: {method: HEAD}"},
		{"tcp://" + second.HTTP, "connections: 20"},
		{"http://localhost:" + second.HTTP[strings.LastIndex(second.HTTP, ":")+1:] + "/other", usual + ", dns: {family: ipv4}"},
		{"http://" + door.HTTP + "/", usual},
	} {
		d.reloaded(with(next.url, next.settings), "Targets: 0 added, 0 removed, 1 changed, 0 kept.")
		time.Sleep(200 * time.Millisecond)
		if s, err := d.scrape(); err != nil || len(s.failures("door")) > 0 {
			t.Errorf("after reload %d to %s, %s: failures %v, %v", i, next.url, next.settings, s.failures("door"), err)
		}
	}
	waitFor(t, "the connections of the last settings alone", func() bool {
		return metricOf(t, d, "steadyprobe_connections") == 20
	})
	last, _ := end()
	if n := last.sum("steadyprobe_connections_closed_total", "reason", "reload"); n < 100 {
		t.Errorf("%v connections were closed by reloads, want 20 for most of them", n)
	}
	if n := last.sum("steadyprobe_connection_failures_total"); n != 0 {
		t.Errorf("%v openings failed", n)
	}
	d.stop()
}

// TestReloadOfABadFile shows that what is wrong changes nothing, and is told.
func TestReloadOfABadFile(t *testing.T) {
	checkLeaks(t)
	door := reloadDoor(t)
	good := "targets:\n" + steadyTarget(door)
	d := startDaemon(t, good)
	waitFor(t, "the first requests", func() bool { return metricOf(t, d, "steadyprobe_requests_total") > 100 })
	shown, err := d.get("/config")
	if err != nil {
		t.Fatal(err)
	}
	end := d.watch(20*time.Millisecond, "steady")
	accepts := door.Counters().Accepts
	loaded := metricOf(t, d, "steadyprobe_config_last_reload_success_timestamp_seconds")
	for _, row := range []struct{ name, text, want string }{
		{"empty", "", d.file + ":1: is empty; write"},
		{"nothing left", "targets: []\n", d.file + ":1: targets: there is none"},
		{"no YAML", "targets: [\n", d.file + ":"},
		{"an unknown field", good + "    colour: x\n", d.file + ":3: "},
		{"one bad setting of many", good + "  - {name: b, url: \"http://127.0.0.1:1/\", rate: -5}\n", d.file + ":3: targets[1].rate: "},
		{"a secret that is not there", good + "  - {name: b, url: \"http://127.0.0.1:1/\", rate: 5, http: {authorization: {credentials_file: missing}}}\n", d.file + ":3: targets[1].http.authorization.credentials_file: "},
		{"boundaries of histograms", "metrics: {buckets: {latency: [0.42]}}\n" + good, d.file + ": metrics.buckets: cannot change while the process runs"},
		{"more than is allowed", "limits: {max_total_rate: 100}\n" + good, "max_total_rate"},
		{"more connections than files", strings.Replace(good, "connections: 20", "connections: 1000000", 1), ""},
		{"backends of the demo", good + "churns: [{name: a, embedded: {}, steps: [{replicas: 1, hold: 1s}]}]\n", "embedded backends exist only in"},
	} {
		status, text := d.reload(row.text)
		if status != http.StatusInternalServerError || !strings.Contains(text, "nothing has changed") || !strings.Contains(text, row.want) {
			t.Errorf("%s: answered %d %q, want 500 with %q", row.name, status, text, row.want)
		}
		now, err := d.scrape()
		if err != nil {
			t.Fatal(err)
		}
		if ok, at := now.sum("steadyprobe_config_last_reload_successful"), now.sum("steadyprobe_config_last_reload_success_timestamp_seconds"); ok != 0 || at != loaded {
			t.Errorf("%s: successful %v, last success %v; want 0, %v", row.name, ok, at, loaded)
		}
		if after, err := d.get("/config"); err != nil || string(after) != string(shown) {
			t.Errorf("%s: the configuration is shown as %s, %v", row.name, after, err)
		}
		if status, err := d.get("/api/v1/status"); err != nil || !strings.Contains(string(status), `"failed":{"at":`) {
			t.Errorf("%s: the status is %s, %v", row.name, status, err)
		}
	}
	d.reloaded(good, "Targets: 0 added, 0 removed, 0 changed, 1 kept.")
	last, _ := end()
	if failed := last.failures("steady"); len(failed) > 0 || door.Counters().Accepts != accepts {
		t.Errorf("failures %v, %d connections more", failed, door.Counters().Accepts-accepts)
	}
	if ok := metricOf(t, d, "steadyprobe_config_last_reload_successful"); ok != 1 {
		t.Errorf("successful is %v after a good file", ok)
	}
	if status, err := d.get("/api/v1/status"); err != nil || !strings.Contains(string(status), `"failed":null`) {
		t.Errorf("the status is %s, %v", status, err)
	}
	d.stop()
}

// TestReloadInTheMiddleOfAStall takes a target whose door stands still to
// another one, which serves what has waited.
func TestReloadInTheMiddleOfAStall(t *testing.T) {
	checkLeaks(t)
	door, second := reloadDoor(t), reloadDoor(t)
	with := func(url string) string {
		return fmt.Sprintf("targets:\n  - {name: door, url: \"http://%s/\", rate: 200, connections: 10, timeout: 30s}\n", url)
	}
	d := startDaemon(t, with(door.HTTP))
	waitFor(t, "the first requests", func() bool { return metricOf(t, d, "steadyprobe_requests_total") > 100 })
	end := d.watch(20*time.Millisecond, "door")
	var stalled sync.WaitGroup
	stalled.Go(func() { door.Stall(3 * time.Second) })
	waitFor(t, "a backlog", func() bool { return metricOf(t, d, "steadyprobe_requests_backlog") >= 20 })
	before := second.Counters().Requests
	d.reloaded(with(second.HTTP), "Targets: 0 added, 0 removed, 1 changed, 0 kept.")
	waitFor(t, "the backlog to be served by the second door", func() bool {
		return metricOf(t, d, "steadyprobe_requests_backlog") == 0
	})
	if n := second.Counters().Requests - before; n < 20 {
		t.Errorf("the second door has counted %d requests, want those that waited", n)
	}
	if n := metricOf(t, d, "steadyprobe_requests_in_flight"); n < 10 {
		t.Errorf("%v requests in flight, want the 10 that the first door holds", n)
	}
	stalled.Wait()
	waitFor(t, "the first door to answer", func() bool { return metricOf(t, d, "steadyprobe_requests_in_flight") < 5 })
	last, _ := end()
	if failed := last.failures("door"); len(failed) > 0 {
		t.Errorf("failures %v", failed)
	}
	d.stop()
}

// TestReloadsAtOnce asks for many reloads at once: all are answered, and each
// says the truth.
func TestReloadsAtOnce(t *testing.T) {
	checkLeaks(t)
	door := reloadDoor(t)
	d := startDaemon(t, "targets:\n"+steadyTarget(door))
	waitFor(t, "the first requests", func() bool { return metricOf(t, d, "steadyprobe_requests_total") > 100 })
	end := d.watch(20*time.Millisecond, "steady")
	accepts := door.Counters().Accepts
	var asking sync.WaitGroup
	for range 50 {
		asking.Go(func() {
			if status, text := d.reloadAgain(); status != http.StatusOK || text != "Targets: 0 added, 0 removed, 0 changed, 1 kept.\n" {
				t.Errorf("answered %d %q", status, text)
			}
		})
	}
	asking.Wait()
	last, _ := end()
	if failed := last.failures("steady"); len(failed) > 0 || door.Counters().Accepts != accepts {
		t.Errorf("failures %v, %d connections more", failed, door.Counters().Accepts-accepts)
	}
	d.stop()
}

// TestReloadOfThousands goes from one target to 9,900 and back, as many as 20,000
// files allow, beside one that goes on.
func TestReloadOfThousands(t *testing.T) {
	const many = 9_900
	checkLeaks(t)
	door := reloadDoor(t)
	head := "limits: {max_connections: 20000, max_total_rate: 20000}\ntargets:\n" + steadyTarget(door)
	var all strings.Builder
	all.WriteString(head)
	for i := range many {
		fmt.Fprintf(&all, "  - {name: \"t%d\", url: \"http://%s/\", rate: 0.01, connections: 1}\n", i, door.HTTP)
	}
	d := startDaemon(t, head)
	waitFor(t, "the first requests", func() bool { return metricOf(t, d, "steadyprobe_requests_total") > 100 })
	began := time.Now()
	d.reloaded(all.String(), fmt.Sprintf("Targets: %d added, 0 removed, 0 changed, 1 kept.", many))
	t.Logf("%d targets were added in %v", many, time.Since(began).Round(time.Millisecond))
	began = time.Now()
	d.reloaded(strings.Replace(all.String(), "rate: 0.01", "rate: 0.02", 1), fmt.Sprintf("Targets: 0 added, 0 removed, 1 changed, %d kept.", many))
	t.Logf("one of them was changed in %v", time.Since(began).Round(time.Millisecond))
	began = time.Now()
	d.reloaded(strings.ReplaceAll(all.String(), "rate: 0.01", "rate: 0.02"), fmt.Sprintf("Targets: 0 added, 0 removed, %d changed, 2 kept.", many-1))
	t.Logf("the rates of all were changed in %v", time.Since(began).Round(time.Millisecond))
	for _, name := range []string{"t0", "t1", fmt.Sprintf("t%d", many-1)} {
		if text, err := d.get("/api/v1/targets/" + name); err != nil || !strings.Contains(string(text), `"rate":0.02,`) {
			t.Errorf("the target %s is shown as %s, %v", name, text, err)
		}
	}
	began = time.Now()
	d.reloaded(head, fmt.Sprintf("Targets: 0 added, %d removed, 0 changed, 1 kept.", many))
	t.Logf("they were removed in %v", time.Since(began).Round(time.Millisecond))
	s, err := d.scrape()
	if err != nil {
		t.Fatal(err)
	}
	if n := len(s["steadyprobe_target_info"].GetMetric()); n != 1 {
		t.Errorf("%d targets are shown, want 1", n)
	}
	if failed := s.failures("steady"); len(failed) > 0 {
		t.Errorf("failures %v", failed)
	}
	d.stop()
}

// TestReloadOfAThousandDoors has the connections of 1,000 targets replaced at
// once, beside one that goes on: nothing fails, and nothing is lost.
func TestReloadOfAThousandDoors(t *testing.T) {
	const many = 1_000
	checkLeaks(t)
	door := reloadDoor(t)
	text := func(timeout string) string {
		var all strings.Builder
		all.WriteString("defaults: {timeout: " + timeout + "}\ntargets:\n")
		all.WriteString(strings.Replace(steadyTarget(door), "rate: 1000", "timeout: 30s, rate: 1000", 1))
		for i := range many {
			fmt.Fprintf(&all, "  - {name: \"t%d\", url: \"http://%s/\", rate: 1, connections: 1}\n", i, door.HTTP)
		}
		return all.String()
	}
	d := startDaemon(t, text("20s"))
	waitFor(t, "all connections", func() bool { return metricOf(t, d, "steadyprobe_connections") == many+20 })
	began := time.Now()
	d.reloaded(text("21s"), fmt.Sprintf("Targets: 0 added, 0 removed, %d changed, 1 kept.", many))
	t.Logf("the connections of %d targets were replaced in %v", many, time.Since(began).Round(time.Millisecond))
	waitFor(t, "the old connections to close", func() bool {
		return metricOf(t, d, "steadyprobe_connections_closed_total", "reason", "reload") == many
	})
	s, err := d.scrape()
	if err != nil {
		t.Fatal(err)
	}
	if failed := s.sum("steadyprobe_request_failures_total") + s.sum("steadyprobe_connection_failures_total"); failed != 0 {
		t.Errorf("%v failures", failed)
	}
	if open, closed := s.sum("steadyprobe_connections"), s.sum("steadyprobe_connections_closed_total"); open != many+20 || closed != many {
		t.Errorf("%v connections are open and %v were closed, want %d and %d", open, closed, many+20, many)
	}
	for _, name := range []string{"steady", "t0", "t999"} {
		if err := s.checkAccount(name, nil); err != nil {
			t.Error(err)
		}
	}
	d.stop()
}

// TestHundredReloads changes all about a target, and others come and go, a
// hundred times: goroutines, memory and files are those of before.
func TestHundredReloads(t *testing.T) {
	checkLeaks(t)
	door := reloadDoor(t)
	text := func(i int) string {
		settings := fmt.Sprintf("rate: %d, timeout: %ds, connections: %d", 200+i%2*100, 2+i%2, 10+i%2*10)
		return "targets:\n" + steadyTarget(door) +
			fmt.Sprintf("  - {name: changing, url: \"https://%s/\", %s, tls: {ca_file: %q}}\n", door.HTTPS, settings, door.CAFile) +
			fmt.Sprintf("  - {name: passing-%d, url: \"http://localhost:%s/\", rate: 100, connections: 5}\n", i%7, door.HTTP[strings.LastIndex(door.HTTP, ":")+1:])
	}
	d := startDaemon(t, text(0))
	settled := func() (goroutines, files int, heap uint64) {
		time.Sleep(500 * time.Millisecond)
		runtime.GC()
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		open, err := os.ReadDir("/proc/self/fd")
		if err != nil {
			t.Skip("open files cannot be counted here")
		}
		return runtime.NumGoroutine(), len(open), m.HeapAlloc
	}
	end := d.watch(50*time.Millisecond, "steady", "changing")
	var goroutines, files int
	var heap uint64
	for i := range 140 {
		if i == 40 { // buffers have grown by then
			goroutines, files, heap = settled()
		}
		if status, answer := d.reload(text(i % 140)); status != http.StatusOK {
			t.Fatalf("reload %d was answered %d %q", i, status, answer)
		}
		time.Sleep(10 * time.Millisecond)
	}
	// The same settings as in the beginning of the measurement.
	if status, answer := d.reload(text(39)); status != http.StatusOK {
		t.Fatalf("the last reload was answered %d %q", status, answer)
	}
	g, f, h := settled()
	t.Logf("goroutines %d, then %d; files %d, then %d; heap %d KiB, then %d KiB", goroutines, g, files, f, heap>>10, h>>10)
	if g > goroutines+20 || f > files+20 || h > heap+heap/4+2<<20 {
		t.Errorf("goroutines went from %d to %d, files from %d to %d, the heap from %d to %d bytes", goroutines, g, files, f, heap, h)
	}
	last, _ := end()
	for _, name := range []string{"steady", "changing"} {
		if failed := last.failures(name); len(failed) > 0 {
			t.Errorf("failures of %s: %v", name, failed)
		}
	}
	d.stop()
}
