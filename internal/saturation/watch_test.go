package saturation

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"math"
	"runtime/metrics"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// fakeSystem is what a test sets and a Watch reads.
type fakeSystem struct {
	mu          sync.Mutex
	throttled   uint64
	files       Usage
	ports       Usage
	memory      []Usage
	err         error
	lateness    time.Duration
	selfLatency time.Duration
	serviceTime time.Duration
}

func (f *fakeSystem) set(change func(*fakeSystem)) {
	f.mu.Lock()
	defer f.mu.Unlock()
	change(f)
}

func read[T any](f *fakeSystem, get func() T) func() (T, error) {
	return func() (T, error) {
		f.mu.Lock()
		defer f.mu.Unlock()
		return get(), f.err
	}
}

func duration(f *fakeSystem, d *time.Duration) func() time.Duration {
	return func() time.Duration {
		f.mu.Lock()
		defer f.mu.Unlock()
		return *d
	}
}

func (f *fakeSystem) options(log *slog.Logger) Options {
	return Options{
		Logger:      log,
		ServiceTime: duration(f, &f.serviceTime),
		Lateness:    duration(f, &f.lateness),
		SelfLatency: duration(f, &f.selfLatency),
		Readers: Readers{
			SchedulingLatency: func() *metrics.Float64Histogram { return nil },
			Throttled:         read(f, func() uint64 { return f.throttled }),
			FileDescriptors:   read(f, func() Usage { return f.files }),
			Ports:             read(f, func() Usage { return f.ports }),
			Memory:            read(f, func() []Usage { return f.memory }),
		},
	}
}

// run starts a Watch over f in a bubble, at half a second before its samples.
func run(t *testing.T, f *fakeSystem, log *slog.Logger) *Watch {
	t.Helper()
	w := New(f.options(log))
	ctx, cancel := context.WithCancel(context.Background())
	over := make(chan struct{})
	go func() { defer close(over); w.Run(ctx) }()
	t.Cleanup(func() { cancel(); <-over })
	time.Sleep(interval / 2)
	return w
}

// saturated returns what is saturated, and the seconds of each resource that
// has some.
func saturated(w *Watch) (names []string, seconds map[string]float64) {
	seconds = map[string]float64{}
	for _, r := range w.Snapshot() {
		if r.Saturated {
			names = append(names, r.Name)
		}
		if r.Seconds > 0 {
			seconds[r.Name] = r.Seconds
		}
	}
	return names, seconds
}

func expect(t *testing.T, w *Watch, names []string, seconds map[string]float64) {
	t.Helper()
	gotNames, gotSeconds := saturated(w)
	if diff := cmp.Diff(names, gotNames); diff != "" {
		t.Errorf("saturated (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(seconds, gotSeconds); diff != "" {
		t.Errorf("seconds (-want +got):\n%s", diff)
	}
}

func TestSnapshotHasAllResources(t *testing.T) {
	want := []Resource{{Name: "cpu"}, {Name: "file_descriptors"}, {Name: "ports"}, {Name: "memory"}}
	if diff := cmp.Diff(want, New(Options{}).Snapshot()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestLimits(t *testing.T) {
	const ms = time.Millisecond
	for _, tt := range []struct {
		name   string
		change func(*fakeSystem)
		want   []string
	}{
		{"nothing is known", func(*fakeSystem) {}, nil},
		{"everything idle", func(f *fakeSystem) {
			f.files, f.ports, f.memory = Usage{10, 1000}, Usage{0, 28232}, []Usage{{1, 100}}
			f.lateness, f.selfLatency, f.serviceTime = ms/20, ms/10, ms
		}, nil},
		{"files at 90 %", func(f *fakeSystem) { f.files = Usage{900, 1000} }, nil},
		{"files above 90 %", func(f *fakeSystem) { f.files = Usage{901, 1000} }, []string{FileDescriptors}},
		{"ports above 90 %", func(f *fakeSystem) { f.ports = Usage{25500, 28232} }, []string{Ports}},
		{"the last of several memory limits", func(f *fakeSystem) {
			f.memory = []Usage{{}, {10, 100}, {91, 100}}
		}, []string{Memory}},
		{"more than the limit", func(f *fakeSystem) { f.memory = []Usage{{200, 100}} }, []string{Memory}},
		{"lateness of 1 ms, service time unknown", func(f *fakeSystem) { f.lateness = ms }, nil},
		{"lateness above 1 ms, service time unknown", func(f *fakeSystem) { f.lateness = ms + 1 }, []string{CPU}},
		{"self latency above 1 ms before a fast door", func(f *fakeSystem) { f.selfLatency, f.serviceTime = ms+1, ms }, []string{CPU}},
		// 5 % of 40 ms are 2 ms.
		{"lateness of 2 ms before a slow door", func(f *fakeSystem) { f.lateness, f.serviceTime = 2*ms, 40*ms }, nil},
		{"self latency above 2 ms before a slow door", func(f *fakeSystem) { f.selfLatency, f.serviceTime = 2*ms+1, 40*ms }, []string{CPU}},
		{"all at once", func(f *fakeSystem) {
			f.files, f.ports, f.memory, f.lateness = Usage{100, 100}, Usage{100, 100}, []Usage{{100, 100}}, time.Second
		}, []string{CPU, FileDescriptors, Ports, Memory}},
		{"unreadable", func(f *fakeSystem) {
			f.files, f.ports, f.err = Usage{100, 100}, Usage{100, 100}, errors.New("permission denied")
		}, nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := &fakeSystem{}
				w := run(t, f, nil)
				f.set(tt.change)
				time.Sleep(2 * interval)
				names, _ := saturated(w)
				if diff := cmp.Diff(tt.want, names); diff != "" {
					t.Errorf("saturated (-want +got):\n%s", diff)
				}
			})
		})
	}
}

// TestHold: samples are at 1 s, 2 s, …; the test looks half a second later.
func TestHold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fakeSystem{}
		w := run(t, f, nil)
		f.set(func(f *fakeSystem) { f.files = Usage{95, 100} })
		time.Sleep(interval) // 1.5 s: one sample exceeds
		expect(t, w, []string{FileDescriptors}, map[string]float64{})
		time.Sleep(2 * interval) // 3.5 s: so do those of 2 s and 3 s
		expect(t, w, []string{FileDescriptors}, map[string]float64{FileDescriptors: 2})
		f.set(func(f *fakeSystem) { f.files = Usage{5, 100} })
		time.Sleep(9 * interval) // 12.5 s: 9 s after the last at 3 s
		expect(t, w, []string{FileDescriptors}, map[string]float64{FileDescriptors: 11})
		time.Sleep(interval) // 13.5 s: the sample of 13 s ends it
		expect(t, w, nil, map[string]float64{FileDescriptors: 12})
		time.Sleep(time.Minute)
		expect(t, w, nil, map[string]float64{FileDescriptors: 12})
	})
}

func TestOneLateSecondIsNoSaturation(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fakeSystem{}
		w := run(t, f, nil)
		late := func(d time.Duration) { f.set(func(f *fakeSystem) { f.lateness = d }) }
		late(time.Second)
		time.Sleep(interval) // exceeds at 1 s
		late(0)
		time.Sleep(10 * interval) // 11.5 s: forgotten at 11 s
		late(time.Second)
		time.Sleep(interval) // exceeds at 12 s
		expect(t, w, nil, map[string]float64{})
		late(0)
		time.Sleep(8 * interval)
		late(time.Second)
		time.Sleep(interval) // at 21 s, 9 s after the first
		expect(t, w, []string{CPU}, map[string]float64{})
	})
}

func TestThrottling(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fakeSystem{throttled: 1000} // from before the start
		w := run(t, f, nil)
		time.Sleep(5 * interval)
		expect(t, w, nil, map[string]float64{})
		for range 2 {
			f.set(func(f *fakeSystem) { f.throttled++ })
			time.Sleep(3 * interval)
		}
		// Exceeded at 6 s and 9 s; the samples of 10 s and 11 s count.
		expect(t, w, []string{CPU}, map[string]float64{CPU: 2})
	})
}

func TestLog(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		log := slog.New(slog.NewTextHandler(&out, &slog.HandlerOptions{ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
			if a.Key == slog.TimeKey {
				return slog.Attr{}
			}
			return a
		}}))
		f := &fakeSystem{}
		run(t, f, log)
		f.set(func(f *fakeSystem) { f.files = Usage{95, 100} })
		time.Sleep(5 * interval)
		f.set(func(f *fakeSystem) { f.files, f.err = Usage{}, errors.New("permission denied") })
		time.Sleep(20 * interval)
		// Exceeded at 1 s to 5 s, so it lasts from 1 s to 15 s.
		want := `level=WARN msg="A resource of the probe is saturated: figures are not to be trusted" resource=file_descriptors cause="95 of 100 file descriptors are open"
level=WARN msg="Saturation cannot be told" resource="cpu throttling" err="permission denied"
level=WARN msg="Saturation cannot be told" resource=file_descriptors err="permission denied"
level=WARN msg="Saturation cannot be told" resource=ports err="permission denied"
level=WARN msg="Saturation cannot be told" resource=memory err="permission denied"
level=INFO msg="A resource of the probe is no longer saturated" resource=file_descriptors total_seconds=14
`
		synctest.Wait()
		if diff := cmp.Diff(want, out.String()); diff != "" {
			t.Errorf("log (-want +got):\n%s", diff)
		}
	})
}

func TestSchedulingLatency(t *testing.T) {
	// Buckets in seconds: below 0.1 ms, to 1 ms, to 10 ms, to 1 s, above.
	buckets := []float64{math.Inf(-1), 0.0001, 0.001, 0.01, 1, math.Inf(1)}
	for _, tt := range []struct {
		name    string
		samples [][]uint64 // cumulative
		want    []time.Duration
	}{
		{"the first sample is the base", [][]uint64{{0, 0, 500, 0, 0}}, []time.Duration{0}},
		{"1 of 100 late", [][]uint64{{0, 0, 0, 0, 0}, {99, 0, 1, 0, 0}}, []time.Duration{0, 0}},
		{"2 of 100 late", [][]uint64{{0, 0, 0, 0, 0}, {98, 0, 2, 0, 0}}, []time.Duration{0, time.Millisecond}},
		{"spread over two buckets", [][]uint64{{0, 0, 0, 0, 0}, {98, 0, 1, 1, 0}}, []time.Duration{0, time.Millisecond}},
		{"above all buckets", [][]uint64{{0, 0, 0, 0, 0}, {0, 0, 0, 0, 100}}, []time.Duration{0, time.Second}},
		{"what was before does not count", [][]uint64{{9, 9, 999, 9, 9}, {209, 9, 999, 9, 9}}, []time.Duration{0, 0}},
		{"a single one of few", [][]uint64{{0, 0, 0, 0, 0}, {10, 0, 0, 1, 0}}, []time.Duration{0, 0}},
		{"the second of few", [][]uint64{{0, 0, 0, 0, 0}, {10, 0, 1, 1, 0}}, []time.Duration{0, time.Millisecond}},
		// 299/100: two may be larger.
		{"2 of 299 late", [][]uint64{{0, 0, 0, 0, 0}, {297, 0, 2, 0, 0}}, []time.Duration{0, 0}},
		{"3 of 299 late", [][]uint64{{0, 0, 0, 0, 0}, {296, 0, 3, 0, 0}}, []time.Duration{0, time.Millisecond}},
		{"nothing", [][]uint64{{0, 0, 0, 0, 0}, {0, 0, 0, 0, 0}}, []time.Duration{0, 0}},
		{"only what is new", [][]uint64{{0, 0, 0, 0, 0}, {0, 0, 0, 9, 0}, {9, 0, 0, 9, 0}}, []time.Duration{0, 10 * time.Millisecond, 0}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var s schedulingLatency
			for i, counts := range tt.samples {
				if got := s.p99(&metrics.Float64Histogram{Counts: counts, Buckets: buckets}); got != tt.want[i] {
					t.Errorf("sample %d: %v, want %v", i, got, tt.want[i])
				}
			}
		})
	}
	if got := new(schedulingLatency).p99(nil); got != 0 {
		t.Errorf("unknown: %v, want 0", got)
	}
}

func TestCounter(t *testing.T) {
	var c counter
	for i, step := range []struct{ n, want uint64 }{{100, 0}, {103, 3}, {103, 0}, {5, 0}, {6, 1}} {
		if got := c.since(step.n); got != step.want {
			t.Errorf("step %d: %d, want %d", i, got, step.want)
		}
	}
}

// TestSystem reads this machine, whatever it is.
func TestSystem(t *testing.T) {
	var out bytes.Buffer
	w := New(Options{Logger: slog.New(slog.NewTextHandler(&out, nil))})
	for range 2 {
		w.causes()
	}
	if strings.Contains(out.String(), "cannot be told") {
		t.Errorf("readers failed:\n%s", &out)
	}
}

func BenchmarkSample(b *testing.B) {
	w := New(Options{})
	b.ReportAllocs()
	for b.Loop() {
		w.causes()
	}
}
