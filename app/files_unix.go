//go:build unix

package app

import (
	"fmt"

	"golang.org/x/sys/unix"

	"github.com/steadyprobe/steadyprobe/config"
)

// ownFiles is how many files the process needs for itself: endpoints, scrapes,
// configuration, pollers.
const ownFiles = 64

// checkFiles fails where the process may not open as many files as the targets
// may open connections, so that the endpoints cannot starve later.
func checkFiles(targets []config.Target) error {
	var limit unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &limit); err != nil {
		return nil // it cannot be told
	}
	needed := uint64(ownFiles)
	for _, t := range targets {
		// As many again may wait for the door to close them.
		needed += 2 * uint64(t.Connections)
	}
	if needed > limit.Cur {
		return fmt.Errorf("starting: the targets' connections need %d open files, and this process may have %d; raise the limit (ulimit -n, LimitNOFILE=), or write fewer connections", needed, limit.Cur)
	}
	return nil
}
