//go:build unix

package command

import (
	"errors"
	"os"
	"os/exec"
	"syscall"
)

// apart gives a program a process group of its own, which is killed as a whole.
// What a terminal says to this process, such as Ctrl-C, does not reach it: this
// process ends it in its own order.
func apart(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error {
		err := syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
		if errors.Is(err, syscall.ESRCH) {
			return os.ErrProcessDone
		}
		return err
	}
}
