package test

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/steadyprobe/steadyprobe/churn"
	"github.com/steadyprobe/steadyprobe/internal/testbed"
	"github.com/steadyprobe/steadyprobe/workload/haproxy"
	"github.com/steadyprobe/steadyprobe/workload/notefile"
)

// Names in the environment of a process of this test program that is to be
// another daemon.
const (
	daemonSocket = "STEADYPROBE_TEST_SOCKET"
	daemonFolder = "STEADYPROBE_TEST_FOLDER"
)

// cycleOptions are those of a churn of HAProxy that is quick, whose notes are
// in the folder.
func cycleOptions(t *testing.T, w churn.Workload, folder string, steps ...churn.Step) churn.Options {
	t.Helper()
	book, err := notefile.New(notefile.Options{Folder: folder, Churn: "shop"})
	if err != nil {
		t.Fatal(err)
	}
	four, none := 4, 0
	return churn.Options{
		Name: "shop", Workload: w, Notebook: book, Election: book,
		Plan:   churn.Plan{Steps: steps},
		Guard:  churn.Guard{Floor: &none, Ceiling: &four},
		Settle: 20 * time.Millisecond,
		Poll:   10 * time.Millisecond,
	}
}

// TestHAProxyCycle churns a HAProxy that is reloaded in the middle, with
// requests on the way.
func TestHAProxyCycle(t *testing.T) {
	checkLeaks(t)
	shop := newShop(t, 4, time.Millisecond)
	c := newChurned(t, shop.addresses, "")
	folder := t.TempDir()
	hold := 150 * time.Millisecond
	cycle, stop := cycling(t, cycleOptions(t, c.workload(haproxy.Drain), folder,
		churn.Step{Replicas: 2, Hold: hold}, churn.Step{Replicas: 3, Hold: hold}, churn.Step{Kill: 1, Hold: hold}, churn.Step{Replicas: 4, Hold: hold}))
	const all = "s0 ready 1, s1 ready 1, s2 ready 1, s3 ready 1"
	// cycles waits until the whole plan was gone through so often more.
	cycles := func(n uint64) {
		t.Helper()
		var s churn.Snapshot
		cycle.Snapshot(&s)
		want := s.Cycles + n
		until(t, cycle, "whole cycles", func(s *churn.Snapshot) bool { return s.Cycles >= want && s.Reason == churn.NoReason })
	}
	// A reload, and a kill, may cost some requests; the churn itself costs none.
	target := targetFor(t, "http://"+c.HTTP+"/", "", profile{rate: 200, connections: 10})
	results := onceWhile(t, 8*time.Second, func() {
		cycles(2)
		for i := range uint64(2) {
			until(t, cycle, "servers to be away", func(s *churn.Snapshot) bool { return s.Desired == 2 })
			c.Reload()
			until(t, cycle, "the reload to be seen", func(s *churn.Snapshot) bool { return s.Errors[churn.Refused] == i+1 })
			cycles(2)
		}
	}, target)
	for failure, n := range results[0].FailuresBy {
		if n > 0 && !strings.HasPrefix(failure, "read/") {
			t.Errorf("%d failures %s", n, failure)
		}
	}
	var s churn.Snapshot
	cycle.Snapshot(&s)
	if s.State != churn.Running || s.Baseline != 4 || s.Kills == 0 || s.Errors[churn.ExternalChange] != 0 || s.Errors[churn.Conflict] > 2 {
		t.Errorf("the cycle is %v, with a baseline of %d, %d kills, errors %v", s.State, s.Baseline, s.Kills, s.Errors)
	}
	stop()
	c.expectStates(all)
	if left := names(t, folder); left != "churn-shop.lock" {
		t.Errorf("the folder of the notes has %s in the end", left)
	}
}

func names(t *testing.T, folder string) string {
	t.Helper()
	entries, err := os.ReadDir(folder)
	if err != nil {
		t.Fatal(err)
	}
	var all []string
	for _, e := range entries {
		all = append(all, e.Name())
	}
	return strings.Join(all, " ")
}

// TestHAProxyDaemon is not a test of its own: it is the daemon that
// TestHAProxyDaemonIsKilled kills.
func TestHAProxyDaemon(t *testing.T) {
	socket := os.Getenv(daemonSocket)
	if socket == "" {
		t.Skip("it is run by TestHAProxyDaemonIsKilled")
	}
	// Servers are put away for long, each time fewer, so that it is killed in
	// every state.
	c, err := churn.New(cycleOptions(t, servers(t, socket, haproxy.Drain), os.Getenv(daemonFolder),
		churn.Step{Replicas: 3, Hold: 50 * time.Millisecond}, churn.Step{Replicas: 1, Hold: 50 * time.Millisecond},
		churn.Step{Kill: 1, Hold: 50 * time.Millisecond}, churn.Step{Replicas: 4, Hold: 50 * time.Millisecond}))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute) // were it not killed
	defer cancel()
	over := make(chan error, 1)
	go func() { over <- c.Run(ctx) }()
	until(t, c, "the first step", func(s *churn.Snapshot) bool { return s.Steps[churn.Down] > 0 })
	fmt.Println("stepping")
	<-over
}

// TestHAProxyDaemonIsKilled kills a daemon that churns, again and again, at
// another instant each time. The next process restores from its note.
func TestHAProxyDaemonIsKilled(t *testing.T) {
	checkLeaks(t)
	shop := newShop(t, 4, 0)
	c := newChurned(t, shop.addresses, "")
	const all = "s0 ready 1, s1 ready 1, s2 ready 1, s3 ready 1"
	held := 0
	for i := range 6 {
		folder := t.TempDir()
		other := exec.Command(os.Args[0], "-test.run=^TestHAProxyDaemon$", "-test.v")
		other.Env = append(os.Environ(), daemonSocket+"="+c.socket, daemonFolder+"="+folder)
		out, err := other.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := other.Start(); err != nil {
			t.Fatal(err)
		}
		for lines := bufio.NewScanner(out); lines.Scan() && lines.Text() != "stepping"; {
		}
		time.Sleep(time.Duration(i) * 37 * time.Millisecond) // of cycles of 200 ms
		_ = other.Process.Kill()
		_ = other.Wait() // killed
		if c.states() != all {
			held++
		}

		o := cycleOptions(t, c.workload(haproxy.Drain), folder, churn.Step{Replicas: 2, Hold: time.Hour})
		o.Plan.Hours = never()
		cycle, stop := cycling(t, o)
		testbed.WaitFor(t, "all servers to be put back", 10*time.Second, func() bool { return c.states() == all })
		until(t, cycle, "the note to be given up", func(*churn.Snapshot) bool {
			return !strings.Contains(names(t, folder), ".json")
		})
		stop()
		c.expectStates(all)
	}
	if held == 0 {
		t.Error("no daemon had put anything away when it was killed")
	}
}

// never returns active hours that are not now.
func never() *churn.Hours {
	begin := (time.Now().UTC().Hour() + 12) % 24 * 60
	return &churn.Hours{From: begin, To: begin + 30, Location: time.UTC}
}
