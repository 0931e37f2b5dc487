package wire

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	door "github.com/steadyprobe/steadyprobe/internal/faultdoor"
	"github.com/steadyprobe/steadyprobe/internal/testcert"
	"github.com/steadyprobe/steadyprobe/probe"
	"github.com/steadyprobe/steadyprobe/probe/resolve"
)

// fault is a row of the taxonomy: what a door does and what the ticks sent to
// it, one after the other, must come to.
type fault struct {
	name     string
	behave   func(t *testing.T) door.Behaviour
	options  Options
	ticks    int // sent before the one that counts, all of them successes
	want     probe.Outcome
	close    probe.CloseReason // of the connection; NotClosed: there was none, or it is kept
	code     uint16
	loopback bool // only there: memory has no window that could close
	// or is what a real socket may show as well, where it depends on which of two
	// segments is first or on how busy the machine is.
	or     probe.Outcome
	either bool // in memory too
}

func plain(b door.Behaviour) func(*testing.T) door.Behaviour {
	return func(*testing.T) door.Behaviour { return b }
}

func over(h door.Handler) func(*testing.T) door.Behaviour { return plain(door.HTTP(h)) }

// authority is a certificate of a door, and a client that trusts who signed it.
type authority struct {
	client *tls.Config
	leaf   tls.Certificate
}

func newAuthority(t *testing.T, o testcert.Options) authority {
	ca := testcert.NewCA(t, "root", testcert.Options{})
	return authority{
		client: &tls.Config{RootCAs: ca.Pool(), ServerName: "localhost"},
		leaf:   ca.Leaf(t, o),
	}
}

var longBody = bytes.Repeat([]byte("x"), 8<<20)

// faults are all that a door can cause below TLS and without it.
var faults = []fault{
	{name: "good", behave: over(door.OK()), want: probe.Success, code: 200},
	{name: "good, reused", behave: over(door.OK()), ticks: 3, want: probe.Success, code: 200},
	{name: "1xx first", behave: over(door.Interim(3, 103, door.OK())), want: probe.Success, code: 200},
	{name: "http 1.0", behave: over(door.HTTP10()), want: probe.Success, close: probe.CloseAnnounced, code: 200},
	{name: "http 1.0 keep-alive", behave: over(door.HTTP10KeepAlive()), ticks: 2, want: probe.Success, code: 200},
	{name: "close announced", behave: over(door.CloseAnnounced()), want: probe.Success, close: probe.CloseAnnounced, code: 200},
	{name: "close announced, never done", behave: over(door.CloseOnlyAnnounced()), want: probe.Success, close: probe.CloseAnnounced, code: 200},
	{name: "delimited by the close", behave: over(door.UntilClose(10000)), want: probe.Success, close: probe.CloseAnnounced, code: 200},
	{name: "slow body in time", behave: over(door.SlowBody(100, 10, time.Millisecond)), want: probe.Success, code: 200},
	{name: "half-closed after the answer", behave: plain(door.HalfClose(1, door.OK())), want: probe.Success, close: probe.ClosePeer, code: 200},

	{name: "closed at once", behave: plain(door.CloseAtOnce()), want: probe.ReadReset, or: probe.ReadEOF, either: true, close: probe.ClosePeer},
	{name: "silent", behave: plain(door.Silent()), options: Options{Way: Way{Timeout: 50 * time.Millisecond}}, want: probe.ReadTimeout, close: probe.CloseTimeout},
	{name: "response limit", behave: plain(door.Silent()), options: Options{ResponseTimeout: 30 * time.Millisecond}, want: probe.ReadTimeout, close: probe.CloseTimeout},
	{name: "hangs after the first answer", behave: over(door.Nth(2, door.Hang(), door.OK())), ticks: 1, options: Options{Way: Way{Timeout: 50 * time.Millisecond}}, want: probe.ReadTimeout, close: probe.CloseTimeout},
	{name: "body too slow", behave: over(door.SlowBody(1000, 10, 10*time.Millisecond)), options: Options{Way: Way{Timeout: 100 * time.Millisecond}}, want: probe.ReadTimeout, close: probe.CloseTimeout},
	{name: "endless body", behave: over(door.EndlessChunked(1000, time.Millisecond)), options: Options{Way: Way{Timeout: 100 * time.Millisecond}}, want: probe.ReadTimeout, close: probe.CloseTimeout},
	{name: "endless header", behave: over(door.EndlessHeader(time.Millisecond)), options: Options{Way: Way{Timeout: 100 * time.Millisecond}}, want: probe.ReadTimeout, close: probe.CloseTimeout},

	{name: "reset before the answer", behave: over(door.ResetBeforeHeader()), want: probe.ReadReset, close: probe.ClosePeer},
	{name: "reset inside the header", behave: over(door.ResetInHeader()), want: probe.ReadReset, close: probe.ClosePeer},
	{name: "reset after the header", behave: over(door.ResetAfterHeader()), want: probe.ReadReset, close: probe.ClosePeer},
	{name: "end before the answer", behave: over(door.EOFBeforeAnswer()), want: probe.ReadEOF, close: probe.ClosePeer},
	{name: "end inside the header", behave: over(door.EOFInHeader()), want: probe.ReadTruncated, close: probe.ClosePeer},
	{name: "truncated body", behave: over(door.Truncated(1000, 999)), want: probe.ReadTruncated, close: probe.ClosePeer},
	{name: "truncated chunks", behave: over(door.TruncatedChunked(100)), want: probe.ReadTruncated, close: probe.ClosePeer},
	// A worker that is killed while it works is no crossed close: it took longer
	// than a round trip.
	{name: "end of a reused connection, late", behave: over(door.Nth(2, door.Delay(20*time.Millisecond, door.EOFBeforeAnswer()), door.OK())), ticks: 1, want: probe.ReadEOF, close: probe.ClosePeer},
	{name: "reset of a reused connection, late", behave: over(door.Nth(2, door.Delay(20*time.Millisecond, door.Reset()), door.OK())), ticks: 1, want: probe.ReadReset, close: probe.ClosePeer},
	{name: "end of a reused connection, crossed", behave: over(door.Nth(2, door.EOF(), door.OK())), ticks: 1, want: probe.ReadStale, or: probe.ReadEOF, close: probe.ClosePeer},
	{name: "reset of a reused connection, crossed", behave: over(door.Nth(2, door.Reset(), door.OK())), ticks: 1, want: probe.ReadStale, or: probe.ReadReset, close: probe.ClosePeer},

	{name: "status", behave: over(door.Status(503)), want: probe.ResponseStatus, code: 503},
	{name: "garbage", behave: over(door.Garbage()), want: probe.ResponseProtocol, close: probe.CloseError},
	{name: "babble before the request", behave: plain(door.Babble("SSH-2.0-door\r\n")), want: probe.ResponseProtocol},
	{name: "huge header", behave: over(door.HugeHeader(200_000)), want: probe.ResponseProtocol, close: probe.CloseError},
	{name: "body over the limit", behave: over(door.Sized(2000)), options: Options{MaxBody: 1000}, want: probe.ResponseSize, close: probe.CloseError},
	{name: "chunks over the limit", behave: over(door.EndlessChunked(1000, 0)), options: Options{MaxBody: 10_000}, want: probe.ResponseSize, close: probe.CloseError},
	{name: "two answers", behave: over(door.TwoAnswers()), want: probe.Success, close: probe.ClosePeer, code: 200},

	{
		name: "early answer to a long body", behave: plain(door.HTTPEarly(door.Early(413))),
		options: Options{Request: Request{Method: "POST", Body: longBody}}, want: probe.ResponseStatus, close: probe.CloseAnnounced, code: 413,
	},
	{
		name: "window closed", behave: plain(door.NeverReads()), loopback: true,
		options: Options{Way: Way{Timeout: 100 * time.Millisecond}, Request: Request{Method: "POST", Body: longBody}}, want: probe.WriteTimeout, close: probe.CloseTimeout,
	},
	{
		name: "reset while the body is written", behave: plain(door.ResetAfter(0, 20*time.Millisecond, door.OK())),
		options: Options{Request: Request{Method: "POST", Body: longBody}}, want: probe.WriteReset, close: probe.ClosePeer,
	},
}

// tlsFaults are what a door can cause in TLS.
func tlsFaults(t *testing.T) []fault {
	good := newAuthority(t, testcert.Options{})
	serve := func(config *tls.Config, h door.Handler) func(*testing.T) door.Behaviour {
		return plain(door.TLS(config, door.HTTP(h)))
	}
	server := func(a authority) *tls.Config { return &tls.Config{Certificates: []tls.Certificate{a.leaf}} }
	versions := func(a authority, version uint16) *tls.Config {
		c := server(a)
		c.MinVersion, c.MaxVersion = version, version
		return c
	}
	demanding := server(good)
	demanding.ClientAuth = tls.RequireAnyClientCert
	demanding12 := demanding.Clone()
	demanding12.MaxVersion = tls.VersionTLS12
	client := Options{Way: Way{TLSConfig: fixed(good.client)}}
	limited := Options{Way: Way{TLSConfig: fixed(good.client), TLSTimeout: 50 * time.Millisecond}}
	unverified := Options{Way: Way{TLSConfig: fixed(&tls.Config{ServerName: "localhost", InsecureSkipVerify: true})}}
	bad := func(o testcert.Options) (Options, func(*testing.T) door.Behaviour) {
		a := newAuthority(t, o)
		return Options{Way: Way{TLSConfig: fixed(a.client)}}, serve(server(a), door.OK())
	}
	expired, expiredDoor := bad(testcert.Expired())
	early, earlyDoor := bad(testcert.NotYetValid())
	wrong, wrongDoor := bad(testcert.WrongName())
	self := &tls.Config{Certificates: []tls.Certificate{testcert.SelfSigned(t, testcert.Options{})}}
	stranger := newAuthority(t, testcert.Options{})
	return []fault{
		{name: "tls 1.2", behave: serve(versions(good, tls.VersionTLS12), door.OK()), options: client, ticks: 1, want: probe.Success, code: 200},
		{name: "tls 1.3", behave: serve(versions(good, tls.VersionTLS13), door.OK()), options: client, ticks: 1, want: probe.Success, code: 200},
		{name: "unverified", behave: serve(server(stranger), door.OK()), options: unverified, want: probe.Success, code: 200},
		{name: "tls end inside the body", behave: serve(server(good), door.Truncated(1000, 500)), options: client, want: probe.ReadTruncated, close: probe.ClosePeer},
		{name: "tls end of a reused connection", behave: serve(server(good), door.Nth(2, door.EOF(), door.OK())), ticks: 1, options: client, want: probe.ReadStale, or: probe.ReadEOF, close: probe.ClosePeer},
		{name: "tls reset of a reused connection", behave: serve(server(good), door.Nth(2, door.Reset(), door.OK())), ticks: 1, options: client, want: probe.ReadStale, or: probe.ReadReset, close: probe.ClosePeer},

		{name: "tls silent", behave: plain(door.Silent()), options: limited, want: probe.TLSTimeout},
		{name: "tls silent within the timeout", behave: plain(door.Silent()), options: Options{Way: Way{TLSConfig: fixed(good.client), Timeout: 50 * time.Millisecond}}, want: probe.TLSTimeout},
		{name: "expired", behave: expiredDoor, options: expired, want: probe.TLSCertificate},
		{name: "not yet valid", behave: earlyDoor, options: early, want: probe.TLSCertificate},
		{name: "wrong name", behave: wrongDoor, options: wrong, want: probe.TLSCertificate},
		{name: "self-signed", behave: serve(self, door.OK()), options: client, want: probe.TLSCertificate},
		{name: "unknown authority", behave: serve(server(stranger), door.OK()), options: client, want: probe.TLSCertificate},
		{name: "alert in the handshake", behave: plain(door.TLSAlert(40)), options: client, want: probe.TLSAlert},
		{name: "garbage in the handshake", behave: plain(door.TLSGarbage()), options: client, want: probe.TLSProtocol},
		{name: "plain http at the tls port", behave: plain(door.TLSPlain()), options: client, want: probe.TLSProtocol},
		{name: "no common version", behave: serve(versions(good, tls.VersionTLS11), door.OK()), options: client, want: probe.TLSAlert},
		{name: "end in the handshake", behave: plain(door.TLSEOF()), options: client, want: probe.TLSEOF},
		{name: "accepts and closes", behave: plain(door.CloseAtOnce()), options: client, want: probe.TLSEOF, or: probe.TLSReset, either: true},
		{name: "reset in the handshake", behave: plain(door.TLSReset()), options: client, want: probe.TLSReset},
		{name: "client certificate demanded, tls 1.2", behave: serve(demanding12, door.OK()), options: client, want: probe.TLSAlert},
		{name: "client certificate demanded, tls 1.3", behave: serve(demanding, door.OK()), options: client, want: probe.TLSAlert, close: probe.ClosePeer},
	}
}

// TestFaults sends ticks through every fault: in memory and virtual time, where
// the time of a failure is exact, and over real sockets.
func TestFaults(t *testing.T) {
	for _, f := range faults {
		f.run(t)
	}
}

func TestTLSFaults(t *testing.T) {
	// Certificates are valid where they are made: in the bubble and outside.
	t.Run("loopback", func(t *testing.T) {
		for _, f := range tlsFaults(t) {
			t.Run(f.name, f.onLoopback)
		}
	})
	t.Run("memory", func(t *testing.T) {
		for i := range tlsFaults(t) {
			synctest.Test(t, func(t *testing.T) {
				f := tlsFaults(t)[i]
				f.inMemory(t)
			})
		}
	})
}

func (f fault) run(t *testing.T) {
	t.Run(f.name+"/loopback", f.onLoopback)
	if !f.loopback {
		t.Run(f.name+"/memory", func(t *testing.T) { synctest.Test(t, f.inMemory) })
	}
}

func (f fault) onLoopback(t *testing.T) {
	d := door.Listen(t, f.behave(t))
	f.check(t, d, d.Addr(), nil)
}

func (f fault) inMemory(t *testing.T) {
	d := door.New(f.behave(t))
	defer d.Close()
	f.check(t, d, "127.0.0.1:1", d.Dial)
}

// check sends the ticks and holds the last one against the fault.
func (f fault) check(t *testing.T, d *door.Door, address string, dial DialFunc) {
	t.Helper()
	o := f.options
	o.Dial, o.Reuse = dial, true
	r := newRig(t, address, o, probe.Target{})
	for i := range f.ticks {
		if s := r.send(); s.Outcome != probe.Success {
			t.Fatalf("%s: tick %d: %v, want a success", f.name, i, s.Outcome)
		}
	}
	s := r.send()
	alternative := (dial == nil || f.either) && f.or != probe.Success && s.Outcome == f.or
	if s.Outcome != f.want && !alternative || s.Code != f.code {
		t.Errorf("%s: %v with status %d, want %v with %d", f.name, s.Outcome, s.Code, f.want, f.code)
	}
	if limit := r.limit(o, f.want); limit > 0 && (s.ServiceTime() < limit || dial != nil && s.ServiceTime() != limit) {
		t.Errorf("%s: timed out after %v, want %v", f.name, s.ServiceTime(), limit)
	}
	if f.close != probe.NotClosed {
		r.waitUntilClosed()
	}
	r.close()
	l := r.prober.Ledger()
	if f.close != probe.NotClosed && l.Closed[f.close] == 0 {
		t.Errorf("%s: connections closed by %v, want %v", f.name, closedBy(&l), f.close)
	}
	if l.Scheduled != l.Done() || l.Connections != 0 {
		t.Errorf("%s: scheduled %d, completed %d, %d connections left", f.name, l.Scheduled, l.Done(), l.Connections)
	}
}

// waitUntilClosed waits a while for what a door does to its connections.
func (r *rig) waitUntilClosed() {
	for range 2000 {
		if r.prober.Ledger().Connections == 0 {
			return
		}
		time.Sleep(time.Millisecond)
	}
}

// limit returns how long a timeout of that stage must have taken, 0 for other
// outcomes.
func (r *rig) limit(o Options, outcome probe.Outcome) time.Duration {
	switch {
	case outcome.Reason() != "timeout":
		return 0
	case outcome == probe.TLSTimeout && o.TLSTimeout > 0:
		return o.TLSTimeout
	case outcome == probe.ReadTimeout && o.ResponseTimeout > 0:
		return o.ResponseTimeout
	}
	return o.Timeout
}

func closedBy(l *probe.Ledger) map[string]uint64 {
	by := map[string]uint64{}
	for r, n := range l.Closed {
		if n > 0 {
			by[probe.CloseReason(r).String()] = n
		}
	}
	return by
}

// TestAnswerThatNobodyAskedFor has doors answer on idle connections: that is no
// response, and costs no request.
func TestAnswerThatNobodyAskedFor(t *testing.T) {
	for _, tc := range []struct {
		name   string
		behave door.Behaviour
		ticks  int // answered
	}{
		{"on a new connection", door.InTurn(door.Babble("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"), door.HTTP(door.OK())), 0},
		{"after an answer", door.InTurn(door.Unasked(1, time.Millisecond, 408, door.OK()), door.HTTP(door.OK())), 1},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				d := door.New(tc.behave)
				defer d.Close()
				r := newRig(t, "127.0.0.1:1", Options{Reuse: true, Way: Way{Dial: d.Dial}}, probe.Target{Connections: 1, Warm: true})
				r.prober.WarmUp(t.Context())
				for range tc.ticks {
					r.send()
				}
				time.Sleep(time.Second)
				if s := r.send(); s.Outcome != probe.Success {
					t.Errorf("%v, want a success", s.Outcome)
				}
				r.close()
				l := r.prober.Ledger()
				if l.Closed[probe.ClosePeer] != 1 || l.Opened != 2 || l.Done() != uint64(tc.ticks)+1 {
					t.Errorf("closed %v, opened %d, completed %d; want one closed by the peer", closedBy(&l), l.Opened, l.Done())
				}
			})
		})
	}
}

func TestConnectFaults(t *testing.T) {
	failing := func(err error) DialFunc {
		return func(context.Context, string, string) (net.Conn, error) {
			return nil, &net.OpError{Op: "dial", Net: "tcp", Err: os.NewSyscallError("connect", err)}
		}
	}
	for _, tc := range []struct {
		name    string
		address func(*testing.T) string
		options Options
		want    probe.Outcome
	}{
		{name: "refused", address: func(t *testing.T) string { return door.Refused(t) }, want: probe.ConnectRefused},
		{name: "connect limit", address: func(t *testing.T) string { return door.Full(t) }, options: Options{Way: Way{ConnectTimeout: 50 * time.Millisecond}}, want: probe.ConnectTimeout},
		{name: "timeout", address: func(t *testing.T) string { return door.Full(t) }, options: Options{Way: Way{Timeout: 50 * time.Millisecond}}, want: probe.ConnectTimeout},
		{name: "system's own timeout", options: Options{Way: Way{Dial: failing(syscall.ETIMEDOUT)}}, want: probe.ConnectTimeout},
		{name: "network unreachable", options: Options{Way: Way{Dial: failing(syscall.ENETUNREACH)}}, want: probe.ConnectUnreachable},
		{name: "host unreachable", options: Options{Way: Way{Dial: failing(syscall.EHOSTUNREACH)}}, want: probe.ConnectUnreachable},
		{name: "reset", options: Options{Way: Way{Dial: failing(syscall.ECONNRESET)}}, want: probe.ConnectReset},
		{name: "no port", options: Options{Way: Way{Dial: failing(syscall.EADDRNOTAVAIL)}}, want: probe.ConnectLocalResource},
		{name: "no file descriptor", options: Options{Way: Way{Dial: failing(syscall.EMFILE)}}, want: probe.ConnectLocalResource},
		{name: "system's table full", options: Options{Way: Way{Dial: failing(syscall.ENFILE)}}, want: probe.ConnectLocalResource},
		{name: "no buffer", options: Options{Way: Way{Dial: failing(syscall.ENOBUFS)}}, want: probe.ConnectLocalResource},
		{name: "anything else", options: Options{Way: Way{Dial: failing(syscall.EPERM)}}, want: probe.ConnectError},
	} {
		t.Run(tc.name, func(t *testing.T) {
			address := "127.0.0.1:1"
			if tc.address != nil {
				address = tc.address(t)
			}
			r := newRig(t, address, tc.options, probe.Target{})
			s := r.send()
			if s.Outcome != tc.want || !s.Did.Has(probe.PhaseConnect) || s.Sent != 0 {
				t.Errorf("%v, connected: %v, want %v", s.Outcome, s.Did.Has(probe.PhaseConnect), tc.want)
			}
		})
	}
}

func TestResolveFaults(t *testing.T) {
	for _, tc := range []struct {
		name   string
		lookup resolve.LookupFunc
		want   probe.Outcome
	}{
		{"no such name", func(context.Context, string, string) ([]netip.Addr, error) {
			return nil, &net.DNSError{IsNotFound: true}
		}, probe.ResolveNotFound},
		{"silent", func(ctx context.Context, _, _ string) ([]netip.Addr, error) {
			<-ctx.Done()
			return nil, ctx.Err()
		}, probe.ResolveTimeout},
		{"broken", func(context.Context, string, string) ([]netip.Addr, error) {
			return nil, &net.DNSError{Err: "server misbehaving"}
		}, probe.ResolveError},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var told []error
				o := Options{Way: Way{Timeout: 100 * time.Millisecond, FirstFailure: func(o probe.Outcome, err error) {
					if o != tc.want {
						t.Errorf("told of %v", o)
					}
					told = append(told, err)
				}}}
				o.Resolver = resolve.New(resolve.Options{Host: "door.test", Port: 1, Clock: probe.NewClock(), Lookup: tc.lookup, Refresh: time.Minute})
				r := newRig(t, "127.0.0.1:1", o, probe.Target{})
				s := r.send()
				if s.Outcome != tc.want || !s.Did.Has(probe.PhaseResolve) || s.Did.Has(probe.PhaseConnect) {
					t.Errorf("%v, phases %b, want %v", s.Outcome, s.Did, tc.want)
				}
				if want := map[probe.Outcome]time.Duration{probe.ResolveTimeout: o.Timeout}[tc.want]; s.Resolve != want {
					t.Errorf("resolve took %v, want %v", s.Resolve, want)
				}
				if r.send(); len(told) != 1 || !errors.Is(told[0], o.Resolver.Failure()) {
					t.Errorf("told %v, want once what the resolver said", told)
				}
			})
		})
	}
}

// TestRefusedCertificateIsKnown shows an expired certificate: the handshake is
// not completed, and yet its end is known, and why it was refused, once.
func TestRefusedCertificateIsKnown(t *testing.T) {
	a := newAuthority(t, testcert.Expired())
	d := door.Listen(t, door.TLS(&tls.Config{Certificates: []tls.Certificate{a.leaf}}, door.HTTP(door.OK())))
	var told []error
	r := newRig(t, d.Addr(), Options{Way: Way{TLSConfig: fixed(a.client), FirstFailure: func(o probe.Outcome, err error) {
		if o != probe.TLSCertificate {
			t.Errorf("told of %v", o)
		}
		told = append(told, err)
	}}}, probe.Target{})
	for range 3 {
		s := r.send()
		if h := s.Handshake; h.Version != 0 || h.Verified || h.NotAfter != a.leaf.Leaf.NotAfter.Unix() || h.NotBefore != a.leaf.Leaf.NotBefore.Unix() {
			t.Errorf("handshake %+v, want the times of the certificate only", h)
		}
	}
	if len(told) != 1 || !strings.Contains(told[0].Error(), "expired") {
		t.Errorf("told %v, want once that it has expired", told)
	}
}

// TestRefusalBehindTheHandshakeIsTold has a client without the certificate that
// the door demands, which TLS 1.3 says only after the handshake.
func TestRefusalBehindTheHandshakeIsTold(t *testing.T) {
	a := newAuthority(t, testcert.Options{})
	demanding := &tls.Config{Certificates: []tls.Certificate{a.leaf}, ClientAuth: tls.RequireAnyClientCert}
	for _, tc := range []struct {
		name string
		rig  func(address string, tell func(probe.Outcome, error)) *rig
	}{
		{"http", func(address string, tell func(probe.Outcome, error)) *rig {
			return newRig(t, address, Options{Way: Way{TLSConfig: fixed(a.client), FirstFailure: tell}}, probe.Target{})
		}},
		{"bare", func(address string, tell func(probe.Outcome, error)) *rig {
			return newStreamRig(t, address, StreamOptions{Way: Way{TLSConfig: fixed(a.client), FirstFailure: tell}, Expect: regexp.MustCompile("x")}, probe.Target{})
		}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			var told []string
			r := tc.rig(door.Listen(t, door.TLS(demanding, door.Silent())).Addr(), func(o probe.Outcome, err error) {
				told = append(told, o.String()+": "+err.Error())
			})
			r.send()
			r.send()
			if want := "tls/alert: remote error: tls: certificate required"; len(told) != 1 || told[0] != want {
				t.Errorf("told %q, want %q once", told, want)
			}
		})
	}
}

// TestFamilyThatLeadsNowhere has addresses of both families, of which the first
// takes connections and never answers: half of the time is left for the other.
func TestFamilyThatLeadsNowhere(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := door.New(door.HTTP(door.OK()))
		defer d.Close()
		o := Options{Way: Way{Timeout: 2 * time.Second, Dial: func(ctx context.Context, network, address string) (net.Conn, error) {
			if strings.HasPrefix(address, "[") {
				<-ctx.Done()
				return nil, ctx.Err()
			}
			return d.Dial(ctx, network, address)
		}}}
		o.Resolver = resolve.New(resolve.Options{Host: "door.test", Port: 1, Clock: probe.NewClock(), Refresh: time.Minute,
			Lookup: func(context.Context, string, string) ([]netip.Addr, error) {
				return []netip.Addr{netip.MustParseAddr("2001:db8::1"), netip.MustParseAddr("10.0.0.1")}, nil
			}})
		r := newRig(t, "127.0.0.1:1", o, probe.Target{})
		if s := r.send(); s.Outcome != probe.Success || s.Connect != time.Second {
			t.Errorf("%v after %v, want a success after half of the timeout", s.Outcome, s.Connect)
		}
		if s := r.send(); s.Outcome != probe.Success || s.Connect != 0 {
			t.Errorf("%v after %v, want the good family at once", s.Outcome, s.Connect)
		}
	})
}

func TestFallsBackToTheOtherFamily(t *testing.T) {
	d := door.Listen(t, door.HTTP(door.OK()))
	port := netip.MustParseAddrPort(d.Addr()).Port()
	o := Options{Way: Way{Resolver: resolve.New(resolve.Options{Host: "door.test", Port: port, Clock: probe.NewClock(), Refresh: time.Minute,
		Lookup: func(context.Context, string, string) ([]netip.Addr, error) {
			return []netip.Addr{netip.MustParseAddr("::1"), netip.MustParseAddr("127.0.0.1")}, nil
		}})}}
	r := newRig(t, fmt.Sprintf("door.test:%d", port), o, probe.Target{})
	for i := range 3 {
		if s := r.send(); s.Outcome != probe.Success {
			t.Errorf("tick %d: %v, want a success over the other family", i, s.Outcome)
		}
	}
}
