package saturation

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"

	"golang.org/x/sys/unix"
)

// system reads proc and cgroup files below a root.
type system struct{ root string }

// orSystem fills in the readers of this system.
func (r Readers) orSystem() Readers {
	sys := system{root: "/"}
	if r.SchedulingLatency == nil {
		r.SchedulingLatency = readSchedulingLatency()
	}
	if r.Throttled == nil {
		r.Throttled = sys.throttledReader()
	}
	if r.FileDescriptors == nil {
		r.FileDescriptors = sys.fileDescriptors
	}
	if r.Ports == nil {
		r.Ports = (&portReader{system: sys}).read
	}
	if r.Memory == nil {
		r.Memory = sys.memoryReader()
	}
	return r
}

func (s system) path(name string) string { return filepath.Join(s.root, name) }

// read returns the content of a small file, empty where there is none.
func (s system) read(name string) ([]byte, error) {
	text, err := os.ReadFile(s.path(name))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return text, err
}

// fileDescriptors returns the open files of the process and RLIMIT_NOFILE.
func (s system) fileDescriptors() (Usage, error) {
	var limit unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &limit); err != nil {
		return Usage{}, fmt.Errorf("reading the limit of open files: %w", err)
	}
	open, err := s.openFiles()
	if errors.Is(err, unix.EMFILE) || errors.Is(err, unix.ENFILE) {
		return Usage{Used: limit.Cur, Limit: limit.Cur}, nil // not even one for this
	}
	if err != nil {
		return Usage{}, fmt.Errorf("counting the open files: %w", err)
	}
	return Usage{Used: open, Limit: limit.Cur}, nil
}

// openFiles asks for the size of /proc/self/fd, which is the number of open
// files since Linux 6.2, and 0 before: then it counts the entries.
func (s system) openFiles() (uint64, error) {
	dir, err := os.Open(s.path("proc/self/fd"))
	if err != nil {
		return 0, err
	}
	defer func() { _ = dir.Close() }()
	if info, err := dir.Stat(); err == nil && s.root == "/" && info.Size() > 0 {
		return uint64(info.Size()) - 1, nil // without dir itself
	}
	open := uint64(0)
	for {
		names, err := dir.Readdirnames(1024)
		open += uint64(len(names))
		if errors.Is(err, io.EOF) {
			return open - min(open, 1), nil
		}
		if err != nil {
			return 0, err
		}
	}
}

// memoryReader returns the reader of all memory limits of the process.
func (s system) memoryReader() func() ([]Usage, error) {
	goMemory := readGoMemory()
	groups := s.memoryGroups()
	return func() ([]Usage, error) {
		usages := []Usage{goMemory()}
		machine, err := s.machineMemory()
		if err == nil {
			usages = append(usages, machine)
		}
		for _, g := range groups {
			u, groupErr := s.groupMemory(g)
			if groupErr != nil {
				err = groupErr
				continue
			}
			usages = append(usages, u)
		}
		return usages, err
	}
}

// machineMemory returns what the process uses of what it could have: its own
// memory and what is still available on the machine.
func (s system) machineMemory() (Usage, error) {
	statm, err := s.read("proc/self/statm")
	if err != nil {
		return Usage{}, fmt.Errorf("reading the memory of the process: %w", err)
	}
	meminfo, err := s.read("proc/meminfo")
	if err != nil {
		return Usage{}, fmt.Errorf("reading the memory of the machine: %w", err)
	}
	fields := bytes.Fields(statm)
	kilobytes, found := keyedValue(meminfo, "MemAvailable:")
	if len(fields) < 2 || !found {
		return Usage{}, nil
	}
	pages, err := strconv.ParseUint(string(fields[1]), 10, 64)
	if err != nil {
		return Usage{}, fmt.Errorf("reading the memory of the process: %w", err)
	}
	rss := pages * uint64(os.Getpagesize())
	return Usage{Used: rss, Limit: rss + kilobytes<<10}, nil
}

// keyedValue returns the number after a key at the beginning of a line.
func keyedValue(text []byte, key string) (value uint64, found bool) {
	for line := range bytes.Lines(text) {
		fields := bytes.Fields(line)
		if len(fields) >= 2 && string(fields[0]) == key {
			n, err := strconv.ParseUint(string(fields[1]), 10, 64)
			return n, err == nil
		}
	}
	return 0, false
}
