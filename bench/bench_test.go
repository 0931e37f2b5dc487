//go:build unix

package main

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/steadyprobe/steadyprobe/bench/peer"
	"github.com/steadyprobe/steadyprobe/internal/testbed"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// fakeDoor counts how often it was asked instead of requests.
type fakeDoor struct {
	asked  uint64
	stalls []time.Duration
}

func (d *fakeDoor) URL() string           { return "http://door/" }
func (d *fakeDoor) Stall(t time.Duration) { d.stalls = append(d.stalls, t) }
func (d *fakeDoor) Counts() counts {
	d.asked++
	return counts{Connections: 1, Requests: 100 * d.asked}
}

// shell is a tool that runs a script of the shell.
func shell(t *testing.T, name, script string, endless bool) installed {
	t.Helper()
	path, err := look("sh", "")
	if err != nil {
		t.Fatal(err)
	}
	return installed{path: path, version: "1", Tool: peer.Tool{Name: name, Call: func(w peer.Work) (peer.Call, error) {
		if script == "" {
			return peer.Call{}, peer.ErrUnfit
		}
		return peer.Call{Args: []string{"-c", script, w.URL}, Stdin: "in", Endless: endless, Read: func(_ string, stdout []byte) (peer.Report, error) {
			if string(stdout) != "http://door/ in" {
				return peer.Report{}, errors.New("reading: " + string(stdout))
			}
			return peer.Report{Requests: 7}, nil
		}}, nil
	}}}
}

func TestToolsTakeTurns(t *testing.T) {
	dir := t.TempDir()
	raw, err := create(dir, machine{Cores: 2})
	if err != nil {
		t.Fatal(err)
	}
	const work = `sleep 0.01; printf "%s " "$0"; cat`
	b := bench{
		options: options{rounds: 2, length: 10 * time.Millisecond}, scratch: t.TempDir(), raw: raw, progress: t.Output(),
		tools: []installed{
			shell(t, "a", work, false), shell(t, "unfit", "", false), shell(t, "fails", "echo why >&2; exit 3", false),
			shell(t, "short", "exit 0", false), shell(t, "garbled", "sleep 0.01; echo no", false), shell(t, "b", work, false),
			shell(t, "endless", "exec sleep 60", true),
		},
	}
	d := &fakeDoor{}
	if err := b.all(t.Context(), []workload{{name: "c", door: func(*testbed.Holder) door { return d }, columns: []metric{doorRequests}}}); err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, r := range b.runs {
		got = append(got, r.Tool+": "+r.Error)
	}
	want := []string{
		"a: ", "fails: exit status 3: why", "short: it ended after 0.0 s of 10ms", "garbled: reading: no\n", "b: ", "endless: ",
		"a: ", "b: ", "endless: ",
	}
	if !slices.Equal(got, want) {
		t.Errorf("runs = %q, want %q", got, want)
	}
	r := b.runs[0]
	// Asked before the run, twice in its middle and afterwards.
	if r.Door.Requests != 300 || r.Middle.Requests != 100 || r.MiddleSeconds <= 0 || r.Report.Requests != 7 || r.Wall < 0.01 {
		t.Errorf("run = %+v, want 300 requests at the door, 100 of them in the middle, 7 reported", r)
	}
	if err := raw.Close(); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(dir, "results.jsonl"))
	if lines := strings.Split(string(text), "\n"); err != nil || len(lines) != 1+len(want)+1 || !strings.HasPrefix(lines[0], `{"machine":`) {
		t.Errorf("results = %q (%v), want the machine and %d runs", text, err, len(want))
	}
}

func TestTheEndOfTheContextEndsTheBench(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	b := bench{
		options: options{rounds: 1, length: time.Minute}, scratch: t.TempDir(), progress: t.Output(),
		tools: []installed{shell(t, "endless", "exec sleep 60", true)},
	}
	d := &fakeDoor{}
	w := workload{name: "c", door: func(*testbed.Holder) door {
		time.AfterFunc(5*time.Millisecond, cancel)
		return d
	}}
	if err := b.all(ctx, []workload{w}); !errors.Is(err, context.Canceled) || len(b.runs) != 0 {
		t.Errorf("error = %v after %d runs, want that the context has ended", err, len(b.runs))
	}
}

func TestStalls(t *testing.T) {
	d := &fakeDoor{}
	due := watch(d, true, 20*time.Second, &result{})
	// In the middle of both: 4.5 to 5.5 s and 14.5 to 15.5 s.
	if len(due) != 2 || due[0].at != 4500*time.Millisecond || due[1].at != 14500*time.Millisecond {
		t.Fatalf("moments = %v, want 4.5 s and 14.5 s", due)
	}
	due[0].do()
	if !slices.Equal(d.stalls, []time.Duration{time.Second}) {
		t.Errorf("stalls = %v, want one of 1 s", d.stalls)
	}
}

func TestParse(t *testing.T) {
	for _, row := range []struct {
		args string
		good bool
	}{
		{"", true},
		{"-rounds 2 -seconds 30 -case stall -tools wrk,ab", true},
		{"-rounds 0", false},
		{"-seconds 0", false},
		{"-unknown", false},
		{"stall", false},
	} {
		o, err := parse(strings.Fields(row.args), t.Output())
		if (err == nil) != row.good {
			t.Errorf("%q: options = %+v (%v), want good = %v", row.args, o, err, row.good)
		}
	}
}

func TestFind(t *testing.T) {
	dir := t.TempDir()
	fake := filepath.Join(dir, "wrk2")
	if err := os.WriteFile(fake, []byte("#!/bin/sh\necho wrk2 of the test\nexit 1\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", "/bin:/usr/bin")
	tools, missing, err := find(t.Context(), options{program: "/nowhere/steadyprobe", path: dir, tools: "wrk2,steadyprobe"})
	if err != nil || len(tools) != 1 || tools[0].path != fake || tools[0].version != "wrk2 of the test" || !slices.Equal(missing, []string{reference}) {
		t.Errorf("found %+v, missing %q (%v), want wrk2 with its version, and no steadyprobe", tools, missing, err)
	}
	if _, _, err := find(t.Context(), options{tools: "wrk,wrk3"}); err == nil {
		t.Error("an unknown tool is no error")
	}
}
