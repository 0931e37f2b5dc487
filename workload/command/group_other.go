//go:build !unix

package command

import "os/exec"

// apart does nothing: without process groups, what the program has started
// outlives it when it is killed.
func apart(*exec.Cmd) {}
