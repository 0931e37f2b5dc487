package haproxy

import (
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"

	"github.com/steadyprobe/steadyprobe/churn"
)

// fakeHAProxy is a backend that does what it is told, or a part of it.
type fakeHAProxy struct {
	file, servers []server
	pid           int
	lines         []string // that changed something, or were to
	denied        bool     // nothing may be changed
	// cut says how many commands of a line are carried out before the connection
	// ends without an answer; below 0: all, with answers.
	cut func() int
}

func newFakeHAProxy(r *rand.Rand) *fakeHAProxy {
	f := &fakeHAProxy{pid: 17, cut: func() int { return -1 }}
	for i := range 2 + r.IntN(5) {
		s := server{name: fmt.Sprint("s", i), op: running, weight: 1 + r.IntN(9)}
		switch r.IntN(8) { // some do not serve to begin with
		case 0:
			s.admin = forcedMaint
		case 1:
			s.admin = forcedDrain
		case 2:
			s.weight = 0
		case 3:
			s.backup = true
		}
		f.file = append(f.file, s)
	}
	f.servers = append(f.servers, f.file...)
	return f
}

// reload forgets what was done at run time.
func (f *fakeHAProxy) reload() {
	f.pid++
	f.servers = append(f.servers[:0], f.file...)
}

// answer is what a fakeSocket asks.
func (f *fakeHAProxy) answer(line string) (string, bool) {
	var b strings.Builder
	cut := -1
	if strings.Contains(line, "set server ") {
		f.lines = append(f.lines, line)
		cut = f.cut()
	}
	for i, command := range strings.Split(line, ";") {
		if i == cut {
			return "", false
		}
		b.WriteString(f.carryOut(command) + "\n")
	}
	if cut >= 0 { // all was carried out
		return "", false
	}
	return b.String(), false
}

func (f *fakeHAProxy) carryOut(command string) string {
	words := strings.Fields(command)
	var b strings.Builder
	switch {
	case command == "show info":
		return fmt.Sprintf("Pid: %d\nStart_time_sec: 1\nStopping: 0\n", f.pid)
	case command == "show cli level":
		return "admin\n"
	case strings.HasPrefix(command, "show servers state "):
		b.WriteString(columns)
		for _, s := range f.servers {
			fmt.Fprintf(&b, "3 servers 1 %s - %d %d %d 1\n", s.name, s.op, s.admin, s.weight)
		}
	case strings.HasPrefix(command, "show stat "):
		b.WriteString(stat)
		for _, s := range f.servers {
			bck := "0"
			if s.backup {
				bck = "1"
			}
			fmt.Fprintf(&b, "servers,%s,x,1,1,%s,,\n", s.name, bck)
		}
	case words[0] != "show" && f.denied:
		return "Permission denied\n"
	case words[0] == "set":
		f.set(strings.TrimPrefix(words[2], "servers/"), words[3], words[4])
	}
	return b.String()
}

// set is what "set server" does, and reports whether it changed anything.
func (f *fakeHAProxy) set(name, what, to string) bool {
	for i := range f.servers {
		s := &f.servers[i]
		if s.name != name {
			continue
		}
		before := *s
		switch {
		case what == "weight":
			s.weight, _ = strconv.Atoi(to)
		case to == ready:
			s.admin &^= forcedMaint | forcedDrain
		case to == maint:
			s.admin = s.admin&^forcedDrain | forcedMaint
		case to == drain:
			s.admin = s.admin&^forcedMaint | forcedDrain
		}
		return *s != before
	}
	return false
}

// TestWhateverHappens scales, kills, loses answers, reloads and lets an operator
// interfere, at random. When all was put back in the end, every server is as it
// was noted, but for what the operator has changed since, which is as the
// operator left it.
func TestWhateverHappens(t *testing.T) {
	const rounds = 300
	for seed := range uint64(rounds) {
		r := rand.New(rand.NewPCG(seed, 7))
		f := newFakeHAProxy(r)
		s := listen(t, f.answer)
		mode := []Mode{Drain, Maint, Weight}[r.IntN(3)]
		open := func() *Workload {
			w, err := New(Options{Socket: s.path, Backend: "servers", Mode: mode})
			if err != nil {
				t.Fatal(err)
			}
			return w
		}
		w := open()
		original, err := w.Keep(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		want := append([]server(nil), f.servers...) // with the operator's changes
		alone := true                               // no operator, no reload
		f.cut = func() int {
			if r.IntN(4) > 0 {
				return -1
			}
			return r.IntN(6)
		}
		var done []string
		for range r.IntN(12) {
			what := step(t, r, f, w, want, &alone)
			done = append(done, what)
		}
		if alone && r.IntN(2) == 0 {
			w = open() // it has died: another process goes on
			done = append(done, "died")
		}
		for err := fmt.Errorf("not yet"); err != nil; {
			if err = w.Restore(t.Context(), original); err != nil && !mayBeDone(err) {
				t.Fatal(err)
			}
		}
		for i, got := range f.servers {
			if got != want[i] {
				t.Errorf("seed %d, %s, of %+v: after %v\n%+v, want\n%+v", seed, mode, f.file, done, got, want[i])
			}
		}
		if t.Failed() {
			return
		}
	}
}

// step does one thing, and says what.
func step(t *testing.T, r *rand.Rand, f *fakeHAProxy, w *Workload, want []server, alone *bool) string {
	t.Helper()
	o, err := w.Observe(t.Context())
	if err != nil && reasonOf(err) != churn.Refused {
		t.Fatal(err)
	}
	switch r.IntN(6) {
	case 0:
		n := r.IntN(max(1, o.Desired+1))
		return fmt.Sprint("kill ", n, ": ", w.Kill(t.Context(), n))
	case 1:
		if w.moving != nil || r.IntN(2) == 0 { // what is ours is not known until the answer is
			return "nothing"
		}
		i := r.IntN(len(f.servers))
		if !f.file[i].serves() {
			return "nothing" // or a reload could not be told from what was done to it
		}
		*alone = false
		s := &f.servers[i]
		what, to := "state", []string{ready, drain, maint}[r.IntN(3)]
		if r.IntN(3) == 0 {
			what, to = "weight", strconv.Itoa(10+r.IntN(5))
		}
		if f.set(s.name, what, to) {
			if what == "weight" {
				want[i].weight = s.weight
			} else {
				want[i].admin = s.admin
			}
		}
		// Else what is changed and changed back could not be told from ours.
		if _, err := w.Observe(t.Context()); err != nil {
			t.Fatal(err)
		}
		return "operator: " + s.name + " " + what + " " + to
	case 2:
		if r.IntN(3) > 0 {
			return "nothing"
		}
		*alone = false
		f.reload()
		copy(want, f.file)
		if _, err := w.Observe(t.Context()); err != nil && reasonOf(err) != churn.Refused {
			t.Fatal(err)
		}
		return "reload"
	default:
		n := r.IntN(len(f.servers) + 1)
		err := w.Scale(t.Context(), n)
		if err == nil && (snapshot{servers: f.servers}).count() != n {
			t.Errorf("scaled to %d, and %+v serve", n, f.servers)
		}
		return fmt.Sprint("scale ", n, ": ", err)
	}
}
