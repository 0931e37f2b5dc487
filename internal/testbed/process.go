package testbed

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"time"
)

// stopLimit is how long a server may take to end before it is killed.
const stopLimit = 10 * time.Second

// How urgent servers are that are. The probe is more so than the doors that it
// looks at: a handshake of a door is not to make it late.
const (
	urgentDoor  = 1
	urgentProbe = 2
)

// startLimit is how long a server may take to start or to reload.
const startLimit = 30 * time.Second

// server is what all servers of the bed have in common: a folder, a program
// that runs in it, and a test that owns both.
type server struct {
	t   Owner
	dir string
	command
	process *process
}

// newServer makes the folder of a server and leaves a cleanup that ends its
// program, whichever runs by then.
func newServer(t Owner, name string) *server {
	t.Helper()
	s := &server{t: t, dir: t.TempDir()}
	s.command = command{program: Program(t, name), dir: s.dir, output: s.path("output")}
	t.Cleanup(func() {
		s.stop()
		if t.Failed() {
			t.Logf("end of what %s printed:\n%s", s.program, tail(s.output, 4096))
		}
	})
	return s
}

// path returns the path of a file in the server's folder.
func (s *server) path(name string) string { return filepath.Join(s.dir, name) }

// write writes a file into the server's folder and returns its path.
func (s *server) write(name, text string) string {
	s.t.Helper()
	overwrite(s.t, s.path(name), text)
	return s.path(name)
}

// overwrite writes a file in the place of the one that may be there.
func overwrite(t Owner, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatalf("writing a file of the test bed: %v", err)
	}
}

// start starts the program and waits until ready says that it serves.
func (s *server) start(ready func() bool) {
	s.t.Helper()
	p, err := startProcess(s.command)
	if err != nil {
		s.t.Fatal(err)
	}
	s.process = p
	err = await(p.name+" to start", startLimit, func() bool { return !p.running() || ready() })
	if err != nil || !p.running() {
		s.t.Fatalf("starting %s: %v; it printed:\n%s", p.name, err, tail(s.output, 4096))
	}
}

// stop ends the program and waits for its end.
func (s *server) stop() {
	s.t.Helper()
	if s.process == nil {
		return
	}
	if err := s.process.stop(sigTerm); err != nil {
		s.t.Error(err)
	}
}

// process is one running server program.
type process struct {
	name string
	cmd  *exec.Cmd
	over chan struct{} // closed when the program has ended
}

// command is what a process is started from.
type command struct {
	program     string   // path of the program
	args        []string // its arguments
	environment []string // besides that of this process
	dir         string   // its working folder
	output      string   // file that takes what it prints, appended to
	urgent      int      // it goes before what is less urgent, where that is allowed; 0: not at all
	preferred   bool     // it has more of the processor than others, where that is allowed
	childless   bool     // it may be killed when the test process dies: nobody is left behind
}

// line returns the program and its arguments. What is urgent is scheduled in
// real time: chrt becomes the program, under the same process id.
func (c command) line() []string {
	line := append([]string{c.program}, c.args...)
	if c.preferred && os.Geteuid() == 0 {
		line = append([]string{"nice", "-n", "-15"}, line...)
	}
	if c.urgent == 0 {
		return line
	}
	first := []string{"chrt", "--rr", strconv.Itoa(c.urgent)}
	if exec.Command(first[0], append(first[1:], "true")...).Run() != nil {
		return line // no such program, or no right to it
	}
	return append(first, line...)
}

// startProcess starts the program. The caller stops it.
func startProcess(c command) (*process, error) {
	out, err := os.OpenFile(c.output, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, fmt.Errorf("opening the output of %q: %w", c.program, err)
	}
	defer func() { _ = out.Close() }() // the program has its own copy
	line := c.line()
	cmd := exec.Command(line[0], line[1:]...)
	cmd.Dir, cmd.Stdout, cmd.Stderr = c.dir, out, out
	cmd.SysProcAttr = ownGroup()
	if c.childless {
		killedAlong(cmd.SysProcAttr)
	}
	if len(c.environment) > 0 {
		cmd.Env = append(os.Environ(), c.environment...)
	}
	p := &process{name: filepath.Base(c.program), cmd: cmd, over: make(chan struct{})}
	started := make(chan error)
	go p.run(started)
	if err := <-started; err != nil {
		return nil, fmt.Errorf("starting %q: %w", c.program, err)
	}
	return p, nil
}

// run starts the program and waits for its end on one thread: Linux ends the
// program when the thread that started it dies, and Go may end any other.
func (p *process) run(started chan<- error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	err := p.cmd.Start()
	started <- err
	if err != nil {
		return
	}
	_ = p.cmd.Wait() // its status: a server stopped by a signal may report anything
	close(p.over)
}

// running reports whether the program has not ended.
func (p *process) running() bool {
	select {
	case <-p.over:
		return false
	default:
		return true
	}
}

// signal sends a signal to the program itself.
func (p *process) signal(s os.Signal) error {
	if err := p.cmd.Process.Signal(s); err != nil {
		return fmt.Errorf("signalling %s with %v: %w", p.name, s, err)
	}
	return nil
}

// stop is stopWithin the usual limit.
func (p *process) stop(s os.Signal) error { return p.stopWithin(s, stopLimit) }

// stopWithin ends the program with s and waits. What has not ended by then is
// killed, together with everything that it started, and is an error.
func (p *process) stopWithin(s os.Signal, limit time.Duration) error {
	if !p.running() {
		return nil
	}
	if err := p.signal(s); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return err
	}
	select {
	case <-p.over:
		return nil
	case <-time.After(limit):
	}
	err := killGroup(p.cmd.Process)
	<-p.over
	return errors.Join(fmt.Errorf("stopping %s: it did not end within %v and was killed", p.name, limit), err)
}

// signalProcess sends a signal to any process of this user, such as the worker
// of a server.
func signalProcess(pid int, s os.Signal) error {
	p, err := os.FindProcess(pid)
	if err != nil {
		return fmt.Errorf("finding process %d: %w", pid, err)
	}
	if err := p.Signal(s); err != nil {
		return fmt.Errorf("signalling process %d with %v: %w", pid, s, err)
	}
	return nil
}

// stall stops the process pid for d and lets it go on.
func stall(pid int, d time.Duration) error {
	if err := signalProcess(pid, sigStop); err != nil {
		return err
	}
	time.Sleep(d)
	return signalProcess(pid, sigCont)
}

// Program returns the path of an installed program, or name where it is one.
func Program(t Owner, name string) string {
	t.Helper()
	if filepath.IsAbs(name) {
		return name
	}
	if path, err := exec.LookPath(name); err == nil {
		return path
	}
	// Where Debian keeps servers, which is not in every user's PATH.
	for _, dir := range []string{"/usr/sbin", "/usr/local/sbin", "/sbin"} {
		path := filepath.Join(dir, name)
		if _, err := exec.LookPath(path); err == nil {
			return path
		}
	}
	t.Fatalf("finding the program %q: it is not installed; `make setup` installs what the tests need", name)
	return ""
}

// tail returns the last n bytes of a file, or why it cannot be read.
func tail(path string, n int) string {
	text, err := os.ReadFile(path)
	if err != nil {
		return err.Error()
	}
	if len(text) > n {
		text = text[len(text)-n:]
	}
	return string(text)
}
