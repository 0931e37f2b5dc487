// Package resolve turns the host of a target into addresses and deals them to
// openings.
//
// The addresses of a name are looked up again on a clock and after connections
// failed, whatever the target is doing: a door that moves is followed, and a
// name server that is silent or wrong costs no request as long as one good
// answer is known.
package resolve

import (
	"context"
	"math/rand/v2"
	"net/netip"
	"sync"
	"time"

	"github.com/steadyprobe/steadyprobe/probe"
)

// Options say whose addresses a Resolver deals.
type Options struct {
	Host string // a name or an IP address
	Port uint16 // of every address

	// Refresh is how old an answer may become: a lookup is due then, or up to
	// a tenth sooner, so that many targets do not ask together. Less than
	// 100 ms is taken as 100 ms.
	Refresh time.Duration

	Clock  probe.Clock
	Family Family

	// First keeps to one address of the family that is dealt, the first of the
	// answer in which it came up, as long as it is in the answers. Without it
	// every address gets the same number of openings.
	First bool

	// Server is asked instead of the system's name servers; the zero value
	// leaves it to the system. The hosts file and the search domains are the
	// system's all the same.
	Server netip.AddrPort

	// Allow says whether an address may be dealt: one that may not is left out
	// of every answer, and an answer in which nothing is left is a failed
	// lookup. nil: all may.
	Allow func(netip.Addr) bool

	// Lookup is asked instead of the standard resolver; nil: that one.
	Lookup LookupFunc

	// After is the resolver that this one takes the place of: what that has
	// counted, and goes on to count, is in the figures of this one; nil: there
	// was none.
	After *Resolver

	// Changed is told the addresses, sorted, after each lookup that changed
	// them, the first one included; never those of a literal address. It is
	// called in the order of the lookups, by whoever looked up, under no lock,
	// and must return soon, without calling Close. It must not change the
	// slice. nil: nobody is told.
	Changed func([]netip.Addr)
}

// leastRefresh bounds how often a name is looked up on the clock.
const leastRefresh = 100 * time.Millisecond

// Stats are the figures of a Resolver.
type Stats struct {
	Lookups        uint64
	Failures       [probe.NumOutcomes]uint64 // by resolve/* outcome
	Addresses      int                       // known now
	Refused        int                       // left out of the last answer, as they are not allowed
	Added, Removed uint64                    // addresses that came and went
}

// Resolver deals the addresses of one host, which it looks up at most one at a
// time; a failed lookup keeps the last good addresses. Its methods may be called
// concurrently. It must be closed.
type Resolver struct {
	options Options
	literal netip.Addr // valid where Host is an IP address
	counts  *counts

	lookup chan struct{} // holds one token: who has it looks up
	moved  chan struct{} // due was changed

	open       context.Context // until Close
	close      context.CancelFunc
	background sync.WaitGroup
	start      sync.Once

	mu     sync.Mutex
	dealer dealer
	began  probe.Instant // when the last lookup did
	due    probe.Instant // when the clock looks up
	inARow int           // lookups that failed
	failed probe.Outcome // of the last lookup that did
	why    error         // what a failed lookup said last
	stands probe.Instant // until then the failure is the answer, while no address is known
	known  int           // addresses
	banned int           // addresses that were left out of the last answer
}

// counts is what a resolver, and all those that it takes the place of, have
// counted.
type counts struct {
	mu    sync.Mutex
	stats Stats // its Addresses are unused
}

// add has count change the figures.
func (c *counts) add(count func(*Stats)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	count(&c.stats)
}

// New returns a Resolver that has looked nothing up yet. The first opening has
// the name looked up; from Start on a clock does it as well.
func New(o Options) *Resolver {
	if o.Lookup == nil {
		o.Lookup = Standard(o.Server)
	}
	o.Refresh = max(o.Refresh, leastRefresh)
	r := &Resolver{
		options: o,
		counts:  &counts{},
		lookup:  make(chan struct{}, 1),
		moved:   make(chan struct{}, 1),
		dealer:  dealer{first: o.First, refresh: o.Refresh, failing: map[netip.Addr]struct{}{}},
	}
	if o.After != nil {
		r.counts = o.After.counts
		r.options.After = nil // or all of them would be kept
	}
	r.lookup <- struct{}{}
	r.open, r.close = context.WithCancel(context.Background())
	r.due = o.Clock.Now().Add(early(o.Refresh))
	if a, err := netip.ParseAddr(o.Host); err == nil {
		r.literal = a.Unmap()
		r.known = 1
		if !r.allows(r.literal) {
			r.known, r.banned, r.why = 0, 1, errRefused(o.Host, r.literal)
		}
	}
	return r
}

// Start starts the clock: until Close the name is looked up every Refresh, and
// again soon after a failed lookup or a failed connect. A literal address needs
// none. It may be called again, and must not be called after Close.
func (r *Resolver) Start() {
	if r.Literal() {
		return
	}
	r.start.Do(func() { r.background.Go(r.runClock) })
}

// Literal reports whether the host is an address, so that no lookup is made.
func (r *Resolver) Literal() bool { return r.literal.IsValid() }

// allows reports whether an address may be dealt.
func (r *Resolver) allows(a netip.Addr) bool { return r.options.Allow == nil || r.options.Allow(a) }

// Stats returns a copy of the figures.
func (r *Resolver) Stats() (s Stats) {
	r.counts.add(func(all *Stats) { s = *all })
	r.mu.Lock()
	defer r.mu.Unlock()
	s.Addresses, s.Refused = r.known, r.banned
	return s
}

// Addresses returns those that are known now, IPv4 before IPv6, each in
// ascending order. The slice is the caller's.
func (r *Resolver) Addresses() []netip.Addr {
	if r.Literal() {
		return []netip.Addr{r.literal}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.dealer.all()
}

// Pick returns the address for the next opening. While addresses are known it
// returns one at once, however old: a silent name server then costs no request.
// Looked says that there were none, so that a lookup was made or waited for.
// The outcome is probe.Success, or one of the stage resolve when there is no
// address to give.
func (r *Resolver) Pick(ctx context.Context) (address netip.AddrPort, looked bool, o probe.Outcome) {
	if r.Literal() {
		if !r.allows(r.literal) {
			return netip.AddrPort{}, false, probe.ResolveError
		}
		return netip.AddrPortFrom(r.literal, r.options.Port), false, probe.Success
	}
	a, stands, o := r.deal()
	if stands {
		return a, false, o
	}
	select {
	case <-r.lookup:
	case <-ctx.Done():
		return netip.AddrPort{}, true, probe.ResolveTimeout
	}
	defer func() { r.lookup <- struct{}{} }()
	if a, stands, o = r.deal(); !stands {
		r.refresh(ctx)
		a, _, o = r.deal()
	}
	return a, true, o
}

// deal returns the next address, or how the last lookup failed when none is
// known, and whether that stands without another lookup.
func (r *Resolver) deal() (a netip.AddrPort, stands bool, o probe.Outcome) {
	now := r.options.Clock.Now()
	r.mu.Lock()
	defer r.mu.Unlock()
	if a := r.dealer.deal(now); a.IsValid() {
		return netip.AddrPortFrom(a, r.options.Port), true, probe.Success
	}
	if r.failed == probe.Success {
		return netip.AddrPort{}, false, probe.ResolveTimeout // nobody has waited for the end of a lookup
	}
	return netip.AddrPort{}, now < r.stands, r.failed
}

// Failure returns what the last lookup that failed said of it; nil: none has
// failed.
func (r *Resolver) Failure() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.why
}

// Other returns an address of the other family than that of failed, if one is
// known. An opening that could not connect tries it once.
func (r *Resolver) Other(failed netip.AddrPort) (netip.AddrPort, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	v := versionOf(failed.Addr()).other()
	of := r.dealer.addresses[v]
	if len(of) == 0 {
		return netip.AddrPort{}, false
	}
	a := r.dealer.last[v]
	if !r.options.First {
		// Not in turn: who asks seldom needs it, and would use up the turns.
		a = of[rand.IntN(len(of))]
	}
	return netip.AddrPortFrom(a, r.options.Port), true
}

// Failed says that an opening could not connect to a, so that the name is
// looked up soon, at most once a second, and the other family is dealt where
// nothing of the preferred one can be connected to.
func (r *Resolver) Failed(a netip.AddrPort) {
	if r.Literal() {
		return
	}
	now := r.options.Clock.Now()
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.dealer.knows(a.Addr()) {
		return // the answer has changed since: that was to be found out
	}
	r.dealer.failed(a.Addr(), now)
	if soon := max(now, r.began.Add(retryAfter)); soon < r.due {
		r.lookUpAt(soon)
	}
}

// Connected says that an opening connected to a: its family leads somewhere.
func (r *Resolver) Connected(a netip.AddrPort) {
	if r.Literal() {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.dealer.failing, a.Addr())
}

// Close ends the clock and a lookup that it makes, and waits for them. An
// opening that is under way may still call Pick, and look up by itself. It may
// be called again.
func (r *Resolver) Close() {
	r.close()
	r.background.Wait()
}
