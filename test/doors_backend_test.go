package test

import (
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/steadyprobe/steadyprobe/internal/testbed"
)

// backendNames are what the backends of these tests call themselves.
var backendNames = [...]string{"s0", "s1", "s2", "s3"}

// balanced is HAProxy before four nginx, each of which says who it is in a
// header and in its body.
func balanced(t testing.TB) *testbed.HAProxyServer {
	t.Helper()
	var addresses []string
	for _, name := range backendNames {
		n := testbed.NGINX(t, testbed.NGINXOptions{
			Server:    fmt.Sprintf("add_header X-Backend %s always;", name),
			Locations: fmt.Sprintf("\t\tlocation = /who { return 200 \"served by %s, gladly\"; }\n", name),
		})
		addresses = append(addresses, n.HTTP)
	}
	return testbed.HAProxy(t, testbed.HAProxyOptions{Backends: addresses, AccessLog: true})
}

// TestBackends holds who answered, by header and by body, against the counters
// that HAProxy keeps of its backends, while one of them is taken out and put
// back.
func TestBackends(t *testing.T) {
	checkLeaks(t)
	for _, row := range []struct {
		name, path, backend string
	}{
		{"by a header", "/", `{header: x-backend}`},
		{"by the body", "/who", `{body: "served by (\\w+),"}`},
		{"by a header of an error", "/status/500", `{header: X-Backend}`},
	} {
		t.Run(row.name, func(t *testing.T) {
			h := balanced(t)
			path := row.path
			if row.path == "/status/500" {
				path = "/%73tatus/500" // HAProxy would answer the plain one itself
			}
			d := startDaemon(t, fmt.Sprintf(`targets:
  - name: door
    url: http://%s%s
    rate: 400
    connections: 20
    expect: {status: ["2xx", "5xx"]}
    backend: %s
`, h.HTTP, path, row.backend))
			end := d.watch(50*time.Millisecond, "door")
			answered := func(s scrape) float64 { return s.sum("steadyprobe_backend_responses_total") }
			d.until("answers", 10*time.Second, func(s scrape) bool { return answered(s) >= 200 })
			compareBackends(t, d, h)

			h.Command("disable server servers/s3")
			at := h.Backends()[3].Responses
			gone, err := d.scrape()
			if err != nil {
				t.Fatal(err)
			}
			s := d.until("more answers", 10*time.Second, func(s scrape) bool { return answered(s) >= answered(gone)+300 })
			compareBackends(t, d, h)
			// What was under way when it was taken out is all that it gave.
			if got := h.Backends()[3].Responses; got > at+20 {
				t.Errorf("the backend that was taken out gave %d answers more", got-at)
			}
			by, then := s.labels("steadyprobe_backend_responses_total", "door", "backend"), gone.labels("steadyprobe_backend_responses_total", "door", "backend")
			if by["s3"]-then["s3"] > 20 || by["s0"]-then["s0"] < 90 { // a third of 300
				t.Errorf("answers by backend went from %v to %v: that one is missing cannot be seen", then, by)
			}

			h.Command("enable server servers/s3")
			d.until("the backend to be back", 10*time.Second, func(s scrape) bool {
				return s.labels("steadyprobe_backend_responses_total", "door", "backend")["s3"] >= by["s3"]+50
			})
			compareBackends(t, d, h)
			last, _ := end()
			if f := last.failures("door"); len(f) != 0 {
				t.Errorf("failures %v, want none", f)
			}
			if sum, all := answered(last), last.sum("steadyprobe_responses_total"); sum < all-20 || sum > all+20 {
				t.Errorf("%v answers by backend, %v in all", sum, all)
			}
		})
	}
}

// compareBackends holds each backend's count against HAProxy's.
func compareBackends(t *testing.T, d *daemon, h *testbed.HAProxyServer) {
	t.Helper()
	var counted []testbed.HAProxyBackend
	first, last := d.around("door", func() { counted = h.Backends() })
	before := first.labels("steadyprobe_backend_responses_total", "door", "backend")
	after := last.labels("steadyprobe_backend_responses_total", "door", "backend")
	for i, name := range backendNames {
		within(t, "answers of "+name, before[name], float64(counted[i].Responses), after[name])
	}
	if names := slices.Sorted(maps.Keys(after)); !slices.Equal(names, backendNames[:]) {
		t.Errorf("backends %v, want %v", names, backendNames)
	}
}

// TestBackendsAboveTheCap has more backends than are counted apart, and some
// that do not tell.
func TestBackendsAboveTheCap(t *testing.T) {
	checkLeaks(t)
	h := balanced(t)
	d := startDaemon(t, fmt.Sprintf(`targets:
  - name: capped
    url: http://%[1]s/
    rate: 200
    backend: {header: X-Backend, most: 2}
  - name: silent
    url: http://%[1]s/
    rate: 50
    backend: {header: X-Nobody}
`, h.HTTP))
	s := d.until("answers", 10*time.Second, func(s scrape) bool {
		return s.sum("steadyprobe_responses_total", "target", "capped") >= 200 && s.sum("steadyprobe_responses_total", "target", "silent") >= 50
	})
	by := s.labels("steadyprobe_backend_responses_total", "capped", "backend")
	if len(by) != 3 || by["other"] < 90 || by["other"] > 120 { // two of four, in turn
		t.Errorf("answers by backend %v, want two of them and half of 200 by others", by)
	}
	if by := s.labels("steadyprobe_backend_responses_total", "silent", "backend"); len(by) != 0 {
		t.Errorf("answers by backend %v of a door that does not tell", by)
	}
}
