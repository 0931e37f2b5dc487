package history

import (
	"bytes"
	"context"
	"fmt"
	"io/fs"
	"log/slog"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
	"go.uber.org/goleak"

	"github.com/steadyprobe/steadyprobe/probe"
	"github.com/steadyprobe/steadyprobe/probe/record"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// lines is a logger that keeps what it is told.
type lines struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *lines) logger() *slog.Logger { return slog.New(slog.NewTextHandler(l, nil)) }

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

// with returns the lines that have a text in them.
func (l *lines) with(text string) (all []string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for line := range strings.Lines(l.text.String()) {
		if strings.Contains(line, text) {
			all = append(all, line)
		}
	}
	return all
}

// opened opens a history of minutes, unless the options say otherwise.
func opened(t *testing.T, clock probe.Clock, l *lines, o Options) *History {
	t.Helper()
	if o.Interval == 0 {
		o.Interval = time.Minute
	}
	o.Clock, o.Logger = clock, l.logger()
	h, err := Open(o)
	if err != nil {
		t.Fatal(err)
	}
	return h
}

func closeIt(t *testing.T, h *History) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	if err := h.Close(ctx); err != nil {
		t.Error(err)
	}
}

// load is a target whose requests come at random, and what is known of them.
type load struct {
	clock     probe.Clock
	random    *rand.Rand
	recorder  *record.Recorder
	felt      *hdrhistogram.Histogram // what its history should have
	completed int
	failed    int
}

func newLoad(clock probe.Clock) *load {
	return &load{
		clock:    clock,
		random:   rand.New(rand.NewPCG(1, 2)),
		recorder: record.New(record.Options{Clock: clock}),
		felt:     hdrhistogram.New(1, int64(time.Hour), 3),
	}
}

// request lets a request end now: one in ten is a timeout, one in ten is
// refused.
func (l *load) request() {
	latency := time.Duration(l.random.ExpFloat64() * float64(20*time.Millisecond))
	s := probe.Sample{End: l.clock.Now()}
	switch l.random.IntN(10) {
	case 0:
		s.Outcome = probe.ReadTimeout
		latency += 5 * time.Second
	case 1:
		s.Outcome = probe.ConnectRefused
	}
	s.Intended = s.End.Add(-latency)
	s.Begun = s.Intended
	l.recorder.Record(&s)
	l.completed++
	if s.Outcome != probe.Success {
		l.failed++
	}
	if s.Outcome.Slow() {
		_ = l.felt.RecordValue(int64(latency))
	}
}

// requests lets so many end, with the same time between two, and then what is
// due be written.
func (l *load) requests(n int, every time.Duration) {
	for range n {
		time.Sleep(every)
		l.request()
	}
	synctest.Wait()
}

// logs returns all files below a folder, in order, by their path below it.
func logs(t *testing.T, path string) (files []string) {
	t.Helper()
	err := filepath.WalkDir(path, func(file string, d fs.DirEntry, err error) error {
		if err == nil && d.Type().IsRegular() && filepath.Base(file) != "lock" {
			below, _ := filepath.Rel(path, file)
			files = append(files, filepath.ToSlash(below))
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

// intervals reads a log by the library's own reader.
func intervals(t *testing.T, file string) (all []*hdrhistogram.Histogram) {
	t.Helper()
	f, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	reader := hdrhistogram.NewHistogramLogReader(f)
	for {
		h, err := reader.NextIntervalHistogram()
		if err != nil {
			t.Fatalf("reading %s: %v", file, err)
		}
		if h == nil {
			return all
		}
		all = append(all, h)
	}
}

// sum returns all intervals together.
func sum(all []*hdrhistogram.Histogram) *hdrhistogram.Histogram {
	total := hdrhistogram.New(1, int64(time.Hour), 3)
	for _, h := range all {
		total.Merge(h)
	}
	return total
}

// failuresIn returns how many failures the comments of a log say.
func failuresIn(t *testing.T, file string) (failed int) {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		var n, of int
		if count, _ := fmt.Sscanf(line, "#[Failed: %d of %d]", &n, &of); count == 2 {
			failed += n
		}
	}
	return failed
}
