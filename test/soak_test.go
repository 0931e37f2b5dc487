package test

import (
	"fmt"
	"os"
	"runtime"
	"slices"
	"testing"
	"time"
)

// soakVariable is the environment variable that says how long TestSoak takes,
// such as "10m".
const soakVariable = "STEADYPROBE_SOAK"

// soakDefault is long enough for a few reloads and restarts.
const soakDefault = 15 * time.Second

func soakLength(t *testing.T) time.Duration {
	t.Helper()
	text := os.Getenv(soakVariable)
	if text == "" {
		return soakDefault
	}
	d, err := time.ParseDuration(text)
	if err != nil || d < soakDefault/3 {
		t.Fatalf("reading %s=%q: write a duration from %v, such as 10m", soakVariable, text, soakDefault/3)
	}
	return d
}

// TestSoak has the daemon send 1,000 requests/s to an nginx and a HAProxy that
// are reloaded and restarted again and again. In 10 minutes that is a reload
// every 10 s and a restart every minute; a shorter soak has as many of them as
// leaves a door 1 s between two.
func TestSoak(t *testing.T) {
	checkLeaks(t)
	length := soakLength(t)
	reload := max(length/60, time.Second)
	nginx, haproxy := startNGINX(t, 0, true), startHAProxy(t, 0, true)
	targets := []string{"nginx", "nginx-tls", "haproxy", "haproxy-tls"}
	d := startDaemon(t, "targets:"+
		nginx.targetConfiguration(targets[0], profile{rate: 300, connections: 20})+
		nginx.targetConfiguration(targets[1], profile{tls: true, rate: 200, connections: 20})+
		haproxy.targetConfiguration(targets[2], profile{rate: 300, connections: 20})+
		haproxy.targetConfiguration(targets[3], profile{tls: true, rate: 200, connections: 20}))
	end := d.watch(max(length/1000, 50*time.Millisecond), targets...)
	var use usage
	doors := []*realDoor{nginx, haproxy}
	disturbances, begun := 0, time.Now()
	for at := reload; at < length-reload; at += reload {
		time.Sleep(time.Until(begun.Add(at)))
		use.take()
		disturbances++
		for _, door := range doors {
			// Every sixth time it is restarted.
			if disturbances%6 == 0 {
				door.server.Stop()
				time.Sleep(100 * time.Millisecond)
				door.server.Start()
			} else {
				door.server.Reload()
			}
		}
	}
	time.Sleep(time.Until(begun.Add(length)))
	use.take()
	last, scrapes := end()
	use.check(t)
	answered := map[*realDoor]uint64{}
	for i, target := range targets {
		failures := last.failures(target)
		t.Logf("%s: %v requests, failures %v", target, last.sum("steadyprobe_requests_total", "target", target), failures)
		answered[doors[i/2]] += uint64(last.sum("steadyprobe_requests_total", "target", target)) - total(failures)
		checkClassified(t, last, target)
	}
	if scrapes < 20 {
		t.Errorf("%d scrapes, want many", scrapes)
	}
	for i, door := range doors {
		if logged := door.server.Log().Codes[200]; logged < answered[door] {
			t.Errorf("the door of %s logged %d answers, the probe saw %d", targets[2*i], logged, answered[door])
		}
	}
	t.Logf("%v, %d reloads or restarts of each door, %d scrapes, %s", length, disturbances, scrapes, use.String())
}

// checkClassified checks that every failure has a reason that a door which is
// reloaded or restarted can have given, and that it was not the probe's own.
func checkClassified(t *testing.T, s scrape, target string) {
	t.Helper()
	for failure, n := range s.failures(target) {
		switch failure {
		case "connect/refused", "connect/reset", "tls/eof", "tls/reset", "read/eof", "read/reset",
			"read/stale", "read/truncated", "write/stale", "write/reset":
		default:
			t.Errorf("%s: %d failures with %s, do not expect any", target, n, failure)
		}
	}
}

// usage is what the process used during a soak, sample by sample.
type usage struct {
	heap       []uint64 // bytes that are reachable
	goroutines []int
}

func (u *usage) take() {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	u.heap = append(u.heap, m.HeapAlloc)
	u.goroutines = append(u.goroutines, runtime.NumGoroutine())
}

// check compares the first third with the last. Medians, because a sample may
// fall on a scrape or on connections that are being opened; the margin is for
// what a scrape and the windows of quantiles hold: 2 MB and a tenth.
func (u *usage) check(t *testing.T) {
	t.Helper()
	n := len(u.heap) / 3
	if n == 0 {
		t.Fatalf("%d samples of what the process uses, want at least 3", len(u.heap))
	}
	first, last := median(u.heap[:n]), median(u.heap[len(u.heap)-n:])
	if last > first+first/10+2<<20 {
		t.Errorf("the heap grew from %d to %d bytes: %v", first, last, u.heap)
	}
	// 80 connections have a goroutine each, and some are being opened.
	if first, last := median(u.goroutines[:n]), median(u.goroutines[len(u.goroutines)-n:]); last > first+20 {
		t.Errorf("goroutines grew from %d to %d: %v", first, last, u.goroutines)
	}
}

func (u *usage) String() string {
	n := max(len(u.heap)/3, 1)
	return fmt.Sprintf("heap %.1f MB, then %.1f MB; goroutines %d, then %d",
		float64(median(u.heap[:n]))/1e6, float64(median(u.heap[len(u.heap)-n:]))/1e6,
		median(u.goroutines[:n]), median(u.goroutines[len(u.goroutines)-n:]))
}

func median[T int | uint64](values []T) T {
	sorted := slices.Sorted(slices.Values(values))
	return sorted[len(sorted)/2]
}
