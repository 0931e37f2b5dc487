package faultdoor

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const get = "GET / HTTP/1.1\r\nHost: door\r\n\r\n"

// exchange sends a request and returns what came of it in a word: the status
// and the length of the body, or how it failed.
func exchange(nc net.Conn, in *bufio.Reader, request string) string {
	if _, err := io.WriteString(nc, request); err != nil {
		return "write " + word(err)
	}
	return answer(in)
}

func answer(in *bufio.Reader) string {
	for {
		if err := header(in); err != nil {
			if in.Buffered() == 0 {
				return word(err)
			}
			return "header " + word(err)
		}
		a, err := http.ReadResponse(in, nil)
		if err != nil {
			return "header " + word(err)
		}
		n, err := io.Copy(io.Discard, a.Body)
		if err != nil {
			return fmt.Sprintf("%d body %s", a.StatusCode, word(err))
		}
		if a.StatusCode < 200 {
			continue
		}
		text := fmt.Sprintf("%d %d", a.StatusCode, n)
		if a.ProtoMinor == 0 {
			text += " 1.0"
		}
		if a.Close {
			text += " close"
		}
		return text
	}
}

// reader returns a reader that can hold any header of these tests.
func reader(nc net.Conn) *bufio.Reader { return bufio.NewReaderSize(nc, 256<<10) }

// header waits until a whole header is there. net/http does not tell what
// ended one that is incomplete.
func header(in *bufio.Reader) error {
	for {
		b, _ := in.Peek(in.Buffered())
		if bytes.Contains(b, []byte("\r\n\r\n")) {
			return nil
		}
		if _, err := in.Peek(len(b) + 1); err != nil {
			return err
		}
	}
}

func word(err error) string {
	switch {
	case errors.Is(err, os.ErrDeadlineExceeded):
		return "timeout"
	case errors.Is(err, syscall.ECONNRESET):
		return "reset"
	case errors.Is(err, syscall.ECONNREFUSED):
		return "refused"
	case errors.Is(err, syscall.EPIPE):
		return "broken"
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return "eof"
	}
	return "malformed"
}

// overBoth runs a test against a door in memory in virtual time, and against
// one on a real socket.
func overBoth(t *testing.T, b func() Behaviour, test func(t *testing.T, d *Door, dial func() net.Conn)) {
	t.Helper()
	t.Run("memory", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			d := New(b())
			defer d.Close()
			test(t, d, func() net.Conn { return dialed(t)(d.Dial(context.Background(), "tcp", "door:80")) })
		})
	})
	t.Run("socket", func(t *testing.T) {
		d := Listen(t, b())
		defer d.Close()
		test(t, d, func() net.Conn { return dialed(t)(net.Dial("tcp", d.Addr())) })
	})
}

// dialed ends the test where connecting fails.
func dialed(t *testing.T) func(net.Conn, error) net.Conn {
	return func(nc net.Conn, err error) net.Conn {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return nc
	}
}

func TestBehaviours(t *testing.T) {
	const silence = 8 * time.Millisecond
	for _, row := range []struct {
		name string
		b    Behaviour
		want []string // of one exchange after the other on one connection
	}{
		{"well-behaved", HTTP(OK()), []string{"200 3", "200 3", "200 3"}},
		{"status", HTTP(Status(503)), []string{"503 0", "503 0"}},
		{"no content", HTTP(Status(204)), []string{"204 0", "204 0"}},
		{"not modified", HTTP(Status(304)), []string{"304 0", "304 0"}},
		{"sized", HTTP(Sized(100_000)), []string{"200 100000", "200 100000"}},
		{"chunked", HTTP(Chunked(1000, 300)), []string{"200 1000", "200 1000"}},
		{"until the close", HTTP(UntilClose(10)), []string{"200 10 close", "eof"}},
		{"HTTP/1.0", HTTP(HTTP10()), []string{"200 3 1.0 close", "eof"}},
		{"HTTP/1.0 keep-alive", HTTP(HTTP10KeepAlive()), []string{"200 3 1.0", "200 3 1.0"}},
		{"close announced", HTTP(CloseAnnounced()), []string{"200 3 close", "eof"}},
		{"close only announced", HTTP(CloseOnlyAnnounced()), []string{"200 3 close", "timeout"}},
		{"interim first", HTTP(Interim(3, 103, OK())), []string{"200 3", "200 3"}},
		{"silent", Silent(), []string{"timeout"}},
		{"hang", HTTP(Beyond(1, Hang(), OK())), []string{"200 3", "timeout"}},
		{"never reads", NeverReads(), []string{"timeout"}},
		{"babble", Babble("\x00\x01"), []string{"header timeout"}},
		{"babble of HTTP", Babble("HTTP/1.1 408 X\r\nContent-Length: 0\r\n\r\n"), []string{"408 0", "timeout"}},
		{"garbage", HTTP(Garbage()), []string{"header timeout"}},
		{"raw", HTTP(Raw("SSH-2.0\r\n\r\n", EOF())), []string{"header malformed"}},
		{"eof before the answer", HTTP(EOFBeforeAnswer()), []string{"eof"}},
		{"eof inside the header", HTTP(EOFInHeader()), []string{"header eof"}},
		{"reset before the header", HTTP(ResetBeforeHeader()), []string{"reset"}},
		{"reset inside the header", HTTP(ResetInHeader()), []string{"header reset"}},
		{"reset behind the header", HTTP(ResetAfterHeader()), []string{"200 body reset"}},
		{"truncated", HTTP(Truncated(10, 5)), []string{"200 body eof"}},
		{"truncated chunks", HTTP(TruncatedChunked(5)), []string{"200 body eof"}},
		{"slow body", HTTP(SlowBody(3, 1, time.Millisecond)), []string{"200 3", "200 3"}},
		{"endless chunks", HTTP(EndlessChunked(5, time.Millisecond)), []string{"200 body timeout"}},
		{"endless header", HTTP(EndlessHeader(time.Millisecond)), []string{"header timeout"}},
		{"huge header", HTTP(HugeHeader(100_000)), []string{"200 0", "200 0"}},
		{"two answers", HTTP(TwoAnswers()), []string{"200 3", "200 3"}},
		{"unasked", Unasked(1, 0, 408, OK()), []string{"200 3", "408 0 close", "timeout"}},
		{"half-close", HalfClose(2, OK()), []string{"200 3", "200 3", "eof"}},
		{"second is reset", HTTP(Nth(2, Reset(), OK())), []string{"200 3", "reset"}},
		{"second is bad", HTTP(Nth(2, Status(500), OK())), []string{"200 3", "500 0", "200 3"}},
		{"every second of the door", HTTP(Every(2, Status(500), OK())), []string{"200 3", "500 0", "200 3", "500 0"}},
		{"close after two", CloseAfter(2, 0, OK()), []string{"200 3", "200 3", "eof"}},
		{"reset after one", ResetAfter(1, 0, OK()), []string{"200 3", "reset"}},
		{"idle timeout", IdleTimeout(time.Second, OK()), []string{"200 3", "200 3"}},
	} {
		t.Run(row.name, func(t *testing.T) {
			overBoth(t, func() Behaviour { return row.b }, func(t *testing.T, d *Door, dial func() net.Conn) {
				nc := dial()
				defer nc.Close()
				in := reader(nc)
				onSocket := strings.HasSuffix(t.Name(), "/socket")
				for i, want := range row.want {
					nc.SetReadDeadline(time.Now().Add(silence))
					if !strings.Contains(want, "timeout") {
						nc.SetReadDeadline(time.Now().Add(time.Minute))
					}
					got := exchange(nc, in, get)
					if want == "eof" && i > 0 || want == "reset" && i > 0 {
						// Whether the request or the answer meets the end of
						// the connection is a race that the kernel decides.
						if got != "eof" && !strings.HasSuffix(got, "reset") && !strings.HasSuffix(got, "broken") {
							t.Fatalf("exchange %d: got %q, want the end", i+1, got)
						}
						continue
					}
					// How far a real door came until then is not certain either.
					late := onSocket && strings.HasSuffix(want, "timeout") && strings.HasSuffix(got, "timeout")
					if got != want && !late {
						t.Fatalf("exchange %d: got %q, want %q", i+1, got, want)
					}
				}
			})
		})
	}
}

func TestCloseAtOnce(t *testing.T) {
	overBoth(t, CloseAtOnce, func(t *testing.T, d *Door, dial func() net.Conn) {
		nc := dial()
		defer nc.Close()
		if got := answer(reader(nc)); got != "eof" {
			t.Errorf("got %q", got)
		}
	})
}

func TestResetAtOnce(t *testing.T) {
	d := New(ResetAtOnce())
	defer d.Close()
	nc := dialed(t)(d.Dial(context.Background(), "", ""))
	defer nc.Close()
	if got := answer(reader(nc)); got != "reset" {
		t.Errorf("memory: got %q", got)
	}
	d = Listen(t, ResetAtOnce())
	if got := resetAtOnce(d.Addr()); got != "reset" {
		t.Errorf("socket: got %q", got)
	}
}

// resetAtOnce returns how a connection ended that may be reset while it is
// still being opened.
func resetAtOnce(address string) string {
	nc, err := net.Dial("tcp", address)
	if err != nil {
		return word(err)
	}
	defer nc.Close()
	return answer(reader(nc))
}

func TestRequestsAreReadToTheirEnd(t *testing.T) {
	b := func() Behaviour { return HTTP(OK()) }
	overBoth(t, b, func(t *testing.T, d *Door, dial func() net.Conn) {
		nc := dial()
		defer nc.Close()
		in := reader(nc)
		for _, row := range []struct{ request, want string }{
			{"POST / HTTP/1.1\r\nHost: d\r\nContent-Length: 5\r\n\r\nhello", "200 3"},
			{"POST / HTTP/1.1\r\nHost: d\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\nA: b\r\n\r\n", "200 3"},
			{"GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n", "200 3"},
			{"GET / HTTP/1.1\r\nHost: d\r\nConnection: close\r\n\r\n", "200 3 close"},
		} {
			if got := exchange(nc, in, row.request); got != row.want {
				t.Errorf("%q: got %q, want %q", row.request, got, row.want)
			}
		}
		if got := answer(in); got != "eof" {
			t.Errorf("afterwards: %q", got)
		}
		want := Counts{Accepted: 1, Requests: 4, Answers: 4}
		if got := d.Counts(); got != want {
			t.Errorf("got %+v, want %+v", got, want)
		}
	})
}

func TestByPath(t *testing.T) {
	d := New(HTTP(ByPath()))
	defer d.Close()
	nc := dialed(t)(d.Dial(context.Background(), "", ""))
	defer nc.Close()
	in := reader(nc)
	for path, want := range map[string]string{
		"/": "200 3", "/status/404": "404 0", "/status/x": "400 0", "/bytes/1024": "200 1024",
		"/chunked/1000": "200 1000", "/delay/1ms": "200 3", "/delay/soon": "400 0", "/other": "200 3",
	} {
		if got := exchange(nc, in, strings.Replace(get, "/", path, 1)); got != want {
			t.Errorf("%s: got %q, want %q", path, got, want)
		}
	}
	if got := exchange(nc, in, strings.Replace(get, "/", "/close", 1)); got != "200 3 close" {
		t.Errorf("/close: got %q", got)
	}
}

func TestEarlyAnswer(t *testing.T) {
	const half = "POST / HTTP/1.1\r\nHost: d\r\nContent-Length: 100000\r\n\r\nhello"
	for _, row := range []struct {
		name string
		h    Handler
		end  string
	}{
		{"lingers", Early(413), "eof"},
		{"resets", EarlyReset(413), "reset"},
	} {
		t.Run(row.name, func(t *testing.T) {
			overBoth(t, func() Behaviour { return HTTPEarly(row.h) }, func(t *testing.T, d *Door, dial func() net.Conn) {
				nc := dial()
				defer nc.Close()
				in := reader(nc)
				if got := exchange(nc, in, half); got != "413 0 close" {
					t.Errorf("got %q", got)
				}
				if got := answer(in); got != row.end {
					t.Errorf("afterwards %q, want %q", got, row.end)
				}
			})
		})
	}
}

func TestInTurn(t *testing.T) {
	b := func() Behaviour { return InTurn(HTTP(Status(501)), HTTP(Status(500)), HTTP(OK())) }
	overBoth(t, b, func(t *testing.T, d *Door, dial func() net.Conn) {
		for i, want := range []string{"501 0", "500 0", "200 3", "200 3"} {
			nc := dial()
			defer nc.Close()
			if got := exchange(nc, reader(nc), get); got != want {
				t.Errorf("connection %d: got %q, want %q", i+1, got, want)
			}
		}
	})
}

func TestNobodyListens(t *testing.T) {
	if _, err := net.Dial("tcp", Refused(t)); word(err) != "refused" {
		t.Errorf("socket: %v", err)
	}
	d := New(HTTP(OK()))
	d.Close()
	if _, err := d.Dial(context.Background(), "", ""); word(err) != "refused" {
		t.Errorf("memory: %v", err)
	}
}

func TestDialHonoursItsContext(t *testing.T) {
	d := New(HTTP(OK()))
	defer d.Close()
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := d.Dial(ctx, "", ""); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}

func TestCloseEndsEveryScript(t *testing.T) {
	for name, b := range map[string]Behaviour{
		"silent":      Silent(),
		"never reads": NeverReads(),
		"delay":       HTTP(Delay(time.Hour, OK())),
		"queue":       HTTP(NewQueue(time.Hour).Handle(OK())),
		"slow body":   HTTP(SlowBody(10, 1, time.Hour)),
		"idle":        HTTP(OK()),
		"unasked":     Unasked(0, time.Hour, 408, OK()),
	} {
		t.Run(name, func(t *testing.T) {
			overBoth(t, func() Behaviour { return b }, func(t *testing.T, d *Door, dial func() net.Conn) {
				nc := dial()
				defer nc.Close()
				io.WriteString(nc, get)
				start := time.Now()
				d.Close()
				d.Close()
				if took := time.Since(start); took >= time.Hour {
					t.Errorf("took %v", took)
				}
			})
		})
	}
}

func TestServeOnAnyConnection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client, server := net.Pipe()
		go Serve(server, HTTP(Delay(time.Second, OK())))
		start := time.Now()
		if got := exchange(client, reader(client), get); got != "200 3" {
			t.Errorf("got %q", got)
		}
		if took := time.Since(start); took != time.Second {
			t.Errorf("took %v, want 1s", took)
		}
		client.Close()
	})
}

func TestCloseConnectionsKeepsTheDoorOpen(t *testing.T) {
	b := func() Behaviour { return HTTP(OK()) }
	overBoth(t, b, func(t *testing.T, d *Door, dial func() net.Conn) {
		for range 2 {
			nc := dial()
			defer nc.Close()
			in := reader(nc)
			if got := exchange(nc, in, get); got != "200 3" {
				t.Fatalf("got %q", got)
			}
			d.CloseConnections()
			if got := answer(in); got != "eof" {
				t.Errorf("afterwards %q", got)
			}
		}
	})
}
