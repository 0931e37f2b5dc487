package testbed

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
)

// diesIn names the file that TestDiesWithServers, in a process of its own,
// writes the process ids of its servers to before it kills itself.
const diesIn = "STEADYPROBE_TESTBED_DIES_IN"

// TestDiesWithServers is the other half of TestServersEndWithTheTestProcess,
// and does nothing by itself.
func TestDiesWithServers(t *testing.T) {
	file := os.Getenv(diesIn)
	if file == "" {
		return
	}
	n, h := NGINX(t, NGINXOptions{}), HAProxy(t, HAProxyOptions{})
	worker, err := h.worker()
	if err != nil {
		t.Fatal(err)
	}
	pids := fmt.Sprintln(n.process.cmd.Process.Pid, n.worker(), h.process.cmd.Process.Pid, worker)
	if err := os.WriteFile(file, []byte(pids), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := signalProcess(os.Getpid(), os.Kill); err != nil {
		t.Fatal(err)
	}
	time.Sleep(startLimit) // it is dead long before
}

func TestServersEndWithTheTestProcess(t *testing.T) {
	file := filepath.Join(t.TempDir(), "pids")
	cmd := exec.Command(os.Args[0], "-test.run=^TestDiesWithServers$")
	cmd.Env = append(os.Environ(), diesIn+"="+file, "TMPDIR="+t.TempDir())
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	err := cmd.Run()
	pids := strings.Fields(tail(file, 100))
	if err == nil || len(pids) != 4 {
		t.Fatalf("the test process ended with %v and process ids %q, want it killed and 4; it printed:\n%s", err, pids, &out)
	}
	for _, text := range pids {
		pid, err := strconv.Atoi(text)
		if err != nil || pid == 0 {
			t.Fatalf("process id = %q, want a number", text)
		}
		WaitFor(t, "process "+text+" to end", stopLimit, func() bool {
			return errors.Is(signalProcess(pid, syscall.Signal(0)), os.ErrProcessDone)
		})
	}
}

func TestStopKillsWhatDoesNotEnd(t *testing.T) {
	// It ignores SIGTERM; the sleep is a child of its own.
	output := filepath.Join(t.TempDir(), "output")
	p, err := startProcess(command{
		program: Program(t, "sh"),
		args:    []string{"-c", "trap '' TERM; echo ready; sleep 60; sleep 60"},
		output:  output,
	})
	if err != nil {
		t.Fatal(err)
	}
	WaitFor(t, "the program to ignore SIGTERM", startLimit, func() bool { return tail(output, 100) == "ready\n" })
	err = p.stopWithin(sigTerm, 100*time.Millisecond)
	if err == nil || !strings.Contains(err.Error(), "was killed") || p.running() {
		t.Errorf("stop = %v, want an error that says that it was killed", err)
	}
	if err := p.stop(sigTerm); err != nil {
		t.Errorf("second stop = %v, want none", err)
	}
}

func TestStartFailures(t *testing.T) {
	if _, err := startProcess(command{program: "/nowhere/program", output: filepath.Join(t.TempDir(), "output")}); err == nil {
		t.Error("starting a missing program succeeded")
	}
	if _, err := startProcess(command{program: Program(t, "sh"), output: "/nowhere/output"}); err == nil {
		t.Error("starting without a place for the output succeeded")
	}
}
