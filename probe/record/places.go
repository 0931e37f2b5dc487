package record

import (
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/steadyprobe/steadyprobe/probe"
)

// AddressCount is what came of the ticks that went to one address.
type AddressCount struct {
	Address  netip.Addr // zero: all that had no place
	Requests uint64     // completed, whatever their outcome
	Failures uint64
	Latency  Distribution // of all of them; empty in a closed loop
}

// BackendCount counts the answers of one backend.
type BackendCount struct {
	Name    string
	Answers uint64
}

// addresses keeps figures by address, of at most a given number.
type addresses struct {
	most  int
	all   map[netip.Addr]*address
	other *address // of those that have no place; nil: there was none
}

type address struct {
	requests, failures uint64
	latency            Histogram
}

// of returns where a tick of an address is counted.
func (a *addresses) of(to netip.Addr, b *Boundaries) *address {
	if one := a.all[to]; one != nil {
		return one
	}
	if len(a.all) >= a.most {
		if a.other == nil {
			a.other = &address{latency: Histogram{bounds: b}}
		}
		return a.other
	}
	if a.all == nil {
		a.all = map[netip.Addr]*address{}
	}
	one := &address{latency: Histogram{bounds: b}}
	a.all[to] = one
	return one
}

// snapshot writes all addresses in their order to list, whose room is used
// again.
func (a *addresses) snapshot(list []AddressCount) []AddressCount {
	list = list[:0]
	if a.other != nil {
		list = a.other.snapshot(list, netip.Addr{})
	}
	for to, one := range a.all {
		list = one.snapshot(list, to)
	}
	slices.SortFunc(list, func(x, y AddressCount) int { return x.Address.Compare(y.Address) })
	return list
}

// snapshot appends a copy to list, in the room that it has.
func (a *address) snapshot(list []AddressCount, to netip.Addr) []AddressCount {
	n := len(list)
	if n < cap(list) {
		list = list[:n+1]
	} else {
		list = append(list, AddressCount{})
	}
	list[n].Address, list[n].Requests, list[n].Failures = to, a.requests, a.failures
	a.latency.Snapshot(&list[n].Latency)
	return list
}

// KeepAddresses forgets the figures and the certificates of all other addresses,
// so that what has gone makes room.
func (r *Recorder) KeepAddresses(kept []netip.Addr) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for to := range r.addresses.all {
		if !slices.Contains(kept, to) {
			delete(r.addresses.all, to)
		}
	}
	r.chains.keep(kept)
}

// silence is how long a backend is remembered that answers no more.
const silence = time.Hour

// backends counts answers by backend, of as many as its table gives out.
type backends struct {
	table *probe.Backends
	all   map[*probe.Backend]*backend
}

type backend struct {
	answers uint64
	last    probe.Instant

	marked uint64        // answers before the mark
	before probe.Instant // last one before the mark
	first  probe.Instant // first one since the mark, where there is one
}

func (b *backends) count(by *probe.Backend, now probe.Instant) {
	one := b.all[by]
	if one == nil {
		if b.all == nil {
			b.all = map[*probe.Backend]*backend{}
		}
		one = &backend{}
		b.all[by] = one
	}
	if one.answers == one.marked {
		one.first = now
	}
	one.answers++
	one.last = max(one.last, now)
}

// Sighting is when one backend answered before and since a mark, see
// [Recorder.Sightings].
type Sighting struct {
	Name    string
	Before  probe.Instant // of the last answer before the mark; 0: there was none
	First   probe.Instant // of the first one since the mark; 0: there was none
	Last    probe.Instant // of the last one since the mark; 0: there was none
	Answers uint64        // since the mark
}

// Sightings writes all backends that answered within the last hour by name to
// list, whose room is used again, without those that had no place of their own.
// An instant is that of the end of an answer. Where mark is set, a new span
// begins with it, without a gap: there is one mark, and before the first one it
// is the begin of the recorder.
func (r *Recorder) Sightings(list []Sighting, mark bool) []Sighting {
	list = list[:0]
	r.mu.Lock()
	for by, one := range r.backends.all {
		if by != r.backends.table.Other() {
			s := Sighting{Name: by.Name, Before: one.before, Answers: one.answers - one.marked}
			if s.Answers > 0 {
				s.First, s.Last = one.first, one.last
			}
			list = append(list, s)
		}
		if mark {
			one.marked, one.before = one.answers, one.last
		}
	}
	r.mu.Unlock()
	slices.SortFunc(list, func(x, y Sighting) int { return strings.Compare(x.Name, y.Name) })
	return sightedTogether(list)
}

// LastFailure returns when the last request ended that failed and for which the
// probe itself is not to blame, 0 where none did.
func (r *Recorder) LastFailure() probe.Instant {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.lastFailure
}

// sightedTogether is the same as together, for sightings.
func sightedTogether(list []Sighting) []Sighting {
	kept := list[:0]
	for _, one := range list {
		n := len(kept)
		if n == 0 || kept[n-1].Name != one.Name {
			kept = append(kept, one)
			continue
		}
		to := &kept[n-1]
		if to.First == 0 || one.First != 0 && one.First < to.First {
			to.First = one.First
		}
		to.Before, to.Last = max(to.Before, one.Before), max(to.Last, one.Last)
		to.Answers += one.Answers
	}
	return kept
}

// snapshot writes all backends by name to list, whose room is used again, and
// forgets those that have been silent.
func (b *backends) snapshot(now probe.Instant, list []BackendCount) []BackendCount {
	list = list[:0]
	for by, one := range b.all {
		if now.Sub(one.last) >= silence {
			delete(b.all, by)
			if by != b.table.Other() {
				b.table.Forget(by)
			}
			continue
		}
		list = append(list, BackendCount{Name: by.Name, Answers: one.answers})
	}
	slices.SortFunc(list, func(x, y BackendCount) int { return strings.Compare(x.Name, y.Name) })
	return together(list)
}

// together puts what was counted under the same name one after the other into
// one: an answer may have been on its way here when its backend was forgotten,
// and the table then gives the name to another one.
func together(list []BackendCount) []BackendCount {
	kept := list[:0]
	for _, one := range list {
		if n := len(kept); n > 0 && kept[n-1].Name == one.Name {
			kept[n-1].Answers += one.Answers
			continue
		}
		kept = append(kept, one)
	}
	return kept
}
