package test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/steadyprobe/steadyprobe/internal/faultdoor"
	"github.com/steadyprobe/steadyprobe/internal/testbed"
)

// logged is a line of a log in JSON.
type logged struct {
	Time, Level, Msg       string
	Target, Was, Is, For   string
	Failure                string
	Targets, Changes       int
	First, Failures, Cause string
}

// linesOf reads what a daemon has logged, of which every line must be JSON.
func linesOf(t *testing.T, p *testbed.ProbeServer) (all []logged) {
	t.Helper()
	for line := range strings.Lines(p.Output()) {
		var l logged
		if err := json.Unmarshal([]byte(line), &l); err != nil {
			t.Fatalf("%q is not JSON: %v", line, err)
		}
		all = append(all, l)
	}
	return all
}

// about returns the lines about targets whose names begin so.
func about(all []logged, name string) (some []logged) {
	for _, l := range all {
		if strings.HasPrefix(l.Msg, "Target") && (strings.HasPrefix(l.Target, name) || strings.HasPrefix(l.First, name)) {
			some = append(some, l)
		}
	}
	return some
}

// TestLogOfFlappingDoor has a door that resets for 8 s of every 20 s, beside a
// sound one and 100 that are dead: the first is told of as one that flaps, the
// last in one line.
func TestLogOfFlappingDoor(t *testing.T) {
	checkLeaks(t)
	start := time.Now()
	reset, ok := faultdoor.Reset(), faultdoor.OK()
	flapping := faultdoor.Listen(t, faultdoor.HTTP(func(c *faultdoor.Conn, r *faultdoor.Request) error {
		if time.Since(start)%(20*time.Second) >= 12*time.Second {
			return reset(c, r)
		}
		return ok(c, r)
	}))
	sound := faultdoor.Listen(t, faultdoor.HTTP(ok))
	dead := faultdoor.Refused(t)
	configuration := fmt.Sprintf("targets:\n  - {name: flapping, url: 'http://%s/', rate: 20}\n  - {name: sound, url: 'http://%s/', rate: 20}\n", flapping.Addr(), sound.Addr())
	for i := range 100 {
		configuration += fmt.Sprintf("  - {name: dead-%03d, url: 'http://%s/', rate: 5}\n", i, dead)
	}
	p := testbed.Probe(t, testbed.BuildProbe(t), configuration, "--log.format=json", "--log.level=debug")
	testbed.WaitFor(t, "a line that says so", 2*time.Minute, func() bool {
		return strings.Contains(p.Output(), "Target flaps")
	})
	time.Sleep(25 * time.Second) // in which it changes twice or more
	p.Stop()
	all := linesOf(t, p)

	flaps := about(all, "flapping")
	if len(flaps) < 4 || len(flaps) > 5 {
		t.Fatalf("lines %+v", flaps)
	}
	if l := flaps[0]; l.Msg != "Target is up" || l.Level != "INFO" || l.Target != "flapping" || l.Was != "starting" {
		t.Errorf("the first line is %+v", l)
	}
	if l := flaps[1]; l.Msg != "Target is degraded" || l.Level != "WARN" || l.Was != "up" || !strings.HasPrefix(l.Failure, "read/") || l.For == "" {
		t.Errorf("the second line is %+v", l)
	}
	last := flaps[len(flaps)-1]
	if !strings.HasPrefix(last.Msg, "Target flaps") || last.Level != "WARN" || !strings.HasPrefix(last.Failure, "read/") || last.Is == "up" {
		t.Errorf("the last line is %+v", last)
	}
	if l := about(all, "sound"); len(l) != 1 || l[0].Msg != "Target is up" {
		t.Errorf("lines of the sound one: %+v", l)
	}
	// All that die within the same second are one line; the few that do before it
	// may have one each.
	deads, targets, summaries := about(all, "dead-"), 0, 0
	for _, l := range deads {
		switch {
		case l.Msg == "Targets are down" && l.Failures == fmt.Sprintf("connect/refused: %d", l.Targets):
			targets += l.Targets
			summaries++
		case l.Msg == "Target is down" && l.Failure == "connect/refused":
			targets++
		default:
			t.Errorf("a line of the dead: %+v", l)
		}
	}
	if openings := strings.Count(p.Output(), "A connection could not be opened"); openings < 10 || openings > 50 {
		t.Errorf("%d lines about connections that could not be opened", openings)
	}
	if targets != 100 || summaries == 0 || summaries > 3 || len(deads) > 23 {
		t.Errorf("%d lines, %d of them summaries, about %d targets that are dead", len(deads), summaries, targets)
	}
}
