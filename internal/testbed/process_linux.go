package testbed

import "syscall"

// ownGroup puts the program into a process group of its own, so that it can be
// killed with all that it started, and ends it when the test process dies.
// SIGTERM and not SIGKILL: a killed master would leave its workers behind.
func ownGroup() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGTERM}
}

// killedAlong makes that end one that nothing can put off, not even being
// paused.
func killedAlong(a *syscall.SysProcAttr) { a.Pdeathsig = syscall.SIGKILL }
