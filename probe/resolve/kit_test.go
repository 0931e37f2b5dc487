package resolve

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/steadyprobe/steadyprobe/probe"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// fakeServer answers lookups as it is told, whatever the name.
type fakeServer struct {
	mu     sync.Mutex
	answer []string
	err    error
	delay  time.Duration
	errs   map[string]error // by network, before err
	asked  []string         // networks, in the order of the lookups
	times  []time.Time      // of the lookups
}

func (f *fakeServer) lookup(ctx context.Context, network, _ string) ([]netip.Addr, error) {
	f.mu.Lock()
	f.asked = append(f.asked, network)
	f.times = append(f.times, time.Now())
	delay, answer, err := f.delay, f.answer, f.err
	if e, ok := f.errs[network]; ok {
		answer, err = nil, e
	}
	f.mu.Unlock()
	select {
	case <-time.After(delay):
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	var found []netip.Addr
	for _, text := range answer {
		a := netip.MustParseAddr(text)
		if network == "ip" || network == "ip4" && a.Is4() || network == "ip6" && a.Is6() {
			found = append(found, a)
		}
	}
	return found, err
}

func (f *fakeServer) set(answer []string, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.answer, f.err = answer, err
}

func (f *fakeServer) lookups() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.asked)
}

var (
	errNoSuchName = &net.DNSError{Err: "no such host", IsNotFound: true}
	errBroken     = &net.DNSError{Err: "server misbehaving", IsTemporary: true}
	errSilent     = &net.DNSError{Err: "i/o timeout", IsTimeout: true}
)

// refresh is that of the tests; a lookup is due after it, or up to a tenth
// sooner.
const refresh = 30 * time.Second

// newResolver returns one of door.test that asks f and is closed when the test
// ends.
func newResolver(t *testing.T, f *fakeServer, o Options) *Resolver {
	o.Host, o.Port, o.Clock, o.Lookup = "door.test", 80, probe.NewClock(), f.lookup
	if o.Refresh == 0 {
		o.Refresh = refresh
	}
	r := New(o)
	t.Cleanup(r.Close)
	return r
}

// started is newResolver with the clock started.
func started(t *testing.T, f *fakeServer, o Options) *Resolver {
	r := newResolver(t, f, o)
	r.Start()
	return r
}

// pick returns the address without the port, or the outcome where there is
// none.
func pick(r *Resolver) (address string, looked bool) {
	a, looked, o := r.Pick(context.Background())
	if o != probe.Success {
		return o.String(), looked
	}
	return a.Addr().String(), looked
}

// dealt returns how often each address is dealt in n openings.
func dealt(r *Resolver, n int) map[string]int {
	counts := map[string]int{}
	for range n {
		a, _ := pick(r)
		counts[a]++
	}
	return counts
}

// sleep lets virtual time pass, and all that is due then happen.
func sleep(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

// at returns an address with the port of the tests.
func at(address string) netip.AddrPort {
	return netip.AddrPortFrom(netip.MustParseAddr(address), 80)
}

// text returns addresses as one text.
func text(addresses []netip.Addr) string {
	return strings.Trim(fmt.Sprint(addresses), "[]")
}
