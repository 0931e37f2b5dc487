//go:build unix

package app

import (
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/steadyprobe/steadyprobe/config"
)

func TestCheckFiles(t *testing.T) {
	var limit unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &limit); err != nil {
		t.Fatal(err)
	}
	fit := int(limit.Cur) - ownFiles
	for _, row := range []struct {
		name        string
		connections []int
		reuse       bool
		ok          bool
	}{
		{"few", []int{10, 20}, true, true},
		{"just enough", []int{fit}, true, true},
		{"one too many", []int{fit, 1}, true, false},
		{"a connection per request needs twice as many", []int{fit/2 + 1}, false, false},
	} {
		var targets []config.Target
		for _, n := range row.connections {
			targets = append(targets, config.Target{Connections: n, Connection: config.Connection{Reuse: row.reuse}})
		}
		err := checkFiles(targets)
		if (err == nil) != row.ok || err != nil && !strings.Contains(err.Error(), "ulimit -n") {
			t.Errorf("%s: %v", row.name, err)
		}
	}
}
