package demo

import (
	"context"
	"errors"
	"net"
	"slices"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/steadyprobe/steadyprobe/churn"
)

var _ churn.Killer = (*Backends)(nil)

func kill(t *testing.T, b *Backends, n int) {
	t.Helper()
	if err := b.Kill(t.Context(), n); err != nil {
		t.Fatal(err)
	}
}

// observed compares what is observed of killed replicas, which are endpoints
// for a while.
func observed(t *testing.T, b *Backends, desired, endpoints int) {
	t.Helper()
	synctest.Wait() // what is due at this very instant has happened
	got, err := b.Observe(t.Context())
	if want := (churn.Observation{Desired: desired, Ready: endpoints, Endpoints: endpoints}); err != nil || got != want {
		t.Errorf("observed %+v, %v; want %+v", got, err, want)
	}
}

func TestKill(t *testing.T) {
	inBubble(t, func(t *testing.T, b *Backends) {
		kill(t, b, 1)
		observed(t, b, 3, 4)
		time.Sleep(499 * time.Millisecond)
		observed(t, b, 3, 4)
		time.Sleep(time.Millisecond)
		expect(t, b, 3, "abc") // 500 ms after the call it is noticed
		kill(t, b, 3)
		observed(t, b, 0, 3)
		scale(t, b, 2)
		time.Sleep(400 * time.Millisecond)
		observed(t, b, 2, 3+2) // two new ones are ready, the dead are not known to be
		time.Sleep(100 * time.Millisecond)
		expect(t, b, 2, "ef")
		kill(t, b, 0)
		expect(t, b, 2, "ef")
	})
}

// TestKillOfWhatStarts kills replicas that are not ready yet.
func TestKillOfWhatStarts(t *testing.T) {
	inBubble(t, func(t *testing.T, b *Backends) {
		scale(t, b, 1)
		scale(t, b, 3)
		time.Sleep(200 * time.Millisecond)
		kill(t, b, 2)
		expect(t, b, 1, "a")
		time.Sleep(time.Second)
		expect(t, b, 1, "a")
	})
}

// TestScaleAwayAndKill kills after others were scaled away, which drain on.
func TestScaleAwayAndKill(t *testing.T) {
	inBubble(t, func(t *testing.T, b *Backends) {
		scale(t, b, 3)
		expect(t, b, 3, "abc")
		kill(t, b, 1)
		observed(t, b, 2, 3)
		scale(t, b, 1)
		observed(t, b, 1, 2) // a, and c, which is dead
		time.Sleep(500 * time.Millisecond)
		expect(t, b, 1, "a")
	})
}

func TestKillErrors(t *testing.T) {
	ended, end := context.WithCancel(t.Context())
	end()
	inBubble(t, func(t *testing.T, b *Backends) {
		tests := []struct {
			name  string
			ctx   context.Context
			n     int
			error string
		}{
			{"negative", t.Context(), -1, "killing the demo's backends: refused: there are 4 replicas, and -1 were asked for"},
			{"too many", t.Context(), 5, "killing the demo's backends: refused: there are 4 replicas, and 5 were asked for"},
			{"too late", ended, 2, "killing the demo's backends: context canceled"},
		}
		for _, test := range tests {
			if err := b.Kill(test.ctx, test.n); err == nil || err.Error() != test.error {
				t.Errorf("%s: got %v, want %s", test.name, err, test.error)
			}
		}
		expect(t, b, 4, "abcd")
	})
	b := startQuick(t).Backends()
	b.close()
	if err := b.Kill(t.Context(), 1); err == nil || err.Error() != "killing the demo's backends: not_found: the demo has ended" {
		t.Errorf("after the end got %v", err)
	}
}

// TestKilledBackendResets holds connections to a backend that is killed: they
// are reset, and nobody connects to it any more.
func TestKilledBackendResets(t *testing.T) {
	w := startQuick(t)
	b := w.Backends()
	all := slices.Clone(b.endpoints())
	dial := func(address string) net.Conn {
		t.Helper()
		c, err := net.Dial("tcp", address)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { c.Close() })
		if _, err := c.Write([]byte("GET / HTTP/1.1\r\nHost: x\r\n\r\n")); err != nil {
			t.Fatal(err)
		}
		if _, err := c.Read(make([]byte, 1000)); err != nil { // it is accepted, and known
			t.Fatal(err)
		}
		return c
	}
	killed, living := dial(all[3]), dial(all[0])
	kill(t, b, 1)
	if err := killed.SetReadDeadline(time.Now().Add(5 * time.Second)); err != nil {
		t.Fatal(err)
	}
	if _, err := killed.Read(make([]byte, 1)); !errors.Is(err, syscall.ECONNRESET) {
		t.Errorf("the connection to the killed backend ends with %v, want a reset", err)
	}
	if !slices.Contains(b.endpoints(), all[3]) {
		t.Error("it was noticed at once")
	}
	for deadline := time.Now().Add(3 * time.Second); ; time.Sleep(5 * time.Millisecond) {
		c, err := net.Dial("tcp", all[3])
		if err != nil {
			break
		}
		c.Close()
		if time.Now().After(deadline) {
			t.Fatal("the killed backend still listens")
		}
	}
	if _, err := living.Write([]byte("GET / HTTP/1.1\r\nHost: x\r\n\r\n")); err != nil {
		t.Error(err)
	}
	if _, err := living.Read(make([]byte, 1000)); err != nil {
		t.Errorf("another backend was hurt: %v", err)
	}
}

// TestDoorsAfterAKill asks both doors while a killed backend is an endpoint:
// the steady one tries another, the reloading one does not.
func TestDoorsAfterAKill(t *testing.T) {
	s := quick()
	s.timing.notice = 10 * time.Second
	w, err := start(Options{}, s)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(w.Close)
	all := targets(t, w)
	c := client(t, "")
	address := w.Backends().endpoints()[3]
	kill(t, w.Backends(), 1)
	for deadline := time.Now().Add(3 * time.Second); ; time.Sleep(5 * time.Millisecond) {
		conn, err := net.Dial("tcp", address)
		if err != nil {
			break
		}
		conn.Close()
		if time.Now().After(deadline) {
			t.Fatal("the killed backend still listens")
		}
	}
	for name, want := range map[string]map[int]int{
		"steady-http":    {200: 8},
		"reloading-http": {200: 6, 502: 2}, // a quarter goes to the dead one
	} {
		got := map[int]int{}
		for range 8 {
			status, _, _, err := get(c, all[name].URL.String())
			if err != nil {
				t.Fatal(err)
			}
			got[status]++
		}
		if got[200] != want[200] || got[502] != want[502] {
			t.Errorf("%s answered with %v, want %v", name, got, want)
		}
	}
}
