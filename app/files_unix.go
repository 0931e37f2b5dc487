//go:build unix

package app

import (
	"fmt"
	"math"

	"golang.org/x/sys/unix"

	"github.com/steadyprobe/steadyprobe/config"
	"github.com/steadyprobe/steadyprobe/web"
)

// ownFiles is how many files the process needs for itself: configuration,
// pollers, history, and the clients of an endpoint.
const ownFiles = 64 + web.MaxClients

// mostConnections returns how many connections all processes together can have
// open, by the files that this one may: as many again may wait for the door to
// close them. 0 is any number.
func mostConnections(shard Shard) int {
	var limit unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &limit); err != nil || limit.Cur > math.MaxInt32 {
		return 0
	}
	return max(1, int(limit.Cur)-ownFiles) / 2 * shard.count()
}

// checkFiles fails where the process may not open as many files as the targets
// may open connections, so that the endpoints cannot starve later. With embedded
// backends a connection has all its ends in this process: those of the door, of
// the door's own connection, and of the backend.
func checkFiles(shard Shard, targets []config.Target, embedded bool) error {
	var limit unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &limit); err != nil {
		return nil // it cannot be told
	}
	needed := uint64(ownFiles)
	each, who, remedy := uint64(2), "the targets' connections need", ", or write fewer connections" // as many again may wait for the door to close them
	if embedded {
		each, who, remedy = 5, "the demo needs", ""
	}
	for i := range targets {
		p, _ := shard.part(&targets[i])
		needed += each * uint64(p.connections)
	}
	if needed > limit.Cur {
		return fmt.Errorf("opening files: %s %d open files, and this process may have %d; raise the limit (ulimit -n, LimitNOFILE=)%s", who, needed, limit.Cur, remedy)
	}
	return nil
}
