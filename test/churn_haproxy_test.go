package test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/steadyprobe/steadyprobe/churn"
	"github.com/steadyprobe/steadyprobe/internal/testbed"
	"github.com/steadyprobe/steadyprobe/workload/haproxy"
)

// TestHAProxyServersArePutAwayAndBack goes through the modes. An operator has
// put s1 away before, and s4 is a backup: they count for nothing, and stay as
// they are.
func TestHAProxyServersArePutAwayAndBack(t *testing.T) {
	const s1, backup = "s1 maint 30", "spare ready 7"
	tests := []struct {
		mode               haproxy.Mode
		two, one, none     string // of s0, s2 and s3 when so many serve
		killed, rekindled  string // when one was killed out of two; when three serve again
		operators, restore string // an operator has s3 besides; what is restored then
	}{
		{haproxy.Drain,
			"s0 ready 10, %s, s2 ready 20, s3 drain 40", "s0 ready 10, %s, s2 drain 20, s3 drain 40", "s0 drain 10, %s, s2 drain 20, s3 drain 40",
			"s0 ready 10, %s, s2 maint 0, s3 drain 40", "s0 ready 10, %s, s2 ready 20, s3 ready 40",
			"s0 ready 10, %s, s2 maint 0, s3 maint 40", "s0 ready 10, %s, s2 ready 20, s3 maint 40"},
		{haproxy.Maint,
			"s0 ready 10, %s, s2 ready 20, s3 maint 40", "s0 ready 10, %s, s2 maint 20, s3 maint 40", "s0 maint 10, %s, s2 maint 20, s3 maint 40",
			"s0 ready 10, %s, s2 maint 0, s3 maint 40", "s0 ready 10, %s, s2 ready 20, s3 ready 40",
			"s0 ready 10, %s, s2 maint 0, s3 drain 40", "s0 ready 10, %s, s2 ready 20, s3 drain 40"},
		{haproxy.Weight,
			"s0 ready 10, %s, s2 ready 20, s3 ready 0", "s0 ready 10, %s, s2 ready 0, s3 ready 0", "s0 ready 0, %s, s2 ready 0, s3 ready 0",
			"s0 ready 10, %s, s2 maint 0, s3 ready 0", "s0 ready 10, %s, s2 ready 20, s3 ready 40",
			"s0 ready 10, %s, s2 maint 0, s3 ready 5", "s0 ready 10, %s, s2 ready 20, s3 ready 5"},
	}
	for _, test := range tests {
		t.Run(string(test.mode), func(t *testing.T) {
			shop := newShop(t, 5, 0)
			c := newChurned(t, nil, backendLines(shop, 10, 30, 20, 40)+"\tserver spare "+shop.addresses[4]+" weight 7 backup\n")
			c.set("s1", "state maint")
			expect := func(format string) {
				t.Helper()
				c.expectStates(fmt.Sprintf(format, s1) + ", " + backup)
			}
			all := test.rekindled
			expect(all)

			w := c.workload(test.mode)
			observe(t, w, 3, 3)
			original := keep(t, w)
			for _, step := range []struct {
				replicas int
				states   string
			}{{2, test.two}, {1, test.one}, {2, test.two}, {0, test.none}, {3, all}, {1, test.one}, {2, test.two}} {
				scale(t, w, step.replicas)
				observe(t, w, step.replicas, step.replicas)
				expect(step.states)
			}
			if err := w.Kill(t.Context(), 1); err != nil {
				t.Fatal(err)
			}
			observe(t, w, 1, 1)
			expect(test.killed)
			scale(t, w, 3)
			observe(t, w, 3, 3)
			expect(all)
			scale(t, w, 2)
			if err := w.Kill(t.Context(), 1); err != nil {
				t.Fatal(err)
			}
			switch test.mode { // an operator has another opinion of s3
			case haproxy.Drain:
				c.set("s3", "state maint")
			case haproxy.Maint:
				c.set("s3", "state drain")
			case haproxy.Weight:
				c.set("s3", "weight 5")
			}
			expect(test.operators)
			putBack(t, w, original)
			expect(test.restore)
		})
	}
}

// backendLines returns the servers s0, s1 and so on of a shop with weights.
func backendLines(s *shop, weights ...int) string {
	var b strings.Builder
	for i, weight := range weights {
		fmt.Fprintf(&b, "\tserver s%d %s weight %d\n", i, s.addresses[i], weight)
	}
	return b.String()
}

// TestHAProxyHasChecks tells servers that are meant to serve from those that do.
func TestHAProxyHasChecks(t *testing.T) {
	shop := newShop(t, 3, 0)
	dead := testbed.FreeAddress(t)
	c := newChurned(t, shop.addresses, "\tserver dead "+dead+" check inter 20ms fall 1\n")
	w := c.workload(haproxy.Drain)
	testbed.WaitFor(t, "the check to fail", 10*time.Second, func() bool {
		o, err := w.Observe(t.Context())
		return err == nil && o == churn.Observation{Desired: 4, Ready: 3, Endpoints: 3}
	})
	original := keep(t, w)
	// It stands first, because the test bed's servers come after further lines.
	scale(t, w, 2)
	c.expectStates("dead ready 1, s0 ready 1, s1 drain 1, s2 drain 1")
	observe(t, w, 2, 1)
	putBack(t, w, original)
	observe(t, w, 4, 3)
}

// TestHAProxyDrainsAndKills sends requests through the door while servers are
// put away: a drain costs none, a kill costs those that are under way there.
func TestHAProxyDrainsAndKills(t *testing.T) {
	const takes = 40 * time.Millisecond // so that all servers are always busy
	tests := []struct {
		name  string
		mode  haproxy.Mode
		kill  bool
		fails bool
	}{
		{"drain", haproxy.Drain, false, false},
		{"maint", haproxy.Maint, false, false}, // what is under way is finished in maintenance too
		{"weight", haproxy.Weight, false, false},
		{"kill", haproxy.Drain, true, true},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			shop := newShop(t, 4, takes)
			c := newChurned(t, shop.addresses, "")
			w := c.workload(test.mode)
			observe(t, w, 4, 4)
			original := keep(t, w)
			target := targetFor(t, "http://"+c.HTTP+"/", "", profile{rate: 250, connections: 50})
			results := onceWhile(t, 3*time.Second, func() {
				busy := func(i int) func() bool {
					before := shop.asked[i].Load()
					return func() bool { return shop.asked[i].Load() >= before+5 }
				}
				testbed.WaitFor(t, "requests at s3", 10*time.Second, busy(3))
				if test.kill {
					if err := w.Kill(t.Context(), 3); err != nil {
						t.Error(err)
					}
				} else {
					scale(t, w, 1)
				}
				observe(t, w, 1, 1)
				away := shop.counts()
				testbed.WaitFor(t, "requests at s0", 10*time.Second, busy(0))
				for i, n := range shop.counts() {
					// One may have been on its way to a server when that was put away.
					if i > 0 && n > away[i]+1 {
						t.Errorf("s%d was asked %d times after it was put away", i, n-away[i])
					}
				}
				putBack(t, w, original)
				testbed.WaitFor(t, "requests at s3 again", 10*time.Second, busy(3))
			}, target)
			if failures := results[0].Failures; (failures > 0) != test.fails {
				t.Errorf("%d failures: %v, want some: %v", failures, results[0].FailuresBy, test.fails)
			}
		})
	}
}

// TestHAProxySomebodyElse has an operator who changes what we did, and what we
// did not do.
func TestHAProxySomebodyElse(t *testing.T) {
	shop := newShop(t, 4, 0)
	begin := func(t *testing.T) (*churned, *haproxy.Workload, string) {
		c := newChurned(t, shop.addresses, "")
		w := c.workload(haproxy.Drain)
		observe(t, w, 4, 4)
		original := keep(t, w)
		scale(t, w, 2)
		observe(t, w, 2, 2)
		return c, w, original
	}
	t.Run("puts another one away", func(t *testing.T) {
		c, w, original := begin(t)
		c.set("s0", "state drain")
		if err := w.Scale(t.Context(), 3); reasonOf(err) != churn.Conflict {
			t.Errorf("Scale returned %v", err)
		}
		observe(t, w, 1, 1)
		if err := w.Scale(t.Context(), 4); reasonOf(err) != churn.Refused || !strings.Contains(err.Error(), "others have put away: s0 (drain, weight 1)") {
			t.Errorf("Scale returned %v", err)
		}
		putBack(t, w, original)
		c.expectStates("s0 drain 1, s1 ready 1, s2 ready 1, s3 ready 1")
	})
	t.Run("puts one back", func(t *testing.T) {
		c, w, original := begin(t)
		c.set("s3", "state ready")
		observe(t, w, 3, 3)
		c.set("s3", "state drain") // from here on it is theirs
		observe(t, w, 2, 2)
		putBack(t, w, original)
		c.expectStates("s0 ready 1, s1 ready 1, s2 ready 1, s3 drain 1")
	})
	t.Run("gives one another weight", func(t *testing.T) {
		c, w, original := begin(t)
		c.set("s3", "weight 9")
		c.set("s0", "weight 8")
		observe(t, w, 2, 2)
		putBack(t, w, original)
		c.expectStates("s0 ready 8, s1 ready 1, s2 ready 1, s3 ready 9")
	})
	t.Run("takes a killed one over", func(t *testing.T) {
		c, w, original := begin(t)
		if err := w.Kill(t.Context(), 1); err != nil {
			t.Fatal(err)
		}
		c.set("s1", "state drain") // its weight is still ours
		observe(t, w, 1, 1)
		putBack(t, w, original)
		c.expectStates("s0 ready 1, s1 drain 1, s2 ready 1, s3 ready 1")
	})
	t.Run("before anything was observed", func(t *testing.T) {
		c := newChurned(t, shop.addresses, "")
		w := c.workload(haproxy.Drain)
		scale(t, w, 3)
		c.set("s2", "state drain")
		if err := w.Kill(t.Context(), 1); reasonOf(err) != churn.Conflict {
			t.Errorf("Kill returned %v", err)
		}
	})
}

// TestHAProxyLaterProcess puts back, from the original alone, what a process did
// that died, and what an operator did since stays.
func TestHAProxyLaterProcess(t *testing.T) {
	shop := newShop(t, 5, 0)
	tests := []struct {
		name  string
		mode  haproxy.Mode
		scale int
		kill  int
		since [][2]string // what an operator does after the crash: server, what
		want  string
	}{
		{"drained", haproxy.Drain, 2, 0, nil, "s0 ready 1, s1 maint 1, s2 ready 1, s3 ready 1, s4 ready 1"},
		{"all drained", haproxy.Drain, 0, 0, nil, "s0 ready 1, s1 maint 1, s2 ready 1, s3 ready 1, s4 ready 1"},
		{"in maintenance", haproxy.Maint, 1, 0, nil, "s0 ready 1, s1 maint 1, s2 ready 1, s3 ready 1, s4 ready 1"},
		{"of weight 0", haproxy.Weight, 1, 0, nil, "s0 ready 1, s1 maint 1, s2 ready 1, s3 ready 1, s4 ready 1"},
		{"killed", haproxy.Drain, 4, 2, nil, "s0 ready 1, s1 maint 1, s2 ready 1, s3 ready 1, s4 ready 1"},
		{"killed after a drain", haproxy.Drain, 3, 1, nil, "s0 ready 1, s1 maint 1, s2 ready 1, s3 ready 1, s4 ready 1"},
		{"killed, by weight", haproxy.Weight, 3, 1, nil, "s0 ready 1, s1 maint 1, s2 ready 1, s3 ready 1, s4 ready 1"},
		{"an operator drains another one", haproxy.Drain, 3, 0, [][2]string{{"s0", "state drain"}}, "s0 drain 1, s1 maint 1, s2 ready 1, s3 ready 1, s4 ready 1"},
		{"an operator takes over one of ours", haproxy.Drain, 2, 0, [][2]string{{"s4", "state maint"}}, "s0 ready 1, s1 maint 1, s2 ready 1, s3 ready 1, s4 maint 1"},
		{"an operator puts away what was away", haproxy.Maint, 3, 0, [][2]string{{"s1", "state drain"}}, "s0 ready 1, s1 drain 1, s2 ready 1, s3 ready 1, s4 ready 1"},
		{"an operator was faster", haproxy.Drain, 2, 0, [][2]string{{"s3", "state ready"}, {"s4", "state ready"}}, "s0 ready 1, s1 maint 1, s2 ready 1, s3 ready 1, s4 ready 1"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			c := newChurned(t, shop.addresses, "")
			c.set("s1", "state maint")
			former := c.workload(test.mode)
			original := keep(t, former)
			scale(t, former, test.scale)
			if err := former.Kill(t.Context(), test.kill); err != nil {
				t.Fatal(err)
			}
			for _, s := range test.since {
				c.set(s[0], s[1])
			}
			w := c.workload(haproxy.Maint) // the mode that counts is that of the original
			if _, err := w.Observe(t.Context()); err != nil {
				t.Fatal(err)
			}
			for range 2 { // the second time there is nothing to do
				putBack(t, w, original)
				c.expectStates(test.want)
			}
		})
	}
}

// TestHAProxyIsReloaded loses what was done at run time, which is told once.
func TestHAProxyIsReloaded(t *testing.T) {
	shop := newShop(t, 5, 0)
	const all = "s0 ready 1, s1 ready 1, s2 ready 1, s3 ready 1"
	begin := func(t *testing.T) (*churned, *haproxy.Workload, string) {
		c := newChurned(t, shop.addresses[:4], "")
		w := c.workload(haproxy.Drain)
		observe(t, w, 4, 4)
		original := keep(t, w)
		scale(t, w, 2)
		observe(t, w, 2, 2)
		return c, w, original
	}
	// told expects to be told, with what was asked for and with what is there.
	told := func(t *testing.T, w *haproxy.Workload, desired, up int) {
		t.Helper()
		got, err := w.Observe(t.Context())
		if want := (churn.Observation{Desired: desired, Ready: up, Endpoints: up}); reasonOf(err) != churn.Refused || got != want {
			t.Errorf("observed %+v, %v; want %+v and refused", got, err, want)
		}
	}
	t.Run("in the middle", func(t *testing.T) {
		c, w, original := begin(t)
		c.Reload()
		if err := w.Scale(t.Context(), 3); reasonOf(err) != churn.Conflict {
			t.Errorf("Scale returned %v", err)
		}
		told(t, w, 2, 4)
		putBack(t, w, original)
		observe(t, w, 4, 4)
		c.expectStates(all)
		keep(t, w)
		scale(t, w, 3)
		observe(t, w, 3, 3)
		c.expectStates("s0 ready 1, s1 ready 1, s2 ready 1, s3 drain 1")
	})
	t.Run("an operator is left alone afterwards", func(t *testing.T) {
		c, w, original := begin(t)
		c.Reload()
		c.set("s3", "state drain")
		told(t, w, 2, 3)
		putBack(t, w, original)
		c.expectStates("s0 ready 1, s1 ready 1, s2 ready 1, s3 drain 1")
	})
	t.Run("with another file", func(t *testing.T) {
		c, w, original := begin(t)
		c.SetBackends(shop.addresses)
		c.Reload()
		told(t, w, 2, 5)
		putBack(t, w, original)
		observe(t, w, 5, 5)
		c.expectStates(all + ", s4 ready 1")
	})
	t.Run("at the baseline", func(t *testing.T) {
		c, w, original := begin(t)
		putBack(t, w, original)
		observe(t, w, 4, 4)
		c.Reload()
		observe(t, w, 4, 4) // nothing was lost
	})
	t.Run("at the baseline, with another file", func(t *testing.T) {
		c, w, original := begin(t)
		putBack(t, w, original)
		observe(t, w, 4, 4)
		c.SetBackends(shop.addresses[:3])
		c.Reload()
		told(t, w, 4, 3)
		observe(t, w, 3, 3)
	})
	t.Run("restarted", func(t *testing.T) {
		c, w, original := begin(t)
		c.Stop()
		if _, err := w.Observe(t.Context()); reasonOf(err) != churn.Unreachable {
			t.Errorf("observed a HAProxy that has ended: %v", err)
		}
		c.Start()
		told(t, w, 2, 4)
		putBack(t, w, original)
		observe(t, w, 4, 4)
	})
	t.Run("and nobody was there", func(t *testing.T) {
		c, _, original := begin(t)
		c.Reload()
		w := c.workload(haproxy.Drain)
		observe(t, w, 4, 4)
		putBack(t, w, original)
		c.expectStates(all)
	})
}

// TestHAProxyKeepsItsState reloads one that loads a state file: nothing is lost.
func TestHAProxyKeepsItsState(t *testing.T) {
	shop := newShop(t, 4, 0)
	file := filepath.Join(t.TempDir(), "state")
	c := newChurned(t, nil, "\tload-server-state-from-file local\n\tserver-state-file-name "+file+"\n"+backendLines(shop, 1, 1, 1, 1))
	w := c.workload(haproxy.Drain)
	observe(t, w, 4, 4)
	original := keep(t, w)
	scale(t, w, 2)
	if err := os.WriteFile(file, []byte(c.Command("show servers state servers")+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	c.Reload()
	c.expectStates("s0 ready 1, s1 ready 1, s2 drain 1, s3 drain 1")
	observe(t, w, 2, 2)
	scale(t, w, 3)
	observe(t, w, 3, 3)
	putBack(t, w, original)
	c.expectStates("s0 ready 1, s1 ready 1, s2 ready 1, s3 ready 1")
}

// TestHAProxyTrouble asks sockets and backends that are no good.
func TestHAProxyTrouble(t *testing.T) {
	shop := newShop(t, 2, 0)
	c := newChurned(t, shop.addresses, "")
	open := func(socket, backend string) *haproxy.Workload {
		t.Helper()
		w, err := haproxy.New(haproxy.Options{Socket: socket, Backend: backend})
		if err != nil {
			t.Fatal(err)
		}
		return w
	}
	folder := filepath.Dir(c.socket)
	observing := func(w *haproxy.Workload) error { _, err := w.Observe(t.Context()); return err }
	scaling := func(w *haproxy.Workload) error { return w.Scale(t.Context(), 1) }
	killing := func(w *haproxy.Workload) error { return w.Kill(t.Context(), 1) }
	keeping := func(w *haproxy.Workload) error { _, err := w.Keep(t.Context()); return err }
	tests := []struct {
		name   string
		w      *haproxy.Workload
		call   func(*haproxy.Workload) error
		reason churn.Reason
		error  string // its end
	}{
		{"unknown backend", open(c.socket, "nope"), observing, churn.NotFound, `there is no backend "nope"`},
		{"no socket", open(folder+"/nope", "servers"), observing, churn.Unreachable, "no such file or directory; either HAProxy does not run, or it has no stats socket there"},
		{"nobody listens", open(testbed.FreeAddress(t), "servers"), observing, churn.Unreachable, "connection refused"},
		{"level user asks", open(folder+"/user", "servers"), observing, churn.NoReason, ""},
		{"level user scales", open(folder+"/user", "servers"), scaling, churn.Forbidden, `"Permission denied"; write level admin on its stats socket line`},
		{"level user kills", open(folder+"/user", "servers"), killing, churn.Forbidden, `"Permission denied"; write level admin on its stats socket line`},
		{"level user notes", open(folder+"/user", "servers"), keeping, churn.Forbidden, "the socket is of level user; write level admin on its stats socket line"},
		{"level operator scales", open(folder+"/operator", "servers"), scaling, churn.Forbidden, `"Permission denied"; write level admin on its stats socket line`},
		{"level operator notes", open(folder+"/operator", "servers"), keeping, churn.Forbidden, "the socket is of level operator; write level admin on its stats socket line"},
		{"too many", c.workload(haproxy.Drain), func(w *haproxy.Workload) error { return w.Scale(t.Context(), 3) }, churn.Refused, "3 servers asked for, and 2 may take traffic"},
		{"too few", c.workload(haproxy.Drain), func(w *haproxy.Workload) error { return w.Scale(t.Context(), -1) }, churn.Refused, "scaling to -1: want 0 or more"},
		{"too many to kill", c.workload(haproxy.Drain), func(w *haproxy.Workload) error { return w.Kill(t.Context(), 3) }, churn.Refused, "killing 3 servers: 2 take traffic"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			err := test.call(test.w)
			if reasonOf(err) != test.reason || err != nil && !strings.HasSuffix(err.Error(), test.error) {
				t.Errorf("got %v\nwant %v, %s", err, test.reason, test.error)
			}
			c.expectStates("s0 ready 1, s1 ready 1")
		})
	}
}

// TestHAProxyTracks refuses servers that follow each other.
func TestHAProxyTracks(t *testing.T) {
	shop := newShop(t, 2, 0)
	c := newChurned(t, nil, "\tserver s0 "+shop.addresses[0]+" check\n\tserver follower "+shop.addresses[1]+" track servers/s0\n")
	w := c.workload(haproxy.Drain)
	const want = "server follower tracks s0 of the same backend: they cannot be put away apart from each other"
	_, err := w.Keep(t.Context())
	for _, err := range []error{err, w.Scale(t.Context(), 1), w.Kill(t.Context(), 1)} {
		if reasonOf(err) != churn.Refused || !strings.HasSuffix(err.Error(), want) {
			t.Errorf("got %v", err)
		}
	}
}

// TestHAProxyStandsStill scales while HAProxy is stopped: the call is not
// answered, and may take effect later, or never.
func TestHAProxyStandsStill(t *testing.T) {
	shop := newShop(t, 4, 0)
	c := newChurned(t, shop.addresses, "")
	w := c.workload(haproxy.Drain)
	observe(t, w, 4, 4)
	original := keep(t, w)
	stalled := make(chan struct{})
	go func() {
		defer close(stalled)
		c.Stall(300 * time.Millisecond)
	}()
	var failed error
	testbed.WaitFor(t, "a call without an answer", 10*time.Second, func() bool {
		ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		defer cancel()
		failed = w.Scale(ctx, 2)
		return failed != nil
	})
	if reasonOf(failed) != churn.Unreachable || !errors.Is(failed, context.DeadlineExceeded) {
		t.Errorf("Scale returned %v", failed)
	}
	<-stalled
	testbed.WaitFor(t, "the servers to be put away", 10*time.Second, func() bool {
		o, err := w.Observe(t.Context())
		if err == nil && o.Desired == 2 {
			return true
		}
		if err := w.Scale(t.Context(), 2); err != nil && reasonOf(err) != churn.Conflict { // it has just come
			t.Error(err)
		}
		return false
	})
	c.expectStates("s0 ready 1, s1 ready 1, s2 drain 1, s3 drain 1")
	putBack(t, w, original)
	c.expectStates("s0 ready 1, s1 ready 1, s2 ready 1, s3 ready 1")
}

// TestHAProxyHasManyServers needs more than one line of commands.
func TestHAProxyHasManyServers(t *testing.T) {
	c := newChurned(t, nil, "\tserver-template a-server-with-quite-a-long-name- 1-500 127.0.0.1:1\n")
	w := c.workload(haproxy.Maint)
	observe(t, w, 500, 500)
	original := keep(t, w)
	scale(t, w, 3)
	observe(t, w, 3, 3)
	if got := strings.Count(c.states(), " maint 1"); got != 497 {
		t.Errorf("%d servers are in maintenance, want 497", got)
	}
	putBack(t, w, original)
	observe(t, w, 500, 500)
}

// TestHAProxyOverTCP asks a socket that listens at an address.
func TestHAProxyOverTCP(t *testing.T) {
	shop := newShop(t, 2, 0)
	address := testbed.FreeAddress(t)
	testbed.HAProxy(t, testbed.HAProxyOptions{Backends: shop.addresses, Global: "\tstats socket ipv4@" + address + " level admin\n"})
	w := servers(t, address, haproxy.Drain)
	observe(t, w, 2, 2)
	scale(t, w, 1)
	observe(t, w, 1, 1)
}
