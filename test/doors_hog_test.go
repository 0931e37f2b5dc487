package test

import (
	"os/exec"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/steadyprobe/steadyprobe/report"
)

// TestHog takes the CPU away from the probe, by goroutines of its own process
// and by other processes: self latency shows what the door's figures gained.
//
// How much a hog takes depends on the machine and on what else it does, so
// that only relations are asserted, and one of three tries must show them.
func TestHog(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("there is no sh")
	}
	checkLeaks(t)
	d := startNGINX(t, 0, true)
	for _, tc := range []struct {
		name string
		hog  func(testing.TB) (stop func())
	}{
		{"inside the process", hogInside},
		{"outside the process", hogOutside},
	} {
		t.Run(tc.name, func(t *testing.T) {
			var why string
			for range 3 {
				p := profile{rate: 200, connections: 10}
				quiet := once(t, 2*time.Second, d.target(t, p))[0]
				stop := tc.hog(t)
				hogged := once(t, 2*time.Second, d.target(t, p))[0]
				stop()
				for _, r := range []*report.Result{&quiet, &hogged} {
					t.Logf("latency p50 %.2f p99 %.2f ms, self latency p50 %.2f p99 %.2f ms, lateness p50 %.2f p99 %.2f ms, distrust %q",
						1000*r.Latency.P50, 1000*r.Latency.P99, 1000*r.SelfLatency.P50, 1000*r.SelfLatency.P99,
						1000*r.Lateness.P50, 1000*r.Lateness.P99, r.Distrust)
					if r.Failures != 0 {
						t.Errorf("failures %v: a hog must cost none", r.FailuresBy)
					}
				}
				if why = unexplained(&quiet, &hogged); why == "" {
					return
				}
			}
			t.Error(why)
		})
	}
}

// unexplained returns what a report with a hog does not say about it, compared
// with one without; empty: it says all.
func unexplained(quiet, hogged *report.Result) string {
	// The door answers from memory in some microseconds, so that what a figure
	// gains is time that somebody waited for a processor: the probe, or the
	// door, which waits as long where the hog is outside.
	gained := hogged.Latency.P99 - quiet.Latency.P99
	switch {
	case hogged.SelfLatency.P99 <= quiet.SelfLatency.P99:
		return "self latency p99 is not above that without a hog"
	case gained > 10*hogged.SelfLatency.P99:
		return "latency p99 gained more than ten times what self latency p99 is"
	case hogged.Trustworthy:
		return "the report calls the figures trustworthy"
	}
	return ""
}

// hogInside keeps all threads that run Go code busy, and more.
func hogInside(testing.TB) (stop func()) {
	over := make(chan struct{})
	var spinning sync.WaitGroup
	for range 4 * (runtime.GOMAXPROCS(0) + 1) {
		spinning.Go(func() {
			for x := uint64(1); ; {
				for range 1 << 20 {
					x = x*6364136223846793005 + 1442695040888963407
				}
				select {
				case <-over:
					return
				default:
					runtime.KeepAlive(x)
				}
			}
		})
	}
	return func() {
		close(over)
		spinning.Wait()
	}
}

// hogOutside keeps all processors busy.
func hogOutside(t testing.TB) (stop func()) {
	t.Helper()
	var hogs []*exec.Cmd
	stop = sync.OnceFunc(func() {
		for _, c := range hogs {
			_ = c.Process.Kill()
			_ = c.Wait() // killed
		}
	})
	t.Cleanup(stop)
	for range 4 * runtime.NumCPU() {
		// Ends by itself should this process die.
		c := exec.Command("sh", "-c", "end=$(( $(date +%s) + 60 )); while [ $(date +%s) -lt $end ]; do i=0; while [ $i -lt 1000000 ]; do i=$((i+1)); done; done")
		if err := c.Start(); err != nil {
			t.Fatalf("starting a hog: %v", err)
		}
		hogs = append(hogs, c)
	}
	return stop
}
