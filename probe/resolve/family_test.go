package resolve

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/steadyprobe/steadyprobe/probe"
)

func TestFamilies(t *testing.T) {
	const four1, four2, six1, six2 = "10.0.0.1", "10.0.0.2", "2001:db8::1", "2001:db8::2"
	both := []string{six2, four2, six1, four1}
	for _, tc := range []struct {
		name   string
		family Family
		answer []string
		asked  string
		want   map[string]int // of four openings
	}{
		{"any, the lookup prefers IPv6", Any, both, "ip", map[string]int{six1: 2, six2: 2}},
		{"any, the lookup prefers IPv4", Any, []string{four1, six1}, "ip", map[string]int{four1: 4}},
		{"any, only IPv4", Any, []string{four1}, "ip", map[string]int{four1: 4}},
		{"IPv4", IPv4, both, "ip4", map[string]int{four1: 2, four2: 2}},
		{"IPv4, only IPv6", IPv4, []string{six1}, "ip4", map[string]int{"resolve/not_found": 4}},
		{"IPv6", IPv6, both, "ip6", map[string]int{six1: 2, six2: 2}},
		{"IPv6, only IPv4", IPv6, []string{four1}, "ip6", map[string]int{"resolve/not_found": 4}},
		{"IPv6, mapped IPv4", IPv6, []string{"::ffff:10.0.0.1"}, "ip6", map[string]int{"resolve/not_found": 4}},
		{"IPv4, mapped", IPv4, []string{four1, "::ffff:10.0.0.1"}, "ip4", map[string]int{four1: 4}},
		{"prefer IPv4", PreferIPv4, both, "ip", map[string]int{four1: 2, four2: 2}},
		{"prefer IPv4, only IPv6", PreferIPv4, []string{six1}, "ip", map[string]int{six1: 4}},
		{"prefer IPv6", PreferIPv6, []string{four1, six1}, "ip", map[string]int{six1: 4}},
		{"prefer IPv6, only IPv4", PreferIPv6, []string{four1}, "ip", map[string]int{four1: 4}},
		{"zones are other addresses", Any, []string{"fe80::1%a", "fe80::1%b", "fe80::1%a"}, "ip", map[string]int{"fe80::1%a": 2, "fe80::1%b": 2}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := &fakeServer{answer: tc.answer}
				r := newResolver(t, f, Options{Family: tc.family})
				if got := dealt(r, 4); !maps.Equal(got, tc.want) || f.asked[0] != tc.asked {
					t.Errorf("asked for %q, dealt %v, want %q, %v", f.asked[0], got, tc.asked, tc.want)
				}
			})
		})
	}
}

// TestEvenWhateverTheRotation has answers in an order of their own at each
// lookup, and a lookup after each opening.
func TestEvenWhateverTheRotation(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var answer []string
		for i := range 7 {
			answer = append(answer, fmt.Sprintf("10.0.0.%d", i))
		}
		f := &fakeServer{answer: answer}
		r := started(t, f, Options{})
		counts := map[string]int{}
		for range 70 {
			a, _ := pick(r)
			counts[a]++
			shuffled := slices.Clone(answer)
			rand.Shuffle(len(shuffled), func(i, j int) { shuffled[i], shuffled[j] = shuffled[j], shuffled[i] })
			f.set(shuffled, nil)
			sleep(refresh)
		}
		for _, a := range answer {
			if counts[a] != 10 {
				t.Errorf("dealt %v, want each 10 times", counts)
			}
		}
	})
}

// TestComingAndGoingChangesNobodysTurn adds and removes an address between
// openings: those that stay are dealt one after the other all the same.
func TestComingAndGoingChangesNobodysTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fakeServer{answer: []string{"10.0.0.2", "10.0.0.4", "10.0.0.6"}}
		r := started(t, f, Options{})
		var got []string
		for _, next := range [][]string{
			{"10.0.0.1", "10.0.0.2", "10.0.0.4", "10.0.0.6"}, // one comes before the one dealt last
			{"10.0.0.4", "10.0.0.6"},                         // the one dealt last goes, with the one before
			{"10.0.0.2", "10.0.0.4", "10.0.0.6"},
			{"10.0.0.2"},
		} {
			a, _ := pick(r)
			got = append(got, a)
			f.set(next, nil)
			sleep(refresh)
		}
		a, _ := pick(r)
		got = append(got, a)
		if want := []string{"10.0.0.2", "10.0.0.4", "10.0.0.6", "10.0.0.2", "10.0.0.2"}; !slices.Equal(got, want) {
			t.Errorf("dealt %v, want %v", got, want)
		}
	})
}

func TestFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fakeServer{answer: []string{"10.0.0.2", "10.0.0.1", "10.0.0.3"}}
		r := started(t, f, Options{First: true})
		for _, step := range []struct {
			want string
			dead bool
			next []string // what the name has afterwards
		}{
			// It is kept to while it is there, dead or not: what fails is not avoided.
			{"10.0.0.2", true, []string{"10.0.0.3", "10.0.0.2", "10.0.0.1"}},
			{"10.0.0.2", true, []string{"10.0.0.3", "10.0.0.1"}},
			// The first of the answer follows it.
			{"10.0.0.3", false, []string{"10.0.0.2", "10.0.0.3", "10.0.0.1"}},
			{"10.0.0.3", false, []string{"2001:db8::2", "2001:db8::1", "10.0.0.3"}},
			{"2001:db8::2", false, []string{"10.0.0.3", "2001:db8::1"}},
			{"10.0.0.3", false, []string{"2001:db8::3", "2001:db8::1", "10.0.0.3"}},
			{"2001:db8::1", false, nil},
		} {
			if got := dealt(r, 5); got[step.want] != 5 {
				t.Errorf("dealt %v, want only %s", got, step.want)
			}
			if step.dead {
				r.Failed(at(step.want))
			}
			f.set(step.next, nil)
			sleep(refresh)
		}
	})
}

// TestOneDeadAddressOfTwo holds that half of the openings get it.
func TestOneDeadAddressOfTwo(t *testing.T) {
	for _, tc := range []struct {
		name    string
		answer  []string
		dead    string
		dealt   map[string]int // of ten openings
		another []string       // addresses that Other may give
	}{
		{"one family", []string{"10.0.0.1", "10.0.0.2"}, "10.0.0.2", map[string]int{"10.0.0.1": 5, "10.0.0.2": 5}, nil},
		{"of a family", []string{"2001:db8::1", "2001:db8::2", "10.0.0.1", "10.0.0.2"}, "2001:db8::2",
			map[string]int{"2001:db8::1": 5, "2001:db8::2": 5}, []string{"10.0.0.1", "10.0.0.2"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := &fakeServer{answer: tc.answer}
				r := started(t, f, Options{})
				counts := map[string]int{}
				for range 10 {
					a, _ := pick(r)
					counts[a]++
					if a != tc.dead {
						r.Connected(at(a))
						continue
					}
					r.Failed(at(a))
					other, ok := r.Other(at(a))
					if ok != (tc.another != nil) || ok && !slices.Contains(tc.another, other.Addr().String()) {
						t.Errorf("the other family has %v, %v, want one of %v", other, ok, tc.another)
					}
					sleep(5 * time.Second)
				}
				if !maps.Equal(counts, tc.dealt) {
					t.Errorf("dealt %v, want %v", counts, tc.dealt)
				}
			})
		})
	}
}

func TestOtherIsDealtEvenly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fakeServer{answer: []string{"2001:db8::1", "10.0.0.1", "10.0.0.2"}}
		r := newResolver(t, f, Options{})
		pick(r)
		counts := map[string]int{}
		for range 1000 {
			other, _ := r.Other(at("2001:db8::1"))
			counts[other.Addr().String()]++
		}
		// 500 each, with a deviation of 16.
		if n := counts["10.0.0.1"]; n < 400 || n > 600 || counts["10.0.0.2"] != 1000-n {
			t.Errorf("gave %v, want about 500 each", counts)
		}
		first := newResolver(t, f, Options{First: true})
		pick(first)
		for range 10 {
			if other, ok := first.Other(at("2001:db8::1")); !ok || other != at("10.0.0.1") {
				t.Errorf("gave %v, %v, want the one that is kept to", other, ok)
			}
		}
	})
}

// TestFamilyThatLeadsNowhere has all addresses of the preferred family dead,
// for a while.
func TestFamilyThatLeadsNowhere(t *testing.T) {
	for _, first := range []bool{false, true} {
		t.Run(fmt.Sprint("first ", first), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := &fakeServer{answer: []string{"10.0.0.1", "10.0.0.2", "2001:db8::1", "2001:db8::2"}}
				r := started(t, f, Options{Family: PreferIPv6, First: first})
				dead := true
				// open is an opening as wire makes it; it returns what it tried first.
				open := func() version {
					a, _, _ := r.Pick(t.Context())
					v := versionOf(a.Addr())
					if v == four || !dead {
						r.Connected(a)
						return v
					}
					r.Failed(a)
					other, _ := r.Other(a)
					r.Connected(other)
					return v
				}
				count := func(n int) map[version]int {
					counts := map[version]int{}
					for range n {
						counts[open()]++
					}
					return counts
				}
				// Each address of the family is tried once, the one kept to alone.
				tried := map[bool]int{false: 2, true: 1}[first]
				if got := count(10); got[six] != tried {
					t.Errorf("%v of ten openings, want %d in vain", got, tried)
				}
				// Then one opening in each refresh tries it, with lookups in between.
				for range 3 {
					sleep(refresh - 1)
					if got := count(10); got[six] != 0 {
						t.Errorf("%v of ten openings within a refresh, want none in vain", got)
					}
					sleep(1)
					if got := count(10); got[six] != 1 {
						t.Errorf("%v of ten openings after a refresh, want one in vain", got)
					}
				}
				// It is back: the next one that tries it brings all back.
				dead = false
				sleep(refresh)
				if got := count(10); got[six] != 10 {
					t.Errorf("%v of ten openings, want all in the preferred family", got)
				}
			})
		})
	}
}

// TestNewAddressIsTriedAtOnce has the dead addresses of a family replaced.
func TestNewAddressIsTriedAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fakeServer{answer: []string{"2001:db8::1", "10.0.0.1"}}
		r := started(t, f, Options{})
		pick(r)
		r.Failed(at("2001:db8::1"))
		if got, _ := pick(r); got != "10.0.0.1" {
			t.Errorf("picked %s, want the other family", got)
		}
		f.set([]string{"2001:db8::2", "10.0.0.1"}, nil)
		sleep(time.Second) // a failed connect has the name looked up
		if got, _ := pick(r); got != "2001:db8::2" {
			t.Errorf("picked %s, want the address that has come up", got)
		}
		// Nothing is held against one that was gone and is back.
		f.set([]string{"2001:db8::1", "10.0.0.1"}, nil)
		sleep(refresh)
		if got := dealt(r, 3); got["2001:db8::1"] != 3 {
			t.Errorf("dealt %v, want the address that is back", got)
		}
	})
}

// TestBothFamiliesLeadNowhere holds that the preferred one is tried then.
func TestBothFamiliesLeadNowhere(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fakeServer{answer: []string{"2001:db8::1", "10.0.0.1"}}
		r := started(t, f, Options{})
		pick(r)
		r.Failed(at("2001:db8::1"))
		r.Failed(at("10.0.0.1"))
		if got := dealt(r, 5); got["2001:db8::1"] != 5 {
			t.Errorf("dealt %v, want the preferred family", got)
		}
		r.Connected(at("10.0.0.1"))
		if got := dealt(r, 5); got["10.0.0.1"] != 5 {
			t.Errorf("dealt %v, want the family that leads somewhere", got)
		}
	})
}

// TestAnswerThatLacksAFamily has one of the two questions of a lookup fail,
// where the standard resolver answers with what the other one gave.
func TestAnswerThatLacksAFamily(t *testing.T) {
	for _, tc := range []struct {
		name    string
		err     error // of the question for AAAA alone
		want    string
		failure probe.Outcome // counted once; probe.Success: none is
	}{
		{"silent", errSilent, "10.0.0.1 2001:db8::1", probe.ResolveTimeout},
		{"broken", errBroken, "10.0.0.1 2001:db8::1", probe.ResolveError},
		{"gone", errNoSuchName, "10.0.0.1", probe.Success},
		{"gone, with an empty answer", nil, "10.0.0.1", probe.Success},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := &fakeServer{answer: []string{"2001:db8::1", "10.0.0.1"}, errs: map[string]error{"ip6": tc.err}}
				r := started(t, f, Options{})
				pick(r)
				f.set([]string{"10.0.0.1"}, nil)
				sleep(refresh)
				if got := text(r.Addresses()); got != tc.want {
					t.Errorf("addresses %s, want %s", got, tc.want)
				}
				want := Stats{Lookups: 3, Added: 2, Addresses: 2}
				if tc.failure == probe.Success {
					want.Addresses, want.Removed = 1, 1
				} else {
					want.Failures[tc.failure] = 1
				}
				if s := r.Stats(); s != want {
					t.Errorf("stats %+v, want %+v", s, want)
				}
				if want := []string{"ip", "ip", "ip6"}; !slices.Equal(f.asked, want) {
					t.Errorf("asked for %v, want %v", f.asked, want)
				}
			})
		})
	}
}
