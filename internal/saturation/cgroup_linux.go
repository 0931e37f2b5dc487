package saturation

import (
	"bytes"
	"fmt"
	"math"
	"path"
	"slices"
	"strconv"
	"strings"
)

// groupVersion names the files of a version of control groups, as in the
// kernel's Documentation/admin-guide/cgroup-v1/memory.rst and cgroup-v2.rst.
type groupVersion struct {
	limit, used    string
	reclaimableKey string // in memory.stat: cached files that are given up first
}

// memoryGroup is one control group with a limit of memory.
type memoryGroup struct {
	dir string
	groupVersion
}

// unlimited is where limits of version 1 stand for none: they are the largest
// multiple of a page.
const unlimited = math.MaxInt64 >> 1

// memoryGroups returns the control groups of the process and those above.
func (s system) memoryGroups() (groups []memoryGroup) {
	for _, dir := range s.groupDirs("memory") {
		groups = append(groups, memoryGroup{dir, groupVersion{"memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file"}})
	}
	for _, dir := range s.groupDirs("") {
		groups = append(groups, memoryGroup{dir, groupVersion{"memory.max", "memory.current", "inactive_file"}})
	}
	return groups
}

// groupMemory returns the working set of a control group, which is what it
// uses without cached files that are given up first, and its limit.
func (s system) groupMemory(g memoryGroup) (Usage, error) {
	limit, err := s.groupValue(g.dir, g.limit)
	if err != nil || limit == 0 || limit >= unlimited {
		return Usage{}, err
	}
	used, err := s.groupValue(g.dir, g.used)
	if err != nil {
		return Usage{}, err
	}
	stat, err := s.read(path.Join(g.dir, "memory.stat"))
	if err != nil {
		return Usage{}, fmt.Errorf("reading a control group's memory: %w", err)
	}
	cached, _ := keyedValue(stat, g.reclaimableKey)
	return Usage{Used: used - min(used, cached), Limit: limit}, nil
}

// groupValue reads a file with one number, 0 where there is none or no limit.
func (s system) groupValue(dir, name string) (uint64, error) {
	text, err := s.read(path.Join(dir, name))
	if err != nil {
		return 0, fmt.Errorf("reading a control group's memory: %w", err)
	}
	text = bytes.TrimSpace(text)
	if len(text) == 0 || string(text) == "max" {
		return 0, nil
	}
	n, err := strconv.ParseUint(string(text), 10, 64)
	if err != nil {
		return 0, fmt.Errorf("reading a control group's memory: %q: %w", path.Join(dir, name), err)
	}
	return n, nil
}

// throttledReader returns the reader of how often the CPU limits of the
// process's control groups have stopped them.
func (s system) throttledReader() func() (uint64, error) {
	dirs := append(s.groupDirs("cpu"), s.groupDirs("")...)
	return func() (uint64, error) {
		total := uint64(0)
		for _, dir := range dirs {
			stat, err := s.read(path.Join(dir, "cpu.stat"))
			if err != nil {
				return 0, fmt.Errorf("reading a control group's CPU: %w", err)
			}
			n, _ := keyedValue(stat, "nr_throttled")
			total += n
		}
		return total, nil
	}
}

// groupDirs returns the folders of the process's control group and of those
// above it that can be seen, for a controller of version 1, or for version 2
// where it is empty. It returns none where there is no such hierarchy.
func (s system) groupDirs(controller string) []string {
	groups, err := s.read("proc/self/cgroup")
	if err != nil {
		return nil
	}
	mounts, err := s.read("proc/self/mountinfo")
	if err != nil {
		return nil
	}
	group, ok := groupPath(groups, controller)
	if !ok {
		return nil
	}
	root, mount, ok := groupMount(mounts, controller)
	if !ok {
		return nil
	}
	return groupChain(root, mount, group)
}

// groupPath finds a controller in the text of /proc/self/cgroup.
func groupPath(text []byte, controller string) (group string, found bool) {
	for line := range strings.Lines(string(text)) {
		parts := strings.SplitN(strings.TrimSuffix(line, "\n"), ":", 3)
		if len(parts) != 3 {
			continue
		}
		if slices.Contains(strings.Split(parts[1], ","), controller) {
			return parts[2], true
		}
	}
	return "", false
}

// groupMount finds where a controller is mounted, in the text of
// /proc/self/mountinfo: which of its groups the mount shows, and where.
func groupMount(text []byte, controller string) (root, mount string, found bool) {
	for line := range strings.Lines(string(text)) {
		before, after, ok := strings.Cut(line, " - ")
		place, kind := strings.Fields(before), strings.Fields(after)
		if !ok || len(place) < 5 || len(kind) < 3 {
			continue
		}
		switch {
		case controller == "" && kind[0] == "cgroup2":
		case controller != "" && kind[0] == "cgroup" && slices.Contains(strings.Split(kind[2], ","), controller):
		default:
			continue
		}
		return unescape(place[3]), unescape(place[4]), true
	}
	return "", "", false
}

// unescape undoes how mountinfo writes blanks and backslashes.
func unescape(s string) string {
	return strings.NewReplacer(`\040`, " ", `\011`, "\t", `\012`, "\n", `\134`, `\`).Replace(s)
}

// groupChain returns the folders from a group up to the root of its mount. A
// group outside the mount (of another cgroup namespace) is taken for the root.
func groupChain(root, mount, group string) []string {
	below, ok := strings.CutPrefix(group, strings.TrimSuffix(root, "/"))
	if !ok || !strings.HasPrefix(below, "/") || strings.HasPrefix(path.Clean("."+below), "..") {
		below = "/"
	}
	var dirs []string
	for below = path.Clean(below); ; below = path.Dir(below) {
		dirs = append(dirs, path.Join(mount, below))
		if below == "/" {
			return dirs
		}
	}
}
