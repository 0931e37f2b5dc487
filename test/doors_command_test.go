package test

import (
	"bytes"
	"encoding/json"
	"errors"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/steadyprobe/steadyprobe/internal/testbed"
	"github.com/steadyprobe/steadyprobe/report"
)

// program builds the command and returns its path.
func program(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "steadyprobe")
	build := exec.Command("go", "build", "-o", path, "./cmd/steadyprobe")
	build.Dir = testbed.Root(t)
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("building the command: %v: %s", err, out)
	}
	return path
}

// TestCommandThatCannotStart runs the program as a user does who has made a
// mistake: it ends at once, with exit code 1 and a message that says what is
// wrong and what to do.
func TestCommandThatCannotStart(t *testing.T) {
	steadyprobe := program(t)
	used, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer used.Close()
	dir := t.TempDir()
	good := filepath.Join(dir, "good.yml")
	if err := os.WriteFile(good, []byte("targets: [{name: door, url: http://127.0.0.1:1/, rate: 1}]\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		name string
		args []string
		want []string // parts of the message
	}{
		{
			"listen port in use",
			[]string{"--config.file=" + good, "--web.listen-address=" + used.Addr().String()},
			[]string{used.Addr().String(), "address already in use", "choose another address"},
		},
		{
			"health port in use",
			[]string{"--config.file=" + good, "--web.listen-address=127.0.0.1:0", "--web.health.listen-address=" + used.Addr().String()},
			[]string{"--web.health.listen-address", used.Addr().String(), "address already in use"},
		},
		{
			"missing configuration",
			[]string{"--config.file=" + filepath.Join(dir, "none.yml")},
			[]string{filepath.Join(dir, "none.yml"), "does not exist", "--config.file"},
		},
		{
			"directory as configuration",
			[]string{"--config.file=" + dir},
			[]string{dir, "is a directory", "--config.file"},
		},
		{
			"check of a directory",
			[]string{"check", dir},
			[]string{dir, "is a directory"},
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			cmd := exec.Command(steadyprobe, tc.args...)
			var stdout, stderr bytes.Buffer
			cmd.Stdout, cmd.Stderr = &stdout, &stderr
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			late := time.AfterFunc(30*time.Second, func() { _ = cmd.Process.Kill() })
			err := cmd.Wait()
			late.Stop()
			var exit *exec.ExitError
			if !errors.As(err, &exit) || exit.ExitCode() != 1 {
				t.Errorf("ended with %v, want exit code 1", err)
			}
			message := stdout.String() + stderr.String() // check prints what it found
			for _, part := range tc.want {
				if !strings.Contains(message, part) {
					t.Errorf("the message %q does not contain %q", message, part)
				}
			}
			if strings.Contains(message, "goroutine ") || strings.Contains(message, "panic") {
				t.Errorf("the message is a stack: %s", message)
			}
		})
	}
}

// TestCommandRun runs the one-shot command against real doors.
func TestCommandRun(t *testing.T) {
	steadyprobe := program(t)
	for _, kind := range doorKinds {
		t.Run(kind.name, func(t *testing.T) {
			d := kind.start(t, testbed.TLS13, true)
			cmd := exec.Command(steadyprobe, "run", "https://"+d.https+"/", "--ca-file", d.caFile,
				"-R", "500", "-c", "20", "-d", "1s", "--format", "json")
			out, err := cmd.Output()
			if err != nil {
				t.Fatalf("running the command: %v: %s", err, out)
			}
			var answer struct {
				Results []report.Result `json:"results"`
			}
			if err := json.Unmarshal(out, &answer); err != nil || len(answer.Results) != 1 {
				t.Fatalf("reading the report: %v: %s", err, out)
			}
			r := &answer.Results[0]
			checkReport(t, r)
			checkAnswers(t, r, profile{tls: true, connections: 20})
			compareCounts(t, r, d.counts())
		})
	}
}

// TestCommandStops runs the daemon and ends it as an init system does.
func TestCommandStops(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("there is no SIGTERM")
	}
	steadyprobe := program(t)
	d := startNGINX(t, 0, true)
	file := filepath.Join(t.TempDir(), "steadyprobe.yml")
	if err := os.WriteFile(file, []byte("targets:"+d.targetConfiguration("door", profile{rate: 200, connections: 10})), 0o600); err != nil {
		t.Fatal(err)
	}
	var stderr bytes.Buffer
	cmd := exec.Command(steadyprobe, "--config.file="+file, "--web.listen-address=127.0.0.1:0")
	cmd.Stderr = &stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = cmd.Process.Kill() }() // has ended by then
	testbed.WaitFor(t, "the daemon to probe", 30*time.Second, func() bool { return d.counts().requests >= 50 })
	begun := time.Now()
	if err := cmd.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	over := make(chan error, 1)
	go func() { over <- cmd.Wait() }()
	select {
	case err := <-over:
		if err != nil {
			t.Errorf("ended with %v: %s", err, stderr.String())
		}
	case <-time.After(30 * time.Second):
		t.Fatalf("it goes on %v after the signal", time.Since(begun))
	}
	requests := d.counts().requests
	if log := d.server.Log(); log.Codes[200] != log.Requests || log.Requests != requests {
		t.Errorf("the door counted %d requests and logged %d, %d with 200: the stop cut some", requests, log.Requests, log.Codes[200])
	}
}
