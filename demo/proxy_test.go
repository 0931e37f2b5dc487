package demo

import (
	"context"
	"io"
	"log"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
)

var silent = log.New(io.Discard, "", 0)

// port returns an address on which somebody listened.
func port(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

func TestRoutes(t *testing.T) {
	live := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		w.Header().Set("X-Seen", r.Host+" "+r.URL.RequestURI()+" ["+string(body)+"]")
		w.WriteHeader(http.StatusTeapot)
	}))
	defer live.Close()
	address := live.Listener.Addr().String()
	gone := port(t)
	cut := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }))
	defer cut.Close()
	cuts := cut.Listener.Addr().String()

	tests := []struct {
		name      string
		retry     bool
		endpoints []string // the first choice is the second one
		body      string
		status    int
		seen      string
	}{
		{"a good backend", oneTry, []string{address}, "", 418, "door.example /path?a=b []"},
		{"a good backend gets the body", oneTry, []string{address}, "text", 418, "door.example /path?a=b [text]"},
		{"gone, one try", oneTry, []string{address, gone}, "", 502, ""},
		{"gone, another try", anotherTry, []string{address, gone}, "", 418, "door.example /path?a=b []"},
		{"all gone", anotherTry, []string{gone, gone, gone}, "", 502, ""},
		{"a body is not sent twice", anotherTry, []string{address, gone}, "text", 502, ""},
		{"what was sent is not sent elsewhere", anotherTry, []string{address, cuts}, "", 502, ""},
		{"no backend", anotherTry, nil, "", 503, ""},
		{"no backend, one try", oneTry, nil, "", 503, ""},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			p := newProxy(test.retry, slog.New(slog.DiscardHandler))
			defer p.close()
			recorder := httptest.NewRecorder()
			request := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "http://door.example/path?a=b", strings.NewReader(test.body))
			p.handler(func() []string { return test.endpoints }).ServeHTTP(recorder, request)
			if recorder.Code != test.status || recorder.Header().Get("X-Seen") != test.seen {
				t.Errorf("got %d, backend saw %q; want %d, %q", recorder.Code, recorder.Header().Get("X-Seen"), test.status, test.seen)
			}
		})
	}
}

func TestTurns(t *testing.T) {
	p := newProxy(anotherTry, slog.New(slog.DiscardHandler))
	p.transport.DialContext = func(_ context.Context, _, address string) (net.Conn, error) {
		return nil, &net.OpError{Op: "dial", Err: net.UnknownNetworkError(strings.TrimSuffix(address, ":80"))}
	}
	r := &route{proxy: p, endpoints: func() []string { return []string{"a", "b", "c"} }}
	var last string
	p.next.Store(1<<31 - 3) // soon more than an int of 32 bits holds
	for range 4 {
		response, err := r.RoundTrip(httptest.NewRequestWithContext(t.Context(), http.MethodGet, "http://door/", nil))
		if err == nil {
			response.Body.Close()
			t.Fatal("it was answered")
		}
		last += err.Error()[len(err.Error())-1:]
	}
	// 2^31 - 2 is a multiple of 3: starting with a, b, c, a, each goes round once
	// and ends one before.
	if last != "cabc" {
		t.Errorf("the last tries were at %s, want cabc", last)
	}
}

// TestNoWorker holds that connections wait, and are not refused, while a door
// has no worker.
func TestNoWorker(t *testing.T) {
	defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
	e, err := newEntrance(defaults().listen, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	defer e.close()
	serve(e.listener(), http.NotFoundHandler(), silent).close() // an old worker

	type answer struct {
		status int
		err    error
	}
	answers := make(chan answer)
	c := client(t, "")
	defer c.CloseIdleConnections()
	for range 3 {
		connection, err := net.Dial("tcp", e.address())
		if err != nil {
			t.Fatalf("the door refuses connections: %v", err)
		}
		connection.Close() // who gives up in the queue harms nobody
		go func() {
			status, _, _, err := get(c, "http://"+e.address())
			answers <- answer{status, err}
		}()
	}
	select {
	case a := <-answers:
		t.Fatalf("without a worker there was an answer: %+v", a)
	case <-time.After(10 * time.Millisecond):
	}
	worker := serve(e.listener(), http.NotFoundHandler(), silent)
	defer worker.close()
	for range 3 {
		if a := <-answers; a.err != nil || a.status != http.StatusNotFound {
			t.Errorf("got %+v", a)
		}
	}
}

// TestFrozen closes a server whose requests hang, one of them with a body that
// did not come.
func TestFrozen(t *testing.T) {
	defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	frozen := make(chan struct{})
	reached := make(chan struct{})
	hang := freezable(frozen, http.NotFoundHandler())
	worker := serve(listener, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		reached <- struct{}{}
		hang.ServeHTTP(w, r)
	}), silent)
	var clients []net.Conn
	for i, text := range []string{
		"GET / HTTP/1.1\r\nHost: here\r\n\r\n", // before it is frozen
		"GET / HTTP/1.1\r\nHost: here\r\n\r\n",
		"POST / HTTP/1.1\r\nHost: here\r\nContent-Length: 9\r\n\r\nhal",
	} {
		connection, err := net.Dial("tcp", listener.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer connection.Close()
		if _, err := io.WriteString(connection, text); err != nil {
			t.Fatal(err)
		}
		<-reached
		if i == 0 {
			if line, err := readLine(connection); err != nil || line != "HTTP/1.1 404 Not Found" {
				t.Fatalf("got %q, %v", line, err)
			}
			close(frozen)
			continue
		}
		clients = append(clients, connection)
	}
	worker.close()
	for _, connection := range clients {
		if line, err := readLine(connection); err == nil {
			t.Errorf("a request that hung was answered: %q", line)
		}
	}
}

func readLine(from io.Reader) (string, error) {
	data := make([]byte, 512)
	n, err := from.Read(data)
	line, _, _ := strings.Cut(string(data[:n]), "\r\n")
	return line, err
}
