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
	fit, fitEmbedded := (int(limit.Cur)-ownFiles)/2, (int(limit.Cur)-ownFiles)/5
	for _, row := range []struct {
		name        string
		connections []int
		embedded    bool
		shards      int
		says        string // empty: nothing
	}{
		{"few", []int{10, 20}, false, 1, ""},
		{"just enough", []int{fit}, false, 1, ""},
		{"one too many", []int{fit, 1}, false, 1, "(ulimit -n, LimitNOFILE=), or write fewer connections"},
		{"just enough for the demo", []int{fitEmbedded}, true, 1, ""},
		{"one too many for the demo", []int{fitEmbedded, 1}, true, 1, "opening files: the demo needs"},
		{"a half of twice as many", []int{2 * fit}, false, 2, ""},
	} {
		var targets []config.Target
		for _, n := range row.connections {
			targets = append(targets, config.Target{Connections: n})
		}
		err := checkFiles(Shard{Count: row.shards}, targets, row.embedded)
		if (err == nil) != (row.says == "") || err != nil && !strings.Contains(err.Error(), row.says) {
			t.Errorf("%s: %v", row.name, err)
		}
	}
}
