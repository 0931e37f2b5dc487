package resolve

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"net/netip"
	"slices"
	"time"

	"github.com/steadyprobe/steadyprobe/probe"
)

// LookupFunc looks the addresses of a host up, as [net.Resolver.LookupNetIP]
// does: network is "ip", "ip4" or "ip6".
type LookupFunc func(ctx context.Context, network, host string) ([]netip.Addr, error)

// lookupLimit bounds a lookup that no opening waits for. The standard resolver
// waits 5 s for an answer and then asks once more.
const lookupLimit = 11 * time.Second

// retryAfter is how long a failed lookup stands, so that a name that is gone
// does not turn every tick into a question to the name server, and how far
// apart lookups after failed connects are at least.
const retryAfter = time.Second

// Standard returns Go's own resolver: one of the C library would hold a thread
// for each lookup. It asks the server, if that is valid, instead of those of
// the system.
func Standard(server netip.AddrPort) LookupFunc {
	var dialer net.Dialer
	dial := func(ctx context.Context, network, address string) (net.Conn, error) {
		if server.IsValid() {
			address = server.String()
		}
		conn, err := dialer.DialContext(ctx, network, address)
		if err == nil {
			closeUnwanted(ctx, conn)
		}
		return conn, err
	}
	resolver := &net.Resolver{PreferGo: true, Dial: dial}
	return func(ctx context.Context, network, host string) ([]netip.Addr, error) {
		found, err := resolver.LookupNetIP(ctx, network, host)
		var dns *net.DNSError
		if server.IsValid() && errors.As(err, &dns) && dns.Server != "" {
			dns.Server = server.String() // not the system's, which it thinks it has asked
		}
		return found, err
	}
}

// closeUnwanted closes the connection of a question when nobody wants its answer
// any more: the resolver would wait until its own time limit. It cancels the
// context when it is done with the connection. The limit itself it has set as
// the connection's deadline, and to close it then as well would make a silent
// server look like a broken socket.
func closeUnwanted(ctx context.Context, conn net.Conn) {
	context.AfterFunc(ctx, func() {
		if !errors.Is(ctx.Err(), context.DeadlineExceeded) {
			conn.Close()
		}
	})
}

// early returns d, or up to a tenth less.
func early(d time.Duration) time.Duration { return d - rand.N(d/10+1) }

// runClock looks the name up whenever that is due.
func (r *Resolver) runClock() {
	timer := time.NewTimer(r.untilDue())
	defer timer.Stop()
	for {
		select {
		case <-r.open.Done():
			return
		case <-r.moved:
		case <-timer.C:
			r.lookUpIfDue()
		}
		timer.Reset(r.untilDue())
	}
}

// untilDue returns the time until the clock is to look up.
func (r *Resolver) untilDue() time.Duration {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.due.Sub(r.options.Clock.Now())
}

// lookUpAt sets when the clock is to look up. It is called with mu held.
func (r *Resolver) lookUpAt(due probe.Instant) {
	r.due = due
	select {
	case r.moved <- struct{}{}:
	default: // it has yet to notice the last one
	}
}

// lookUpIfDue looks up, unless an opening did so in the meantime.
func (r *Resolver) lookUpIfDue() {
	select {
	case <-r.lookup:
	case <-r.open.Done():
		return
	}
	defer func() { r.lookup <- struct{}{} }()
	if r.untilDue() > 0 {
		return
	}
	ctx, cancel := context.WithTimeout(r.open, lookupLimit)
	defer cancel()
	r.refresh(ctx)
}

// refresh looks the host up once and makes of it what is to be made. The caller
// has the token.
func (r *Resolver) refresh(ctx context.Context) {
	began := r.options.Clock.Now()
	r.mu.Lock()
	r.began = began
	r.mu.Unlock()
	found, o := r.find(ctx, r.options.Family.network())
	r.count(o)
	if o != probe.Success {
		r.keep(o)
		return
	}
	preferred := r.options.Family.preferred(found[0])
	found = append(found, r.missing(ctx, found)...)
	if changed := r.take(found, preferred, began); changed != nil && r.options.Changed != nil {
		r.options.Changed(changed)
	}
}

// find asks for the addresses, each once. It returns at least one of them, or
// else no success; probe.ScheduleShutdown says that who asked has gone.
func (r *Resolver) find(ctx context.Context, network string) ([]netip.Addr, probe.Outcome) {
	answer, err := r.options.Lookup(ctx, network, r.options.Host)
	var found, refused []netip.Addr
	for _, a := range answer {
		a = a.Unmap()
		switch {
		case !a.IsValid() || !r.options.Family.admits(a) || slices.Contains(found, a):
		case !r.allows(a):
			refused = append(refused, a)
		default:
			found = append(found, a)
		}
	}
	r.mu.Lock()
	r.banned = len(refused)
	r.mu.Unlock()
	if len(refused) > 0 && len(found) == 0 {
		err = errRefused(r.options.Host, refused[0])
	}
	o := outcome(ctx, err, len(found))
	if o != probe.Success && errors.Is(ctx.Err(), context.Canceled) {
		return nil, probe.ScheduleShutdown
	}
	if o != probe.Success {
		if err == nil {
			err = fmt.Errorf("looking up %q: no usable address in the answer", r.options.Host)
		}
		r.mu.Lock()
		r.why = err
		r.mu.Unlock()
	}
	return found, o
}

// errRefused says that a host leads nowhere that is allowed.
func errRefused(host string, a netip.Addr) error {
	return fmt.Errorf("looking up %q: it leads to %s, which is not allowed", host, a)
}

// count counts a lookup that ended by itself.
func (r *Resolver) count(o probe.Outcome) {
	if o == probe.ScheduleShutdown {
		return
	}
	r.counts.add(func(s *Stats) {
		s.Lookups++
		if o != probe.Success {
			s.Failures[o]++
		}
	})
}

// missing returns the addresses of a family that was known and is not in what
// was found, where that is not because they are gone: when one of its two
// questions fails, the standard resolver answers with what the other one gave.
func (r *Resolver) missing(ctx context.Context, found []netip.Addr) []netip.Addr {
	v := versionOf(found[0]).other()
	r.mu.Lock()
	known := r.dealer.addresses[v]
	r.mu.Unlock()
	if len(known) == 0 || slices.ContainsFunc(found, func(a netip.Addr) bool { return versionOf(a) == v }) {
		return nil
	}
	again, o := r.find(ctx, v.network())
	if o == probe.ResolveNotFound {
		o = probe.Success // it is what the first answer said
	}
	r.count(o)
	if o != probe.Success {
		return known
	}
	return slices.DeleteFunc(again, func(a netip.Addr) bool { return versionOf(a) != v })
}

// keep notes that a lookup failed: what is known stays.
func (r *Resolver) keep(o probe.Outcome) {
	if o == probe.ScheduleShutdown {
		return
	}
	now := r.options.Clock.Now()
	r.mu.Lock()
	defer r.mu.Unlock()
	again := min(retryAfter<<min(r.inARow, 16), r.options.Refresh)
	r.inARow++
	r.failed = o
	r.stands = now.Add(min(retryAfter, r.options.Refresh))
	r.lookUpAt(now.Add(early(again)))
}

// take notes what a lookup found, and returns all addresses if they are others
// than before.
func (r *Resolver) take(found []netip.Addr, preferred version, began probe.Instant) (changed []netip.Addr) {
	now := r.options.Clock.Now()
	r.mu.Lock()
	defer r.mu.Unlock()
	before := r.dealer.all()
	r.dealer.take(found, preferred)
	after := r.dealer.all()
	r.known = len(after)
	r.counts.add(func(s *Stats) {
		s.Added += without(after, before)
		s.Removed += without(before, after)
	})
	r.inARow = 0
	// A slow answer is as old as its question, but the next one is not asked
	// at once.
	r.lookUpAt(max(began.Add(early(r.options.Refresh)), now.Add(leastRefresh)))
	if slices.Equal(before, after) {
		return nil
	}
	return after
}

// without counts the addresses of a that are not in b.
func without(a, b []netip.Addr) (n uint64) {
	for _, address := range a {
		if !slices.Contains(b, address) {
			n++
		}
	}
	return n
}

// outcome classifies the end of a lookup.
func outcome(ctx context.Context, err error, found int) probe.Outcome {
	var (
		dns      *net.DNSError
		unusable *net.AddrError
	)
	switch {
	case err == nil && found > 0:
		return probe.Success
	case err == nil:
		return probe.ResolveNotFound
	case errors.As(err, &dns) && dns.IsNotFound:
		return probe.ResolveNotFound
	case errors.As(err, &unusable):
		return probe.ResolveNotFound // the hosts file has the other family only
	case errors.As(err, &dns) && dns.IsTimeout, errors.Is(ctx.Err(), context.DeadlineExceeded):
		return probe.ResolveTimeout
	}
	return probe.ResolveError
}
