package exporter

import (
	"io"
	"math"
	"net/netip"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"google.golang.org/protobuf/proto"

	"github.com/steadyprobe/steadyprobe/probe"
	"github.com/steadyprobe/steadyprobe/probe/record"
)

var (
	testStart   = time.Unix(1_700_000_000, 0)
	testCreated = time.Unix(1_700_000_100, 0)
)

// copied is a gatherer whose families stay valid, as tests need them.
type copied struct{ e *Exporter }

func (c copied) Gather() ([]*dto.MetricFamily, error) {
	families, done, err := c.e.Gather()
	defer done()
	own := make([]*dto.MetricFamily, len(families))
	for i, f := range families {
		own[i] = proto.Clone(f).(*dto.MetricFamily)
	}
	return own, err
}

// checked gathers through client_golang's own consistency checks.
func checked(e *Exporter) prometheus.Gatherer { return prometheus.Gatherers{copied{e}} }

// distribution counts the durations on the default boundaries.
func distribution(b *record.Boundaries, all ...time.Duration) (d record.Distribution) {
	h := record.NewHistogram(b)
	for _, each := range all {
		h.Observe(each)
	}
	h.Snapshot(&d)
	return d
}

// fakeTarget is what one target has counted.
type fakeTarget struct {
	ledger   probe.Ledger
	snapshot record.Snapshot
	resolver ResolverStats
}

// copySnapshot fills s as a recorder does: with copies, in the slices of s.
func (f *fakeTarget) copySnapshot(s *record.Snapshot) {
	from := &f.snapshot
	for i := range s.Latency {
		for j := range s.Latency[i] {
			copyTo(&s.Latency[i][j], &from.Latency[i][j])
		}
		copyTo(&s.ServiceTime[i], &from.ServiceTime[i])
		copyTo(&s.HandshakeTime[i], &from.HandshakeTime[i])
	}
	for i := range s.Phases {
		copyTo(&s.Phases[i], &from.Phases[i])
	}
	copyTo(&s.Lateness, &from.Lateness)
	s.Handshakes = append(s.Handshakes[:0], from.Handshakes...)
	s.Responses = append(s.Responses[:0], from.Responses...)
	s.Backends = append(s.Backends[:0], from.Backends...)
	s.Addresses = s.Addresses[:cap(s.Addresses)]
	for len(s.Addresses) < len(from.Addresses) {
		s.Addresses = append(s.Addresses, record.AddressCount{})
	}
	s.Addresses = s.Addresses[:len(from.Addresses)]
	for i := range s.Addresses {
		to, from := &s.Addresses[i], &from.Addresses[i]
		to.Address, to.Requests, to.Failures = from.Address, from.Requests, from.Failures
		copyTo(&to.Latency, &from.Latency)
	}
	s.AddressRoom = from.AddressRoom
	s.Certificate, s.Clamped, s.Windows = from.Certificate, from.Clamped, from.Windows
}

func copyTo(to, from *record.Distribution) {
	classic, native := append(to.Classic[:0], from.Classic...), append(to.Native[:0], from.Native...)
	*to = *from
	to.Classic, to.Native = classic, native
}

// emptySnapshot is what a recorder holds before its first sample.
func emptySnapshot() (s record.Snapshot) {
	for i := range s.Windows {
		for j := range s.Windows[i] {
			s.Windows[i][j] = math.NaN()
		}
	}
	return s
}

func (f *fakeTarget) fill(t Target) Target {
	t.Connections, t.Loop, t.Pacing, t.Arrival, t.Created = 50, "open", "precise", "uniform", testCreated
	t.Ledger = func() probe.Ledger { return f.ledger }
	t.Snapshot = f.copySnapshot
	t.Resolver = func() ResolverStats { return f.resolver }
	return t
}

// plainTarget has seen four requests over HTTP at an address: one is in
// flight, one waits, one succeeded and one timed out.
func plainTarget() Target {
	b := record.DefaultBounds()
	f := &fakeTarget{snapshot: emptySnapshot(), resolver: ResolverStats{Addresses: 1}}
	l, s := &f.ledger, &f.snapshot
	l.Scheduled, l.InFlight, l.Backlog = 4, 1, 1
	l.Completed[probe.NoChurn][probe.Success] = 1
	l.Completed[probe.NoChurn][probe.ReadTimeout] = 1
	l.Bytes = probe.Bytes{Sent: 300, Received: 1500}
	l.Connections, l.Opened = 2, 3
	l.Closed[probe.CloseTimeout] = 1
	l.OpeningFailures[probe.ConnectRefused] = 2
	s.Latency[record.Succeeded][probe.NoChurn] = distribution(b.Latency, 2*time.Millisecond)
	s.Latency[record.Failed][probe.NoChurn] = distribution(b.Latency, 5*time.Second)
	s.ServiceTime[record.Succeeded] = distribution(b.ServiceTime, time.Millisecond)
	s.ServiceTime[record.Failed] = distribution(b.ServiceTime, 5*time.Second)
	s.Phases[probe.PhaseWait] = distribution(b.Phase, time.Millisecond)
	s.Phases[probe.PhaseConnect] = distribution(b.Phase, 100*time.Microsecond)
	s.Phases[probe.PhaseProcessing] = distribution(b.Phase, time.Millisecond, 5*time.Second)
	s.Phases[probe.PhaseTransfer] = distribution(b.Phase, 0)
	s.Lateness = distribution(b.Lateness, 30*time.Microsecond, 40*time.Microsecond, 2*time.Second)
	s.Responses = []record.ResponseCount{{Code: 200, Protocol: probe.HTTP11, Count: 1}, {Protocol: probe.HTTP10, Count: 1}}
	s.Windows[0][0] = 0.002
	s.Clamped = 1
	return f.fill(Target{Name: "plain", URL: "http://192.0.2.1/", Rate: 0.5, Reuse: false})
}

// fullTarget shows every family that a target can have.
func fullTarget() Target {
	b := record.DefaultBounds()
	f := &fakeTarget{
		snapshot: emptySnapshot(),
		resolver: ResolverStats{
			Lookups: 7, NotFound: 1, TimedOut: 2, Failed: 3, Addresses: 4, Added: 6, Removed: 2,
			// Of the last two, which have had no request, one has a place of its own.
			Present: []netip.Addr{netip.MustParseAddr("192.0.2.1"), netip.MustParseAddr("2001:db8::1"), netip.MustParseAddr("2001:db8::2")},
		},
	}
	l, s := &f.ledger, &f.snapshot
	l.Scheduled = 6
	l.Completed[probe.Settled][probe.Success] = 3
	l.Completed[probe.ScalingDown][probe.Success] = 1
	l.Completed[probe.ScalingDown][probe.ReadStale] = 2
	l.WithinObjective[probe.Settled] = 2
	l.Opened, l.Connections = 2, 2
	s.Latency[record.Succeeded][probe.Settled] = distribution(b.Latency, 20*time.Millisecond, 30*time.Millisecond, time.Second)
	s.HandshakeTime[record.Full] = distribution(b.Handshake, 3*time.Millisecond)
	s.HandshakeTime[record.Resumed] = distribution(b.Handshake, time.Millisecond)
	s.Handshakes = []record.HandshakeCount{
		{Version: 0x0304, Cipher: 0x1301, Group: 29, Count: 1},
		{Version: 0x0303, Cipher: 0xc02f, Resumed: true, Count: 1},
	}
	s.Certificate = record.Certificate{Seen: true, Verified: true, NotBefore: 1_690_000_000, NotAfter: 1_760_000_000}
	s.Responses = []record.ResponseCount{{Code: 204, Protocol: probe.HTTP11, Count: 4}, {Protocol: probe.TLS, Count: 1}}
	s.Backends = []record.BackendCount{{Name: "other", Answers: 1}, {Name: "shop-1", Answers: 3}}
	s.Addresses = []record.AddressCount{
		{Requests: 1, Failures: 1, Latency: distribution(b.Latency, time.Second)},
		{Address: netip.MustParseAddr("192.0.2.1"), Requests: 4, Failures: 1, Latency: distribution(b.Latency, 20*time.Millisecond)},
		{Address: netip.MustParseAddr("192.0.2.9"), Requests: 1, Latency: distribution(b.Latency, time.Second)}, // has gone
	}
	s.AddressRoom = 1
	return f.fill(Target{
		Name: "full", URL: "https://shop.example.com/healthz", Rate: 1000, Reuse: true,
		Labels:    map[string]string{"front": "ingress", "site": "fra1"},
		Objective: 250 * time.Millisecond, ObjectiveRatio: 0.999,
		TLS: true, Named: true, Proxy: true, Churned: true,
	})
}

// closedTarget is a closed loop that has seen two requests: one is in flight,
// one succeeded.
func closedTarget() Target {
	b := record.DefaultBounds()
	f := &fakeTarget{snapshot: emptySnapshot(), resolver: ResolverStats{Addresses: 1}}
	l, s := &f.ledger, &f.snapshot
	l.Scheduled, l.InFlight = 2, 1
	l.Completed[probe.NoChurn][probe.Success] = 1
	l.Connections, l.Opened = 1, 1
	s.ServiceTime[record.Succeeded] = distribution(b.ServiceTime, time.Millisecond)
	s.Phases[probe.PhaseProcessing] = distribution(b.Phase, time.Millisecond)
	s.Phases[probe.PhaseTransfer] = distribution(b.Phase, 0)
	s.Responses = []record.ResponseCount{{Code: 200, Protocol: probe.HTTP11, Count: 1}}
	t := f.fill(Target{Name: "closed", URL: "http://192.0.2.1/", Reuse: true})
	t.Loop = "closed"
	return t
}

// testChurn has begun three steps, one of which converged at once, and was
// refused one.
func testChurn() Churn {
	b := record.DefaultBounds().Convergence
	return Churn{Name: "shop-backend", Created: testCreated, Read: func(s *ChurnState) {
		s.Baseline, s.Desired, s.Ready, s.Endpoints = 2, 4, 3, 1
		s.Phase, s.State = probe.ScalingUp, "running"
		s.Steps = [2]uint64{Up: 2, Down: 1}
		s.Errors[ChurnConflict], s.Errors[ChurnOther] = 1, 2
		up, down := distribution(b, 1500*time.Millisecond, 2*time.Second), distribution(b, 0)
		copyTo(&s.Convergence[Up], &up)
		copyTo(&s.Convergence[Down], &down)
		first, last, over := distribution(b, 2*time.Second, 2*time.Second), distribution(b, 3*time.Second), distribution(b, 0)
		copyTo(&s.FirstResponse, &first)
		copyTo(&s.LastResponse, &last)
		copyTo(&s.Failover, &over)
		s.Leader, s.RestorePending, s.LastBeat = true, true, testCreated.Add(1500*time.Millisecond)
	}}
}

// newChurn has done nothing yet, and says nothing.
func newChurn() Churn {
	return Churn{Name: "a-backend", Created: testCreated, Read: func(*ChurnState) {}}
}

func testOptions() Options {
	return Options{
		Start:      testStart,
		Histograms: DefaultHistograms(),
		SelfLatency: func(d *record.Distribution) {
			*d = distribution(record.DefaultBounds().Lateness, 90*time.Microsecond)
		},
		Saturation: func() []Saturation {
			return []Saturation{
				{Resource: "cpu", Saturated: true, Seconds: 1.5},
				{Resource: "file_descriptors"}, {Resource: "ports"}, {Resource: "memory"},
			}
		},
		Shard:           Shard{Index: 2, Count: 3},
		HistoryFailures: func() uint64 { return 5 },
		Discovery: func() []Source {
			return []Source{
				{Name: "files", Targets: 2, Held: 2, Refused: []RefusedTargets{{Reason: "host"}, {Reason: "limits"}}, Failures: 3},
				{Name: "ingresses", Targets: 7, Refused: []RefusedTargets{{Reason: "host", Targets: 4}, {Reason: "limits"}}},
			}
		},
		Reload: func() Reload { return Reload{Successful: true, Success: testStart.Add(2500 * time.Millisecond)} },
	}
}

func newExporter(t testing.TB, o Options, targets ...Target) *Exporter {
	t.Helper()
	e, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	if err := e.SetTargets(targets); err != nil {
		t.Fatal(err)
	}
	return e
}

// withChurns has the exporter show the churns too.
func withChurns(t testing.TB, e *Exporter, churns ...Churn) *Exporter {
	t.Helper()
	if err := e.SetChurns(churns); err != nil {
		t.Fatal(err)
	}
	return e
}

// scrape gathers and encodes once, as a scrape does, and returns how many
// bytes it sent.
func scrape(t testing.TB, e *Exporter, format expfmt.Format) int64 {
	t.Helper()
	families, done, err := e.Gather()
	defer done()
	if err != nil {
		t.Fatal(err)
	}
	var size counted
	enc := expfmt.NewEncoder(&size, format)
	for _, f := range families {
		if err := enc.Encode(f); err != nil {
			t.Fatal(err)
		}
	}
	if c, ok := enc.(io.Closer); ok {
		if err := c.Close(); err != nil {
			t.Fatal(err)
		}
	}
	return int64(size)
}

type counted int64

func (c *counted) Write(b []byte) (int, error) {
	*c += counted(len(b))
	return len(b), nil
}

// churnedTarget is one that a churn is tied to, before its first request.
func churnedTarget() Target {
	f := &fakeTarget{snapshot: emptySnapshot(), resolver: ResolverStats{Addresses: 1}}
	return f.fill(Target{Name: "churned", URL: "http://192.0.2.1/", Rate: 1, Reuse: true, Churned: true, Objective: time.Second})
}
