package demo

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/steadyprobe/steadyprobe/churn"
)

var _ churn.Workload = (*Backends)(nil)

// pipes makes listeners in memory, which virtual time goes well with.
type pipes struct{ made atomic.Int32 }

func (p *pipes) listen() (net.Listener, error) {
	return &fakeListener{name: fakeAddress('a' + rune(p.made.Add(1)) - 1), closed: make(chan struct{})}, nil
}

// fakeListener accepts nothing until it is closed.
type fakeListener struct {
	name   fakeAddress
	closed chan struct{}
	once   sync.Once
}

func (l *fakeListener) Accept() (net.Conn, error) { <-l.closed; return nil, net.ErrClosed }
func (l *fakeListener) Close() error              { l.once.Do(func() { close(l.closed) }); return nil }
func (l *fakeListener) Addr() net.Addr            { return l.name }

type fakeAddress string

func (fakeAddress) Network() string  { return "fake" }
func (a fakeAddress) String() string { return string(a) }

// inBubble runs f with backends in virtual time, whose addresses are a, b, c…
// in the order in which they listened.
func inBubble(t *testing.T, f func(t *testing.T, b *Backends)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		s := defaults()
		s.listen = new(pipes).listen
		b, err := newBackends(s, slog.New(slog.DiscardHandler))
		if err != nil {
			t.Fatal(err)
		}
		defer b.close()
		f(t, b)
	})
}

func scale(t *testing.T, b *Backends, replicas int) {
	t.Helper()
	if err := b.Scale(t.Context(), replicas); err != nil {
		t.Fatal(err)
	}
}

// expect compares what is observed and routed to, at this instant.
func expect(t *testing.T, b *Backends, desired int, endpoints string) {
	t.Helper()
	synctest.Wait()
	got, err := b.Observe(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	n := len(endpoints)
	if want := (churn.Observation{Desired: desired, Ready: n, Endpoints: n}); got != want {
		t.Errorf("observed %+v, want %+v", got, want)
	}
	// Those that started together are ready in any order.
	routes := slices.Sorted(slices.Values(b.endpoints()))
	if s := strings.Join(routes, ""); s != endpoints {
		t.Errorf("the doors route to %q, want %q", s, endpoints)
	}
}

func TestScaleDownAndUp(t *testing.T) {
	inBubble(t, func(t *testing.T, b *Backends) {
		expect(t, b, 4, "abcd")
		scale(t, b, 2)
		expect(t, b, 2, "ab") // at once
		scale(t, b, 4)
		expect(t, b, 4, "ab")
		time.Sleep(399 * time.Millisecond)
		expect(t, b, 4, "ab")
		time.Sleep(time.Millisecond) // 400 ms after the call
		expect(t, b, 4, "abef")
		scale(t, b, 0)
		expect(t, b, 0, "")
		scale(t, b, 1)
		time.Sleep(400 * time.Millisecond)
		expect(t, b, 1, "g")
	})
}

func TestScaleDuringScale(t *testing.T) {
	inBubble(t, func(t *testing.T, b *Backends) {
		scale(t, b, 1)
		scale(t, b, 4)
		time.Sleep(200 * time.Millisecond)
		scale(t, b, 2) // two of those that start are not needed any more
		expect(t, b, 2, "a")
		time.Sleep(time.Second)
		expect(t, b, 2, "ae")
		_, changed := b.watch()
		scale(t, b, 2) // nothing to do
		scale(t, b, 3)
		scale(t, b, 2) // gone before it was ready
		time.Sleep(time.Second)
		select {
		case <-changed:
			t.Error("the endpoints changed")
		default:
		}
		expect(t, b, 2, "ae")
	})
}

func TestNamesAreReused(t *testing.T) {
	inBubble(t, func(t *testing.T, b *Backends) {
		names := func() string {
			synctest.Wait()
			b.mu.Lock()
			defer b.mu.Unlock()
			return strings.ReplaceAll(strings.Join(slices.Sorted(slices.Values(b.names)), " "), "backend-", "")
		}
		scale(t, b, 2)
		scale(t, b, 4) // the old ones are draining, and keep their names
		if got := names(); got != "1 2 3 4 5 6" {
			t.Errorf("names are %s", got)
		}
		time.Sleep(300 * time.Millisecond)
		if got := names(); got != "1 2 5 6" {
			t.Errorf("after draining, names are %s", got)
		}
		scale(t, b, 2) // those that start end at once
		scale(t, b, 2)
		if got := names(); got != "1 2" {
			t.Errorf("after 5 and 6 were not needed, names are %s", got)
		}
		scale(t, b, 4)
		if got := names(); got != "1 2 3 4" {
			t.Errorf("names are %s", got)
		}
	})
}

func TestChangeIsTold(t *testing.T) {
	inBubble(t, func(t *testing.T, b *Backends) {
		told := func(changed <-chan struct{}) bool {
			synctest.Wait()
			select {
			case <-changed:
				return true
			default:
				return false
			}
		}
		endpoints, changed := b.watch()
		if len(endpoints) != 4 || told(changed) {
			t.Errorf("at first: %v, told %v", endpoints, told(changed))
		}
		scale(t, b, 3)
		if !told(changed) {
			t.Error("who watches is not told of a replica that left")
		}
		if len(endpoints) != 4 {
			t.Error("what was watched changed")
		}
		_, changed = b.watch()
		scale(t, b, 4)
		if told(changed) {
			t.Error("a replica that is not ready is told of")
		}
		time.Sleep(400 * time.Millisecond)
		if !told(changed) {
			t.Error("who watches is not told of a new replica")
		}
	})
}

func TestScaleErrors(t *testing.T) {
	ended, end := context.WithCancel(t.Context())
	end()
	tests := []struct {
		name     string
		ctx      context.Context
		replicas int
		error    string
	}{
		{"negative", t.Context(), -1, "scaling the demo's backends: refused: there cannot be -1 replicas, ask for 0 to 4"},
		{"too many", t.Context(), 5, "scaling the demo's backends: refused: there cannot be 5 replicas, ask for 0 to 4"},
		{"too late", ended, 2, "scaling the demo's backends: context canceled"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, b *Backends) {
				if err := b.Scale(test.ctx, test.replicas); err == nil || err.Error() != test.error {
					t.Errorf("got %v, want %s", err, test.error)
				}
				expect(t, b, 4, "abcd")
			})
		})
	}
	inBubble(t, func(t *testing.T, b *Backends) {
		if _, err := b.Observe(ended); err == nil || err.Error() != "observing the demo's backends: context canceled" {
			t.Errorf("got %v", err)
		}
	})
}

func TestBackendWithoutPortTriesAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		s := defaults()
		p, refuse := new(pipes), atomic.Bool{}
		s.listen = func() (net.Listener, error) {
			if refuse.Load() {
				return nil, errors.New("too many open files")
			}
			return p.listen()
		}
		b, err := newBackends(s, slog.New(slog.NewTextHandler(&log, nil)))
		if err != nil {
			t.Fatal(err)
		}
		defer b.close()
		scale(t, b, 3)
		refuse.Store(true)
		scale(t, b, 4)
		time.Sleep(500 * time.Millisecond)
		expect(t, b, 4, "abc")
		refuse.Store(false)
		time.Sleep(300 * time.Millisecond)
		expect(t, b, 4, "abce")
		if got := log.String(); strings.Count(got, "level=WARN") != 1 || !strings.Contains(got, "too many open files") {
			t.Errorf("the log is %q, want one warning", got)
		}
	})
}

// TestObservedAnswers holds the observation to the truth: what is routed to
// answers, and what was stopped does not.
func TestObservedAnswers(t *testing.T) {
	b := startQuick(t).Backends()
	c := client(t, "")
	all := slices.Clone(b.endpoints())
	scale(t, b, 2)
	scale(t, b, 4)
	for deadline := time.Now().Add(3 * time.Second); ; {
		endpoints := b.endpoints()
		for _, address := range endpoints {
			if status, _, _, err := get(c, "http://"+address); err != nil || status != 200 {
				t.Fatalf("%s is routed to and does not answer: %d, %v", address, status, err)
			}
		}
		if len(endpoints) == 4 {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("there are %d endpoints", len(endpoints))
		}
	}
	for _, address := range all[:2] {
		if !slices.Contains(b.endpoints(), address) {
			t.Errorf("%s went, although it was the oldest", address)
		}
	}
	for deadline := time.Now().Add(3 * time.Second); ; {
		connection, err := net.Dial("tcp", all[3])
		if err != nil {
			return
		}
		connection.Close()
		if time.Now().After(deadline) {
			t.Fatalf("%s was stopped and still listens", all[3])
		}
		time.Sleep(5 * time.Millisecond)
	}
}

func TestServiceTime(t *testing.T) {
	const ms = time.Millisecond
	born := defaults().timing
	tests := []struct {
		name   string
		n      uint64
		others int64
		age    time.Duration
		want   time.Duration
	}{
		{"shortest", 16, 0, time.Hour, 1500 * time.Microsecond},           // 7·16 mod 16 = 0: 2 ms · 0.75
		{"longest", 9, 0, time.Hour, 2500 * time.Microsecond},             // 7·9 mod 16 = 15: 2 ms · 1.25
		{"two others", 16, 2, time.Hour, 2250 * time.Microsecond},         // 1.5 ms · (1 + 2 · 0.25)
		{"very many others", 16, 900, time.Hour, 7500 * time.Microsecond}, // 1.5 ms · (1 + 16 · 0.25)
		{"newborn", 16, 0, 0, 9500 * time.Microsecond},                    // 1.5 ms + 8
		{"half warm", 16, 0, 500 * ms, 5500 * time.Microsecond},           // 1.5 ms + 4
		{"just warm", 16, 0, time.Second, 1500 * time.Microsecond},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			b := newBackend("x", time.Now(), born)
			if got := b.serviceTime(test.n, test.others, test.age); got != test.want {
				t.Errorf("got %v, want %v", got, test.want)
			}
		})
	}
}

func TestBackendTakesItsTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBackend("backend-1", time.Now(), defaults().timing)
		begun := time.Now()
		recorder := httptest.NewRecorder()
		b.ServeHTTP(recorder, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/any", nil))
		// 7·1 mod 16 = 7: 2 ms · (0.75 + 0.5 · 7/15) = 1.967 ms, + 8 ms when new
		if got, want := time.Since(begun).Round(time.Microsecond), 9967*time.Microsecond; got != want {
			t.Errorf("it took %v, want %v", got, want)
		}
		if recorder.Code != 200 || recorder.Body.String() != "hello from backend-1\n" || recorder.Header().Get("X-Backend") != "backend-1" {
			t.Errorf("answered %d %v %q", recorder.Code, recorder.Header(), recorder.Body)
		}
	})
}
