//go:build unix

package testbed

import (
	"os"
	"syscall"
)

// The signals that the servers know.
const (
	sigTerm = syscall.SIGTERM
	sigHup  = syscall.SIGHUP
	sigUsr2 = syscall.SIGUSR2
	sigStop = syscall.SIGSTOP
	sigCont = syscall.SIGCONT
)

// killGroup kills the process group that p leads.
func killGroup(p *os.Process) error { return syscall.Kill(-p.Pid, syscall.SIGKILL) }
