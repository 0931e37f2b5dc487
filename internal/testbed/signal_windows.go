package testbed

import (
	"os"
	"syscall"
)

// The signals that the servers know. Sending them fails on Windows: the
// package only compiles there.
const (
	sigTerm = syscall.SIGTERM
	sigHup  = syscall.SIGHUP
	sigUsr2 = syscall.Signal(12)
	sigStop = syscall.Signal(19)
	sigCont = syscall.Signal(18)
)

func ownGroup() *syscall.SysProcAttr { return nil }

// killGroup kills p.
func killGroup(p *os.Process) error { return p.Kill() }

func killedAlong(*syscall.SysProcAttr) {}
