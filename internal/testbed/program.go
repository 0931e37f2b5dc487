package testbed

import (
	"os"
	"time"
)

// ProgramOptions says what a [Process] runs.
type ProgramOptions struct {
	Path        string   // of the program
	Args        []string // its arguments
	Environment []string // besides that of this process, as "NAME=value"
	Folder      string   // it runs in
	Output      string   // file that takes what it prints, appended to
	Urgent      bool     // goes before all that is not urgent, where that is allowed (root)
	Preferred   bool     // has more of the processor than others, where that is allowed (root), but not before what is urgent
}

// Process is a running program that belongs to whoever launched it, and not to
// a test: its methods return errors, and may be called from any goroutine. On
// Linux it is killed when this process dies in any way.
type Process struct{ p *process }

// Launch starts a program that has no children, or that ends them itself when
// it is killed. The caller stops it.
func Launch(o ProgramOptions) (*Process, error) {
	c := command{program: o.Path, args: o.Args, environment: o.Environment, dir: o.Folder, output: o.Output, preferred: o.Preferred, childless: true}
	if o.Urgent {
		c.urgent = urgentDoor
	}
	p, err := startProcess(c)
	if err != nil {
		return nil, err
	}
	return &Process{p}, nil
}

// ID returns the process id.
func (p *Process) ID() int { return p.p.cmd.Process.Pid }

// Over returns a channel that is closed when the program has ended.
func (p *Process) Over() <-chan struct{} { return p.p.over }

// Running reports whether the program has not ended.
func (p *Process) Running() bool { return p.p.running() }

// Pause stops the program as a machine that hangs would: it answers nothing,
// its connections stay.
func (p *Process) Pause() error { return p.p.signal(sigStop) }

// Continue lets a paused program go on.
func (p *Process) Continue() error { return p.p.signal(sigCont) }

// Kill ends the program as a crash would, paused or not, and waits.
func (p *Process) Kill() error { return p.p.stop(os.Kill) }

// Stop asks the program to end and waits. What has not ended within limit is
// killed, which is an error.
func (p *Process) Stop(limit time.Duration) error { return p.p.stopWithin(sigTerm, limit) }
