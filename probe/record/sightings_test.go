package record

import (
	"net/netip"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/steadyprobe/steadyprobe/probe"
)

// sighted records answers of named backends, and failures of nobody, at times
// that count from the first second.
type sighted struct {
	table *probe.Backends
	r     *Recorder
}

func newSighted(most int) sighted {
	table := probe.NewBackends(most)
	return sighted{table, New(Options{Clock: probe.NewClock(), Backends: table})}
}

func at(d time.Duration) probe.Instant { return probe.Instant(time.Second + d) }

func (s sighted) answer(name string, end time.Duration) {
	one := answered(at(end), 0, netip.Addr{}, probe.Success)
	one.Backend = s.table.Named([]byte(name))
	s.r.Record(one)
}

func (s sighted) fail(o probe.Outcome, end time.Duration) {
	s.r.Record(answered(at(end), 0, netip.Addr{}, o))
}

func TestSightingsSinceAMark(t *testing.T) {
	s := newSighted(3)
	check := func(what string, failed probe.Instant, want ...Sighting) {
		t.Helper()
		got, last := s.r.Sightings(nil, false), s.r.LastFailure()
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", what, diff)
		}
		if last != failed {
			t.Errorf("%s: the last failure was at %v, want %v", what, last, failed)
		}
	}
	check("nobody yet", 0)
	s.answer("b", time.Second)
	s.answer("a", 2*time.Second)
	s.answer("b", 3*time.Second)
	s.fail(probe.ReadReset, 3*time.Second)
	check("before any mark", at(3*time.Second),
		Sighting{Name: "a", First: at(2 * time.Second), Last: at(2 * time.Second), Answers: 1},
		Sighting{Name: "b", First: at(time.Second), Last: at(3 * time.Second), Answers: 2})
	if diff := cmp.Diff(s.r.Sightings(nil, false), s.r.Sightings(nil, true)); diff != "" {
		t.Errorf("told with the mark (-without +with):\n%s", diff)
	}
	check("at the mark", at(3*time.Second),
		Sighting{Name: "a", Before: at(2 * time.Second)},
		Sighting{Name: "b", Before: at(3 * time.Second)})
	s.answer("c", 4*time.Second)
	s.answer("b", 5*time.Second)
	s.answer("c", 6*time.Second)
	s.answer("b", 7*time.Second)
	s.answer("no place", 8*time.Second)
	s.fail(probe.ReadReset, 9*time.Second)
	s.fail(probe.ConnectRefused, 8*time.Second) // recorded later, ended before
	check("since the mark", at(9*time.Second),
		Sighting{Name: "a", Before: at(2 * time.Second)},
		Sighting{Name: "b", Before: at(3 * time.Second), First: at(5 * time.Second), Last: at(7 * time.Second), Answers: 2},
		Sighting{Name: "c", First: at(4 * time.Second), Last: at(6 * time.Second), Answers: 2})
	s.r.Sightings(nil, true)
	check("at the second mark", at(9*time.Second),
		Sighting{Name: "a", Before: at(2 * time.Second)},
		Sighting{Name: "b", Before: at(7 * time.Second)},
		Sighting{Name: "c", Before: at(6 * time.Second)})
}

// The probe's own failures are no door's.
func TestOwnFailuresAreNoSightings(t *testing.T) {
	for i := range probe.NumOutcomes {
		o := probe.Outcome(i)
		if o == probe.Success {
			continue
		}
		s := newSighted(1)
		s.fail(o, time.Second)
		want := at(time.Second)
		if o == probe.ScheduleShutdown || o == probe.ConnectLocalResource {
			want = 0
		}
		if got := s.r.LastFailure(); got != want {
			t.Errorf("%v: the last failure was at %v, want %v", o, got, want)
		}
	}
}

// A backend that was forgotten while an answer of it was under way is two, and
// is told of as one.
func TestSightingsOfOneNameAreOne(t *testing.T) {
	s := newSighted(2)
	before := s.table.Named([]byte("a"))
	s.table.Forget(before)
	for i, by := range []*probe.Backend{before, s.table.Named([]byte("a")), before} {
		one := answered(at(time.Duration(i)*time.Second), 0, netip.Addr{}, probe.Success)
		one.Backend = by
		s.r.Record(one)
	}
	got := s.r.Sightings(make([]Sighting, 5), true)
	want := []Sighting{{Name: "a", First: at(0), Last: at(2 * time.Second), Answers: 3}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("sightings (-want +got):\n%s", diff)
	}
	got = s.r.Sightings(got, false)
	if diff := cmp.Diff([]Sighting{{Name: "a", Before: at(2 * time.Second)}}, got); diff != "" {
		t.Errorf("sightings after the mark (-want +got):\n%s", diff)
	}
}

func TestSightingsWithoutBackends(t *testing.T) {
	r := New(Options{Clock: probe.NewClock()})
	r.Record(answered(at(time.Second), 0, netip.Addr{}, probe.Success))
	if got := r.Sightings(nil, true); len(got) != 0 {
		t.Errorf("got %v, want none", got)
	}
}

// What a churn asks for again and again allocates nothing.
func TestSightingsUseTheirRoom(t *testing.T) {
	s := newSighted(10)
	s.answer("a", 0)
	s.answer("b", 0)
	room := s.r.Sightings(nil, false)
	if n := testing.AllocsPerRun(100, func() { room = s.r.Sightings(room, true) }); n != 0 {
		t.Errorf("%v allocations, want none", n)
	}
}
