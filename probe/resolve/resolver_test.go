package resolve

import (
	"context"
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

// newResolver returns a started one that asks f; it is closed when the test
// ends.
func newResolver(t *testing.T, f *fakeServer, o Options) *Resolver {
	o.Host, o.Port, o.Refresh, o.Clock, o.Lookup = "door.test", 80, 30*time.Second, probe.NewClock(), f.lookup
	r := New(o)
	r.Start()
	t.Cleanup(r.Close)
	return r
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

func TestRefresh(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fakeServer{answer: []string{"10.0.0.1", "10.0.0.2"}}
		r := newResolver(t, f, Options{})
		if _, looked := pick(r); !looked {
			t.Error("the first pick made no lookup")
		}
		f.set([]string{"10.0.0.2", "10.0.0.3"}, nil)
		// 30 s, or up to a tenth less.
		time.Sleep(27*time.Second - 1)
		synctest.Wait()
		if got := r.Stats().Lookups; got != 1 {
			t.Errorf("%d lookups before one is due, want 1", got)
		}
		time.Sleep(3*time.Second + 1)
		synctest.Wait()
		if s := r.Stats(); s.Lookups != 2 || s.Addresses != 2 || s.Added != 3 || s.Removed != 1 {
			t.Errorf("stats %+v, want 2 lookups, 2 addresses, 3 added, 1 removed", s)
		}
	})
}
