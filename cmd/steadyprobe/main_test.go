package main

import (
	"errors"
	"io"
	"net/http"
	"os"
	"os/exec"
	"os/signal"
	"runtime/debug"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/alecthomas/kingpin/v2"
	"github.com/rogpeppe/go-internal/testscript"
)

// Each test is one file of testdata/script, which runs the program in a
// process of its own. Further commands of the scripts:
//
//	code N PROGRAM [ARG...]    runs it; it must exit with N
//	door NAME [OPTION...]      starts a door; see startDoor
//	[!] saw NAME PATTERN       a request that the door was sent matches
//	sawall NAME N [CONNS]      the door was sent N requests, over CONNS connections
//	await NAME N               waits until the door was sent N requests
//	freeport NAME              sets $NAME to a port that is free
//	busyport NAME              sets $NAME to a port that somebody listens on
//	get URL [STATUS]           waits until URL answers so (200); the body is stdout
//	post URL [STATUS]          the same for POST
//	holds FILE TEXT            waits until that is all that the file holds
//	term                       sends SIGTERM to the programs in the background
//	hup                        sends SIGHUP to them
func TestScripts(t *testing.T) {
	// What is caught here is not ignored in programs, as it would be below nohup.
	hangUps := make(chan os.Signal, 1)
	signal.Notify(hangUps, syscall.SIGHUP)
	t.Cleanup(func() { signal.Stop(hangUps) })
	testscript.Run(t, testscript.Params{
		Dir:                 "testdata/script",
		Setup:               setup,
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
		Cmds: map[string]func(ts *testscript.TestScript, neg bool, args []string){
			"await":    await,
			"busyport": busyPort,
			"code":     code,
			"door":     startDoor,
			"freeport": freePort,
			"get":      asked(http.MethodGet),
			"post":     asked(http.MethodPost),
			"saw":      saw,
			"sawall":   sawAll,
			"holds":    holds,
			"hup":      signalled(syscall.SIGHUP),
			"term":     signalled(syscall.SIGTERM),
		},
	})
}

func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){"steadyprobe": main})
}

func code(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: code N PROGRAM [ARG...]")
	}
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	got := 0
	var exit *exec.ExitError
	switch err := ts.Exec(args[1], args[2:]...); {
	case errors.As(err, &exit):
		got = exit.ExitCode()
	case err != nil:
		ts.Fatalf("running %s: %v", args[1], err)
	}
	if got != want {
		ts.Fatalf("%s exited with %d, want %d", args[1], got, want)
	}
}

func signalled(signal syscall.Signal) func(ts *testscript.TestScript, neg bool, args []string) {
	return func(ts *testscript.TestScript, neg bool, args []string) {
		if neg || len(args) != 0 {
			ts.Fatalf("usage: term, or hup")
		}
		for _, c := range ts.BackgroundCmds() {
			if c.ProcessState == nil {
				ts.Check(c.Process.Signal(signal))
			}
		}
	}
}

// TestFlagOf fails where a message would name a flag that run does not have.
func TestFlagOf(t *testing.T) {
	app := kingpin.New("steadyprobe", "")
	addRun(app, io.Discard, new(console))
	flags := map[string]bool{}
	for _, f := range app.Model().Commands[0].Flags {
		flags["--"+f.Name] = true
		if f.IsBoolFlag() {
			flags["--no-"+f.Name] = true
		}
	}
	// What run sets of a target.
	for _, field := range []string{
		"rate", "connections", "timeout", "backlog", "pacing", "arrival", "connection.reuse", "connection.warm", "http",
		"http.method", "http.headers.X-One", "http.host", "http.body", "http.body_file", "tls.insecure_skip_verify", "tls.ca_file", "connect_to",
	} {
		flag, _, _ := strings.Cut(flagOf(field), " ")
		if !flags[flag] {
			t.Errorf("%s is said to come from %s, which is no flag of run", field, flag)
		}
	}
}

func TestProgramVersion(t *testing.T) {
	if got := programVersion("1.2.3"); got != "1.2.3" {
		t.Errorf("the linker's version came out as %q", got)
	}
	if programVersion("") == "" {
		t.Error("a build without the linker's version has none")
	}
}

func TestProgramRevision(t *testing.T) {
	clone := []debug.BuildSetting{{Key: "vcs", Value: "git"}, {Key: "vcs.revision", Value: "abc"}, {Key: "vcs.modified", Value: "false"}}
	changed := []debug.BuildSetting{{Key: "vcs.modified", Value: "true"}, {Key: "vcs.revision", Value: "abc"}}
	for _, row := range []struct {
		name     string
		linked   string
		settings []debug.BuildSetting
		want     string
	}{
		{"nothing is known", "", nil, "unknown"},
		{"only the linker's", "abc", nil, "abc"},
		{"only the clone's", "", clone, "abc"},
		{"only that of a changed clone", "", changed, "abc-modified"},
		{"both", "abc", clone, "abc"},
		{"both, of a changed clone", "abc", changed, "abc-modified"},
		{"the linker's is of something else", "def", changed, "def"},
	} {
		t.Run(row.name, func(t *testing.T) {
			if got := programRevision(row.linked, row.settings); got != row.want {
				t.Errorf("the revision is %q, want %q", got, row.want)
			}
		})
	}
}

func TestNearest(t *testing.T) {
	words := []string{"serve", "run", "check", "completion", "--rate", "--no-reuse"}
	for _, row := range []struct{ word, want string }{
		{"chekc", "check"},           // one exchange
		{"chck", "check"},            // one more
		{"checks", "check"},          // one less
		{"srv", ""},                  // two, of three
		{"rnu", "run"},               // one exchange
		{"rum", "run"},               // one replaced
		{"ruin", "run"},              // one less
		{"dance", ""},                // nothing is like it
		{"", ""},                     // neither is this
		{"--rte", "--rate"},          // one, of three
		{"--x", ""},                  // hyphens do not count
		{"--noreuse", "--no-reuse"},  // one more
		{"complétion", "completion"}, // one character of two bytes
	} {
		if got, _ := nearest(row.word, words); got != row.want {
			t.Errorf("%q is taken for %q, want %q", row.word, got, row.want)
		}
	}
}

func TestOutputKeepsUntilWritten(t *testing.T) {
	name := t.TempDir() + "/report"
	if err := os.WriteFile(name, []byte("what an earlier run found\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	holds := func(want string) {
		t.Helper()
		got, err := os.ReadFile(name)
		if err != nil || string(got) != want {
			t.Errorf("the file holds %q (%v), want %q", got, err, want)
		}
	}
	out, err := openOutput(name, nil)
	if err != nil {
		t.Fatal(err)
	}
	holds("what an earlier run found\n")
	for _, part := range []string{"new", "er\n"} {
		if _, err := out.Write([]byte(part)); err != nil {
			t.Fatal(err)
		}
	}
	for range 2 {
		if err := out.Close(); err != nil {
			t.Errorf("closing: %v", err)
		}
	}
	holds("newer\n")
}
