//go:build unix

package command

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/steadyprobe/steadyprobe/churn"
)

// fifo makes a pipe with a name. The channel is closed when the first who opens
// it for writing has written something, or has ended.
func fifo(t *testing.T, path string) <-chan struct{} {
	t.Helper()
	if err := syscall.Mkfifo(path, 0o600); err != nil {
		t.Fatal(err)
	}
	began := make(chan struct{})
	go func() {
		defer close(began)
		f, err := os.Open(path)
		if err != nil {
			t.Error(err)
			return
		}
		defer f.Close()
		_, _ = f.Read(make([]byte, 1)) // whatever it is
	}()
	return began
}

// runner returns a workload to run single programs with.
func runner(t *testing.T) *Workload {
	t.Helper()
	return &Workload{o: Options{Folder: t.TempDir()}}
}

// write writes a file into the folder of the programs.
func write(t *testing.T, w *Workload, name, text string, mode os.FileMode) string {
	t.Helper()
	path := filepath.Join(w.o.Folder, name)
	if err := os.WriteFile(path, []byte(text), mode); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestHowProgramsEnd(t *testing.T) {
	w := runner(t)
	tests := []struct {
		name   string
		argv   []string
		reason churn.Reason
		error  string // after the reason
	}{
		{"well", shell("echo fine; echo careful >&2"), churn.NoReason, ""},
		{"with a status", shell("exit 1"), churn.Other, `running "/bin/sh": exit status 1`},
		{"complaining", shell("echo out; echo 'no such\nservice' >&2; exit 3"), churn.Other, `running "/bin/sh": exit status 3; it said: no such service`},
		{"complaining on the wrong output", shell("echo no such service; exit 3"), churn.Other, `running "/bin/sh": exit status 3; it said: no such service`},
		{"for the time being", shell("echo later >&2; exit 75"), churn.Unreachable, `running "/bin/sh": exit status 75; it said: later`},
		{"not allowed", shell("echo no >&2; exit 77"), churn.Forbidden, `running "/bin/sh": exit status 77; it said: no`},
		{"killed by somebody", shell("kill -9 $$"), churn.Other, `running "/bin/sh": signal: killed`},
		{"missing, in the PATH", []string{"steadyprobe-no-such-program"}, churn.NotFound,
			`starting "steadyprobe-no-such-program": executable file not found in $PATH; write its whole path; a script needs the program of its first line too`},
		{"missing", []string{"/nowhere/program"}, churn.NotFound,
			`starting "/nowhere/program": no such file or directory; write its whole path; a script needs the program of its first line too`},
		{"missing first line", []string{write(t, w, "orphan", "#!/nowhere/sh\n", 0o700)}, churn.NotFound,
			`starting "` + w.o.Folder + `/orphan": no such file or directory; write its whole path; a script needs the program of its first line too`},
		{"not executable", []string{write(t, w, "plain", "#!/bin/sh\n", 0o600)}, churn.Forbidden,
			`starting "` + w.o.Folder + `/plain": permission denied; let the user of the daemon execute it`},
		{"folder", []string{w.o.Folder}, churn.Forbidden,
			`starting "` + w.o.Folder + `": permission denied; let the user of the daemon execute it`},
		{"no program", []string{write(t, w, "text", "echo 2\n", 0o700)}, churn.NotFound,
			`starting "` + w.o.Folder + `/text": exec format error; a script needs a first line such as #!/bin/sh`},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			out, err := w.run(t.Context(), test.argv)
			want := ""
			if test.reason != churn.NoReason {
				want = test.reason.String() + ": " + test.error
			} else if string(out.text) != "fine\n" {
				t.Errorf("printed %q", out.text)
			}
			if message(err) != want || reasonOf(err) != test.reason {
				t.Errorf("got %v\nwant %s", err, want)
			}
		})
	}
}

func TestFolderIsMissing(t *testing.T) {
	w := &Workload{o: Options{Folder: filepath.Join(t.TempDir(), "none")}}
	if _, err := w.run(t.Context(), shell("exit 0")); reasonOf(err) != churn.NotFound {
		t.Errorf("got %v", err)
	}
}

// TestSurroundings looks at what a program is given.
func TestSurroundings(t *testing.T) {
	t.Setenv("STEADYPROBE_TEST", "passed on")
	w := runner(t)
	folder, err := filepath.EvalSymlinks(w.o.Folder)
	if err != nil {
		t.Fatal(err)
	}
	out, err := w.run(t.Context(), shell(`cat; pwd -P; echo "$STEADYPROBE_TEST"; printf '<%s>' "$@"`, "a b", "", "$(id)", "*"))
	want := folder + "\npassed on\n<a b><><$(id)><*>"
	if err != nil || string(out.text) != want {
		t.Errorf("printed %q, %v; want %q", out.text, err, want)
	}
}

// TestSecretsAreNotSaid has programs that repeat their arguments.
func TestSecretsAreNotSaid(t *testing.T) {
	w := runner(t)
	const secret = "hunter2-hunter2"
	for _, argument := range []string{secret, "--token=" + secret} {
		_, err := w.run(t.Context(), shell(`echo "cannot use $1 of ${1#*=} for web" >&2; exit 1`, argument, "web"))
		if err == nil || strings.Contains(err.Error(), "hunter") || !strings.Contains(err.Error(), "for web") {
			t.Errorf("got %v", err)
		}
	}
}

// TestTooMuchOutput prints without end: what is kept is bounded, and the
// program is not held up.
func TestTooMuchOutput(t *testing.T) {
	w := runner(t)
	const megabytes = `i=0; while [ $i -lt 40 ]; do printf '%065536d' 7; i=$((i+1)); done` // 2.5 MiB
	out, err := w.run(t.Context(), shell(`echo 5; (`+megabytes+`) >&2; `+megabytes))
	if err != nil || len(out.text) != mostOutput || !out.cut {
		t.Errorf("%d bytes kept, cut %v, %v; want %d, true", len(out.text), out.cut, err, mostOutput)
	}
	if r, err := parse(out); err != nil || r.Desired != 5 {
		t.Errorf("read %+v, %v", r, err)
	}
	_, err = w.run(t.Context(), shell(`(`+megabytes+`; echo; echo the end) >&2; exit 1`))
	if err == nil || len(err.Error()) > 400 || !strings.HasSuffix(err.Error(), "007 the end") {
		t.Errorf("got %v", err)
	}
}

// TestWholeGroupIsKilled has a program that waits for another one which it has
// started: both are gone when its time is over. The second one holds a pipe,
// whose end tells when it is.
func TestWholeGroupIsKilled(t *testing.T) {
	w := runner(t)
	path := filepath.Join(w.o.Folder, "held")
	if err := syscall.Mkfifo(path, 0o600); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	gone := make(chan error, 1)
	go func() {
		f, err := os.Open(path)
		if err == nil {
			_, err = io.ReadFull(f, make([]byte, 6)) // "begun\n"
			cancel(nil)
			if _, more := io.ReadAll(f); err == nil {
				err = more
			}
			f.Close()
		}
		gone <- err
	}()
	_, err := w.run(ctx, shell(`(trap '' TERM HUP INT; echo begun; sleep 60) > held & wait`))
	if !errors.Is(err, context.Canceled) || reasonOf(err) != churn.Unreachable {
		t.Errorf("got %v", err)
	}
	select {
	case err := <-gone:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(10 * time.Second):
		t.Error("what the program had started still runs")
	}
}

func TestDeadline(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
	defer cancel()
	_, err := runner(t).run(ctx, shell("sleep 60"))
	want := `unreachable: running "/bin/sh": it did not end in time and was killed: context deadline exceeded`
	if started := `unreachable: starting "/bin/sh": context deadline exceeded`; message(err) != want && message(err) != started {
		t.Errorf("got %v, want %s", err, want)
	}
}

// TestWhatIsLeftRunning starts something that goes on, and holds the outputs: it
// is not waited for, and it is not killed.
func TestWhatIsLeftRunning(t *testing.T) {
	w := runner(t)
	path := filepath.Join(w.o.Folder, "held")
	if err := syscall.Mkfifo(path, 0o600); err != nil {
		t.Fatal(err)
	}
	opened := make(chan *os.File)
	go func() {
		f, err := os.OpenFile(path, os.O_RDWR, 0)
		if err != nil {
			t.Error(err)
		}
		opened <- f
	}()
	f := <-opened
	defer f.Close()
	out, err := w.run(t.Context(), shell(`(read line < held; echo answered > said) & echo 3`))
	if err != nil || string(out.text) != "3\n" {
		t.Fatalf("printed %q, %v", out.text, err)
	}
	if _, err := f.WriteString("still there?\n"); err != nil {
		t.Fatal(err)
	}
	for deadline := time.Now().Add(10 * time.Second); ; time.Sleep(5 * time.Millisecond) {
		if _, err := os.Stat(filepath.Join(w.o.Folder, "said")); err == nil {
			return
		}
		if time.Now().After(deadline) {
			t.Fatal("what was left running was killed")
		}
	}
}
