package test

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"github.com/steadyprobe/steadyprobe/internal/testbed"
)

// pastOf reads the history of a target: all its latencies, and how many
// intervals there are.
func pastOf(t *testing.T, folder, target string) (all *hdrhistogram.Histogram, intervals int) {
	t.Helper()
	all = hdrhistogram.New(1, int64(time.Hour), 3)
	files, err := filepath.Glob(filepath.Join(folder, "history", target, "*.hlog"))
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range files {
		reader := hdrhistogram.NewHistogramLogReader(strings.NewReader(read(t, name)))
		for {
			h, err := reader.NextIntervalHistogram()
			if err != nil {
				t.Fatalf("reading %s: %v", name, err)
			}
			if h == nil {
				break
			}
			all.Merge(h)
			intervals++
		}
	}
	return all, intervals
}

// TestHistoryOfRealProcess kills a daemon that keeps its past, starts another
// one on what it left, and stops that in order: what the first had written is
// there, and all of the second.
func TestHistoryOfRealProcess(t *testing.T) {
	checkLeaks(t)
	nginx := testbed.NGINX(t, testbed.NGINXOptions{})
	folder := t.TempDir()
	p := testbed.Probe(t, testbed.BuildProbe(t),
		fmt.Sprintf("targets: [{name: shop, url: 'http://%s/', rate: 200, connections: 4}]", nginx.HTTP),
		"--storage.path="+folder, "--storage.interval=10s")
	var first int
	testbed.WaitFor(t, "two intervals", time.Minute, func() bool {
		_, first = pastOf(t, folder, "shop")
		return first >= 2
	})
	p.Kill()
	killed := nginx.Counters().Requests
	before, _ := pastOf(t, folder, "shop")
	if n := uint64(before.TotalCount()); n < 1000 || n > killed {
		t.Errorf("the history has %d latencies, nginx was asked %d times", n, killed)
	}
	// A crash in the middle of a line, as no test can time it.
	files, err := filepath.Glob(filepath.Join(folder, "history", "shop", "*.hlog"))
	if err != nil || len(files) == 0 {
		t.Fatalf("files %v, %v", files, err)
	}
	last := files[len(files)-1]
	text := read(t, last)
	if err := os.WriteFile(last, []byte(text+"40.000,10.000,1.0,HISTFAAAAB"), 0o600); err != nil {
		t.Fatal(err)
	}

	nginx.Restart()
	p.Start()
	d := &daemon{t: t, address: p.Address, client: &http.Client{Timeout: 30 * time.Second}}
	testbed.WaitFor(t, "requests", time.Minute, func() bool { return nginx.Counters().Requests > 2200 })
	s, err := d.scrape()
	if err != nil {
		t.Fatal(err)
	}
	if n := s["steadyprobe_history_write_failures_total"]; n == nil || s.sum("steadyprobe_history_write_failures_total") != 0 {
		t.Errorf("failures to write: %v", n)
	}
	d.client.CloseIdleConnections()
	p.Stop()
	after, _ := pastOf(t, folder, "shop")
	if got, want := uint64(after.TotalCount()-before.TotalCount()), nginx.Counters().Requests; got != want {
		t.Errorf("the second process has written %d latencies, nginx was asked %d times", got, want)
	}
	if !strings.HasPrefix(read(t, last), text) {
		t.Error("what the first process had written has changed")
	}
	if out := p.Output(); strings.Count(out, "A line of the history was not whole and is cut off") != 1 {
		t.Errorf("the log does not say once that a line was cut off:\n%s", out)
	}
}
