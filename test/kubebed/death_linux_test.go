package kubebed

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/steadyprobe/steadyprobe/internal/testbed"
	"github.com/steadyprobe/steadyprobe/test/kubebed/bed"
)

// diesIn names the file that TestDiesWithBed, in a process of its own, writes
// the process ids of its cluster to before it kills itself.
const diesIn = "STEADYPROBE_KUBEBED_DIES_IN"

// TestDiesWithBed is the other half of TestBedEndsWithTheTestProcess, and does
// nothing by itself.
func TestDiesWithBed(t *testing.T) {
	file := os.Getenv(diesIn)
	if file == "" {
		return
	}
	b := bed.Start(t)
	shop := b.Shop(2)
	p := b.Probe(shop.Configuration(quick()))
	testbed.WaitFor(t, "answers", limit, func() bool {
		now, err := p.Scrape()
		return err == nil && now.Sum("steadyprobe_responses_total") > 100
	})
	b.PauseAPIServer() // what is paused has to end too
	ids, err := children(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(strings.Trim(fmt.Sprint(ids), "[]")), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Kill(os.Getpid(), syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	time.Sleep(limit) // it is dead long before
}

// TestBedEndsWithTheTestProcess proves that nothing is left behind when the
// test process is killed: control plane, pods, doors with their workers, and the
// probe.
func TestBedEndsWithTheTestProcess(t *testing.T) {
	t.Parallel()
	bed.Start(t) // or it is skipped
	file := filepath.Join(t.TempDir(), "pids")
	cmd := exec.Command(os.Args[0], "-test.run=^TestDiesWithBed$")
	cmd.Env = append(os.Environ(), diesIn+"="+file, "TMPDIR="+t.TempDir())
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	err := cmd.Run()
	text, _ := os.ReadFile(file)
	ids := strings.Fields(string(text))
	// etcd, API server, controller manager, scheduler, kube-proxy, 2 pods, the
	// probe, 2 HAProxy and 2 nginx, each with a worker: 16, or more where one is
	// about to be replaced.
	if err == nil || len(ids) < 16 {
		t.Fatalf("the test process ended with %v and process ids %q, want it killed and 16; it printed:\n%s", err, ids, &out)
	}
	for _, id := range ids {
		pid, err := strconv.Atoi(id)
		if err != nil {
			t.Fatal(err)
		}
		testbed.WaitFor(t, "process "+id+" to end", limit, func() bool { return !alive(pid) })
	}
}

// children returns the process ids of all that a process has started, and of all
// that these have.
func children(pid int) (all []int, err error) {
	files, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", pid))
	if err != nil {
		return nil, err
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if errors.Is(err, os.ErrNotExist) {
			continue // a thread that has ended
		}
		if err != nil {
			return nil, err
		}
		for _, field := range strings.Fields(string(text)) {
			child, err := strconv.Atoi(field)
			if err != nil {
				return nil, err
			}
			grandchildren, err := children(child)
			if err != nil {
				return nil, err
			}
			all = append(append(all, child), grandchildren...)
		}
	}
	return all, nil
}

// alive reports whether a process runs. One that has ended and that nobody has
// asked for does not.
func alive(pid int) bool {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return false
	}
	_, state, _ := strings.Cut(string(text), ") ") // after the name, which may have spaces
	return !strings.HasPrefix(state, "Z")
}
