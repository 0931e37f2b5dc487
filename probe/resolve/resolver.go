// Package resolve turns the host of a target into addresses and deals them to
// openings.
package resolve

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"slices"
	"sync"
	"time"

	"github.com/steadyprobe/steadyprobe/probe"
)

// LookupFunc looks the addresses of a host up, as [net.Resolver.LookupNetIP]
// does.
type LookupFunc func(ctx context.Context, network, host string) ([]netip.Addr, error)

// Options say whose addresses a Resolver deals.
type Options struct {
	Host    string        // a name or an IP address
	Port    uint16        // of every address
	Refresh time.Duration // a lookup is used this long
	Clock   probe.Clock
	Lookup  LookupFunc // nil: Go's own resolver, which reads the hosts file and asks the system's servers
}

// Stats are the figures of a Resolver.
type Stats struct {
	Lookups        uint64
	Failures       [probe.NumOutcomes]uint64 // by resolve/* outcome
	Addresses      int                       // known now
	Added, Removed uint64                    // addresses that came and went
}

// Resolver deals the addresses of one host, which it looks up at most one at a
// time; a failed lookup keeps the last good addresses. Its methods may be called
// concurrently. It must be closed.
type Resolver struct {
	options Options
	literal netip.Addr // valid where Host is an IP address

	lookup chan struct{} // holds one token: who has it looks up

	open       context.Context // until Close; of lookups in the background
	close      context.CancelFunc
	background sync.WaitGroup

	mu        sync.Mutex
	addresses []netip.Addr
	fresh     probe.Instant // no lookup is due before then
	failed    probe.Outcome // of the last lookup, while no address is known
	dealt     int           // index of the address that was dealt last
	only6     bool          // the preferred family, where both are known
	preferred bool          // a family was preferred
	stats     Stats
}

// New returns a Resolver that has looked nothing up yet.
func New(o Options) *Resolver {
	if o.Lookup == nil {
		// Go's own resolver: a lookup by the C library would hold a thread.
		o.Lookup = (&net.Resolver{PreferGo: true}).LookupNetIP
	}
	r := &Resolver{options: o, lookup: make(chan struct{}, 1)}
	r.lookup <- struct{}{}
	r.open, r.close = context.WithCancel(context.Background())
	if a, err := netip.ParseAddr(o.Host); err == nil {
		r.literal = a.Unmap()
		r.stats.Addresses = 1
	}
	return r
}

// Literal reports whether the host is an address, so that no lookup is made.
func (r *Resolver) Literal() bool { return r.literal.IsValid() }

// Stats returns a copy of the figures.
func (r *Resolver) Stats() Stats {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.stats
}

// Pick returns the address for the next opening. While addresses are known it
// returns one at once, and has them looked up again where that is due: a silent
// name server then costs no request. Looked says that there were none, so that
// a lookup was made or waited for. The outcome is probe.Success, or one of the
// stage resolve when there is no address to give.
func (r *Resolver) Pick(ctx context.Context) (address netip.AddrPort, looked bool, o probe.Outcome) {
	if r.Literal() {
		return netip.AddrPortFrom(r.literal, r.options.Port), false, probe.Success
	}
	a, fresh, o := r.deal()
	if !fresh && a.IsValid() {
		r.refreshLater()
	}
	if fresh || a.IsValid() {
		return a, false, o
	}
	select {
	case <-r.lookup:
	case <-ctx.Done():
		return netip.AddrPort{}, true, probe.ResolveTimeout
	}
	defer func() { r.lookup <- struct{}{} }()
	if a, fresh, o = r.deal(); !fresh {
		r.refresh(ctx)
		a, _, o = r.deal()
	}
	return a, true, o
}

// refreshLater looks the host up in the background, unless somebody does.
func (r *Resolver) refreshLater() {
	select {
	case <-r.lookup:
	default:
		return
	}
	r.background.Go(func() {
		defer func() { r.lookup <- struct{}{} }()
		ctx, cancel := context.WithTimeout(r.open, lookupLimit)
		defer cancel()
		r.refresh(ctx)
	})
}

// Close ends a lookup that goes on in the background, and waits for it. Nobody
// may call Pick any more. It may be called again.
func (r *Resolver) Close() {
	r.close()
	r.background.Wait()
}

// lookupLimit bounds a lookup that no opening waits for.
const lookupLimit = 5 * time.Second

// retryAfter is how long a failed lookup stands, so that a name that is gone
// does not turn every tick into a question to the name server.
const retryAfter = time.Second

// refresh looks the host up once.
func (r *Resolver) refresh(ctx context.Context) {
	found, err := r.options.Lookup(ctx, "ip", r.options.Host)
	now := r.options.Clock.Now()
	o := outcome(ctx, err, len(found))
	r.mu.Lock()
	defer r.mu.Unlock()
	if errors.Is(ctx.Err(), context.Canceled) && o != probe.Success {
		return // who asked has gone: that says nothing of the name
	}
	r.stats.Lookups++
	if o != probe.Success {
		r.stats.Failures[o]++
		r.failed = o
		r.fresh = now.Add(min(retryAfter, r.options.Refresh))
		return
	}
	for i := range found {
		found[i] = found[i].Unmap()
	}
	for _, a := range found {
		if !slices.Contains(r.addresses, a) {
			r.stats.Added++
		}
	}
	for _, a := range r.addresses {
		if !slices.Contains(found, a) {
			r.stats.Removed++
		}
	}
	r.addresses = found
	r.stats.Addresses = len(found)
	if !r.preferred {
		// The lookup sorts by what this host can reach best (RFC 6724).
		r.preferred, r.only6 = true, found[0].Is6()
	}
	r.fresh = now.Add(r.options.Refresh)
}

// deal returns the next address of the preferred family, or how the last
// lookup failed when none is known, and whether a lookup is not yet due.
func (r *Resolver) deal() (a netip.AddrPort, fresh bool, o probe.Outcome) {
	now := r.options.Clock.Now()
	r.mu.Lock()
	defer r.mu.Unlock()
	n := len(r.addresses)
	for range n {
		r.dealt = (r.dealt + 1) % n
		if r.addresses[r.dealt].Is6() == r.only6 || !r.both() {
			return netip.AddrPortFrom(r.addresses[r.dealt], r.options.Port), now < r.fresh, probe.Success
		}
	}
	return netip.AddrPort{}, now < r.fresh, r.failed
}

// both reports whether addresses of both families are known. It is called with
// mu held.
func (r *Resolver) both() bool {
	var six, four bool
	for _, a := range r.addresses {
		six = six || a.Is6()
		four = four || !a.Is6()
	}
	return six && four
}

// Other returns an address of the other family than that of failed, if one is
// known. An opening that could not connect tries it once.
func (r *Resolver) Other(failed netip.AddrPort) (netip.AddrPort, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, a := range r.addresses {
		if a.Is6() != failed.Addr().Is6() {
			return netip.AddrPortFrom(a, r.options.Port), true
		}
	}
	return netip.AddrPort{}, false
}

// Prefer makes the family of a the one that is dealt from now on, where both
// are known.
func (r *Resolver) Prefer(a netip.AddrPort) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.preferred, r.only6 = true, a.Addr().Is6()
}

// outcome classifies the end of a lookup.
func outcome(ctx context.Context, err error, found int) probe.Outcome {
	var dns *net.DNSError
	switch {
	case err == nil && found > 0:
		return probe.Success
	case err == nil:
		return probe.ResolveNotFound
	case errors.As(err, &dns) && dns.IsNotFound:
		return probe.ResolveNotFound
	case errors.As(err, &dns) && dns.IsTimeout, errors.Is(ctx.Err(), context.DeadlineExceeded):
		return probe.ResolveTimeout
	}
	return probe.ResolveError
}
