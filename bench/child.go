package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"time"

	"github.com/steadyprobe/steadyprobe/bench/peer"
)

// patience is how much longer than its work a tool may take.
const patience = 45 * time.Second

// child is a tool at work.
type child struct {
	path           string
	call           peer.Call
	length         time.Duration
	stdout, stderr bytes.Buffer
}

// run starts the tool, does what is due meanwhile and waits for its end. It
// puts what the kernel accounted for into r.
func (c *child) run(ctx context.Context, r *result, due []moment) error {
	ctx, cancel := context.WithTimeout(ctx, c.length+patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, c.path, c.call.Args...)
	cmd.Stdin = strings.NewReader(c.call.Stdin)
	cmd.Stdout, cmd.Stderr = &c.stdout, &c.stderr
	began := time.Now()
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("starting it: %w", err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	stopped := false
	// Not from wait4, where a child begins with what its parent had resident.
	due = append(due, moment{c.length * 19 / 20, func() { r.MaxRSS = residentPeak(cmd.Process.Pid) }})
	if c.call.Endless {
		due = append(due, moment{c.length, func() { stopped = cmd.Process.Signal(os.Interrupt) == nil }})
	}
	var err error
	running := true
	for _, m := range due {
		if !running {
			break
		}
		select {
		case err = <-ended:
			running = false
		case <-time.After(time.Until(began.Add(m.at))):
			m.do()
		}
	}
	if running {
		err = <-ended
	}
	r.Wall = time.Since(began).Seconds()
	r.User, r.System = cmd.ProcessState.UserTime().Seconds(), cmd.ProcessState.SystemTime().Seconds()
	switch {
	case stopped:
		return nil // the signal's status
	case err != nil:
		return fmt.Errorf("%w: %s", err, firstLine(c.stderr.String()))
	case r.Wall < 0.8*c.length.Seconds():
		return fmt.Errorf("it ended after %.1f s of %v", r.Wall, c.length)
	}
	return nil
}

// residentPeak returns the most memory that a process has had resident, in
// bytes, or 0 where there is no /proc: proc(5), VmHWM, which is in KiB.
func residentPeak(pid int) uint64 {
	kib, err := strconv.ParseUint(strings.TrimSuffix(field(fmt.Sprintf("/proc/%d/status", pid), "VmHWM"), " kB"), 10, 64)
	if err != nil {
		return 0
	}
	return kib << 10
}

func firstLine(s string) string {
	line, _, _ := strings.Cut(strings.TrimSpace(s), "\n")
	return line
}
