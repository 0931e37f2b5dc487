package resolve

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/steadyprobe/steadyprobe/probe"
)

// fakeServer answers lookups as it is told.
type fakeServer struct {
	mu      sync.Mutex
	answer  []string
	err     error
	delay   time.Duration
	lookups int
}

func (f *fakeServer) lookup(ctx context.Context, network, host string) ([]netip.Addr, error) {
	f.mu.Lock()
	f.lookups++
	delay, answer, err := f.delay, f.answer, f.err
	f.mu.Unlock()
	select {
	case <-time.After(delay):
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	var addresses []netip.Addr
	for _, a := range answer {
		addresses = append(addresses, netip.MustParseAddr(a))
	}
	return addresses, err
}

func (f *fakeServer) set(answer []string, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.answer, f.err = answer, err
}

func newResolver(f *fakeServer) *Resolver {
	return New(Options{Host: "door.test", Port: 80, Refresh: 30 * time.Second, Clock: probe.NewClock(), Lookup: f.lookup})
}

// pick returns the address as text, or the outcome where there is none.
func pick(r *Resolver) (string, bool) {
	a, looked, o := r.Pick(context.Background())
	if o != probe.Success {
		return o.String(), looked
	}
	return a.String(), looked
}

func TestLiteralAddressNeedsNoLookup(t *testing.T) {
	for _, tc := range []struct{ host, want string }{
		{"127.0.0.1", "127.0.0.1:80"},
		{"::1", "[::1]:80"},
		{"::ffff:10.0.0.1", "10.0.0.1:80"},
	} {
		r := New(Options{Host: tc.host, Port: 80, Clock: probe.NewClock(), Lookup: func(context.Context, string, string) ([]netip.Addr, error) {
			panic("a lookup was made")
		}})
		if got, looked := pick(r); got != tc.want || looked {
			t.Errorf("%s: picked %s (looked up: %v), want %s", tc.host, got, looked, tc.want)
		}
	}
}

func TestAddressesAreDealtInTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fakeServer{answer: []string{"10.0.0.1", "10.0.0.2", "10.0.0.3"}}
		r := newResolver(f)
		dealt := map[string]int{}
		for range 30 {
			a, _ := pick(r)
			dealt[a]++
		}
		for _, a := range []string{"10.0.0.1:80", "10.0.0.2:80", "10.0.0.3:80"} {
			if dealt[a] != 10 {
				t.Errorf("dealt %s %d times, want 10", a, dealt[a])
			}
		}
		if f.lookups != 1 {
			t.Errorf("%d lookups, want 1", f.lookups)
		}
	})
}

func TestRefresh(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fakeServer{answer: []string{"10.0.0.1", "10.0.0.2"}}
		r := newResolver(f)
		if _, looked := pick(r); !looked {
			t.Error("the first pick made no lookup")
		}
		f.set([]string{"10.0.0.2", "10.0.0.3"}, nil)
		time.Sleep(29 * time.Second)
		if _, looked := pick(r); looked {
			t.Error("a lookup before refresh")
		}
		time.Sleep(time.Second)
		if got, looked := pick(r); got == "10.0.0.3:80" || looked {
			t.Errorf("picked %s (looked up: %v), want an old address at once", got, looked)
		}
		synctest.Wait()
		if s := r.Stats(); s.Lookups != 2 || s.Addresses != 2 || s.Added != 3 || s.Removed != 1 {
			t.Errorf("stats %+v, want 2 lookups, 2 addresses, 3 added, 1 removed", s)
		}
	})
}

func TestFailedLookup(t *testing.T) {
	for _, tc := range []struct {
		name string
		err  error
		want probe.Outcome
	}{
		{"no such name", &net.DNSError{Err: "no such host", IsNotFound: true}, probe.ResolveNotFound},
		{"server silent", &net.DNSError{Err: "i/o timeout", IsTimeout: true}, probe.ResolveTimeout},
		{"server broken", &net.DNSError{Err: "server misbehaving"}, probe.ResolveError},
		{"anything else", errors.New("no"), probe.ResolveError},
		{"empty answer", nil, probe.ResolveNotFound},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := &fakeServer{err: tc.err}
				r := newResolver(f)
				if got, looked := pick(r); got != tc.want.String() || !looked {
					t.Errorf("picked %s (looked up: %v), want %v", got, looked, tc.want)
				}
				if s := r.Stats(); s.Failures[tc.want] != 1 {
					t.Errorf("counted %d failures, want 1", s.Failures[tc.want])
				}
				// The failure stands for a second; then a name that exists is found.
				f.set([]string{"10.0.0.1"}, nil)
				if got, looked := pick(r); got != tc.want.String() || looked {
					t.Errorf("picked %s (looked up: %v), want %v without a lookup", got, looked, tc.want)
				}
				time.Sleep(time.Second)
				if got, _ := pick(r); got != "10.0.0.1:80" {
					t.Errorf("picked %s once the name is there", got)
				}
				// The last good addresses serve on, and the server is not asked more
				// than once a second.
				f.set(nil, tc.err)
				time.Sleep(time.Minute)
				before := f.lookups
				for range 100 {
					if got, looked := pick(r); got != "10.0.0.1:80" || looked {
						t.Fatalf("picked %s (looked up: %v), want the last good address at once", got, looked)
					}
					synctest.Wait()
				}
				if f.lookups != before+1 {
					t.Errorf("%d lookups, want 1", f.lookups-before)
				}
			})
		})
	}
}

func TestOneLookupAtATime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fakeServer{answer: []string{"10.0.0.1"}, delay: time.Second}
		r := newResolver(f)
		var picks sync.WaitGroup
		for range 10 {
			picks.Go(func() {
				if got, looked := pick(r); got != "10.0.0.1:80" || !looked {
					t.Errorf("picked %s (looked up: %v)", got, looked)
				}
			})
		}
		picks.Wait()
		if f.lookups != 1 {
			t.Errorf("%d lookups, want 1", f.lookups)
		}
		// While the name is looked up again, all use what is known, however long
		// the server is silent, and one lookup goes on.
		f.set(nil, nil)
		time.Sleep(time.Minute)
		for range 10 {
			if got, looked := pick(r); got != "10.0.0.1:80" || looked {
				t.Errorf("picked %s (looked up: %v), want the old address at once", got, looked)
			}
			synctest.Wait()
		}
		if f.lookups != 2 {
			t.Errorf("%d lookups, want 2", f.lookups)
		}
		// Close ends it, and that counts as no failure of the name.
		began := time.Now()
		r.Close()
		if took := time.Since(began); took != 0 {
			t.Errorf("Close took %v", took)
		}
		if s := r.Stats(); s.Lookups != 1 {
			t.Errorf("%d lookups counted, want the one that ended by itself", s.Lookups)
		}
	})
}

func TestSilentServerInTheBackground(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fakeServer{answer: []string{"10.0.0.1"}}
		r := newResolver(f)
		pick(r)
		f.mu.Lock()
		f.delay = time.Hour
		f.mu.Unlock()
		time.Sleep(time.Minute)
		pick(r)
		time.Sleep(lookupLimit)
		synctest.Wait()
		if s := r.Stats(); s.Failures[probe.ResolveTimeout] != 1 || s.Addresses != 1 {
			t.Errorf("stats %+v, want one timeout, and the address kept", s)
		}
		r.Close()
	})
}

func TestLookupTimesOutForWhoWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fakeServer{answer: []string{"10.0.0.1"}, delay: time.Minute}
		r := newResolver(f)
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
	})
}

func TestFamilies(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fakeServer{answer: []string{"::1", "127.0.0.1", "127.0.0.2"}}
		r := newResolver(f)
		for range 3 {
			if got, _ := pick(r); got != "[::1]:80" {
				t.Fatalf("picked %s, want the family of the first address", got)
			}
		}
		other, ok := r.Other(netip.MustParseAddrPort("[::1]:80"))
		if !ok || other.String() != "127.0.0.1:80" {
			t.Fatalf("other is %s, %v", other, ok)
		}
		r.Prefer(other)
		dealt := map[string]int{}
		for range 4 {
			a, _ := pick(r)
			dealt[a]++
		}
		if dealt["127.0.0.1:80"] != 2 || dealt["127.0.0.2:80"] != 2 {
			t.Errorf("dealt %v, want both of the preferred family in turn", dealt)
		}
		// A family that is alone is used, preferred or not.
		f.set([]string{"::2"}, nil)
		time.Sleep(time.Minute)
		pick(r)
		synctest.Wait()
		if got, _ := pick(r); got != "[::2]:80" {
			t.Errorf("picked %s, want the only address", got)
		}
		if _, ok := r.Other(netip.MustParseAddrPort("[::2]:80")); ok {
			t.Error("there is another family in a name of one")
		}
	})
}
