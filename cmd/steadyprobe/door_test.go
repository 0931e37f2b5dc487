package main

import (
	"cmp"
	"encoding/pem"
	"fmt"
	"io"
	"log"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
)

// fakeDoor is a door of the standard library that remembers what it was sent.
type fakeDoor struct {
	status int
	delay  time.Duration
	ended  chan struct{}

	mu          sync.Mutex
	requests    []string
	connections int
}

// doors is the key of a script's doors by name.
type doors struct{}

func setup(env *testscript.Env) error {
	env.Values[doors{}] = map[string]*fakeDoor{}
	return nil
}

func doorOf(ts *testscript.TestScript, name string) *fakeDoor {
	d := ts.Value(doors{}).(map[string]*fakeDoor)[name]
	if d == nil {
		ts.Fatalf("there is no door %s", name)
	}
	return d
}

// startDoor starts a door and sets $NAME to its URL. Options: tls, which writes
// its authority to NAME.pem; status=N; delay=DURATION before each answer.
func startDoor(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) == 0 {
		ts.Fatalf("usage: door NAME [tls] [status=N] [delay=DURATION]")
	}
	d := &fakeDoor{status: http.StatusOK, ended: make(chan struct{})}
	secure := false
	for _, option := range args[1:] {
		key, value, _ := strings.Cut(option, "=")
		var err error
		switch key {
		case "tls":
			secure = true
		case "status":
			d.status, err = strconv.Atoi(value)
		case "delay":
			d.delay, err = time.ParseDuration(value)
		default:
			ts.Fatalf("a door has no option %s", key)
		}
		ts.Check(err)
	}
	s := httptest.NewUnstartedServer(d)
	s.Config.ErrorLog = log.New(io.Discard, "", 0)
	s.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		if state == http.StateNew {
			d.mu.Lock()
			d.connections++
			d.mu.Unlock()
		}
	}
	if secure {
		s.StartTLS()
		authority := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw})
		ts.Check(os.WriteFile(ts.MkAbs(args[0]+".pem"), authority, 0o600))
	} else {
		s.Start()
	}
	ts.Defer(func() {
		close(d.ended)
		s.CloseClientConnections()
		s.Close()
	})
	ts.Setenv(args[0], s.URL)
	ts.Setenv(args[0]+"_address", s.Listener.Addr().String())
	ts.Value(doors{}).(map[string]*fakeDoor)[args[0]] = d
}

// ServeHTTP remembers the request as "METHOD TARGET\nHost: …\n…\n\nBODY".
func (d *fakeDoor) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	var text strings.Builder
	fmt.Fprintf(&text, "%s %s\nHost: %s\n", r.Method, r.RequestURI, r.Host)
	for _, name := range slices.Sorted(maps.Keys(r.Header)) {
		fmt.Fprintf(&text, "%s: %s\n", name, strings.Join(r.Header[name], ", "))
	}
	fmt.Fprintf(&text, "\n%s", body)
	d.mu.Lock()
	d.requests = append(d.requests, text.String())
	d.mu.Unlock()
	select {
	case <-time.After(d.delay):
	case <-d.ended:
	}
	w.WriteHeader(d.status)
	_, _ = io.WriteString(w, "ok\n")
}

func (d *fakeDoor) seen() (requests []string, connections int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.Clone(d.requests), d.connections
}

func saw(ts *testscript.TestScript, neg bool, args []string) {
	if len(args) != 2 {
		ts.Fatalf("usage: [!] saw NAME PATTERN")
	}
	pattern, err := regexp.Compile("(?m)" + args[1])
	ts.Check(err)
	requests, _ := doorOf(ts, args[0]).seen()
	found := slices.ContainsFunc(requests, pattern.MatchString)
	if found == neg {
		ts.Fatalf("of %d requests one matches %q: %v; the last is\n%s", len(requests), args[1], found, last(requests))
	}
}

func last(requests []string) string {
	if len(requests) == 0 {
		return "none"
	}
	return requests[len(requests)-1]
}

func sawAll(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 || len(args) > 3 {
		ts.Fatalf("usage: sawall NAME N [CONNECTIONS]")
	}
	requests, connections := doorOf(ts, args[0]).seen()
	if got := strconv.Itoa(len(requests)); got != args[1] {
		ts.Fatalf("the door was sent %s requests, want %s", got, args[1])
	}
	if got := strconv.Itoa(connections); len(args) == 3 && got != args[2] {
		ts.Fatalf("the door was sent them over %s connections, want %s", got, args[2])
	}
}

// patience bounds how long a script waits for what must come.
const patience = 30 * time.Second

// poll asks until it is so.
func poll(ts *testscript.TestScript, what string, so func() bool) {
	for deadline := time.Now().Add(patience); !so(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			ts.Fatalf("waited %v for %s", patience, what)
		}
	}
}

func await(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: await NAME N")
	}
	want, err := strconv.Atoi(args[1])
	ts.Check(err)
	d := doorOf(ts, args[0])
	poll(ts, args[1]+" requests", func() bool {
		requests, _ := d.seen()
		return len(requests) >= want
	})
}

func holds(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: holds FILE TEXT")
	}
	poll(ts, args[0]+" to hold "+args[1], func() bool {
		text, err := os.ReadFile(ts.MkAbs(args[0]))
		return err == nil && strings.TrimSpace(string(text)) == args[1]
	})
}

func listen(ts *testscript.TestScript, neg bool, args []string) net.Listener {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: freeport NAME, or busyport NAME")
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	ts.Check(err)
	_, port, err := net.SplitHostPort(l.Addr().String())
	ts.Check(err)
	ts.Setenv(args[0], port)
	return l
}

func freePort(ts *testscript.TestScript, neg bool, args []string) {
	ts.Check(listen(ts, neg, args).Close())
}

func busyPort(ts *testscript.TestScript, neg bool, args []string) {
	l := listen(ts, neg, args)
	ts.Defer(func() { _ = l.Close() })
}

func asked(method string) func(ts *testscript.TestScript, neg bool, args []string) {
	return func(ts *testscript.TestScript, neg bool, args []string) {
		if neg || len(args) == 0 || len(args) > 2 {
			ts.Fatalf("usage: get URL [STATUS], or post")
		}
		want, err := strconv.Atoi(cmp.Or(strings.Join(args[1:], ""), "200"))
		ts.Check(err)
		client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: patience}
		var body []byte
		poll(ts, args[0], func() bool {
			question, err := http.NewRequest(method, args[0], nil)
			ts.Check(err)
			answer, err := client.Do(question)
			if err != nil {
				return false
			}
			body, err = io.ReadAll(answer.Body)
			_ = answer.Body.Close()
			return err == nil && answer.StatusCode == want
		})
		_, err = ts.Stdout().Write(body)
		ts.Check(err)
	}
}
