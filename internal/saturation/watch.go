package saturation

import (
	"context"
	"fmt"
	"log/slog"
	"runtime/metrics"
	"sync"
	"time"
)

// The resources, as in the label resource of steadyprobe_saturated.
const (
	CPU             = "cpu"
	FileDescriptors = "file_descriptors"
	Ports           = "ports"
	Memory          = "memory"
)

// resourceNames has the order of a snapshot.
var resourceNames = [...]string{CPU, FileDescriptors, Ports, Memory}

const (
	interval = time.Second
	// hold is longer than the usual gap between two exceedances of a process
	// that stays short, and short enough for the end of a run to be seen.
	hold = 10 * time.Second
	// fullShare is the used part of a limit above which a resource is
	// saturated.
	fullShare = 0.9
)

// Resource is the state of one resource.
type Resource struct {
	Name      string
	Saturated bool
	Seconds   float64 // saturated so far, counted at each sample
}

// Usage is how much of a limit is used, in whatever unit both have. A Limit of
// 0 means that it is unknown or that there is none.
type Usage struct{ Used, Limit uint64 }

// full reports whether the usage is above the share that counts as saturated.
func (u Usage) full() bool { return u.Limit > 0 && float64(u.Used) > fullShare*float64(u.Limit) }

// Readers are how the process and its system are read. Each is called once a
// second by one goroutine, and returns an error only for what should have been
// readable: it counts as unknown and is logged once.
type Readers struct {
	// SchedulingLatency returns the cumulative histogram of the time that
	// goroutines waited to run, in seconds, or nil.
	SchedulingLatency func() *metrics.Float64Histogram
	// Throttled returns how often the CPU limit has stopped the process.
	Throttled func() (uint64, error)
	// FileDescriptors returns the open files of the process and their limit.
	FileDescriptors func() (Usage, error)
	// Ports returns the ephemeral ports in use towards one remote address and
	// port, the most used, and how many there are.
	Ports func() (Usage, error)
	// Memory returns the usages of all limits that the process has.
	Memory func() ([]Usage, error)
}

// Options of a [Watch]. The functions are called once a second, by one
// goroutine, and may be nil, which stands for unknown.
type Options struct {
	Logger *slog.Logger // gets one line for each change; nil: none

	ServiceTime func() time.Duration // median over the last seconds, over all targets; 0: unknown
	Lateness    func() time.Duration // p99 over the last seconds; 0: unknown
	SelfLatency func() time.Duration // p99 over the last seconds; 0: unknown

	Readers Readers // nil functions stand for those of this system
}

// Watch tells whether the process is saturated.
type Watch struct {
	options    Options
	scheduling schedulingLatency
	throttled  counter
	complained map[string]bool // of Run's goroutine

	mu     sync.Mutex
	states [len(resourceNames)]state
}

// New returns a Watch. It samples nothing before Run.
func New(o Options) *Watch {
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	o.Readers = o.Readers.orSystem()
	for _, f := range []*func() time.Duration{&o.ServiceTime, &o.Lateness, &o.SelfLatency} {
		if *f == nil {
			*f = func() time.Duration { return 0 }
		}
	}
	w := &Watch{options: o, complained: map[string]bool{}}
	for i, name := range resourceNames {
		w.states[i] = state{name: name, needed: 1}
	}
	// One late second stands for a burst of a neighbour or a collection of
	// garbage; a process that is short of CPU has more of them.
	w.states[cpuIndex].needed = 2
	return w
}

// Indexes of resourceNames.
const (
	cpuIndex = iota
	fileDescriptorsIndex
	portsIndex
	memoryIndex
)

// Snapshot returns the state of all four resources, in the order cpu,
// file_descriptors, ports, memory. It may be called concurrently, also before
// and after Run.
func (w *Watch) Snapshot() []Resource {
	w.mu.Lock()
	defer w.mu.Unlock()
	resources := make([]Resource, len(w.states))
	for i := range w.states {
		s := &w.states[i]
		resources[i] = Resource{Name: s.name, Saturated: s.saturated, Seconds: s.total.Seconds()}
	}
	return resources
}

// Run takes a sample each second until ctx is done. It is to be called once.
func (w *Watch) Run(ctx context.Context) {
	w.causes() // where differences begin
	ticker := time.NewTicker(interval)
	defer ticker.Stop()
	before := time.Now()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		causes := w.causes()
		now := time.Now()
		w.apply(causes, now, now.Sub(before))
		before = now
	}
}

// causes samples every resource and says how it exceeds its limit; empty: it
// does not.
func (w *Watch) causes() (causes [len(resourceNames)]string) {
	r := &w.options.Readers
	causes[cpuIndex] = w.cpuCause()
	if u, err := r.FileDescriptors(); w.readable(FileDescriptors, err) && u.full() {
		causes[fileDescriptorsIndex] = fmt.Sprintf("%d of %d file descriptors are open", u.Used, u.Limit)
	}
	if u, err := r.Ports(); w.readable(Ports, err) && u.full() {
		causes[portsIndex] = fmt.Sprintf("%d of %d ephemeral ports are used towards one address", u.Used, u.Limit)
	}
	usages, err := r.Memory()
	w.readable(Memory, err)
	for _, u := range usages {
		if u.full() {
			causes[memoryIndex] = fmt.Sprintf("%d of %d bytes of memory are used", u.Used, u.Limit)
		}
	}
	return causes
}

// readable logs the first error of a reader.
func (w *Watch) readable(name string, err error) bool {
	if err != nil && !w.complained[name] {
		w.complained[name] = true
		w.options.Logger.Warn("Saturation cannot be told", "resource", name, "err", err)
	}
	return err == nil
}

// apply takes the causes of a sample at now, which ends the time elapsed.
func (w *Watch) apply(causes [len(resourceNames)]string, now time.Time, elapsed time.Duration) {
	for i, cause := range causes {
		w.mu.Lock()
		s := &w.states[i]
		changed := s.sample(cause != "", now, elapsed)
		saturated, total := s.saturated, s.total
		w.mu.Unlock()
		switch {
		case changed && saturated:
			w.options.Logger.Warn("A resource of the probe is saturated: figures are not to be trusted", "resource", resourceNames[i], "cause", cause)
		case changed:
			w.options.Logger.Info("A resource of the probe is no longer saturated", "resource", resourceNames[i], "total_seconds", total.Seconds())
		}
	}
}

// state is that of one resource.
type state struct {
	name      string
	needed    int // exceedances that make it saturated, each within the hold of the one before
	seen      int
	last      time.Time // of the last exceedance
	saturated bool
	total     time.Duration
}

// sample takes one sample and reports whether the resource became saturated,
// or ceased to be. The time elapsed counts when it was saturated during it.
func (s *state) sample(exceeded bool, now time.Time, elapsed time.Duration) (changed bool) {
	if s.saturated {
		s.total += elapsed
	}
	if s.seen > 0 && now.Sub(s.last) >= hold {
		s.seen = 0
	}
	if exceeded {
		s.seen, s.last = min(s.seen+1, s.needed), now
	}
	was := s.saturated
	switch s.seen {
	case s.needed:
		s.saturated = true
	case 0:
		s.saturated = false
	}
	return s.saturated != was
}
