package resolve

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/steadyprobe/steadyprobe/internal/dnsdoor"
	"github.com/steadyprobe/steadyprobe/probe"
)

// asking returns a Resolver of name that asks a real server. Its clock is not
// started.
func asking(t *testing.T, s *dnsdoor.Server, name string, o Options) *Resolver {
	o.Host, o.Port, o.Clock, o.Refresh, o.Server = name, 80, probe.NewClock(), time.Hour, s.Addr()
	r := New(o)
	t.Cleanup(r.Close)
	return r
}

// look makes a lookup as the clock does.
func look(t *testing.T, r *Resolver) {
	<-r.lookup
	r.refresh(t.Context())
	r.lookup <- struct{}{}
}

func TestStandardResolver(t *testing.T) {
	many := make([]string, 100)
	for i := range many {
		many[i] = fmt.Sprintf("10.0.0.%d", 100+i)
	}
	for _, tc := range []struct {
		name      string
		host      string // door.test. if empty
		family    Family
		behaviour dnsdoor.Behaviour
		want      string        // addresses
		outcome   probe.Outcome // of Pick
		tcp       bool
		why       string // of the failure; empty: not looked at
	}{
		{name: "both families", want: "10.0.0.1 10.0.0.2 2001:db8::1"},
		{name: "without the dot", host: "door.test", want: "10.0.0.1 10.0.0.2 2001:db8::1"},
		{name: "IPv4", family: IPv4, want: "10.0.0.1 10.0.0.2"},
		{name: "IPv6", family: IPv6, want: "2001:db8::1"},
		{name: "slow", behaviour: dnsdoor.Behaviour{Delay: 5 * time.Millisecond}, want: "10.0.0.1 10.0.0.2 2001:db8::1"},
		{name: "truncated", behaviour: dnsdoor.Behaviour{Truncate: true}, want: "10.0.0.1 10.0.0.2 2001:db8::1", tcp: true},
		{name: "100 addresses", host: "many.test.", want: text(parsed(many)), tcp: true}, // 12 + 16·100 bytes: more than the 1,232 that are asked for
		{name: "no such name", host: "gone.test.", why: "lookup gone.test. on SERVER: no such host", outcome: probe.ResolveNotFound},
		{name: "no address", host: "empty.test.", outcome: probe.ResolveNotFound},
		{name: "only the other family", host: "four.test.", family: IPv6, outcome: probe.ResolveNotFound},
		{name: "preferred family absent", host: "four.test.", family: PreferIPv6, want: "10.0.0.1"},
		{name: "SERVFAIL", why: "lookup door.test. on SERVER: server misbehaving", behaviour: dnsdoor.Behaviour{Error: dnsdoor.ServerFailure}, outcome: probe.ResolveError},
		{name: "refused", behaviour: dnsdoor.Behaviour{Error: dnsdoor.Refused}, outcome: probe.ResolveError},
		{name: "SERVFAIL for AAAA alone", behaviour: dnsdoor.Behaviour{Only: "AAAA", Error: dnsdoor.ServerFailure}, want: "10.0.0.1 10.0.0.2"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s := dnsdoor.Listen(t)
			s.Set("door.test", "10.0.0.2", "2001:db8::1", "10.0.0.1")
			s.Set("many.test", many...)
			s.Set("four.test", "10.0.0.1")
			s.Set("empty.test")
			s.Behave(tc.behaviour)
			host := tc.host
			if host == "" {
				host = "door.test."
			}
			r := asking(t, s, host, Options{Family: tc.family})
			_, looked, o := r.Pick(t.Context())
			if got := text(r.Addresses()); got != tc.want || o != tc.outcome || !looked {
				t.Errorf("addresses %q, %v, want %q, %v", got, o, tc.want, tc.outcome)
			}
			if want := strings.ReplaceAll(tc.why, "SERVER", s.Addr().String()); want != "" && r.Failure().Error() != want {
				t.Errorf("failed because %q, want %q", r.Failure(), want)
			}
			if n := s.Counts(); (n.TCP > 0) != tc.tcp || n.UDP == 0 {
				t.Errorf("the server counted %+v, want questions over TCP: %v", n, tc.tcp)
			}
		})
	}
}

// parsed returns addresses from their texts.
func parsed(texts []string) (found []netip.Addr) {
	for _, text := range texts {
		found = append(found, netip.MustParseAddr(text))
	}
	return found
}

// TestRecordsThatChange asks one server again and again.
func TestRecordsThatChange(t *testing.T) {
	s := dnsdoor.Listen(t)
	var told []string
	r := asking(t, s, "door.test.", Options{Changed: func(a []netip.Addr) { told = append(told, text(a)) }})
	var failures [probe.NumOutcomes]uint64
	for _, step := range []struct {
		name      string
		records   []string // nil: the name does not exist
		behaviour dnsdoor.Behaviour
		want      string
		failure   probe.Outcome
	}{
		{"not there yet", nil, dnsdoor.Behaviour{}, "", probe.ResolveNotFound},
		{"two", []string{"10.0.0.1", "10.0.0.2"}, dnsdoor.Behaviour{}, "10.0.0.1 10.0.0.2", 0},
		{"rotated", []string{"10.0.0.1", "10.0.0.2"}, dnsdoor.Behaviour{Rotate: true}, "10.0.0.1 10.0.0.2", 0},
		{"another", []string{"10.0.0.2", "10.0.0.3", "2001:db8::1"}, dnsdoor.Behaviour{}, "10.0.0.2 10.0.0.3 2001:db8::1", 0},
		{"gone", nil, dnsdoor.Behaviour{}, "10.0.0.2 10.0.0.3 2001:db8::1", probe.ResolveNotFound},
		{"empty", []string{}, dnsdoor.Behaviour{}, "10.0.0.2 10.0.0.3 2001:db8::1", probe.ResolveNotFound},
		{"broken", []string{"10.0.0.9"}, dnsdoor.Behaviour{Error: dnsdoor.ServerFailure}, "10.0.0.2 10.0.0.3 2001:db8::1", probe.ResolveError},
		{"broken for one family", []string{"10.0.0.3", "2001:db8::1"}, dnsdoor.Behaviour{Only: "AAAA", Error: dnsdoor.ServerFailure}, "10.0.0.3 2001:db8::1", probe.ResolveError},
		{"one family", []string{"10.0.0.3"}, dnsdoor.Behaviour{}, "10.0.0.3", 0},
	} {
		if step.records == nil {
			s.Remove("door.test.")
		} else {
			s.Set("door.test.", step.records...)
		}
		s.Behave(step.behaviour)
		look(t, r)
		if step.failure != probe.Success {
			failures[step.failure]++
		}
		if got := text(r.Addresses()); got != step.want {
			t.Errorf("%s: addresses %q, want %q", step.name, got, step.want)
		}
		if got := r.Stats().Failures; got != failures {
			t.Errorf("%s: failures %v, want %v", step.name, got, failures)
		}
	}
	want := []string{"10.0.0.1 10.0.0.2", "10.0.0.2 10.0.0.3 2001:db8::1", "10.0.0.3 2001:db8::1", "10.0.0.3"}
	if !slices.Equal(told, want) {
		t.Errorf("told %q, want %q", told, want)
	}
}

// TestSilentServer holds that nobody waits longer than asked to, and that no
// question lingers: [TestMain] looks for what is left.
func TestSilentServer(t *testing.T) {
	for _, b := range []dnsdoor.Behaviour{{Silent: true}, {Delay: time.Hour}} {
		s := dnsdoor.Listen(t)
		s.Set("door.test.", "10.0.0.1")
		s.Behave(b)
		r := asking(t, s, "door.test.", Options{})
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
		defer cancel()
		began := time.Now()
		if a, looked, o := r.Pick(ctx); o != probe.ResolveTimeout || !looked || a.IsValid() {
			t.Errorf("picked %v, %v, want resolve/timeout", a, o)
		}
		// The standard resolver alone waits for 5 s.
		if took := time.Since(began); took > 4*time.Second {
			t.Errorf("the lookup took %v", took)
		}
		if f := r.Stats().Failures[probe.ResolveTimeout]; f != 1 || s.Counts().UDP == 0 {
			t.Errorf("%d timeouts, the server counted %+v", f, s.Counts())
		}
		// Now the clock asks, and Close does not wait for the answer.
		r.mu.Lock()
		r.lookUpAt(r.options.Clock.Now())
		r.mu.Unlock()
		asked := s.Counts().UDP
		r.Start()
		for s.Counts().UDP == asked {
			time.Sleep(time.Millisecond)
		}
		began = time.Now()
		r.Close()
		if took := time.Since(began); took > 4*time.Second {
			t.Errorf("Close took %v", took)
		}
	}
}

// TestCloseUnwanted holds that a question's own time limit is left to the
// deadline of its connection, whose error says what it was: closed as well, a
// silent server would be resolve/error whenever that came first.
func TestCloseUnwanted(t *testing.T) {
	for _, tc := range []struct {
		name   string
		cancel bool // before the limit
		want   error
	}{
		{"the limit", false, os.ErrDeadlineExceeded},
		{"nobody wants the answer", true, io.ErrClosedPipe},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
				defer cancel()
				conn, server := net.Pipe()
				defer server.Close()
				defer conn.Close()
				closeUnwanted(ctx, conn)
				// The resolver's deadline is that of the context; here it is a little
				// later, so that a close at the limit comes first.
				conn.SetDeadline(time.Now().Add(5*time.Second + time.Millisecond))
				if tc.cancel {
					cancel()
				}
				if _, err := conn.Read(make([]byte, 1)); !errors.Is(err, tc.want) {
					t.Errorf("reading ended with %v, want %v", err, tc.want)
				}
			})
		})
	}
}

// TestNobodyListens has the server's port closed: the kernel says so at once.
func TestNobodyListens(t *testing.T) {
	s := dnsdoor.Listen(t)
	s.Close()
	r := asking(t, s, "door.test.", Options{})
	if _, _, o := r.Pick(t.Context()); o != probe.ResolveError && o != probe.ResolveTimeout {
		t.Errorf("picked with %v, want a failure", o)
	}
}
