package saturation

import (
	"maps"
	"os"
	"path/filepath"
	"runtime/debug"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// tree writes files below a new root.
func tree(t *testing.T, files map[string]string) system {
	t.Helper()
	root := t.TempDir()
	for name, text := range files {
		path := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return system{root: root}
}

func TestFileDescriptorsOfThisProcess(t *testing.T) {
	before, err := system{root: "/"}.fileDescriptors()
	if err != nil {
		t.Fatal(err)
	}
	const opened = 7
	for range opened {
		f, err := os.Open("/dev/null")
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = f.Close() }()
	}
	after, err := system{root: "/"}.fileDescriptors()
	if err != nil {
		t.Fatal(err)
	}
	if after.Used != before.Used+opened || after.Limit < after.Used {
		t.Errorf("%+v after %d more than %+v", after, opened, before)
	}
}

func TestOpenFilesCounted(t *testing.T) {
	files := map[string]string{}
	for i := range 2500 { // more than two reads of the folder
		files["proc/self/fd/"+strconv.Itoa(i)] = ""
	}
	open, err := tree(t, files).openFiles()
	if err != nil || open != 2499 { // one is the folder itself
		t.Errorf("%d open, %v, want 2499", open, err)
	}
	if _, err := tree(t, nil).openFiles(); err == nil {
		t.Error("no error without /proc")
	}
}

const (
	groupsV2      = "0::/pods/probe\n"
	mountsV2      = "30 23 0:26 / /sys/fs/cgroup rw shared:4 - cgroup2 cgroup2 rw,nsdelegate\n"
	groupsV1      = "9:name=systemd:/x\n4:memory:/docker/abc\n3:cpuacct,cpu:/docker/abc\n0::/\n"
	mountsV1      = "35 31 0:32 /docker/abc /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n31 31 0:30 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpuacct,cpu\n"
	meminfo       = "MemTotal:       16000 kB\nMemFree:          10 kB\nMemAvailable:   4000 kB\n"
	noSuchGroup   = "0::/../elsewhere\n"
	unlimitedText = "9223372036854771712\n"
)

func TestMemory(t *testing.T) {
	page := os.Getpagesize()
	// 10 pages are used and 4,000 KiB available.
	machine := Usage{Used: uint64(10 * page), Limit: uint64(10*page) + 4000<<10}
	for _, tt := range []struct {
		name  string
		files map[string]string
		want  []Usage
		err   string
	}{
		{name: "no files at all", want: []Usage{{}, {}}},
		{
			name:  "machine only",
			files: map[string]string{"proc/self/statm": "99 10 5 1 0 9 0\n", "proc/meminfo": meminfo},
			want:  []Usage{{}, machine},
		},
		{
			name:  "a kernel without MemAvailable",
			files: map[string]string{"proc/self/statm": "99 10 5 1 0 9 0\n", "proc/meminfo": "MemTotal: 16000 kB\n"},
			want:  []Usage{{}, {}},
		},
		{
			name:  "garbage",
			files: map[string]string{"proc/self/statm": "a b c", "proc/meminfo": meminfo},
			want:  []Usage{{}},
			err:   "reading the memory of the process",
		},
		{
			name: "version 2, limits of the group and of the one above",
			files: map[string]string{
				"proc/self/cgroup": groupsV2, "proc/self/mountinfo": mountsV2,
				"sys/fs/cgroup/pods/probe/memory.max":     "1000\n",
				"sys/fs/cgroup/pods/probe/memory.current": "950\n",
				"sys/fs/cgroup/pods/probe/memory.stat":    "anon 500\ninactive_file 200\n",
				"sys/fs/cgroup/pods/memory.max":           "5000\n",
				"sys/fs/cgroup/pods/memory.current":       "4900\n",
			},
			// 950 less 200 that are cached; the root of the mount has no files.
			want: []Usage{{}, {}, {750, 1000}, {4900, 5000}, {}},
		},
		{
			name: "version 2 without a limit",
			files: map[string]string{
				"proc/self/cgroup": groupsV2, "proc/self/mountinfo": mountsV2,
				"sys/fs/cgroup/pods/probe/memory.max":     "max\n",
				"sys/fs/cgroup/pods/probe/memory.current": "950\n",
			},
			want: []Usage{{}, {}, {}, {}, {}},
		},
		{
			name: "version 1 in a container",
			files: map[string]string{
				"proc/self/cgroup": groupsV1, "proc/self/mountinfo": mountsV1,
				"sys/fs/cgroup/memory/memory.limit_in_bytes": "1000\n",
				"sys/fs/cgroup/memory/memory.usage_in_bytes": "950\n",
				"sys/fs/cgroup/memory/memory.stat":           "inactive_file 1\ntotal_inactive_file 2000\n",
			},
			want: []Usage{{}, {}, {0, 1000}},
		},
		{
			name: "version 1 without a limit",
			files: map[string]string{
				"proc/self/cgroup": groupsV1, "proc/self/mountinfo": mountsV1,
				"sys/fs/cgroup/memory/memory.limit_in_bytes": unlimitedText,
				"sys/fs/cgroup/memory/memory.usage_in_bytes": "950\n",
			},
			want: []Usage{{}, {}, {}},
		},
		{
			name: "a limit that is none",
			files: map[string]string{
				"proc/self/cgroup": noSuchGroup, "proc/self/mountinfo": mountsV2,
				"sys/fs/cgroup/memory.max": "much\n",
			},
			want: []Usage{{}, {}},
			err:  `"/sys/fs/cgroup/memory.max"`,
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			usages, err := tree(t, tt.files).memoryReader()()
			if diff := cmp.Diff(tt.want, usages); diff != "" {
				t.Errorf("usages (-want +got):\n%s", diff)
			}
			if tt.err == "" && err != nil || tt.err != "" && (err == nil || !strings.Contains(err.Error(), tt.err)) {
				t.Errorf("error %v, want %q", err, tt.err)
			}
		})
	}
}

func TestGoMemory(t *testing.T) {
	read := readGoMemory()
	if u := read(); u != (Usage{}) {
		t.Errorf("%+v without GOMEMLIMIT", u)
	}
	const limit = 4 << 30
	defer debug.SetMemoryLimit(debug.SetMemoryLimit(limit))
	if u := read(); u.Limit != limit || u.Used == 0 || u.full() {
		t.Errorf("%+v with a GOMEMLIMIT of %d", u, uint64(limit))
	}
}

func TestThrottledReader(t *testing.T) {
	files := map[string]string{
		"proc/self/cgroup": groupsV2, "proc/self/mountinfo": mountsV2,
		"sys/fs/cgroup/pods/probe/cpu.stat": "usage_usec 9\nnr_periods 5\nnr_throttled 3\n",
		"sys/fs/cgroup/pods/cpu.stat":       "nr_throttled 40\n",
		"sys/fs/cgroup/cpu.stat":            "usage_usec 9\n",
	}
	for _, tt := range []struct {
		name   string
		change map[string]string
		want   uint64
	}{
		{"version 2", nil, 43},
		{"version 1", map[string]string{
			"proc/self/cgroup": groupsV1, "proc/self/mountinfo": mountsV1,
			"sys/fs/cgroup/cpu/docker/abc/cpu.stat": "nr_throttled 7\n",
		}, 7},
		{"garbage", map[string]string{"sys/fs/cgroup/pods/probe/cpu.stat": "nr_throttled\nnr_throttled x\n\x00"}, 40},
		{"no groups", map[string]string{"proc/self/cgroup": "garbage\n"}, 0},
		{"no mounts", map[string]string{"proc/self/mountinfo": "a - b\n- -\n"}, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			all := maps.Clone(files)
			maps.Copy(all, tt.change)
			got, err := tree(t, all).throttledReader()()
			if err != nil || got != tt.want {
				t.Errorf("%d, %v, want %d", got, err, tt.want)
			}
		})
	}
}

func TestGroupChain(t *testing.T) {
	for _, tt := range []struct {
		name               string
		root, mount, group string
		want               []string
	}{
		{"namespace", "/", "/m", "/", []string{"/m"}},
		{"nested", "/", "/m", "/a/b", []string{"/m/a/b", "/m/a", "/m"}},
		{"the mount shows the group", "/a/b", "/m", "/a/b", []string{"/m"}},
		{"the mount shows one above", "/a", "/m", "/a/b", []string{"/m/b", "/m"}},
		{"another with the same beginning", "/a", "/m", "/ab", []string{"/m"}},
		{"outside the namespace", "/", "/m", "/../x", []string{"/m"}},
		{"empty", "/", "/m", "", []string{"/m"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if diff := cmp.Diff(tt.want, groupChain(tt.root, tt.mount, tt.group)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}
