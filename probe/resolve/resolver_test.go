package resolve

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/steadyprobe/steadyprobe/probe"
)

func TestLiteralAddressNeedsNoLookup(t *testing.T) {
	for _, tc := range []struct{ host, want string }{
		{"127.0.0.1", "127.0.0.1:80"},
		{"::1", "[::1]:80"},
		{"::ffff:10.0.0.1", "10.0.0.1:80"},
		{"fe80::1%lo", "[fe80::1%lo]:80"},
	} {
		t.Run(tc.host, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := New(Options{Host: tc.host, Port: 80, Clock: probe.NewClock(),
					Lookup:  func(context.Context, string, string) ([]netip.Addr, error) { panic("a lookup was made") },
					Changed: func([]netip.Addr) { panic("a change was told") },
				})
				r.Start()
				sleep(time.Hour)
				a, looked, o := r.Pick(context.Background())
				if a.String() != tc.want || looked || o != probe.Success {
					t.Errorf("picked %v (looked up: %v), %v, want %s", a, looked, o, tc.want)
				}
				r.Failed(a)
				r.Connected(a)
				if other, ok := r.Other(a); ok {
					t.Errorf("the other family has %v", other)
				}
				sleep(time.Hour)
				if got := r.Addresses(); !slices.Equal(got, []netip.Addr{a.Addr()}) || r.Stats() != (Stats{Addresses: 1}) {
					t.Errorf("addresses %v, %+v", got, r.Stats())
				}
				r.Close()
			})
		})
	}
}

func TestRefreshOnTheClock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fakeServer{answer: []string{"10.0.0.1", "10.0.0.2"}}
		r := started(t, f, Options{})
		if _, looked := pick(r); !looked {
			t.Error("the first pick made no lookup")
		}
		f.set([]string{"10.0.0.2", "10.0.0.3"}, nil)
		sleep(27*time.Second - 1)
		if got := f.lookups(); got != 1 {
			t.Errorf("%d lookups before one is due, want 1", got)
		}
		sleep(3*time.Second + 1)
		if s := r.Stats(); s.Lookups != 2 || s.Addresses != 2 || s.Added != 3 || s.Removed != 1 {
			t.Errorf("stats %+v, want 2 lookups, 2 addresses, 3 added, 1 removed", s)
		}
		// No opening asks, and it goes on: 100 refreshes take 100 to 111 lookups.
		sleep(100 * refresh)
		if n := f.lookups() - 2; n < 100 || n > 112 {
			t.Errorf("%d lookups in 100 refreshes", n)
		}
	})
}

// TestClockWithoutAnOpening has no opening at all.
func TestClockWithoutAnOpening(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fakeServer{answer: []string{"10.0.0.1"}}
		r := started(t, f, Options{})
		r.Start() // again: there is one clock
		sleep(0)
		if f.lookups() != 0 {
			t.Error("the name was looked up at the start, where no opening can count the time that takes")
		}
		sleep(refresh)
		if got, looked := pick(r); got != "10.0.0.1" || looked || f.lookups() != 1 {
			t.Errorf("picked %s (looked up: %v) after %d lookups, want one by the clock", got, looked, f.lookups())
		}
		r.Close()
		r.Close()
		sleep(time.Hour)
		if f.lookups() != 1 {
			t.Errorf("%d lookups, want none after Close", f.lookups()-1)
		}
	})
}

// TestManyDoNotAskTogether has 1,000 targets, first looked up at one instant.
func TestManyDoNotAskTogether(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fakeServer{answer: []string{"10.0.0.1"}}
		for range 1000 {
			pick(started(t, f, Options{}))
		}
		sleep(refresh)
		perInstant := map[time.Time]int{}
		for _, at := range f.times[1000:] {
			perInstant[at.Truncate(100*time.Millisecond)]++
		}
		// Over 3 s they are 33 in each 100 ms, with a deviation of 5.7.
		for at, n := range perInstant {
			if n > 70 {
				t.Errorf("%d lookups within 100 ms of %v", n, at)
			}
		}
		if len(f.times) != 2000 {
			t.Errorf("%d lookups, want 2,000", len(f.times))
		}
	})
}

func TestFailedLookup(t *testing.T) {
	for _, tc := range []struct {
		name string
		err  error
		want probe.Outcome
	}{
		{"no such name", errNoSuchName, probe.ResolveNotFound},
		{"server silent", errSilent, probe.ResolveTimeout},
		{"server broken", errBroken, probe.ResolveError},
		{"only the other family in the hosts file", &net.AddrError{Err: "no suitable address found"}, probe.ResolveNotFound},
		{"anything else", errors.New("no"), probe.ResolveError},
		{"empty answer", nil, probe.ResolveNotFound},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := &fakeServer{err: tc.err}
				r := newResolver(t, f, Options{}) // without its clock
				if got, looked := pick(r); got != tc.want.String() || !looked {
					t.Errorf("picked %s (looked up: %v), want %v", got, looked, tc.want)
				}
				if s := r.Stats(); s.Lookups != 1 || s.Failures[tc.want] != 1 {
					t.Errorf("stats %+v, want one failure", s)
				}
				// The failure stands for a second; then a name that exists is found.
				f.set([]string{"10.0.0.1"}, nil)
				sleep(time.Second - 1)
				if got, looked := pick(r); got != tc.want.String() || looked {
					t.Errorf("picked %s (looked up: %v), want %v without a lookup", got, looked, tc.want)
				}
				sleep(1)
				if got, _ := pick(r); got != "10.0.0.1" {
					t.Errorf("picked %s once the name is there", got)
				}
				// From now on it is gone: the last good addresses serve on, and each
				// failure counts.
				f.set(nil, tc.err)
				r.Start()
				sleep(10 * time.Minute)
				if got, looked := pick(r); got != "10.0.0.1" || looked {
					t.Errorf("picked %s (looked up: %v), want the last good address at once", got, looked)
				}
				// After 30 s, then 1, 2, 4, 8 and 16 s after each other, then every
				// 30 s: 1 + 5 + 539/30 = 23.9, and up to a ninth more.
				s := r.Stats()
				if n := s.Failures[tc.want] - 1; n < 23 || n > 27 || s.Lookups != n+2 || s.Addresses != 1 || s.Removed != 0 {
					t.Errorf("stats %+v, want 23 to 27 failures and the address kept", s)
				}
				// And where it is back, elsewhere, that is seen within one refresh.
				f.set([]string{"10.0.0.2"}, nil)
				sleep(refresh)
				if got, _ := pick(r); got != "10.0.0.2" {
					t.Errorf("picked %s, want the new address", got)
				}
				// The next failure is the first one again: after at most 30 s, then
				// within 1 and 2 s after each other, are three by 33 s.
				f.set(nil, tc.err)
				before := f.lookups()
				sleep(33 * time.Second)
				if n := f.lookups() - before; n < 3 {
					t.Errorf("%d lookups, want at least 3", n)
				}
			})
		})
	}
}

// TestNameThatExistsLater has a clock and no openings in the meantime.
func TestNameThatExistsLater(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fakeServer{err: errNoSuchName}
		r := started(t, f, Options{})
		if got, _ := pick(r); got != "resolve/not_found" {
			t.Errorf("picked %s", got)
		}
		f.set([]string{"10.0.0.1"}, nil)
		sleep(time.Second)
		if got, looked := pick(r); got != "10.0.0.1" || looked {
			t.Errorf("picked %s (looked up: %v), want what the clock found", got, looked)
		}
	})
}

func TestOneLookupAtATime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fakeServer{answer: []string{"10.0.0.1"}, delay: time.Second}
		r := started(t, f, Options{})
		var picks sync.WaitGroup
		for range 10 {
			picks.Go(func() {
				if got, looked := pick(r); got != "10.0.0.1" || !looked {
					t.Errorf("picked %s (looked up: %v)", got, looked)
				}
			})
		}
		picks.Wait()
		if f.lookups() != 1 {
			t.Errorf("%d lookups, want 1", f.lookups())
		}
		// While the clock looks the name up, all use what is known.
		f.mu.Lock()
		f.delay = time.Hour
		f.mu.Unlock()
		sleep(refresh)
		if got, looked := pick(r); got != "10.0.0.1" || looked || f.lookups() != 2 {
			t.Errorf("picked %s (looked up: %v), %d lookups, want the old address while the second goes on", got, looked, f.lookups())
		}
		// It ends within its limit, and counts.
		sleep(lookupLimit)
		if s := r.Stats(); s.Failures[probe.ResolveTimeout] != 1 || s.Addresses != 1 {
			t.Errorf("stats %+v, want one timeout, and the address kept", s)
		}
		// The next one is ended by Close, which says nothing of the name.
		sleep(time.Second)
		if f.lookups() != 3 {
			t.Errorf("%d lookups, want 3", f.lookups())
		}
		began := time.Now()
		r.Close()
		if took := time.Since(began); took != 0 {
			t.Errorf("Close took %v", took)
		}
		if s := r.Stats(); s.Lookups != 2 {
			t.Errorf("%d lookups counted, want the two that ended by themselves", s.Lookups)
		}
	})
}

func TestLookupTimesOutForWhoWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fakeServer{answer: []string{"10.0.0.1"}, delay: 5 * time.Second}
		r := started(t, f, Options{})
		var picks sync.WaitGroup
		for range 2 {
			picks.Go(func() {
				ctx, cancel := context.WithTimeout(context.Background(), time.Second)
				defer cancel()
				if _, looked, o := r.Pick(ctx); o != probe.ResolveTimeout || !looked {
					t.Errorf("picked with %v (looked up: %v), want resolve/timeout", o, looked)
				}
			})
		}
		picks.Wait()
		if s := r.Stats(); s.Failures[probe.ResolveTimeout] != 1 {
			t.Errorf("stats %+v, want one lookup that timed out", s)
		}
		// The time that openings have is too short for this server; the clock's
		// is not: a second of retryAfter, five of the lookup.
		sleep(6 * time.Second)
		if got, looked := pick(r); got != "10.0.0.1" || looked {
			t.Errorf("picked %s (looked up: %v), want what the clock found", got, looked)
		}
	})
}

// TestClockLeavesItToAnOpening has an opening look up when the clock is to.
func TestClockLeavesItToAnOpening(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fakeServer{answer: []string{"10.0.0.1"}, delay: 50 * time.Second}
		r := started(t, f, Options{})
		pick(r)
		sleep(0)
		if f.lookups() != 1 {
			t.Errorf("%d lookups, want none by the clock: it has just been done", f.lookups())
		}
		r.Close()
	})
}

func TestLookupWhoseOpeningHasGone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fakeServer{answer: []string{"10.0.0.1"}, delay: time.Minute}
		r := newResolver(t, f, Options{})
		ctx, cancel := context.WithCancel(context.Background())
		time.AfterFunc(time.Second, cancel)
		if a, looked, o := r.Pick(ctx); o == probe.Success || !looked || a.IsValid() {
			t.Errorf("picked %v, %v", a, o)
		}
		if s := r.Stats(); s != (Stats{}) {
			t.Errorf("stats %+v, want none of a lookup that nobody waited for", s)
		}
	})
}

func TestFailedConnectLooksUpSoon(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fakeServer{answer: []string{"10.0.0.1"}}
		r := started(t, f, Options{})
		pick(r)
		sleep(500 * time.Millisecond)
		// At most once a second: half of one is left.
		f.set([]string{"10.0.0.2"}, nil)
		r.Failed(at("10.0.0.1"))
		sleep(500*time.Millisecond - 1)
		if f.lookups() != 1 {
			t.Errorf("%d lookups within a second, want 1", f.lookups())
		}
		sleep(1)
		if got, _ := pick(r); got != "10.0.0.2" || f.lookups() != 2 {
			t.Errorf("picked %s after %d lookups, want the new address after 2", got, f.lookups())
		}
		// What the answer no longer has says nothing.
		sleep(2 * time.Second)
		r.Failed(at("10.0.0.1"))
		sleep(0)
		if f.lookups() != 2 {
			t.Errorf("%d lookups, want none for an address that has gone", f.lookups()-2)
		}
		// A thousand failures a second for nearly 10 s are 10 lookups, the first
		// at once.
		for range 9_999 {
			r.Failed(at("10.0.0.2"))
			sleep(time.Millisecond)
		}
		if n := f.lookups() - 2; n != 10 {
			t.Errorf("%d lookups in 10 s, want 10", n)
		}
	})
}

func TestChangedIsTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fakeServer{}
		var told []string
		var r *Resolver
		r = started(t, f, Options{Changed: func(a []netip.Addr) {
			told = append(told, text(a))
			if got := text(r.Addresses()); got != text(a) { // under no lock
				t.Errorf("told %s while addresses are %s", text(a), got)
			}
		}})
		pick(r)
		for _, answer := range [][]string{
			{"10.0.0.2", "10.0.0.1"},
			{"10.0.0.1", "10.0.0.2"}, // another order is no change
			{"10.0.0.1", "10.0.0.1", "10.0.0.2", "::ffff:10.0.0.2"},
			{},
			{"2001:db8::1", "10.0.0.1"},
			{"10.0.0.3"},
		} {
			f.set(answer, nil)
			sleep(refresh)
		}
		r.Close()
		want := []string{"10.0.0.1 10.0.0.2", "10.0.0.1 2001:db8::1", "10.0.0.3"}
		if !slices.Equal(told, want) {
			t.Errorf("told %q, want %q", told, want)
		}
		// Added 2, then 1, then 1; removed 1, then 2.
		if s := r.Stats(); s.Added != 4 || s.Removed != 3 || s.Addresses != 1 {
			t.Errorf("stats %+v, want 4 added, 3 removed", s)
		}
	})
}

func TestSlowAnswersAreNotAskedForAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fakeServer{answer: []string{"10.0.0.1"}, delay: 2 * time.Second}
		started(t, f, Options{Refresh: time.Nanosecond})
		// 100 ms before each lookup, 2 s of it: 21/2.1 = 10, the eleventh begins
		// no sooner than at 21.09 s.
		sleep(21 * time.Second)
		if n := f.lookups(); n != 10 {
			t.Errorf("%d lookups in 21 s, want 10", n)
		}
	})
}

// TestPickAllocatesNothing is the budget of an opening whose address is known.
func TestPickAllocatesNothing(t *testing.T) {
	answer := make([]string, 100)
	for i := range answer {
		answer[i] = fmt.Sprintf("10.0.0.%d", i)
	}
	f := &fakeServer{answer: append(answer, "2001:db8::1")}
	r := newResolver(t, f, Options{Family: PreferIPv4})
	ctx := t.Context()
	r.Pick(ctx)
	if n := testing.AllocsPerRun(100, func() {
		a, _, _ := r.Pick(ctx)
		r.Other(a)
		r.Connected(a)
	}); n != 0 {
		t.Errorf("%v allocations, want none", n)
	}
}

func BenchmarkPick(b *testing.B) {
	f := &fakeServer{}
	for i := range 100 {
		f.answer = append(f.answer, fmt.Sprintf("10.0.0.%d", i))
	}
	r := New(Options{Host: "door.test", Clock: probe.NewClock(), Refresh: refresh, Lookup: f.lookup})
	defer r.Close()
	for b.Loop() {
		r.Pick(b.Context())
	}
}
