package haproxy

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/steadyprobe/steadyprobe/churn"
)

// scenario is a fakeHAProxy of servers s0, s1 and so on, which all serve, and
// who churns it. A real one is churned in the folder test.
type scenario struct {
	*fakeHAProxy
	t      *testing.T
	socket *fakeSocket
}

func newScenario(t *testing.T, servers int) *scenario {
	t.Helper()
	f := &fakeHAProxy{pid: 17, cut: func() int { return -1 }}
	for i := range servers {
		f.file = append(f.file, server{name: fmt.Sprint("s", i), op: running, weight: 10 + i})
	}
	f.servers = slices.Clone(f.file)
	return &scenario{fakeHAProxy: f, t: t, socket: listen(t, f.answer)}
}

func (s *scenario) open(mode Mode) *Workload {
	s.t.Helper()
	w := s.socket.workload(s.t)
	w.mode = mode
	return w
}

// begin returns a workload that has noted how all is.
func (s *scenario) begin(mode Mode) (*Workload, string) {
	s.t.Helper()
	w := s.open(mode)
	s.observe(w, len(s.servers))
	original, err := w.Keep(s.t.Context())
	if err != nil {
		s.t.Fatal(err)
	}
	return w, original
}

func (s *scenario) observe(w *Workload, desired int) {
	s.t.Helper()
	if o, err := w.Observe(s.t.Context()); err != nil || o.Desired != desired {
		s.t.Errorf("observed %+v, %v; want %d desired", o, err, desired)
	}
}

func (s *scenario) scale(w *Workload, n int) {
	s.t.Helper()
	if err := w.Scale(s.t.Context(), n); err != nil {
		s.t.Fatal(err)
	}
}

func (s *scenario) restore(w *Workload, original string) {
	s.t.Helper()
	if err := w.Restore(s.t.Context(), original); err != nil {
		s.t.Fatal(err)
	}
}

// states is how all servers are, as "10 11 12d": weights, with d for drained
// and m for in maintenance.
func (s *scenario) states() string {
	var all []string
	for _, one := range s.servers {
		all = append(all, fmt.Sprint(one.weight)+map[string]string{ready: "", drain: "d", maint: "m"}[one.state()])
	}
	return strings.Join(all, " ")
}

func (s *scenario) expect(states string) {
	s.t.Helper()
	if got := s.states(); got != states {
		s.t.Errorf("servers are %s, want %s", got, states)
	}
}

// changed returns the lines that came since it was asked last, without what
// they have in common.
func (s *scenario) changed() string {
	text := strings.NewReplacer("set server servers/", "", "shutdown sessions server servers/", "cut ", "state ", "", "weight ", "").
		Replace(strings.Join(s.lines, " | "))
	s.lines = nil
	return text
}

// TestOrderOfCommands has each mode put away the last ones first, and put back
// the first ones first: whatever part of that is done, those that are away are
// the last ones.
func TestOrderOfCommands(t *testing.T) {
	tests := []struct {
		mode                     Mode
		down, up, killed, revive string
	}{
		{Drain, "s3 drain;s2 drain;s1 drain", "s1 ready;s2 ready", "s2 0;s2 maint;cut s2;s1 0;s1 maint;cut s1", "s1 ready;s1 11;s2 ready;s2 12;s3 ready"},
		{Maint, "s3 maint;s2 maint;s1 maint", "s1 ready;s2 ready", "s2 0;s2 maint;cut s2;s1 0;s1 maint;cut s1", "s1 ready;s1 11;s2 ready;s2 12;s3 ready"},
		{Weight, "s3 0;s2 0;s1 0", "s1 11;s2 12", "s2 0;s2 maint;cut s2;s1 0;s1 maint;cut s1", "s1 ready;s1 11;s2 ready;s2 12;s3 13"},
	}
	for _, test := range tests {
		t.Run(string(test.mode), func(t *testing.T) {
			s := newScenario(t, 4)
			w, original := s.begin(test.mode)
			expect := func(want string) {
				t.Helper()
				if got := s.changed(); got != want {
					t.Errorf("HAProxy was told %q, want %q", got, want)
				}
			}
			s.scale(w, 1)
			expect(test.down)
			s.scale(w, 3)
			expect(test.up)
			if err := w.Kill(t.Context(), 2); err != nil {
				t.Fatal(err)
			}
			expect(test.killed)
			s.restore(w, original)
			expect(test.revive)
			s.expect("10 11 12 13")
		})
	}
}

// TestDiedInTheMiddle cuts each line of a process that dies then, after each
// command: the next one puts all back.
func TestDiedInTheMiddle(t *testing.T) {
	for _, mode := range []Mode{Drain, Maint, Weight} {
		t.Run(string(mode), func(t *testing.T) {
			type call func(w *Workload, original string) error
			scale := func(n int) call { return func(w *Workload, _ string) error { return w.Scale(t.Context(), n) } }
			kill := func(w *Workload, _ string) error { return w.Kill(t.Context(), 2) }
			restore := func(w *Workload, original string) error { return w.Restore(t.Context(), original) }
			for i, calls := range [][]call{{scale(0)}, {scale(1), scale(3)}, {kill}, {scale(3), kill}, {kill, scale(4)}, {scale(3), kill, restore}} {
				for cut := range 8 {
					s := newScenario(t, 4)
					w, original := s.begin(mode)
					for _, c := range calls[:len(calls)-1] {
						if err := c(w, original); err != nil {
							t.Fatal(err)
						}
					}
					s.cut = func() int { return cut }
					if err := calls[len(calls)-1](w, original); !mayBeDone(err) {
						t.Fatalf("a line that was cut returned %v", err)
					}
					left := s.states()
					s.cut = func() int { return -1 }
					s.restore(s.open(mode), original)
					if got := s.states(); got != "10 11 12 13" {
						t.Errorf("calls %d, cut after %d commands: of %s became %s", i, cut, left, got)
					}
				}
			}
		})
	}
}

// TestLateCommands has HAProxy carry out a line only after it was observed that
// it has not.
func TestLateCommands(t *testing.T) {
	s := newScenario(t, 4)
	w, original := s.begin(Drain)
	s.cut = func() int { return 0 }
	if err := w.Scale(t.Context(), 2); !mayBeDone(err) {
		t.Fatalf("Scale returned %v", err)
	}
	s.cut = func() int { return -1 }
	s.observe(w, 4)
	late := strings.Split(s.lines[0], ";")
	s.carryOut(late[0])
	s.observe(w, 4) // on its way, and not somebody else's
	s.carryOut(late[1])
	s.observe(w, 2)
	s.expect("10 11 12d 13d")
	s.restore(w, original)
	s.expect("10 11 12 13")
}

// TestDenied changes nothing, so that nothing is on its way.
func TestDenied(t *testing.T) {
	s := newScenario(t, 4)
	w, _ := s.begin(Drain)
	s.denied = true
	if err := w.Scale(t.Context(), 2); reasonOf(err) != churn.Forbidden {
		t.Fatalf("Scale returned %v", err)
	}
	s.set("s3", "state", drain)
	s.observe(w, 3)
}

func TestSomebodyWasFaster(t *testing.T) {
	s := newScenario(t, 4)
	w, _ := s.begin(Drain)
	s.set("s0", "state", maint)
	for _, err := range []error{w.Scale(t.Context(), 2), w.Kill(t.Context(), 1)} {
		if reasonOf(err) != churn.Conflict || !strings.HasSuffix(err.Error(), "3 servers are meant to serve, and 4 were") {
			t.Errorf("got %v", err)
		}
	}
	s.observe(w, 3)
	s.scale(w, 2)
	s.expect("10m 11 12 13d")
}

// TestReloads loses what was done, or keeps it.
func TestReloads(t *testing.T) {
	refused := func(t *testing.T, w *Workload, desired int) {
		t.Helper()
		if o, err := w.Observe(t.Context()); reasonOf(err) != churn.Refused || o.Desired != desired {
			t.Errorf("observed %+v, %v; want %d desired and refused", o, err, desired)
		}
	}
	t.Run("lost", func(t *testing.T) {
		s := newScenario(t, 4)
		w, original := s.begin(Drain)
		s.scale(w, 2)
		s.reload()
		s.set("s3", "state", drain) // of somebody else, by now
		refused(t, w, 2)
		s.restore(w, original)
		s.expect("10 11 12 13d")
		s.observe(w, 3)
	})
	t.Run("kept", func(t *testing.T) {
		s := newScenario(t, 4)
		w, original := s.begin(Drain)
		s.scale(w, 2)
		s.pid++
		s.observe(w, 2)
		s.restore(w, original)
		s.expect("10 11 12 13")
	})
	t.Run("another file", func(t *testing.T) {
		s := newScenario(t, 4)
		w, _ := s.begin(Drain)
		s.file = s.file[:3]
		s.reload()
		refused(t, w, 4)
		s.observe(w, 3)
	})
	t.Run("one of ours is gone", func(t *testing.T) {
		s := newScenario(t, 4)
		w, original := s.begin(Weight)
		s.scale(w, 2)
		s.servers = s.servers[:3]
		s.observe(w, 2)
		s.restore(w, original)
		s.expect("10 11 12")
	})
}

// TestOthersInBetween restores what another instance has put away that led in
// between, and noted the same state.
func TestOthersInBetween(t *testing.T) {
	s := newScenario(t, 4)
	first, original := s.begin(Drain)
	s.scale(first, 3)
	s.restore(first, original)
	second, original := s.begin(Drain)
	s.scale(second, 1)
	s.restore(first, original)
	s.expect("10 11 12 13")
}

// TestLaterProcessStops takes nothing for ours that lies before a server that
// serves.
func TestLaterProcessStops(t *testing.T) {
	s := newScenario(t, 4)
	w, original := s.begin(Drain)
	s.scale(w, 3)
	s.set("s0", "state", drain)
	s.set("s1", "weight", "0")
	s.restore(s.open(Drain), original)
	s.expect("10d 0 12 13")
}

// TestLines are not longer than HAProxy takes.
func TestLines(t *testing.T) {
	s := newScenario(t, 400)
	w, original := s.begin(Maint)
	s.scale(w, 0)
	s.restore(w, original)
	if len(s.lines) < 8 {
		t.Errorf("%d lines, want several for each call", len(s.lines))
	}
	for _, line := range s.lines {
		if len(line) > mostLine {
			t.Errorf("a line has %d bytes", len(line))
		}
	}
	s.scale(w, 400)
}

func TestOriginalsOfOthers(t *testing.T) {
	s := newScenario(t, 2)
	w, original := s.begin(Drain)
	tests := []struct {
		name, original string
		reason         churn.Reason
		error          string
	}{
		{"another backend", strings.Replace(original, `"servers"`, `"others"`, 1), churn.Refused, `refused: what was noted are those of backend "others"`},
		{"another mode", strings.Replace(original, `"drain"`, `"off"`, 1), churn.Other, "error: reading what they were: there is no such mode"},
		{"torn", original[:10], churn.Other, "error: reading what they were: unexpected end of JSON input"},
		{"nothing", "", churn.Other, "error: reading what they were: unexpected end of JSON input"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			err := w.Restore(t.Context(), test.original)
			if want := `restoring the servers of backend "servers": ` + test.error; message(err) != want || reasonOf(err) != test.reason {
				t.Errorf("got %v, want %s", err, want)
			}
		})
	}
	s.expect("10 11")
}
