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
	fit := (int(limit.Cur) - ownFiles) / 2
	for _, row := range []struct {
		name        string
		connections []int
		ok          bool
	}{
		{"few", []int{10, 20}, true},
		{"just enough", []int{fit}, true},
		{"one too many", []int{fit, 1}, false},
	} {
		var targets []config.Target
		for _, n := range row.connections {
			targets = append(targets, config.Target{Connections: n})
		}
		err := checkFiles(targets)
		if (err == nil) != row.ok || err != nil && !strings.Contains(err.Error(), "ulimit -n") {
			t.Errorf("%s: %v", row.name, err)
		}
	}
}
