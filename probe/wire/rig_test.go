package wire

import (
	"context"
	"crypto/tls"
	"net"
	"strconv"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/steadyprobe/steadyprobe/probe"
	"github.com/steadyprobe/steadyprobe/probe/resolve"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// fakeRecorder keeps every sample.
type fakeRecorder struct {
	mu       sync.Mutex
	samples  []probe.Sample
	openings []probe.Sample
	came     chan struct{}
}

func (r *fakeRecorder) Record(s *probe.Sample) {
	r.mu.Lock()
	r.samples = append(r.samples, *s)
	r.mu.Unlock()
	r.came <- struct{}{}
}

func (r *fakeRecorder) RecordOpening(s *probe.Sample) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.openings = append(r.openings, *s)
}

// rig sends ticks through a real Prober and a real Opener.
type rig struct {
	t        *testing.T
	clock    probe.Clock
	prober   *probe.Prober
	resolver *resolve.Resolver
	recorder *fakeRecorder
}

// fixed returns a configuration that never changes; nil: plain.
func fixed(c *tls.Config) TLSConfigFunc {
	if c == nil {
		return nil
	}
	return func() *tls.Config { return c }
}

// resolverOf returns a Resolver of an address.
func resolverOf(t *testing.T, clock probe.Clock, address string) *resolve.Resolver {
	t.Helper()
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		t.Fatal(err)
	}
	number, err := strconv.Atoi(port)
	if err != nil {
		t.Fatal(err)
	}
	return resolve.New(resolve.Options{Host: host, Port: uint16(number), Clock: clock, Refresh: time.Minute})
}

// newRig returns a rig for a door at address, with what is not set in the
// options and the target filled in.
func newRig(t *testing.T, address string, o Options, target probe.Target) *rig {
	t.Helper()
	if o.Clock == (probe.Clock{}) {
		o.Clock = probe.NewClock()
	}
	if o.Resolver == nil {
		o.Resolver = resolverOf(t, o.Clock, address)
	}
	o.Request.Host = address
	if o.Request.Target == "" {
		o.Request.Target = "/"
	}
	if o.Request.Method == "" {
		o.Request.Method = "GET"
	}
	if o.Timeout == 0 {
		o.Timeout = 5 * time.Second
	}
	if o.Statuses == (Statuses{}) {
		o.Statuses.Add(200, 299)
	}
	if o.MaxBody == 0 {
		o.MaxBody = 1 << 20
	}
	target.Timeout, target.Reuse = o.Timeout, o.Reuse
	return rigFor(t, o.Clock, o.Resolver, NewOpener(o), target)
}

// newStreamRig is newRig below HTTP.
func newStreamRig(t *testing.T, address string, o StreamOptions, target probe.Target) *rig {
	t.Helper()
	if o.Clock == (probe.Clock{}) {
		o.Clock = probe.NewClock()
	}
	if o.Resolver == nil {
		o.Resolver = resolverOf(t, o.Clock, address)
	}
	if o.Timeout == 0 {
		o.Timeout = 5 * time.Second
	}
	if o.MaxBody == 0 {
		o.MaxBody = 1 << 20
	}
	target.Timeout = o.Timeout
	return rigFor(t, o.Clock, o.Resolver, NewStream(o), target)
}

func rigFor(t *testing.T, clock probe.Clock, resolver *resolve.Resolver, opener probe.Opener, target probe.Target) *rig {
	t.Helper()
	if target.Connections == 0 {
		target.Connections = 1
	}
	target.Rate, target.Backlog = 1000, time.Minute
	r := &rig{t: t, clock: clock, resolver: resolver, recorder: &fakeRecorder{came: make(chan struct{}, 1000)}}
	r.prober = probe.New(target, clock, opener, r.recorder)
	t.Cleanup(r.close)
	return r
}

func (r *rig) close() {
	r.prober.Close(context.Background())
	r.resolver.Close()
}

// send sends one tick and returns its sample.
func (r *rig) send() probe.Sample {
	r.t.Helper()
	r.prober.Take(r.clock.Now())
	return r.next()
}

// next waits for a sample.
func (r *rig) next() probe.Sample {
	r.t.Helper()
	<-r.recorder.came
	r.recorder.mu.Lock()
	defer r.recorder.mu.Unlock()
	s := r.recorder.samples[len(r.recorder.samples)-1]
	checkPhases(r.t, &s)
	return s
}

// checkPhases holds a sample against the identities of its parts.
func checkPhases(t *testing.T, s *probe.Sample) {
	t.Helper()
	if got := s.Lateness() + s.Wait() + s.ServiceTime(); got != s.Latency() {
		t.Errorf("lateness + wait + service time is %v, latency %v", got, s.Latency())
	}
	parts := s.Resolve + s.Connect + s.TLS
	if s.Sent != 0 {
		parts += s.Processing() + s.Transfer()
	}
	if parts != s.ServiceTime() {
		t.Errorf("the phases add up to %v, service time is %v", parts, s.ServiceTime())
	}
	for _, d := range []time.Duration{s.Lateness(), s.Wait(), s.Resolve, s.Connect, s.TLS, s.Processing(), s.Transfer()} {
		if d < 0 {
			t.Errorf("a part of %+v is negative: %v", s, d)
		}
	}
}
