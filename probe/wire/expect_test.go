package wire

import (
	"crypto/sha256"
	"regexp"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	door "github.com/steadyprobe/steadyprobe/internal/faultdoor"
	"github.com/steadyprobe/steadyprobe/probe"
)

// expected is a row of what is expected of an answer, and of who gave it.
type expected struct {
	name    string
	answer  string // after it the door closes
	method  string
	expect  Expect
	backend BackendRule
	maxBody int64
	want    probe.Outcome
	who     string // empty: nobody
}

func size(n int64) *int64 { return &n }

func digest(body string) *[sha256.Size]byte {
	sum := sha256.Sum256([]byte(body))
	return &sum
}

func header(name, value string) HeaderExpectation {
	h := HeaderExpectation{Name: name}
	if value != "" {
		h.Value = regexp.MustCompile(value)
	}
	return h
}

func headers(h ...HeaderExpectation) Expect { return Expect{Headers: h} }

// expectations are rows without and with what they ask for.
func expectations() []expected {
	const (
		ok      = "HTTP/1.1 200 OK\r\n"
		hello   = ok + "X-Role: canary\r\nx-role: main\r\nX_Odd~: 1\r\nX-Backend: \tpod-1 \r\nContent-Length: 11\r\n\r\nhello world"
		chunked = ok + "Transfer-Encoding: chunked\r\n\r\n4\r\nhell\r\n3;a=b\r\no w\r\n4\r\norld\r\n0\r\nX-Late: 1\r\n\r\n"
		failed  = "HTTP/1.1 503 No\r\nX-Backend: pod-2\r\nContent-Length: 2\r\n\r\nno"
		interim = "HTTP/1.1 103 Early\r\nX-Role: canary\r\nX-Backend: early\r\n\r\n" + ok + "Content-Length: 0\r\n\r\n"
		empty   = "HTTP/1.1 204 No Content\r\n\r\n"
		byClose = ok + "\r\nhello world"
	)
	re := regexp.MustCompile
	body := func(text string) Expect { return Expect{Body: re(text)} }
	contains := func(text string) Expect { return Expect{BodyContains: []byte(text)} }
	by := func(name string) BackendRule { return BackendRule{Header: name} }
	long := strings.Repeat("x", mostBackendName)
	named := func(name string) string {
		return ok + "X-Backend: " + name + "\r\nContent-Length: 0\r\n\r\n"
	}
	return []expected{
		{name: "regexp", answer: hello, expect: body(`^hello\s+world$`)},
		{name: "regexp, none", answer: hello, expect: body(`^world`), want: probe.ResponseBody},
		{name: "regexp across chunks", answer: chunked, expect: body(`^hello world$`)},
		{name: "regexp that would match the framing", answer: chunked, expect: body(`a=b|X-Late|\r\n`), want: probe.ResponseBody},
		{name: "regexp, delimited by the close", answer: byClose, expect: body(`world$`)},
		{name: "regexp, nothing there", answer: empty, expect: body(`.`), want: probe.ResponseBody},
		{name: "regexp that nothing matches", answer: empty, expect: body(`^$`)},
		{name: "regexp, cut inside the match", answer: ok + "Content-Length: 11\r\n\r\nhello wor", expect: body(`hello`), want: probe.ReadTruncated},
		{name: "regexp, too long", answer: hello, expect: body(`hello`), maxBody: 10, want: probe.ResponseSize},
		{name: "regexp of a body that is encoded", answer: ok + "Content-Encoding: gzip\r\nContent-Length: 3\r\n\r\n\x1f\x8b\x08", expect: body(`^\x1f`), want: probe.Success},
		{name: "substring", answer: hello, expect: contains("lo wo")},
		{name: "substring across chunks", answer: chunked, expect: contains("lo wo")},
		{name: "substring, none", answer: hello, expect: contains("Hello"), want: probe.ResponseBody},
		{name: "size", answer: hello, expect: Expect{BodySize: size(11)}},
		{name: "size in chunks", answer: chunked, expect: Expect{BodySize: size(11)}},
		{name: "size, less", answer: hello, expect: Expect{BodySize: size(12)}, want: probe.ResponseBody},
		{name: "size, more", answer: hello, expect: Expect{BodySize: size(10)}, want: probe.ResponseBody},
		{name: "size of nothing", answer: empty, expect: Expect{BodySize: size(0)}},
		{name: "size of nothing, something", answer: hello, expect: Expect{BodySize: size(0)}, want: probe.ResponseBody},
		{name: "digest", answer: hello, expect: Expect{BodySHA256: digest("hello world")}},
		{name: "digest of chunks", answer: chunked, expect: Expect{BodySHA256: digest("hello world")}},
		{name: "digest, delimited by the close", answer: byClose, expect: Expect{BodySHA256: digest("hello world")}},
		{name: "digest, wrong", answer: hello, expect: Expect{BodySHA256: digest("hello worl")}, want: probe.ResponseBody},
		{name: "digest of nothing", answer: empty, expect: Expect{BodySHA256: digest("")}},
		{name: "digest, cut", answer: ok + "Content-Length: 12\r\n\r\nhello world", expect: Expect{BodySHA256: digest("hello world")}, want: probe.ReadTruncated},
		{name: "all of the body", answer: hello, expect: Expect{Body: re("h"), BodyContains: []byte("w"), BodySize: size(11), BodySHA256: digest("hello world")}},
		{name: "all of the body but one", answer: hello, expect: Expect{Body: re("h"), BodyContains: []byte("w"), BodySize: size(11), BodySHA256: digest("")}, want: probe.ResponseBody},

		{name: "header", answer: hello, expect: headers(header("x-ROLE", "^canary$"))},
		{name: "header, second of its name", answer: hello, expect: headers(header("X-Role", "^main$"))},
		{name: "header, no value", answer: hello, expect: headers(header("X-Role", "^canary, main$")), want: probe.ResponseHeader},
		{name: "header, any value", answer: hello, expect: headers(header("Content-Length", ""))},
		{name: "header, odd name", answer: hello, expect: headers(header("x_odd~", "1"))},
		{name: "header, name but for a bit", answer: hello, expect: headers(header("X\x7fOdd^", "")), want: probe.ResponseHeader},
		{name: "header missing", answer: hello, expect: headers(header("X-Role", ""), header("X-Rol", "")), want: probe.ResponseHeader},
		{name: "header among the trailers", answer: chunked, expect: headers(header("X-Late", "")), want: probe.ResponseHeader},
		{name: "header of an interim answer", answer: interim, expect: headers(header("X-Role", "")), want: probe.ResponseHeader},
		{name: "header wins over body", answer: hello, expect: Expect{Headers: headers(header("A", "")).Headers, BodySize: size(1)}, want: probe.ResponseHeader},
		{name: "status wins over header", answer: failed, expect: Expect{Headers: headers(header("A", "")).Headers, BodySize: size(1)}, want: probe.ResponseStatus},
		{name: "answer to HEAD", method: "HEAD", answer: ok + "A: b\r\nContent-Length: 5\r\n\r\n", expect: Expect{Headers: headers(header("A", "b")).Headers,
			BodySize: size(1), BodyContains: []byte("x"), Body: re("x"), BodySHA256: digest("x")}},

		{name: "backend", answer: hello, backend: by("x-backend"), who: "pod-1"},
		{name: "backend of a failure", answer: failed, backend: by("X-Backend"), want: probe.ResponseStatus, who: "pod-2"},
		{name: "backend of a bad body", answer: hello, backend: by("X-Backend"), expect: contains("none"), want: probe.ResponseBody, who: "pod-1"},
		{name: "backend of two", answer: hello, backend: by("X-Role"), who: "canary"},
		{name: "backend, not said", answer: hello, backend: by("Via")},
		{name: "backend, empty", answer: named(""), backend: by("X-Backend")},
		{name: "backend of an interim answer", answer: interim, backend: by("X-Backend")},
		{name: "backend of an answer that was cut", answer: ok + "X-Backend: pod-1\r\nContent-Length: 5\r\n\r\nhell", backend: by("X-Backend"), want: probe.ReadTruncated},
		{name: "backend beyond ASCII", answer: named("Küche 1"), backend: by("X-Backend"), who: "Küche 1"},
		{name: "backend of Latin 1", answer: named("K\xfcche"), backend: by("X-Backend"), who: "other"},
		{name: "backend with a control character", answer: named("a\tb"), backend: by("X-Backend"), who: "other"},
		{name: "backend, longest", answer: named(long), backend: by("X-Backend"), who: long},
		{name: "backend, too long", answer: named(long + "y"), backend: by("X-Backend"), who: "other"},
		{name: "backend in the body", answer: chunked, backend: BackendRule{Body: re(`o (w\w+)`)}, who: "world"},
		{name: "backend in the body, no match", answer: hello, backend: BackendRule{Body: re(`from (\w+)`)}},
		{name: "backend in the body, empty group", answer: hello, backend: BackendRule{Body: re(`hello(x)?`)}},
		{name: "backend in the body, no group", answer: hello, backend: BackendRule{Body: re(`hello`)}},
		{name: "backend in header and body", answer: hello, backend: BackendRule{Header: "X-Backend", Body: re(`(hello)`)}, who: "pod-1"},
		{name: "backend in either", answer: hello, backend: BackendRule{Header: "Via", Body: re(`(hello)`)}, who: "hello"},
		{name: "backend in the body of an answer to HEAD", method: "HEAD", answer: hello[:len(hello)-11], backend: BackendRule{Body: re(`(.*)`)}},
	}
}

// TestExpectations sends each answer byte by byte in memory, and whole over
// sockets to both kinds of readers.
func TestExpectations(t *testing.T) {
	clock := probe.NewClock()
	loops := readers(t, clock)
	for _, x := range expectations() {
		t.Run(x.name+"/memory", func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				d := door.New(door.HTTP(func(c *door.Conn, _ *door.Request) error {
					for i := range len(x.answer) {
						if _, err := c.Write([]byte{x.answer[i]}); err != nil || c.Sleep(time.Millisecond) != nil {
							return door.ErrEnd
						}
					}
					return door.ErrEnd
				}))
				defer d.Close()
				x.check(t, "127.0.0.1:1", Options{Way: Way{Dial: d.Dial}})
			})
		})
		for reader, loop := range loops {
			t.Run(x.name+"/"+reader, func(t *testing.T) {
				d := door.Listen(t, door.HTTP(door.Raw(x.answer, door.EOF())))
				x.check(t, d.Addr(), Options{Way: Way{Clock: clock}, Loop: loop})
			})
		}
	}
}

func (x expected) check(t *testing.T, address string, o Options) {
	t.Helper()
	o.Reuse, o.Expect, o.Backend, o.MaxBody, o.Request.Method = true, x.expect, x.backend, x.maxBody, x.method
	names := probe.NewBackends(5)
	o.Backend.Names = names
	s := newRig(t, address, o, probe.Target{}).send()
	if s.Outcome != x.want {
		t.Errorf("%v, want %v", s.Outcome, x.want)
	}
	switch {
	case s.Backend == nil && x.who != "", s.Backend != nil && s.Backend.Name != x.who:
		t.Errorf("backend %v, want %q", s.Backend, x.who)
	case x.who == "other" && s.Backend != names.Other():
		t.Error("a backend of its own, want the other")
	}
}

// TestBackendsWithoutATable holds that a rule without one is none.
func TestBackendsWithoutATable(t *testing.T) {
	if j := newJudge(Expect{}, BackendRule{Header: "X-Backend"}, false, nil); j != nil {
		t.Errorf("a judge: %+v", j)
	}
}

// TestEvidenceIsOfOneAnswer sends different answers over one connection.
func TestEvidenceIsOfOneAnswer(t *testing.T) {
	clock := probe.NewClock()
	good := door.Reply(door.Answer{Header: []string{"A: b", "X-Backend: one"}, Body: []byte("body")})
	bare := door.Reply(door.Answer{Body: []byte("body")})
	other := door.Reply(door.Answer{Header: []string{"A: b", "X-Backend: two"}, Body: []byte("b")})
	for reader, loop := range readers(t, clock) {
		t.Run(reader, func(t *testing.T) {
			d := door.Listen(t, door.HTTP(door.Nth(2, bare, door.Nth(3, other, good))))
			r := newRig(t, d.Addr(), Options{
				Way: Way{Clock: clock}, Loop: loop, Reuse: true,
				Expect:  Expect{Headers: []HeaderExpectation{header("A", "b")}, BodySize: size(4)},
				Backend: BackendRule{Header: "X-Backend", Names: probe.NewBackends(10)},
			}, probe.Target{})
			for i, want := range []struct {
				outcome probe.Outcome
				who     string
			}{
				{probe.Success, "one"}, {probe.ResponseHeader, ""}, {probe.ResponseBody, "two"}, {probe.Success, "one"},
			} {
				s := r.send()
				who := ""
				if s.Backend != nil {
					who = s.Backend.Name
				}
				if s.Outcome != want.outcome || who != want.who {
					t.Errorf("answer %d: %v by %q, want %v by %q", i, s.Outcome, who, want.outcome, want.who)
				}
			}
			if l := r.prober.Ledger(); l.Opened != 1 {
				t.Errorf("opened %d connections, want 1", l.Opened)
			}
		})
	}
}

// TestEvidenceGivesALongBodyBack bounds what a connection keeps.
func TestEvidenceGivesALongBodyBack(t *testing.T) {
	e := newEvidence(newJudge(Expect{Body: regexp.MustCompile("x")}, BackendRule{}, false, nil))
	e.takeBody(make([]byte, keptBody))
	e.reset()
	if kept := cap(e.body); kept < keptBody {
		t.Errorf("a buffer of %d bytes was given back", kept)
	}
	e.takeBody(make([]byte, 2*keptBody))
	e.reset()
	if e.body != nil {
		t.Errorf("%d bytes are kept", cap(e.body))
	}
}

// TestDigestKeepsNoBody expects a digest of a body that would not fit.
func TestDigestKeepsNoBody(t *testing.T) {
	e := newEvidence(newJudge(Expect{BodySHA256: digest("")}, BackendRule{}, false, nil))
	e.takeBody(make([]byte, 1<<20))
	if e.body != nil {
		t.Errorf("%d bytes are kept", len(e.body))
	}
}

// TestLargeBodiesStayOutOfTheLoop: reading one would delay all others.
func TestLargeBodiesStayOutOfTheLoop(t *testing.T) {
	for _, tc := range []struct {
		name    string
		expect  Expect
		backend BackendRule
		want    bool // that the body takes time
	}{
		{name: "nothing"},
		{name: "header", expect: headers(header("A", "b"))},
		{name: "size", expect: Expect{BodySize: size(1)}},
		{name: "backend in a header", backend: BackendRule{Header: "A"}},
		{name: "regexp", expect: Expect{Body: regexp.MustCompile("x")}, want: true},
		{name: "substring", expect: Expect{BodyContains: []byte("x")}, want: true},
		{name: "digest", expect: Expect{BodySHA256: digest("x")}, want: true},
		{name: "backend in the body", backend: BackendRule{Body: regexp.MustCompile("(x)")}, want: true},
	} {
		tc.backend.Names = probe.NewBackends(1)
		if got := newJudge(tc.expect, tc.backend, false, nil).readsBody(); got != tc.want {
			t.Errorf("%s: %v, want %v", tc.name, got, tc.want)
		}
	}
}
