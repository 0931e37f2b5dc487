package test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/steadyprobe/steadyprobe/churn"
	"github.com/steadyprobe/steadyprobe/internal/testbed"
	"github.com/steadyprobe/steadyprobe/workload/haproxy"
)

// shop is some servers, which count what they are asked.
type shop struct {
	addresses []string
	asked     []*atomic.Int64
}

// newShop starts servers that take so long for each request.
func newShop(t *testing.T, servers int, takes time.Duration) *shop {
	t.Helper()
	s := &shop{}
	for range servers {
		asked := new(atomic.Int64)
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			asked.Add(1)
			select {
			case <-time.After(takes):
			case <-r.Context().Done():
			}
			_, _ = w.Write([]byte("hello\n"))
		}))
		t.Cleanup(server.Close)
		s.addresses = append(s.addresses, server.Listener.Addr().String())
		s.asked = append(s.asked, asked)
	}
	return s
}

// counts returns what each server was asked so far.
func (s *shop) counts() []int64 {
	all := make([]int64, len(s.asked))
	for i, n := range s.asked {
		all[i] = n.Load()
	}
	return all
}

// churned is a HAProxy whose backend "servers" is churned: s0, s1 and so on.
type churned struct {
	*testbed.HAProxyServer
	t      *testing.T
	socket string // of level admin
}

// newChurned starts a HAProxy with these servers, and with further lines of its
// backend.
func newChurned(t *testing.T, addresses []string, lines string) *churned {
	t.Helper()
	folder, err := os.MkdirTemp("", "") // the path of a socket is short
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(folder) })
	c := &churned{t: t, socket: filepath.Join(folder, "admin")}
	global := "\tstats socket " + c.socket + " mode 600 level admin\n"
	for _, level := range []string{"user", "operator"} {
		global += "\tstats socket " + filepath.Join(folder, level) + " mode 600 level " + level + "\n"
	}
	c.HAProxyServer = testbed.HAProxy(t, testbed.HAProxyOptions{Backends: addresses, Backend: lines, Global: global})
	return c
}

// workload returns the servers as another process would begin with them.
func (c *churned) workload(mode haproxy.Mode) *haproxy.Workload {
	c.t.Helper()
	return servers(c.t, c.socket, mode)
}

func servers(t *testing.T, socket string, mode haproxy.Mode) *haproxy.Workload {
	t.Helper()
	w, err := haproxy.New(haproxy.Options{Socket: socket, Backend: "servers", Mode: mode})
	if err != nil {
		t.Fatal(err)
	}
	return w
}

// states returns how HAProxy has each server, as "s0 ready 1, s1 drain 1":
// state and weight. The state is what a human is shown.
func (c *churned) states() string {
	c.t.Helper()
	var all []string
	for i, line := range strings.Split(strings.TrimSpace(c.Command("show servers state servers")), "\n") {
		fields := strings.Fields(line)
		if i < 2 {
			continue
		}
		var admin int
		if _, err := fmt.Sscan(fields[6], &admin); err != nil || len(fields) < 8 {
			c.t.Fatalf("HAProxy says %q of a server", line)
		}
		state := "ready"
		switch {
		case admin&1 != 0:
			state = "maint"
		case admin&8 != 0:
			state = "drain"
		}
		all = append(all, fields[3]+" "+state+" "+fields[7])
	}
	return strings.Join(all, ", ")
}

func (c *churned) expectStates(want string) {
	c.t.Helper()
	if got := c.states(); got != want {
		c.t.Errorf("HAProxy has %s\nwant %s", got, want)
	}
}

// set is what an operator does.
func (c *churned) set(server, what string) {
	c.t.Helper()
	if answer := c.Command("set server servers/" + server + " " + what); strings.TrimSpace(answer) != "" {
		c.t.Fatalf("setting %s %s: %s", server, what, answer)
	}
}

func observe(t *testing.T, w churn.Workload, desired, up int) {
	t.Helper()
	got, err := w.Observe(t.Context())
	if want := (churn.Observation{Desired: desired, Ready: up, Endpoints: up}); err != nil || got != want {
		t.Errorf("observed %+v, %v; want %+v", got, err, want)
	}
}

func scale(t *testing.T, w churn.Workload, replicas int) {
	t.Helper()
	if err := w.Scale(t.Context(), replicas); err != nil {
		t.Fatal(err)
	}
}

func keep(t *testing.T, w churn.Keeper) string {
	t.Helper()
	original, err := w.Keep(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return original
}

func putBack(t *testing.T, w churn.Keeper, original string) {
	t.Helper()
	if err := w.Restore(t.Context(), original); err != nil {
		t.Fatal(err)
	}
}

func reasonOf(err error) churn.Reason {
	var e *churn.Error
	if errors.As(err, &e) {
		return e.Reason
	}
	return churn.NoReason
}

// cycling runs a Cycle until the function that it returns was called, and has
// returned. The Cycle must restore.
func cycling(t *testing.T, o churn.Options) (c *churn.Cycle, stop func()) {
	t.Helper()
	c, err := churn.New(o)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	over := make(chan error, 1)
	go func() { over <- c.Run(ctx) }()
	stopped := false
	stop = func() {
		if stopped {
			return
		}
		stopped = true
		cancel()
		if err := <-over; err != nil {
			t.Errorf("the cycle returned %v", err)
		}
	}
	t.Cleanup(stop)
	return c, stop
}

// until waits for what a Cycle shows.
func until(t *testing.T, c *churn.Cycle, what string, shows func(*churn.Snapshot) bool) {
	t.Helper()
	var s churn.Snapshot
	limit := 30 * time.Second
	for begun := time.Now(); ; time.Sleep(5 * time.Millisecond) {
		c.Snapshot(&s)
		if shows(&s) {
			return
		}
		if time.Since(begun) > limit {
			t.Fatalf("waiting for %s: not within %v; it shows %v, %+v, steps %v, errors %v, %v %q",
				what, limit, s.State, s.Observation, s.Steps, s.Errors, s.Reason, s.Detail)
		}
	}
}
