package app

import (
	"context"
	"math"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"github.com/steadyprobe/steadyprobe/internal/faultdoor"
	"github.com/steadyprobe/steadyprobe/probe"
	"github.com/steadyprobe/steadyprobe/probe/record"
)

// historyOf reads all that a folder has of a target.
func historyOf(t *testing.T, path, target string) *hdrhistogram.Histogram {
	t.Helper()
	all := hdrhistogram.New(1, int64(time.Hour), 3)
	files, err := filepath.Glob(filepath.Join(path, "history", target, "*.hlog"))
	if err != nil || len(files) == 0 {
		t.Errorf("there is no history of %s (%v)", target, err)
	}
	for _, name := range files {
		f, err := os.Open(name)
		if err != nil {
			t.Fatal(err)
		}
		reader := hdrhistogram.NewHistogramLogReader(f)
		for {
			h, err := reader.NextIntervalHistogram()
			if err != nil {
				t.Fatal(err)
			}
			if h == nil {
				break
			}
			all.Merge(h)
		}
		_ = f.Close()
	}
	return all
}

// stored are the options of a daemon that keeps the past.
func stored(file, path string) Options {
	o := options(file, "127.0.0.1:0")
	o.Storage = Storage{Path: path, Interval: time.Minute}
	return o
}

// TestHistoryIsWhatIsExposed lets a daemon run and holds what it has written
// against the distributions that its histograms are made of.
func TestHistoryIsWhatIsExposed(t *testing.T) {
	door := faultdoor.Listen(t, good())
	path := t.TempDir()
	o := stored(configured(t, "targets:\n"+targetOf("one", door.URL("http"), `rate: 500, connections: 5`)), path)
	listening := make(chan struct{})
	o.Listening = func([]net.Addr, net.Addr) { close(listening) }
	loaded, err := load(o.ConfigFile, o.Logger)
	if err != nil {
		t.Fatal(err)
	}
	d := &daemon{options: o, config: loaded, loaded: time.Now()}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- d.run(ctx) }()
	<-listening
	eventually(t, "requests", func() bool { return door.Counts().Answers >= 300 })
	cancel()
	if err := <-ended; err != nil {
		t.Fatal(err)
	}
	var s record.Snapshot
	d.state.Load().named["one"].recorder.Snapshot(&s)
	felt := s.Latency[record.Succeeded][probe.NoChurn]
	felt.Add(&s.SlowFailures[probe.NoChurn])
	got := historyOf(t, path, "one")
	if uint64(got.TotalCount()) != felt.Count || felt.Count != door.Counts().Answers {
		t.Errorf("the history has %d latencies, the histograms %d, the door gave %d answers", got.TotalCount(), felt.Count, door.Counts().Answers)
	}
	for _, q := range []float64{0.1, 0.5, 0.9, 0.99, 1} {
		// A native bucket is 2^(1/32) wide, and its end is what it tells.
		ours, theirs := time.Duration(got.ValueAtQuantile(100*q)).Seconds(), felt.Quantile(q)
		if math.Abs(math.Log2(theirs/ours)) > 1.0/16 {
			t.Errorf("quantile %v is %v s by the history and %v s by the histograms", q, ours, theirs)
		}
	}
}

// A target that a reload removes, one that stays and one that comes all have
// their past in full.
func TestHistoryOverAReload(t *testing.T) {
	doors := map[string]*faultdoor.Door{}
	line := func(name string) string {
		if doors[name] == nil {
			doors[name] = faultdoor.Listen(t, good())
		}
		return targetOf(name, doors[name].URL("http"), "rate: 100")
	}
	path := t.TempDir()
	file := configured(t, "targets:\n"+line("goes")+line("stays"))
	o := stored(file, path)
	o.Lifecycle = true
	r := start(t, o)
	answered := func(names ...string) func() bool {
		return func() bool {
			for _, name := range names {
				if doors[name].Counts().Answers < 20 {
					return false
				}
			}
			return true
		}
	}
	eventually(t, "requests", answered("goes", "stays"))
	if err := os.WriteFile(file, []byte("targets:\n"+line("stays")+line("comes")), 0o600); err != nil {
		t.Fatal(err)
	}
	answer, err := http.Post(r.url+"/-/reload", "", nil)
	if err != nil || answer.StatusCode != http.StatusOK {
		t.Fatalf("reloading: %v, %v", answer, err)
	}
	_ = answer.Body.Close()
	http.DefaultClient.CloseIdleConnections()
	eventually(t, "requests of the new target", answered("comes"))
	r.stop()
	for name, door := range doors {
		if got, want := historyOf(t, path, name).TotalCount(), door.Counts().Answers; uint64(got) != want {
			t.Errorf("the history of %s has %d latencies, the door gave %d answers", name, got, want)
		}
	}
}

// Of two daemons in one folder the first one keeps its past. The second one
// probes all the same, and says so.
func TestHistoryThatIsInUse(t *testing.T) {
	door := faultdoor.Listen(t, good())
	path := t.TempDir()
	file := configured(t, "targets:\n"+targetOf("one", door.URL("http"), "rate: 10"))
	failures := func(r *daemonRun) float64 {
		_, page := get(r.url + "/metrics")
		return metric(page, "steadyprobe_history_write_failures_total")
	}
	first := start(t, stored(file, path))
	second := start(t, stored(file, path))
	if got := [...]float64{failures(first), failures(second)}; got != [...]float64{0, 1} {
		t.Errorf("%v failures of the first and the second daemon in a folder, want 0 and 1", got)
	}
	first.stop()
	third := start(t, stored(file, path))
	if n := failures(third); n != 0 {
		t.Errorf("%v failures once the first one is gone", n)
	}
}

// A folder that cannot be made keeps no request from being sent, and is counted.
func TestHistoryThatCannotBeWritten(t *testing.T) {
	door := faultdoor.Listen(t, good())
	file := configured(t, "targets:\n"+targetOf("one", door.URL("http"), "rate: 100"))
	r := start(t, stored(file, file)) // a file where the folder belongs
	eventually(t, "requests", func() bool { return door.Counts().Answers >= 10 })
	if _, page := get(r.url + "/metrics"); metric(page, "steadyprobe_history_write_failures_total") != 1 {
		t.Error("the failure is not counted")
	}
	other := start(t, options(file, "127.0.0.1:0"))
	if _, page := get(other.url + "/metrics"); strings.Contains(page, "steadyprobe_history") {
		t.Error("a daemon that writes nothing counts failures to do so")
	}
}
