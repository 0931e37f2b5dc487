package testbed

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"
)

// Container is a program that was started from an image.
type Container struct {
	t       Owner
	process *process
	output  string // file
}

// containerRuntime makes of the mount namespace that it is started in what the
// program is to see: a root that is read-only and has the container's own /proc,
// and perhaps a folder of this machine. What is in "$@" then starts the program.
const containerRuntime = `set -e
root=$1 from=$2 to=$3
shift 3
mount --bind "$root" "$root"
mkdir -p "$root/proc"
mount -t proc proc "$root/proc"
if [ -n "$from" ]; then
  mount --bind "$from" "$to"
  mount -o remount,bind,ro "$to"
fi
mount -o remount,bind,ro "$root"
if touch "$root/new" 2>/dev/null; then
  echo "the root is not read-only" >&2
  exit 99
fi
exec "$@"
`

// Start starts the image as a strict platform does, in particular OpenShift:
// with a read-only root, as process 1, as a user id that no image knows of and
// with the group 0, with the environment of the image only. The network is this
// machine's. A folder that is not empty is mounted where the image works;
// arguments take the place of its Cmd.
//
// Buildah's own isolation "chroot" knows no read-only root, so that the
// namespaces are made by unshare(1) and what a runtime does in them by a script.
func (i *Image) Start(user int, folder string, args ...string) *Container {
	i.t.Helper()
	if len(args) == 0 {
		args = i.Config.Cmd
	}
	unshare := Program(i.t, "unshare")
	line := []string{
		"--mount", "--pid", "--fork", "--kill-child",
		Program(i.t, "sh"), "-c", containerRuntime, "sh", i.root, folder, filepath.Join(i.root, i.Config.WorkingDir),
		Program(i.t, "env"), "-i",
	}
	line = append(line, i.Config.Env...)
	line = append(line, unshare, "--root="+i.root, "--wd="+i.Config.WorkingDir, "--setgid=0", fmt.Sprintf("--setuid=%d", user), "--")
	line = append(line, i.Config.Entrypoint...)
	line = append(line, args...)

	output, err := os.Create(filepath.Join(i.t.TempDir(), "output"))
	if err != nil {
		i.t.Fatalf("opening the output of a container: %v", err)
	}
	defer func() { _ = output.Close() }() // the program has its own copy
	cmd := exec.Command(unshare, line...)
	cmd.Stdout, cmd.Stderr = output, output
	// Not SIGTERM, which unshare leaves to the program.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	c := &Container{t: i.t, output: output.Name(), process: &process{name: "the container", cmd: cmd, over: make(chan struct{})}}
	started := make(chan error)
	go c.process.run(started)
	if err := <-started; err != nil {
		i.t.Fatalf("starting a container: %v", err)
	}
	i.t.Cleanup(func() {
		if c.process.running() {
			_ = killGroup(cmd.Process) // it may end just now
			<-c.process.over
		}
		if i.t.Failed() {
			i.t.Logf("end of what the container printed:\n%s", tail(c.output, 4096))
		}
	})
	return c
}

// Running reports whether the program has not ended.
func (c *Container) Running() bool { return c.process.running() }

// Output returns what the program has printed so far.
func (c *Container) Output() string { return read(c.t, c.output) }

// Stop sends SIGTERM to the program, and returns its exit code as Wait does.
func (c *Container) Stop() int {
	c.t.Helper()
	// The program is a child of unshare, which passes no signal on.
	if err := syscall.Kill(-c.process.cmd.Process.Pid, syscall.SIGTERM); err != nil {
		c.t.Fatalf("stopping a container: %v", err)
	}
	return c.Wait()
}

// Wait waits for the program to end by itself and returns its exit code. The
// test fails when it does not end in time.
func (c *Container) Wait() int {
	c.t.Helper()
	select {
	case <-c.process.over:
	case <-time.After(startLimit):
		c.t.Fatalf("waiting for a container to end: not within %v; it printed:\n%s", startLimit, tail(c.output, 4096))
	}
	return c.process.cmd.ProcessState.ExitCode()
}
