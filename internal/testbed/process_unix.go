//go:build unix && !linux

package testbed

import "syscall"

// ownGroup puts the program into a process group of its own, so that it can be
// killed with all that it started.
func ownGroup() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }

// killedAlong does nothing: the system ends no program with another one.
func killedAlong(*syscall.SysProcAttr) {}
