package wire

import (
	"crypto/tls"
	"net"
	"regexp"
	"testing"
	"time"

	"github.com/steadyprobe/steadyprobe/internal/testcert"
	"github.com/steadyprobe/steadyprobe/probe"
	"github.com/steadyprobe/steadyprobe/probe/resolve"
)

// fixedDoor answers every read with the same bytes and allocates nothing.
func fixedDoor(tb testing.TB, config *tls.Config) (address string) {
	tb.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { l.Close() })
	answer := []byte("HTTP/1.1 200 OK\r\nServer: door\r\nDate: Mon, 30 Nov 2026 12:00:00 GMT\r\nContent-Type: text/plain\r\nContent-Length: 5\r\n\r\nhello")
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			if config != nil {
				c = tls.Server(c, config)
			}
			go func() {
				defer c.Close()
				request := make([]byte, 4096)
				for {
					if _, err := c.Read(request); err != nil {
						return
					}
					if _, err := c.Write(answer); err != nil {
						return
					}
				}
			}()
		}
	}()
	return l.Addr().String()
}

// doneRecorder says that a sample came, and keeps nothing.
type doneRecorder struct{ came chan probe.Outcome }

func (r doneRecorder) Record(s *probe.Sample)        { r.came <- s.Outcome }
func (r doneRecorder) RecordOpening(s *probe.Sample) {}

// readers are the ways in which connections are read: by goroutines, and by a
// loop where the system has one.
func readers(tb testing.TB, clock probe.Clock) map[string]*Loop {
	tb.Helper()
	loop, err := NewLoop(clock)
	if err != nil {
		return map[string]*Loop{"goroutine": nil}
	}
	tb.Cleanup(loop.Close)
	return map[string]*Loop{"goroutine": nil, "loop": loop}
}

// newFixedProber returns a Prober of one connection to a fixedDoor, with what
// is expected of its answers.
func newFixedProber(tb testing.TB, clock probe.Clock, loop *Loop, secure bool, e Expect, b BackendRule) (*probe.Prober, doneRecorder) {
	tb.Helper()
	var client, server *tls.Config
	if secure {
		ca := testcert.NewCA(tb, "root", testcert.Options{})
		server = &tls.Config{Certificates: []tls.Certificate{ca.Leaf(tb, testcert.Options{})}}
		client = &tls.Config{RootCAs: ca.Pool(), ServerName: "localhost"}
	}
	address := fixedDoor(tb, server)
	tcp, err := net.ResolveTCPAddr("tcp", address)
	if err != nil {
		tb.Fatal(err)
	}
	o := Options{
		Way: Way{
			Clock:     clock,
			Resolver:  resolve.New(resolve.Options{Host: "127.0.0.1", Port: uint16(tcp.Port), Clock: clock}),
			TLSConfig: fixed(client),
			Timeout:   5 * time.Second,
		},
		Loop:    loop,
		Request: Request{Method: "GET", Target: "/", Host: "door", UserAgent: "probe"},
		Reuse:   true,
		MaxBody: 1 << 20,
	}
	o.Statuses.Add(200, 299)
	r := doneRecorder{came: make(chan probe.Outcome, 1)}
	p := probe.New(probe.Target{Rate: 1, Connections: 1, Timeout: o.Timeout, Backlog: time.Minute, Reuse: true}, clock, NewOpener(o), r)
	tb.Cleanup(func() { p.Close(tb.Context()) })
	return p, r
}

// TestRequestAllocatesNothing holds the budget of the hot path: a request on an
// open connection, from the tick to the recorded sample.
func TestRequestAllocatesNothing(t *testing.T) {
	clock := probe.NewClock()
	for reader, loop := range readers(t, clock) {
		for _, secure := range []bool{false, true} {
			t.Run(reader+map[bool]string{false: "/plain", true: "/tls"}[secure], func(t *testing.T) {
				p, r := newFixedProber(t, clock, loop, secure, Expect{}, BackendRule{})
				send := func() {
					p.Take(clock.Now())
					if o := <-r.came; o != probe.Success {
						t.Fatal(o)
					}
				}
				for range 100 {
					send()
				}
				// crypto/tls allocates one small reader for each record it reads, and the
				// door in this process does so too; under the race detector its pools
				// lose a buffer now and then.
				budget := map[bool]float64{false: 0, true: 4}[secure]
				if n := testing.AllocsPerRun(1000, send); n > budget {
					t.Errorf("%v allocations a request, allowed are %v", n, budget)
				}
			})
		}
	}
}

// looks are all that can be looked at without an allocation: but for a backend's
// name in a body.
func looks() map[string]func() (Expect, BackendRule) {
	server := HeaderExpectation{Name: "server", Value: regexp.MustCompile("^d[o]+r$")}
	return map[string]func() (Expect, BackendRule){
		"headers": func() (Expect, BackendRule) {
			return Expect{Headers: []HeaderExpectation{server}, BodySize: size(5)}, BackendRule{Header: "Server", Names: probe.NewBackends(10)}
		},
		"body": func() (Expect, BackendRule) {
			return Expect{Body: regexp.MustCompile("^h.*o$"), BodyContains: []byte("ell"), BodySHA256: digest("hello")}, BackendRule{}
		},
	}
}

// TestLookingAllocatesNothing holds the budget for answers of which something
// is expected, and whose backend is known.
func TestLookingAllocatesNothing(t *testing.T) {
	clock := probe.NewClock()
	for reader, loop := range readers(t, clock) {
		for name, look := range looks() {
			t.Run(reader+"/"+name, func(t *testing.T) {
				e, b := look()
				p, r := newFixedProber(t, clock, loop, false, e, b)
				send := func() {
					p.Take(clock.Now())
					if o := <-r.came; o != probe.Success {
						t.Fatal(o)
					}
				}
				for range 100 {
					send()
				}
				if n := testing.AllocsPerRun(1000, send); n > 0 {
					t.Errorf("%v allocations a request, allowed are none", n)
				}
			})
		}
	}
}

// BenchmarkLooking is BenchmarkRequest with something to look at.
func BenchmarkLooking(b *testing.B) {
	clock := probe.NewClock()
	for reader, loop := range readers(b, clock) {
		for name, look := range looks() {
			b.Run(name+"/reader="+reader, func(b *testing.B) {
				e, rule := look()
				p, r := newFixedProber(b, clock, loop, false, e, rule)
				b.ReportAllocs()
				for b.Loop() {
					p.Take(clock.Now())
					if o := <-r.came; o != probe.Success {
						b.Fatal(o)
					}
				}
			})
		}
	}
}

// BenchmarkRequest sends one request after the other over one connection. TLS
// has no loop.
func BenchmarkRequest(b *testing.B) {
	clock := probe.NewClock()
	for reader, loop := range readers(b, clock) {
		for _, secure := range []bool{false, true} {
			if secure && loop != nil {
				continue
			}
			b.Run(map[bool]string{false: "plain", true: "tls"}[secure]+"/reader="+reader, func(b *testing.B) {
				p, r := newFixedProber(b, clock, loop, secure, Expect{}, BackendRule{})
				b.ReportAllocs()
				for b.Loop() {
					p.Take(clock.Now())
					if o := <-r.came; o != probe.Success {
						b.Fatal(o)
					}
				}
			})
		}
	}
}
