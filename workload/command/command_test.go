//go:build unix

package command

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/steadyprobe/steadyprobe/churn"
)

var (
	_ churn.Workload = (*Workload)(nil)
	_ churn.Killer   = (*Workload)(nil)
	_ churn.Gradual  = (*Workload)(nil)
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// shell returns a program that is a script, with arguments of its own.
func shell(script string, arguments ...string) []string {
	return append([]string{"/bin/sh", "-c", script, "sh"}, arguments...)
}

// kept is a workload whose count is in a file, and whose programs write down
// that they ran.
type kept struct {
	*Workload
	t      *testing.T
	folder string
}

func keep(t *testing.T, count string) *kept {
	t.Helper()
	k := &kept{t: t, folder: t.TempDir()}
	w, err := New(Options{
		Scale:  shell(`echo "scale $1" >> log; echo $1 > count`, "{replicas}"),
		Read:   shell(`echo read >> log; cat count`),
		Kill:   shell(`echo "kill $1" >> log; echo $(($(cat count) - $1)) > count`, "{kill}"),
		Folder: k.folder,
	})
	if err != nil {
		t.Fatal(err)
	}
	k.Workload = w
	k.set(count)
	return k
}

// set is what anybody may do.
func (k *kept) set(count string) {
	k.t.Helper()
	if err := os.WriteFile(filepath.Join(k.folder, "count"), []byte(count+"\n"), 0o600); err != nil {
		k.t.Fatal(err)
	}
}

// log returns what ran since it was asked last.
func (k *kept) log() string {
	k.t.Helper()
	path := filepath.Join(k.folder, "log")
	text, err := os.ReadFile(path)
	if errors.Is(err, os.ErrNotExist) {
		return ""
	}
	if err == nil {
		err = os.Remove(path)
	}
	if err != nil {
		k.t.Fatal(err)
	}
	return strings.Join(strings.Split(strings.TrimSpace(string(text)), "\n"), ", ")
}

// expect compares what is observed, and whether a program ran for it.
func (k *kept) expect(desired, ready int, ran string) {
	k.t.Helper()
	got, err := k.Observe(k.t.Context())
	if want := (churn.Observation{Desired: desired, Ready: ready, Endpoints: ready}); err != nil || got != want {
		k.t.Errorf("observed %+v, %v; want %+v", got, err, want)
	}
	if log := k.log(); log != ran {
		k.t.Errorf("ran %q, want %q", log, ran)
	}
}

func (k *kept) scale(replicas int) {
	k.t.Helper()
	if err := k.Scale(k.t.Context(), replicas); err != nil {
		k.t.Fatal(err)
	}
	if log, want := k.log(), "scale "+strconv.Itoa(replicas); log != want {
		k.t.Errorf("ran %q, want %q", log, want)
	}
}

func TestReadsAreThrottled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := keep(t, "4")
		k.expect(4, 4, "read")
		k.set("5")
		time.Sleep(999 * time.Millisecond)
		k.expect(4, 4, "")
		time.Sleep(time.Millisecond) // 1 s after the run
		k.expect(5, 5, "read")
		k.scale(2)
		k.expect(2, 2, "read") // at once
		k.expect(2, 2, "")
		if err := k.Kill(t.Context(), 1); err != nil {
			t.Fatal(err)
		}
		if log := k.log(); log != "kill 1" {
			t.Errorf("ran %q", log)
		}
		k.expect(1, 1, "read")
	})
}

// TestFailedReadsAreThrottled says again what the last read said until the next
// one is due, which is soon.
func TestFailedReadsAreThrottled(t *testing.T) {
	for interval, again := range map[time.Duration]time.Duration{time.Second: time.Second, time.Hour: 2 * time.Second} {
		synctest.Test(t, func(t *testing.T) {
			k := keep(t, "none")
			k.o.Interval = interval
			fails := func(ran string) {
				t.Helper()
				if _, err := k.Observe(t.Context()); err == nil || !strings.Contains(err.Error(), `got "none"`) {
					t.Errorf("observed with %v", err)
				}
				if log := k.log(); log != ran {
					t.Errorf("ran %q, want %q", log, ran)
				}
			}
			fails("read")
			time.Sleep(again - time.Millisecond)
			fails("")
			time.Sleep(time.Millisecond)
			fails("read")
			k.set("4")
			time.Sleep(again - time.Millisecond)
			fails("")
			time.Sleep(time.Millisecond)
			k.expect(4, 4, "read")
			k.set("5")
			time.Sleep(interval - time.Millisecond)
			k.expect(4, 4, "")
		})
	}
}

// TestCountsOnTheirWay has programs that return before what they do is done, as
// those of a cloud: the count follows later.
func TestCountsOnTheirWay(t *testing.T) {
	type seen struct {
		count           string
		desired, actual int
	}
	tests := []struct {
		name   string
		from   string
		to     int
		counts []seen
	}{
		{"up", "2", 4, []seen{{"2", 4, 2}, {"3", 4, 3}, {"4", 4, 4}}},
		{"down", "4", 1, []seen{{"4", 1, 4}, {"2", 1, 2}, {"1", 1, 1}}},
		{"over when it has come", "2", 4, []seen{{"4", 4, 4}, {"3", 3, 3}}},
		{"somebody else's, above", "2", 4, []seen{{"3", 4, 3}, {"5", 5, 5}, {"4", 4, 4}, {"3", 3, 3}}},
		{"somebody else's, below", "2", 4, []seen{{"1", 1, 1}, {"3", 3, 3}}},
		{"object", "2", 4, []seen{{`{"desired": 3}`, 3, 3}}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				k := keep(t, test.from)
				from, _ := strconv.Atoi(test.from)
				k.expect(from, from, "read")
				k.scale(test.to)
				for _, s := range test.counts {
					k.set(s.count)
					k.expect(s.desired, s.actual, "read")
					time.Sleep(time.Second)
				}
			})
		})
	}
}

// TestTurningBackOnTheWay scales back before the change has come through.
func TestTurningBackOnTheWay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := keep(t, "4")
		k.expect(4, 4, "read")
		k.scale(1)
		k.set("3")
		k.expect(1, 3, "read")
		k.scale(4)
		for _, count := range []int{3, 2, 3} { // two stops were under way
			k.set(strconv.Itoa(count))
			k.expect(4, count, "read")
			time.Sleep(time.Second)
		}
		k.set("4")
		k.expect(4, 4, "read")
	})
}

// TestUnansweredScale kills a program in the middle of what it does: the count
// is what it was before, until it is what was asked for.
func TestUnansweredScale(t *testing.T) {
	k := keep(t, "4")
	k.o.Interval = 1
	k.o.Scale = shell("echo 3 > count; echo begun >&3; sleep 60", "{replicas}")
	k.expect(4, 4, "read")
	began := fifo(t, filepath.Join(k.folder, "began"))
	k.o.Scale[2] = "exec 3> began; " + k.o.Scale[2]
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		<-began
		cancel()
	}()
	err := k.Scale(ctx, 1)
	if want := `unreachable: running "/bin/sh": it was killed: context canceled`; message(err) != want {
		t.Errorf("Scale returned %v, want %s", err, want)
	}
	k.expect(4, 3, "read") // not somebody else's
	k.set("2")
	k.expect(4, 2, "read")
	k.set("1")
	k.expect(1, 1, "read")
	k.set("2")
	k.expect(2, 2, "read")
}

// TestForbiddenScale changes nothing: a count that changes is somebody else's.
func TestForbiddenScale(t *testing.T) {
	k := keep(t, "4")
	k.o.Interval = 1
	k.o.Scale = shell("exit 77", "{replicas}")
	k.expect(4, 4, "read")
	if err := k.Scale(t.Context(), 1); reasonOf(err) != churn.Forbidden {
		t.Errorf("Scale returned %v", err)
	}
	k.set("3")
	k.expect(3, 3, "read")
}

func reasonOf(err error) churn.Reason {
	var e *churn.Error
	if errors.As(err, &e) {
		return e.Reason
	}
	return churn.NoReason
}

func TestRefusals(t *testing.T) {
	k := keep(t, "2")
	if err := k.Scale(t.Context(), -1); message(err) != "refused: scaling to -1 replicas: want 0 or more" {
		t.Errorf("Scale returned %v", err)
	}
	for _, n := range []int{-1, 3} {
		want := fmt.Sprintf("refused: killing %d of 2 replicas: want 0 to 2", n)
		if err := k.Kill(t.Context(), n); message(err) != want {
			t.Errorf("Kill returned %v, want %s", err, want)
		}
	}
	if log := k.log(); log != "read" {
		t.Errorf("ran %q, want one read", log)
	}
	k.o.Kill = nil
	if err := k.Kill(t.Context(), 1); message(err) != "refused: killing replicas: there is no program that does" {
		t.Errorf("Kill returned %v", err)
	}
}

func TestNumbersAreFilledIn(t *testing.T) {
	argv := []string{"{replicas}", "{replicas}", "a{replicas}b{replicas}", "{kill}", "", "$(x) {replicas }"}
	want := []string{"{replicas}", "12", "a12b12", "{kill}", "", "$(x) {replicas }"}
	given := slices.Clone(argv)
	if got := filled(argv, Replicas, 12); !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	if !slices.Equal(argv, given) {
		t.Errorf("what was given became %q", argv)
	}
}

// TestOneProgramAtATime calls from many goroutines what complains when it is
// not alone.
func TestOneProgramAtATime(t *testing.T) {
	alone := `mkdir running || exit 1; sleep 0.005; rmdir running; echo 2`
	w, err := New(Options{
		Scale: shell(alone, "{replicas}"), Read: shell(alone), Kill: shell(alone, "{kill}"), Interval: 1, Folder: t.TempDir(),
	})
	if err != nil {
		t.Fatal(err)
	}
	var all sync.WaitGroup
	for range 4 {
		for _, call := range []func() error{
			func() error { return w.Scale(t.Context(), 2) },
			func() error { return w.Kill(t.Context(), 0) },
			func() error { _, err := w.Observe(t.Context()); return err },
		} {
			all.Go(func() {
				if err := call(); err != nil {
					t.Error(err)
				}
			})
		}
	}
	all.Wait()
}

// TestTurnIsNotWaitedForForEver calls while another call runs.
func TestTurnIsNotWaitedForForEver(t *testing.T) {
	k := keep(t, "2")
	if err := k.take(t.Context()); err != nil {
		t.Fatal(err)
	}
	defer k.release()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	want := "unreachable: waiting for another program to end: context canceled"
	_, err := k.Observe(ctx)
	for _, err := range []error{err, k.Scale(ctx, 1), k.Kill(ctx, 1)} {
		if message(err) != want || !errors.Is(err, context.Canceled) {
			t.Errorf("got %v, want %s", err, want)
		}
	}
}
