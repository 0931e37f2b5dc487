package resolve

import (
	"context"
	"net/netip"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/steadyprobe/steadyprobe/probe"
)

// notLocal allows what is neither loopback nor link-local.
func notLocal(a netip.Addr) bool { return !a.IsLoopback() && !a.IsLinkLocalUnicast() }

// TestAllowedAddresses lets a name lead where it may not, as one does whose
// owner has found out who asks for it.
func TestAllowedAddresses(t *testing.T) {
	for _, row := range []struct {
		name    string
		answers []string // of one lookup after the other, addresses each
		want    []string // what is dealt after each
		refused int      // of the last answer
		why     string   // the last failure; empty: none
	}{
		{"allowed", []string{"10.0.0.1 10.0.0.2"}, []string{"10.0.0.1"}, 0, ""},
		{"some are not", []string{"127.0.0.1 10.0.0.2 169.254.169.254"}, []string{"10.0.0.2"}, 2, ""},
		{"none is", []string{"169.254.169.254 ::1"}, []string{"resolve/error"}, 2, `looking up "door.test": it leads to 169.254.169.254, which is not allowed`},
		{"an IPv4 address in the form of IPv6", []string{"::ffff:127.0.0.1"}, []string{"resolve/error"}, 1, `looking up "door.test": it leads to 127.0.0.1, which is not allowed`},
		{"what was allowed is kept", []string{"10.0.0.1", "127.0.0.1"}, []string{"10.0.0.1", "10.0.0.1"}, 1, `looking up "door.test": it leads to 127.0.0.1, which is not allowed`},
		{"good again", []string{"127.0.0.1", "10.0.0.3"}, []string{"resolve/error", "10.0.0.3"}, 0, `looking up "door.test": it leads to 127.0.0.1, which is not allowed`},
	} {
		t.Run(row.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := &fakeServer{}
				f.set(strings.Fields(row.answers[0]), nil)
				r := newResolver(t, f, Options{Allow: notLocal})
				for i, answer := range row.answers {
					f.set(strings.Fields(answer), nil)
					if i > 0 {
						look(t, r)
					}
					if got, _ := pick(r); got != row.want[i] {
						t.Errorf("lookup %d: dealt %s, want %s", i, got, row.want[i])
					}
				}
				if got := r.Stats().Refused; got != row.refused {
					t.Errorf("refused %d, want %d", got, row.refused)
				}
				why := ""
				if err := r.Failure(); err != nil {
					why = err.Error()
				}
				if why != row.why {
					t.Errorf("failure %q, want %q", why, row.why)
				}
			})
		})
	}
}

// TestAllowedLiteral has no lookup that could refuse.
func TestAllowedLiteral(t *testing.T) {
	for _, row := range []struct {
		host string
		want probe.Outcome
	}{{"10.0.0.1", probe.Success}, {"::ffff:127.0.0.1", probe.ResolveError}, {"fe80::1", probe.ResolveError}} {
		t.Run(row.host, func(t *testing.T) {
			r := New(Options{Host: row.host, Port: 80, Clock: probe.NewClock(), Allow: notLocal})
			defer r.Close()
			a, _, o := r.Pick(context.Background())
			if o != row.want || a.IsValid() != (o == probe.Success) {
				t.Errorf("got %v, %v; want %v", a, o, row.want)
			}
			if s := r.Stats(); s.Refused+s.Addresses != 1 || (s.Refused == 1) != (o != probe.Success) {
				t.Errorf("addresses %d, refused %d", s.Addresses, s.Refused)
			}
		})
	}
}
