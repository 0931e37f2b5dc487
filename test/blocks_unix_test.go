//go:build unix

package test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/steadyprobe/steadyprobe/internal/testbed"
)

const (
	// A block may build the program first.
	blockLimit = 2 * time.Minute
	readyLimit = 2 * time.Minute
	endLimit   = 20 * time.Second
)

// TestShellBlocks runs what the pages say can be run.
func TestShellBlocks(t *testing.T) {
	var steadyprobe string
	for _, page := range pages(t) {
		var blocks []block
		for _, b := range pageBlocks(t, page) {
			if complaint(b) == "" && b.kind() != "manual" {
				blocks = append(blocks, b)
			}
		}
		if len(blocks) == 0 {
			continue
		}
		if steadyprobe == "" {
			steadyprobe = program(t)
		}
		t.Run(strings.ReplaceAll(page, "/", "_"), func(t *testing.T) {
			r := newReader(t, steadyprobe)
			for _, b := range blocks {
				var err error
				if b.kind() == "background" {
					err = r.start(b.text, b.info[2])
				} else {
					err = r.run(b.text)
				}
				if err != nil {
					t.Fatalf("%v: %v\n%s", b, err, b.text)
				}
			}
			if err := r.end(); err != nil {
				t.Error(err)
			}
		})
	}
}

// TestReader has the runner of the blocks notice what goes wrong in them.
func TestReader(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	taken := l.Addr().String()
	for _, row := range []struct {
		name string
		do   func(r *reader) error
		want string // part of the error; empty: none
	}{
		{"one shell for all", func(r *reader) error {
			return errors.Join(r.run("cd docs; name=CLI\n"), r.run("test -f $name.md\n"))
		}, ""},
		{"a copy of the repository", func(r *reader) error { return r.run("test -f go.mod; test ! -e .git; echo >go.mod\n") }, ""},
		{"no input is waited for", func(r *reader) error { return r.run("! read line\n") }, ""},
		{"a command that fails", func(r *reader) error { return r.run("echo said; false; true\n") }, "it failed"},
		{"a command that fails in a pipe", func(r *reader) error { return r.run("false | cat\n") }, "it failed"},
		{"a variable that is not set", func(r *reader) error { return r.run("echo $there_is_none\n") }, "it failed"},
		{"an end of the shell", func(r *reader) error { return r.run("exit 0\n") }, "it failed"},
		{"no syntax", func(r *reader) error { return r.run("if\n") }, "it failed"},
		{"a background that ends", func(r *reader) error { return r.start("true\n", "127.0.0.1:1") }, "it has ended before 127.0.0.1:1 answered"},
		{"a background whose place is taken", func(r *reader) error { return r.start("sleep 60\n", taken) }, taken + " answers already"},
	} {
		t.Run(row.name, func(t *testing.T) {
			r := newReader(t, "")
			err := row.do(r)
			switch {
			case row.want == "" && err != nil:
				t.Error(err)
			case row.want != "" && (err == nil || !strings.Contains(err.Error(), row.want)):
				t.Errorf("the error is %v, want %q in it", err, row.want)
			}
		})
	}
	t.Run("a background that lives until the end", func(t *testing.T) {
		r := newReader(t, "")
		if err := r.start("trap 'rm ready' EXIT; touch ready; sleep 60\n", r.readyURL()); err != nil {
			t.Fatal(err)
		}
		if err := r.end(); err != nil {
			t.Error(err)
		}
	})
	t.Run("a background that ends by itself", func(t *testing.T) {
		r := newReader(t, "")
		if err := r.start("touch ready; until [ -e seen ]; do sleep 0.01; done\n", r.readyURL()); err != nil {
			t.Fatal(err)
		}
		<-r.background[0].ended
		if err := r.end(); err == nil || !strings.Contains(err.Error(), "has ended by itself") {
			t.Errorf("the error is %v", err)
		}
	})
	t.Run("a background that leaves somebody behind", func(t *testing.T) {
		r := newReader(t, "")
		if err := r.start("touch ready; sleep 60\n", r.readyURL()); err != nil {
			t.Fatal(err)
		}
		if err := r.end(); err == nil || !strings.Contains(err.Error(), "still answers") {
			t.Errorf("the error is %v", err)
		}
	})
}

// readyURL returns a URL that answers while there is a file "ready", and leaves
// a file "seen" when it has.
func (r *reader) readyURL() string {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if _, err := os.Stat(filepath.Join(r.folder, "ready")); err != nil {
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		if err := os.WriteFile(filepath.Join(r.folder, "seen"), nil, 0o600); err != nil {
			r.t.Error(err)
		}
	}))
	r.t.Cleanup(s.Close)
	return s.URL
}

// reader does what the reader of a page would do: it has a shell, and a
// further terminal for each program that is to go on.
type reader struct {
	t          *testing.T
	folder     string // a copy of the repository
	scratch    string
	env        []string
	shell      *job
	input      *os.File
	marks      *bufio.Reader
	count      int
	background []*job
}

// newReader opens a shell in a copy of the repository that finds the program,
// where there is one, and leaves a cleanup that ends all.
func newReader(t *testing.T, steadyprobe string) *reader {
	t.Helper()
	r := &reader{t: t, folder: filepath.Join(t.TempDir(), "steadyprobe"), scratch: t.TempDir()}
	copyTree(t, testbed.Root(t), r.folder)
	r.env = append(os.Environ(), "HOME="+r.scratch, "TMPDIR="+r.scratch)
	// Where go keeps things does not move with the home.
	names := []string{"GOCACHE", "GOMODCACHE", "GOPATH"}
	values, err := exec.Command("go", append([]string{"env"}, names...)...).Output()
	if err != nil {
		t.Fatalf("asking go: %v", err)
	}
	for i, value := range strings.SplitN(strings.TrimSpace(string(values)), "\n", len(names)) {
		r.env = append(r.env, names[i]+"="+value)
	}
	if steadyprobe != "" {
		r.env = append(r.env, "PATH="+filepath.Dir(steadyprobe)+string(os.PathListSeparator)+os.Getenv("PATH"))
	}
	// Commands come in by one pipe, and by another the word that one is done.
	commands, input, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	marks, done, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { input.Close(); marks.Close() })
	r.input, r.marks = input, bufio.NewReader(marks)
	r.shell = r.startJob(commands, done, "-s")
	commands.Close()
	done.Close()
	return r
}

// job is a running bash, the leader of a process group.
type job struct {
	*exec.Cmd
	name  string
	ended chan struct{}
}

// startJob starts a bash. What it prints is shown where the test fails.
func (r *reader) startJob(input, marks *os.File, arguments ...string) *job {
	r.t.Helper()
	r.count++
	output, err := os.Create(filepath.Join(r.scratch, fmt.Sprintf("output%d", r.count)))
	if err != nil {
		r.t.Fatal(err)
	}
	defer output.Close()
	j := &job{ended: make(chan struct{})}
	j.Cmd = exec.Command("bash", append([]string{"--norc", "--noprofile", "-euo", "pipefail"}, arguments...)...)
	j.Dir, j.Env, j.Stdin, j.Stdout, j.Stderr = r.folder, r.env, input, output, output
	if marks != nil {
		j.ExtraFiles = []*os.File{marks}
	}
	j.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := j.Start(); err != nil {
		r.t.Fatalf("starting a shell: %v", err)
	}
	go func() {
		defer close(j.ended)
		_ = j.Wait() // ProcessState has it
	}()
	r.t.Cleanup(func() {
		_ = syscall.Kill(-j.Process.Pid, syscall.SIGKILL) // a group that is gone is what is wanted
		<-j.ended
		if text, err := os.ReadFile(output.Name()); r.t.Failed() && err == nil {
			r.t.Logf("what was printed:\n%s", text)
		}
	})
	return j
}

// script writes the text of a block into a file.
func (r *reader) script(text string) string {
	r.t.Helper()
	r.count++
	name := filepath.Join(r.scratch, fmt.Sprintf("block%d", r.count))
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		r.t.Fatal(err)
	}
	return name
}

// run runs a block in the shell and waits for its end.
func (r *reader) run(text string) error {
	name := r.script(text)
	if _, err := fmt.Fprintf(r.input, "source '%s' </dev/null\necho %s >&3\n", name, filepath.Base(name)); err != nil {
		return fmt.Errorf("writing to the shell: %w", err)
	}
	done := make(chan error, 1)
	go func() {
		word, err := r.marks.ReadString('\n')
		if err == nil && word != filepath.Base(name)+"\n" {
			err = fmt.Errorf("it is %q that is done", word)
		}
		done <- err
	}()
	select {
	case err := <-done:
		if err != nil {
			return fmt.Errorf("it failed: %w", err)
		}
		return nil
	case <-time.After(blockLimit):
		return fmt.Errorf("it was not done within %v", blockLimit)
	}
}

// start starts a block in a terminal of its own and waits until address
// answers.
func (r *reader) start(text, address string) error {
	ctx := r.t.Context()
	if answers(ctx, address) {
		return fmt.Errorf("%s answers already: stop who listens there", address)
	}
	j := r.startJob(nil, nil, r.script(text))
	j.name = address
	r.background = append(r.background, j)
	for limit := time.Now().Add(readyLimit); !answers(ctx, address); {
		select {
		case <-j.ended:
			return fmt.Errorf("it has ended before %s answered: %v", address, j.ProcessState)
		case <-time.After(20 * time.Millisecond):
		}
		if time.Now().After(limit) {
			return fmt.Errorf("%s did not answer within %v", address, readyLimit)
		}
	}
	return nil
}

// end presses Ctrl-C in each terminal. What was to go on must still be there.
func (r *reader) end() error {
	var all error
	for _, j := range r.background {
		select {
		case <-j.ended:
			all = errors.Join(all, fmt.Errorf("what answers at %s has ended by itself: %v", j.name, j.ProcessState))
			continue
		default:
		}
		_ = syscall.Kill(-j.Process.Pid, syscall.SIGINT)
		select {
		case <-j.ended:
		case <-time.After(endLimit):
			all = errors.Join(all, fmt.Errorf("what answers at %s has not ended within %v of Ctrl-C", j.name, endLimit))
			continue
		}
		if answers(r.t.Context(), j.name) {
			all = errors.Join(all, fmt.Errorf("%s still answers after Ctrl-C", j.name))
		}
	}
	return all
}

// answers reports whether a URL is answered with 200, or a connection to
// HOST:PORT is taken.
func answers(ctx context.Context, address string) bool {
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	if !strings.Contains(address, "://") {
		c, err := new(net.Dialer).DialContext(ctx, "tcp", address)
		if err != nil {
			return false
		}
		return c.Close() == nil
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return false
	}
	client := http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	response, err := client.Do(request)
	if err != nil {
		return false
	}
	defer response.Body.Close()
	return response.StatusCode == http.StatusOK
}

// copyTree copies the repository without its history and what was built.
func copyTree(t *testing.T, from, to string) {
	t.Helper()
	err := filepath.WalkDir(from, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name, err := filepath.Rel(from, path)
		if err != nil {
			return err
		}
		switch {
		case name == ".git" && !d.IsDir():
			return nil
		case name == ".git" || name == "bin":
			return filepath.SkipDir
		case d.IsDir():
			return os.MkdirAll(filepath.Join(to, name), 0o755)
		case !d.Type().IsRegular():
			return nil
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		return os.WriteFile(filepath.Join(to, name), text, info.Mode().Perm())
	})
	if err != nil {
		t.Fatalf("copying the repository: %v", err)
	}
}
