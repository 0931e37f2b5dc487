package bed

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"syscall"
	"testing"

	"github.com/steadyprobe/steadyprobe/internal/testbed"
)

// What the process outside of the namespace tells the one inside.
const (
	programsIn = "STEADYPROBE_KUBEBED_PROGRAMS" // folder of the programs that were built
	notEntered = "STEADYPROBE_KUBEBED_MISSING"  // why there is no namespace
)

// Main is the TestMain of a package that uses the bed. It runs the tests in a
// network namespace, as [Enter] does, and ends the process. More tests run at a
// time than there are processors, unless -parallel is given: they mostly wait.
func Main(m *testing.M) {
	flag.Parse()
	given := false
	flag.Visit(func(f *flag.Flag) { given = given || f.Name == parallelFlag })
	if !given {
		if err := flag.Set(parallelFlag, "8"); err != nil {
			panic(err) // package testing has no such flag any more
		}
	}
	os.Exit(Enter(m.Run))
}

const parallelFlag = "test.parallel"

// Enter builds the programs of the bed, runs this program anew in a network
// namespace of its own, and returns its exit status. There, Enter runs do and
// returns what it returns.
//
// Where there can be no namespace, do runs here, and Start says why it does not
// start anything. It is to be called from the goroutine of main, once.
func Enter(do func() int) int {
	if os.Getenv(programsIn) != "" {
		if err := furnish(); err != nil {
			fmt.Fprintln(os.Stderr, "setting the network namespace up:", err)
			return 1
		}
		return do()
	}
	if err := mayEnter(); err != nil {
		if err := os.Setenv(notEntered, err.Error()); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		return do()
	}
	status := 1
	err := testbed.Hold(func(h *testbed.Holder) (err error) {
		status, err = again(buildPrograms(h))
		return err
	})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return max(status, 1)
	}
	return status
}

// The programs that are built.
const (
	podProgram   = "pod"
	probeProgram = "steadyprobe"
)

// buildPrograms builds what runs in the namespace, where no module could be
// downloaded, and fetches what is installed there. It returns their folder.
func buildPrograms(h *testbed.Holder) string {
	dir := h.TempDir()
	for _, program := range []struct{ name, of string }{
		{podProgram, "./test/kubebed/pod"},
		{probeProgram, "./cmd/steadyprobe"},
	} {
		build := exec.Command("go", "build", "-o", filepath.Join(dir, program.name), program.of)
		build.Dir = testbed.Root(h)
		if out, err := build.CombinedOutput(); err != nil {
			h.Fatalf("building %q: %v: %s", program.of, err, out)
		}
	}
	fetchDefinitions(h, dir)
	return dir
}

// again runs this program in a network namespace and returns its exit status.
func again(programs string) (int, error) {
	// Linux ends it when the thread that started it dies.
	runtime.LockOSThread()
	program, err := os.Executable()
	if err != nil {
		return 1, fmt.Errorf("finding this program: %w", err)
	}
	// A terminal interrupts both, and this one stays to clean up.
	interrupts := make(chan os.Signal, 1)
	signal.Notify(interrupts, os.Interrupt)
	defer signal.Stop(interrupts)
	others := make(chan os.Signal, 1)
	signal.Notify(others, syscall.SIGTERM, syscall.SIGQUIT)
	defer signal.Stop(others)
	cmd := exec.Command(program, os.Args[1:]...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	cmd.Env = append(os.Environ(), programsIn+"="+programs)
	cmd.SysProcAttr = inNamespace()
	if err := cmd.Start(); err != nil {
		return 1, fmt.Errorf("running this program in a network namespace: %w", err)
	}
	over := make(chan struct{})
	defer close(over)
	go func() {
		for {
			select {
			case s := <-others:
				_ = cmd.Process.Signal(s) // it may have ended
			case <-over:
				return
			}
		}
	}()
	err = cmd.Wait()
	if exit := (*exec.ExitError)(nil); errors.As(err, &exit) {
		return max(exit.ExitCode(), 1), nil // -1: by a signal
	}
	if err != nil {
		return 1, fmt.Errorf("running this program in a network namespace: %w", err)
	}
	return 0, nil
}
