package record

import (
	"net/netip"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/steadyprobe/steadyprobe/probe"
)

// answered returns the sample of a tick that took so long at an address.
func answered(at probe.Instant, took time.Duration, to netip.Addr, o probe.Outcome) *probe.Sample {
	return &probe.Sample{
		Tick: probe.Tick{Intended: at}, Begun: at, Sent: at, FirstByte: at.Add(took), End: at.Add(took),
		Outcome: o, Address: to, Code: 200, Protocol: probe.HTTP11,
	}
}

func TestAddresses(t *testing.T) {
	a, b, c, d := netip.MustParseAddr("10.0.0.1"), netip.MustParseAddr("10.0.0.2"), netip.MustParseAddr("2001:db8::1"), netip.MustParseAddr("10.0.0.9")
	r := New(Options{Clock: probe.NewClock(), Addresses: 2})
	at := probe.Instant(time.Second)
	r.Record(answered(at, 2*time.Millisecond, b, probe.Success))
	r.Record(answered(at, 3*time.Millisecond, a, probe.ReadTimeout))
	r.Record(answered(at, 4*time.Millisecond, b, probe.ConnectRefused))
	r.Record(answered(at, 5*time.Millisecond, c, probe.Success)) // no place is left
	r.Record(answered(at, 6*time.Millisecond, d, probe.ReadReset))
	r.Record(answered(at, 7*time.Millisecond, netip.Addr{}, probe.ResolveError))
	type row struct {
		Address            string
		Requests, Failures uint64
		Sum                float64 // of latencies, ms
	}
	rows := func(s *Snapshot) (rows []row) {
		for _, one := range s.Addresses {
			if one.Latency.Count != one.Requests {
				t.Errorf("%v: %d latencies of %d requests", one.Address, one.Latency.Count, one.Requests)
			}
			rows = append(rows, row{one.Address.String(), one.Requests, one.Failures, float64(int(one.Latency.Sum*1000 + 0.5))})
		}
		return rows
	}
	var s Snapshot
	r.Snapshot(&s)
	// 2 + 4 at b; 5 + 6 at the two that share a place; what went nowhere is
	// nowhere.
	want := []row{{"invalid IP", 2, 1, 11}, {"10.0.0.1", 1, 1, 3}, {"10.0.0.2", 2, 1, 6}}
	if diff := cmp.Diff(want, rows(&s)); diff != "" {
		t.Errorf("addresses (-want +got):\n%s", diff)
	}
	if s.AddressRoom != 0 {
		t.Errorf("room for %d addresses more, want none", s.AddressRoom)
	}
	r.KeepAddresses([]netip.Addr{b})
	if r.Snapshot(&s); s.AddressRoom != 1 {
		t.Errorf("room for %d addresses more, want 1", s.AddressRoom)
	}
	r.Record(answered(at, 8*time.Millisecond, c, probe.Success))
	r.Snapshot(&s)
	want = []row{{"invalid IP", 2, 1, 11}, {"10.0.0.2", 2, 1, 6}, {"2001:db8::1", 1, 0, 8}}
	if diff := cmp.Diff(want, rows(&s)); diff != "" {
		t.Errorf("addresses after one has gone (-want +got):\n%s", diff)
	}
}

func TestAddressesAreNotKeptUnasked(t *testing.T) {
	r := New(Options{Clock: probe.NewClock()})
	r.Record(answered(probe.Instant(time.Second), time.Millisecond, netip.MustParseAddr("10.0.0.1"), probe.Success))
	var s Snapshot
	r.Snapshot(&s)
	if len(s.Addresses) > 0 || len(s.Backends) > 0 {
		t.Errorf("got %v and %v, want none", s.Addresses, s.Backends)
	}
}

func TestAddressesOfAClosedLoopHaveNoLatency(t *testing.T) {
	r := New(Options{Clock: probe.NewClock(), Addresses: 1})
	one := answered(probe.Instant(time.Second), time.Millisecond, netip.MustParseAddr("10.0.0.1"), probe.Success)
	one.Closed = true
	r.Record(one)
	var s Snapshot
	r.Snapshot(&s)
	if len(s.Addresses) != 1 || s.Addresses[0].Requests != 1 || s.Addresses[0].Latency.Count != 0 {
		t.Errorf("got %+v, want one request without latency", s.Addresses)
	}
}

func TestBackendsThatFallSilent(t *testing.T) {
	table := probe.NewBackends(2)
	r := New(Options{Clock: probe.NewClock(), Backends: table})
	count := func(name string, at time.Duration) {
		s := answered(probe.Instant(time.Second+at), 0, netip.Addr{}, probe.Success)
		s.Backend = table.Named([]byte(name))
		r.Record(s)
	}
	count("b", 0)
	count("a", time.Minute)
	count("b", 2*time.Minute)
	count("c", 3*time.Minute)                                                      // the table is full
	r.Record(answered(probe.Instant(time.Second), 0, netip.Addr{}, probe.Success)) // nobody said who
	names := func(at time.Duration) []BackendCount {
		var s Snapshot
		r.snapshot(probe.Instant(time.Second+at), &s)
		return s.Backends
	}
	for _, row := range []struct {
		at   time.Duration
		want []BackendCount
	}{
		{3 * time.Minute, []BackendCount{{"a", 1}, {"b", 2}, {"other", 1}}},
		{time.Hour + time.Minute - 1, []BackendCount{{"a", 1}, {"b", 2}, {"other", 1}}},
		{time.Hour + time.Minute, []BackendCount{{"b", 2}, {"other", 1}}},
		{time.Hour + 3*time.Minute, nil},
	} {
		if diff := cmp.Diff(row.want, append([]BackendCount(nil), names(row.at)...)); diff != "" {
			t.Errorf("backends at %v (-want +got):\n%s", row.at, diff)
		}
	}
	count("c", 2*time.Hour)
	if diff := cmp.Diff([]BackendCount{{"c", 1}}, names(2*time.Hour)); diff != "" {
		t.Errorf("a place that was given up is not given again (-want +got):\n%s", diff)
	}
}

// TestBackendForgottenUnderWay has an answer whose backend is forgotten between
// its end and its recording: later ones are of another backend of that name.
func TestBackendForgottenUnderWay(t *testing.T) {
	table := probe.NewBackends(1)
	r := New(Options{Clock: probe.NewClock(), Backends: table})
	record := func(by *probe.Backend, at time.Duration) {
		s := answered(probe.Instant(time.Second+at), 0, netip.Addr{}, probe.Success)
		s.Backend = by
		r.Record(s)
	}
	counts := func(at time.Duration) []BackendCount {
		var s Snapshot
		r.snapshot(probe.Instant(time.Second+at), &s)
		return s.Backends
	}
	first := table.Named([]byte("a"))
	record(first, 0)
	if got := counts(time.Hour); len(got) != 0 {
		t.Errorf("got %v after an hour, want none", got)
	}
	record(first, time.Hour)
	record(table.Named([]byte("a")), time.Hour+time.Minute)
	if diff := cmp.Diff([]BackendCount{{"a", 2}}, counts(time.Hour+time.Minute)); diff != "" {
		t.Errorf("backends (-want +got):\n%s", diff)
	}
	// The first one falls silent, the second one keeps its place.
	if diff := cmp.Diff([]BackendCount{{"a", 1}}, counts(2*time.Hour)); diff != "" {
		t.Errorf("backends (-want +got):\n%s", diff)
	}
	if table.Named([]byte("b")) != table.Other() {
		t.Error("a has lost its place")
	}
}

func TestAnswersWithoutAStatus(t *testing.T) {
	r := New(Options{Clock: probe.NewClock()})
	for _, p := range []probe.Protocol{probe.TCP, probe.TLS, probe.TCP, probe.NoProtocol} {
		s := answered(probe.Instant(time.Second), 0, netip.Addr{}, probe.Success)
		s.Code, s.Protocol = 0, p
		r.Record(s)
	}
	var s Snapshot
	r.Snapshot(&s)
	want := []ResponseCount{{Protocol: probe.TCP, Count: 2}, {Protocol: probe.TLS, Count: 1}}
	if diff := cmp.Diff(want, s.Responses); diff != "" {
		t.Errorf("responses (-want +got):\n%s", diff)
	}
}

func TestPlacesCostNoAllocation(t *testing.T) {
	table := probe.NewBackends(10)
	r := New(Options{Clock: probe.NewClock(), Addresses: 10, Backends: table})
	s := answered(probe.Instant(time.Second), time.Millisecond, netip.MustParseAddr("10.0.0.1"), probe.Success)
	s.Backend = table.Named([]byte("a"))
	r.Record(s)
	if n := testing.AllocsPerRun(1000, func() { r.Record(s) }); n != 0 {
		t.Errorf("%v allocations a sample", n)
	}
}

// Figures of addresses and backends begin and end while there are samples; what
// backends were counted stays.
func TestReconfigure(t *testing.T) {
	r := New(Options{Clock: probe.NewClock()})
	address := netip.MustParseAddr("10.0.0.1")
	answer := func() {
		s := answered(probe.Instant(time.Second), time.Millisecond, address, probe.Success)
		if table := r.Backends(); table != nil {
			s.Backend = table.Named([]byte("web-1"))
		}
		r.Record(s)
	}
	var s Snapshot
	check := func(what string, requests, answers uint64) {
		t.Helper()
		r.Snapshot(&s)
		var gotRequests, gotAnswers uint64
		for _, a := range s.Addresses {
			gotRequests += a.Requests
		}
		for _, b := range s.Backends {
			gotAnswers += b.Answers
		}
		if gotRequests != requests || gotAnswers != answers {
			t.Errorf("%s: %d requests by address, %d answers by backend; want %d, %d", what, gotRequests, gotAnswers, requests, answers)
		}
	}
	answer()
	check("at first", 0, 0)
	r.Reconfigure(1, 1)
	answer()
	check("with both", 1, 1)
	r.Reconfigure(1, 2)
	answer()
	if table := r.Backends(); table.Named([]byte("web-2")) == table.Other() || table.Named([]byte("web-3")) != table.Other() {
		t.Error("there is no room for a second backend, or for a third one")
	}
	check("with room for more", 2, 2)
	r.Reconfigure(0, 0)
	answer()
	check("with neither", 0, 3)
	r.Reconfigure(1, 1)
	answer()
	check("again", 1, 4)
}
