package wire

import (
	"context"
	"crypto/tls"
	"io"
	"net/netip"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	door "github.com/steadyprobe/steadyprobe/internal/faultdoor"
	"github.com/steadyprobe/steadyprobe/internal/testcert"
	"github.com/steadyprobe/steadyprobe/probe"
)

// streamFault is a row of what a door below HTTP can do.
type streamFault struct {
	name     string
	behave   door.Behaviour
	options  StreamOptions
	want, or probe.Outcome     // or: where either may be seen first
	close    probe.CloseReason // NotClosed: there was no connection
	loopback bool              // only there
	took     time.Duration     // in virtual time; 0: no matter
}

// says writes the pieces with a pause before each but the first, then goes on.
func says(pause time.Duration, then door.Behaviour, pieces ...string) door.Behaviour {
	return func(c *door.Conn) {
		for i, piece := range pieces {
			if i > 0 && c.Sleep(pause) != nil {
				return
			}
			if _, err := io.WriteString(c, piece); err != nil {
				return
			}
		}
		then(c)
	}
}

// asked reads so many bytes first.
func asked(n int64, then door.Behaviour) door.Behaviour {
	return func(c *door.Conn) {
		if _, err := io.CopyN(io.Discard, c, n); err == nil {
			then(c)
		}
	}
}

// babbles sends the same until nobody reads it.
func babbles(text string, pause time.Duration) door.Behaviour {
	return func(c *door.Conn) {
		for {
			if _, err := io.WriteString(c, text); err != nil || c.Sleep(pause) != nil {
				return
			}
		}
	}
}

func streamFaults(t *testing.T) []streamFault {
	const ms = time.Millisecond
	re := regexp.MustCompile
	good, stranger := newAuthority(t, testcert.Options{}), newAuthority(t, testcert.Options{})
	server := &tls.Config{Certificates: []tls.Certificate{good.leaf}}
	demanding := &tls.Config{Certificates: []tls.Certificate{good.leaf}, ClientAuth: tls.RequireAnyClientCert}
	secure := func(o StreamOptions) StreamOptions { o.TLSConfig = fixed(good.client); return o }
	ping := StreamOptions{Send: []byte("PING\r\n"), Expect: re(`^PONG\r\n$`)}
	within := func(o StreamOptions, d time.Duration) StreamOptions { o.Timeout = d; return o }
	silent, large := door.Silent(), []byte(strings.Repeat("x", 8<<20))
	return []streamFault{
		{name: "connects", behave: silent, close: probe.ClosePerRequest},
		{name: "connects to what closes", behave: door.CloseAtOnce(), close: probe.ClosePerRequest},
		{name: "connects to what talks", behave: says(0, silent, "SSH-2.0-door\r\n"), close: probe.ClosePerRequest},
		{name: "sends", behave: silent, options: StreamOptions{Send: []byte("x")}, close: probe.ClosePerRequest},
		{name: "sends much", behave: silent, options: StreamOptions{Send: large}, close: probe.ClosePerRequest},
		{name: "sends what nobody takes", behave: door.NeverReads(), options: within(StreamOptions{Send: large}, 100*ms), want: probe.WriteTimeout, close: probe.CloseTimeout, took: 100 * ms},
		{name: "banner", behave: says(0, silent, "220 door ready\r\n"), options: StreamOptions{Expect: re(`^220 .*ready\r\n`)}, close: probe.ClosePerRequest},
		{name: "answers", behave: asked(6, says(0, silent, "PONG\r\n")), options: ping, close: probe.ClosePerRequest},
		{name: "answers in pieces", behave: asked(6, says(20*ms, silent, "P", "ON", "G\r", "\n")), options: ping, close: probe.ClosePerRequest, took: 60 * ms},
		{name: "answers and closes", behave: asked(6, says(0, door.CloseAtOnce(), "PONG\r\n")), options: ping, close: probe.ClosePerRequest},
		{name: "answers late", behave: asked(6, says(60*ms, silent, "", "PONG\r\n")), options: within(ping, 50*ms), want: probe.ReadTimeout, close: probe.CloseTimeout, took: 50 * ms},
		{name: "answers within the response limit only", behave: asked(6, says(60*ms, silent, "", "PONG\r\n")), options: StreamOptions{Send: ping.Send, Expect: ping.Expect, ResponseTimeout: 30 * ms}, want: probe.ReadTimeout, close: probe.CloseTimeout, took: 30 * ms},
		{name: "answers to a long request before its end", behave: says(0, door.NeverReads(), "PONG\r\n"), options: within(StreamOptions{Send: large, Expect: ping.Expect}, time.Second), loopback: true, close: probe.ClosePerRequest},
		{name: "never answers", behave: silent, options: within(ping, 50*ms), want: probe.ReadTimeout, close: probe.CloseTimeout, took: 50 * ms},
		{name: "never reads", behave: door.NeverReads(), options: within(StreamOptions{Send: large, Expect: ping.Expect}, 100*ms), loopback: true, want: probe.WriteTimeout, close: probe.CloseTimeout},
		{name: "never matches, then silence", behave: says(0, silent, "-ERR\r\n"), options: within(ping, 50*ms), want: probe.ReadTimeout, close: probe.CloseTimeout, took: 50 * ms},
		{name: "never matches, then closes", behave: asked(6, says(0, door.CloseAtOnce(), "-ERR\r\n")), options: ping, want: probe.ResponseBody, close: probe.ClosePeer},
		{name: "garbage for ever", behave: babbles("garbage", 0), options: within(StreamOptions{Expect: ping.Expect, MaxBody: 100_000}, 30*time.Second), want: probe.ResponseBody, close: probe.CloseError},
		{name: "garbage for ever, slowly", behave: babbles("garbage", ms), options: within(StreamOptions{Expect: ping.Expect}, 100*ms), want: probe.ReadTimeout, close: probe.CloseTimeout, took: 100 * ms},
		{name: "match at the limit", behave: says(0, silent, "garbage12"), options: StreamOptions{Expect: re("12"), MaxBody: 9}, close: probe.ClosePerRequest},
		{name: "match behind the limit", behave: says(0, silent, "garbage12"), options: StreamOptions{Expect: re("12"), MaxBody: 8}, want: probe.ResponseBody, close: probe.CloseError},
		{name: "match behind much, then silence", behave: says(0, silent, strings.Repeat("x", 50_000)+"12"), options: StreamOptions{Expect: re("12")}, close: probe.ClosePerRequest},
		{name: "match drop by drop behind much", behave: says(ms, silent, strings.Repeat("x", 50_000), "1", "2"), options: StreamOptions{Expect: re("12")}, close: probe.ClosePerRequest, took: 2 * ms},
		{name: "closes", behave: asked(6, door.CloseAtOnce()), options: ping, want: probe.ReadEOF, close: probe.ClosePeer},
		{name: "closes at once", behave: door.CloseAtOnce(), options: StreamOptions{Expect: ping.Expect}, want: probe.ReadEOF, close: probe.ClosePeer},
		{name: "resets", behave: asked(6, door.ResetAtOnce()), options: ping, want: probe.ReadReset, close: probe.ClosePeer},
		{name: "resets inside the answer", behave: asked(6, says(0, says(ms, door.ResetAtOnce(), "", ""), "PO")), options: ping, want: probe.ReadReset, close: probe.ClosePeer},
		{name: "resets while it is asked", behave: asked(1, says(20*ms, door.ResetAtOnce(), "", "")), options: StreamOptions{Send: large}, want: probe.WriteReset, close: probe.ClosePeer},

		{name: "tls", behave: door.TLS(server, silent), options: secure(StreamOptions{}), close: probe.ClosePerRequest},
		{name: "tls, closed behind the handshake", behave: door.TLS(server, door.CloseAtOnce()), options: secure(StreamOptions{}), close: probe.ClosePerRequest},
		{name: "tls answers", behave: door.TLS(server, asked(6, says(0, silent, "PONG\r\n"))), options: secure(ping), close: probe.ClosePerRequest},
		{name: "tls never answers", behave: door.TLS(server, silent), options: secure(within(ping, 50*ms)), want: probe.ReadTimeout, close: probe.CloseTimeout, took: 50 * ms},
		{name: "tls closes", behave: door.TLS(server, asked(6, door.CloseAtOnce())), options: secure(ping), want: probe.ReadEOF, close: probe.ClosePeer},
		{name: "tls, bad certificate", behave: door.TLS(&tls.Config{Certificates: []tls.Certificate{stranger.leaf}}, silent), options: secure(StreamOptions{}), want: probe.TLSCertificate},
		{name: "tls, not spoken", behave: door.TLSPlain(), options: secure(StreamOptions{}), want: probe.TLSProtocol},
		{name: "tls, silent", behave: silent, options: secure(StreamOptions{Way: Way{TLSTimeout: 30 * ms}}), want: probe.TLSTimeout, took: 30 * ms},
		{name: "tls, no backend", behave: door.CloseAtOnce(), options: secure(StreamOptions{}), want: probe.TLSEOF, or: probe.TLSReset},
		{name: "tls, client certificate demanded behind the handshake", behave: door.TLS(demanding, silent), options: secure(ping), want: probe.TLSAlert, close: probe.ClosePeer},
	}
}

// TestStreamFaults sends a tick through every fault, in memory and virtual time
// and over real sockets.
func TestStreamFaults(t *testing.T) {
	for i, f := range streamFaults(t) {
		t.Run(f.name+"/loopback", func(t *testing.T) {
			d := door.Listen(t, f.behave)
			f.check(t, d.Addr(), nil)
		})
		if f.loopback {
			continue
		}
		t.Run(f.name+"/memory", func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := streamFaults(t)[i]
				d := door.New(f.behave)
				defer d.Close()
				f.check(t, "127.0.0.1:1", d.Dial)
			})
		})
	}
}

func (f *streamFault) check(t *testing.T, address string, dial DialFunc) {
	t.Helper()
	o := f.options
	o.Dial = dial
	r := newStreamRig(t, address, o, probe.Target{})
	s := r.send()
	if s.Outcome != f.want && (f.or == probe.Success || s.Outcome != f.or) {
		t.Fatalf("%v, want %v", s.Outcome, f.want)
	}
	if f.took > 0 && (s.ServiceTime() < f.took || dial != nil && s.ServiceTime() != f.took) {
		t.Errorf("took %v, want %v", s.ServiceTime(), f.took)
	}
	protocol := probe.NoProtocol
	if s.Outcome == probe.Success || s.Outcome == probe.ResponseBody {
		protocol = probe.TCP
		if o.TLSConfig != nil {
			protocol = probe.TLS
		}
	}
	if s.Code != 0 || s.Protocol != protocol || s.Close != f.close || !s.Address.IsValid() {
		t.Errorf("code %d, protocol %q, closed %q, address %v; want 0, %q, %q, one", s.Code, s.Protocol, s.Close, s.Address, protocol, f.close)
	}
	if talks := len(o.Send) > 0 || o.Expect != nil; (s.Sent != 0) != (talks && f.close != probe.NotClosed) {
		t.Errorf("sent at %v, and talking is %v", s.Sent, talks)
	}
	r.close()
	l := r.prober.Ledger()
	if f.close != probe.NotClosed && l.Closed[f.close] != 1 || l.Scheduled != l.Done() || l.Connections != 0 {
		t.Errorf("closed %v, scheduled %d, completed %d, %d connections left", closedBy(&l), l.Scheduled, l.Done(), l.Connections)
	}
}

// TestStreamFaultsOfTheWay are those before there is a connection.
func TestStreamFaultsOfTheWay(t *testing.T) {
	for _, tc := range []struct {
		name    string
		address string
		options StreamOptions
		want    probe.Outcome
	}{
		{name: "refused", address: door.Refused(t), want: probe.ConnectRefused},
		{name: "full", address: door.Full(t), options: StreamOptions{Way: Way{ConnectTimeout: 30 * time.Millisecond}}, want: probe.ConnectTimeout},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s := newStreamRig(t, tc.address, tc.options, probe.Target{}).send()
			if s.Outcome != tc.want || s.Protocol != probe.NoProtocol || s.Address != netip.MustParseAddrPort(tc.address).Addr() {
				t.Errorf("%v, protocol %q, address %v; want %v", s.Outcome, s.Protocol, s.Address, tc.want)
			}
		})
	}
}

// TestStreamSaysItAll sends behind the PROXY header exactly what it is told.
func TestStreamSaysItAll(t *testing.T) {
	heard := make(chan string, 1)
	d := door.Listen(t, func(c *door.Conn) {
		b, _ := io.ReadAll(c)
		heard <- string(b)
	})
	source := netip.MustParseAddrPort("203.0.113.9:4000")
	s := newStreamRig(t, d.Addr(), StreamOptions{Send: []byte("hello"), Way: Way{Proxy: ProxyHeader{Version: 1, Source: source}}}, probe.Target{}).send()
	want := "PROXY TCP4 203.0.113.9 127.0.0.1 4000 " + d.Addr()[len("127.0.0.1:"):] + "\r\nhello"
	if got := <-heard; got != want || s.Bytes.Sent != uint64(len(want)) || s.Outcome != probe.Success {
		t.Errorf("%v, the door heard %q and %d bytes are counted, want %q", s.Outcome, got, s.Bytes.Sent, want)
	}
}

// TestStreamUnderLoad opens a connection for each of many ticks.
func TestStreamUnderLoad(t *testing.T) {
	d := door.Listen(t, asked(6, says(0, door.Silent(), "PONG\r\n")))
	o := StreamOptions{Send: []byte("PING\r\n"), Expect: regexp.MustCompile("^PONG\r\n$")}
	r := newStreamRig(t, d.Addr(), o, probe.Target{Connections: 20})
	for range 300 {
		r.prober.Take(r.clock.Now())
	}
	for range 300 {
		<-r.recorder.came
	}
	r.close()
	l := r.prober.Ledger()
	if l.Failures(probe.Success) != 300 || l.Opened != 300 || l.Closed[probe.ClosePerRequest] != 300 || l.Connections != 0 {
		t.Errorf("%d successes over %d connections, closed %v, %d left", l.Failures(probe.Success), l.Opened, closedBy(&l), l.Connections)
	}
	if want := uint64(300 * 6); l.Bytes.Sent != want || l.Bytes.Received != want {
		t.Errorf("sent %d bytes and received %d, want %d", l.Bytes.Sent, l.Bytes.Received, want)
	}
	r.recorder.mu.Lock()
	defer r.recorder.mu.Unlock()
	for i := range r.recorder.samples {
		checkPhases(t, &r.recorder.samples[i])
	}
}

// TestStreamShutdown ends the prober while ticks wait for something.
func TestStreamShutdown(t *testing.T) {
	for _, tc := range []struct {
		name    string
		behave  door.Behaviour
		options StreamOptions
	}{
		{"reading", door.Silent(), StreamOptions{Expect: regexp.MustCompile("x")}},
		{"writing", door.NeverReads(), StreamOptions{Send: make([]byte, 1<<20)}},
		{"shaking hands", door.Silent(), StreamOptions{Way: Way{TLSConfig: fixed(&tls.Config{InsecureSkipVerify: true})}}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				d := door.New(tc.behave)
				defer d.Close()
				tc.options.Dial, tc.options.Timeout = d.Dial, time.Minute
				r := newStreamRig(t, "127.0.0.1:1", tc.options, probe.Target{})
				r.prober.Take(r.clock.Now())
				synctest.Wait()
				ctx, cancel := context.WithTimeout(t.Context(), time.Second)
				defer cancel()
				r.prober.Close(ctx)
				if s := r.next(); s.Outcome != probe.ScheduleShutdown || s.ServiceTime() != time.Second {
					t.Errorf("%v after %v, want schedule/shutdown after a second", s.Outcome, s.ServiceTime())
				}
			})
		})
	}
}

// TestStreamResumes has a door of TLS 1.3, whose tickets come behind the
// handshake, and one of TLS 1.2; and one that gives no tickets, which is not
// waited for long.
func TestStreamResumes(t *testing.T) {
	for _, tc := range []struct {
		name    string
		version uint16
		tickets bool
		want    []bool
	}{
		{"tls 1.3", tls.VersionTLS13, true, []bool{false, true, true}},
		{"tls 1.2", tls.VersionTLS12, true, []bool{false, true, true}},
		{"no tickets", tls.VersionTLS13, false, []bool{false, false, false}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			a := newAuthority(t, testcert.Options{})
			server := &tls.Config{Certificates: []tls.Certificate{a.leaf}, MaxVersion: tc.version, SessionTicketsDisabled: !tc.tickets}
			a.client.ClientSessionCache = tls.NewLRUClientSessionCache(0)
			d := door.Listen(t, door.TLS(server, door.Silent()))
			r := newStreamRig(t, d.Addr(), StreamOptions{Way: Way{TLSConfig: fixed(a.client)}}, probe.Target{})
			var resumed []bool
			for range 3 {
				s := r.send()
				resumed = append(resumed, s.Handshake.Resumed)
				if h := s.Handshake; h.Version != tc.version || h.Group == 0 || !h.Verified || h.NotAfter != a.leaf.Leaf.NotAfter.Unix() || s.TLS <= 0 {
					t.Errorf("handshake %+v in %v", h, s.TLS)
				}
				r.waitUntilClosed() // the ticket is taken when the tick is complete
			}
			if !slices.Equal(resumed, tc.want) {
				t.Errorf("resumed %v, want %v", resumed, tc.want)
			}
		})
	}
}

// TestStreamRefusesASecondTick holds that a connection is for one.
func TestStreamRefusesASecondTick(t *testing.T) {
	d := door.Listen(t, door.Silent())
	// Warm, which nobody may ask of a Stream: the openings have no tick.
	r := newStreamRig(t, d.Addr(), StreamOptions{}, probe.Target{Connections: 2, Warm: true})
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	r.prober.WarmUp(ctx)
	if s := r.send(); s.Outcome != probe.Success {
		t.Errorf("%v, want a success", s.Outcome)
	}
}
