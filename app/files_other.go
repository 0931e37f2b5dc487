//go:build !unix

package app

import "github.com/steadyprobe/steadyprobe/config"

// mostConnections has no limit to know of.
func mostConnections(Shard) int { return 0 }

// checkFiles has no limit to check here.
func checkFiles(Shard, []config.Target, bool) error { return nil }
