package app

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/steadyprobe/steadyprobe/probe"
)

// told is what flaps are asked and what they say.
type told struct {
	at      time.Duration
	kind    kind
	changes int
}

func TestFlaps(t *testing.T) {
	m, s := time.Minute, time.Second
	every := func(d time.Duration, n int) (all []time.Duration) {
		for i := range n {
			all = append(all, time.Duration(i+1)*d)
		}
		return all
	}
	for _, row := range []struct {
		name    string
		changes []time.Duration
		until   time.Duration
		want    []told
	}{
		{"none", nil, 20 * m, nil},
		{"rare ones are all told", every(2*m, 5), 20 * m,
			[]told{{2 * m, changed, 1}, {4 * m, changed, 1}, {6 * m, changed, 1}, {8 * m, changed, 1}, {10 * m, changed, 1}}},
		// The fourth is 4 min 30 s after the first.
		{"the fourth within five minutes", every(90*s, 4), 8 * m,
			[]told{{90 * s, changed, 1}, {180 * s, changed, 1}, {270 * s, changed, 1}, {360 * s, flapsNow, 1}}},
		// The last one is at 20 s: five minutes of rest end at 5 min 20 s.
		{"it comes to rest", every(2*s, 10), 8 * m,
			[]told{{2 * s, changed, 1}, {4 * s, changed, 1}, {6 * s, changed, 1}, {8 * s, flapsNow, 1}, {5*m + 20*s, flapsNoMore, 6}}},
		// From 8 s on, every 5 minutes: 75 changes of 4 s each.
		{"it goes on", every(4*s, 220), 15 * m,
			[]told{{4 * s, changed, 1}, {8 * s, changed, 1}, {12 * s, changed, 1}, {16 * s, flapsNow, 1}, {5*m + 16*s, flapsStill, 75}, {10*m + 16*s, flapsStill, 75}}},
		{"it begins again", append(every(s, 5), 10*m, 11*m), 20 * m,
			[]told{{s, changed, 1}, {2 * s, changed, 1}, {3 * s, changed, 1}, {4 * s, flapsNow, 1}, {5*m + 5*s, flapsNoMore, 1}, {10 * m, changed, 1}, {11 * m, changed, 1}}},
	} {
		t.Run(row.name, func(t *testing.T) {
			var f flaps
			var got []told
			changes := row.changes
			for at := time.Duration(0); at <= row.until; at += s {
				change := len(changes) > 0 && changes[0] == at
				if change {
					changes = changes[1:]
				}
				if k, n := f.look(probe.Instant(time.Second+at), change); k != nothing {
					got = append(got, told{at, k, n})
				}
			}
			if fmt.Sprint(got) != fmt.Sprint(row.want) {
				t.Errorf("told\n%v, want\n%v", got, row.want)
			}
		})
	}
}

// plainLog returns a logger without times, and what is written to it.
func plainLog() (*slog.Logger, *bytes.Buffer) {
	var text bytes.Buffer
	return slog.New(slog.NewTextHandler(&text, &slog.HandlerOptions{ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
		if a.Key == slog.TimeKey {
			return slog.Attr{}
		}
		return a
	}})), &text
}

func TestNotices(t *testing.T) {
	n, text := notices{}, (*bytes.Buffer)(nil)
	n.logger, text = plainLog()
	n.tell(probe.Instant(time.Second), []notice{
		{kind: changed, target: "a", was: starting, is: up, lasted: 2 * time.Second},
		{kind: changed, target: "b", was: starting, is: down, lasted: 10 * time.Second, failure: "connect/refused"},
		{kind: changed, target: "c", was: up, is: degraded, lasted: 3*time.Hour + 4*time.Millisecond, failure: "read/stale"},
		{kind: changed, target: "d", was: down, is: up, lasted: time.Minute},
		{kind: flapsNow, target: "e", was: up, is: down, lasted: time.Second, failure: "read/eof", changes: 1},
		{kind: flapsStill, target: "e", was: up, is: up, changes: 75},
		{kind: flapsNoMore, target: "e", was: up, is: up, changes: 6},
		{kind: flapsNoMore, target: "f", was: up, is: down, failure: "read/eof", changes: 6},
	})
	const want = `level=INFO msg="Target is up" target=a was=starting for=2s
level=WARN msg="Target is down" target=b was=starting for=10s failure=connect/refused
level=WARN msg="Target is degraded" target=c was=up for=3h0m0s failure=read/stale
level=INFO msg="Target has recovered" target=d was=down for=1m0s
level=WARN msg="Target flaps, its changes are told every 5m0s from now on" target=e is=down changes=1 failure=read/eof
level=WARN msg="Target still flaps" target=e is=up changes=75
level=INFO msg="Target flaps no more" target=e is=up changes=6
level=WARN msg="Target flaps no more" target=f is=down changes=6 failure=read/eof
`
	if text.String() != want {
		t.Errorf("the log says\n%swant\n%s", text, want)
	}
}

// many returns notices of so many targets.
func many(n int, o notice) (all []notice) {
	for i := range n {
		o.target = fmt.Sprintf("t%05d", i)
		all = append(all, o)
	}
	return all
}

// TestManyNotices lets 10,000 targets fail and recover: at once, over 20 s, and
// some of them again before they were told of.
func TestManyNotices(t *testing.T) {
	refused := notice{kind: changed, was: up, is: down, failure: "connect/refused"}
	slow := notice{kind: changed, was: up, is: degraded, failure: "read/timeout"}
	back := notice{kind: changed, was: down, is: up}
	at := func(second int) probe.Instant { return probe.Instant(second+1) * probe.Instant(time.Second) }
	for _, row := range []struct {
		name string
		tell func(n *notices)
		want string
	}{
		{"at once, for two reasons", func(n *notices) {
			all := many(10_000, refused)
			for i := range 100 {
				all[i].failure = "connect/timeout"
			}
			n.tell(at(0), all)
		}, `level=WARN msg="Targets are down" targets=10000 first="t00000, t00001, t00002, t00003, t00004" failures="connect/refused: 9900, connect/timeout: 100"
`},
		{"as many as may be lines", func(n *notices) {
			n.tell(at(0), many(20, back))
			// After 9 s there may be three lines more, and not four.
			n.tell(at(9), many(4, back))
		}, strings.Repeat("line\n", 20) + `level=INFO msg="Targets have recovered" targets=4 first="t00000, t00001, t00002, t00003"
`},
		{"few beside many", func(n *notices) {
			n.tell(at(0), append(many(100, refused), notice{kind: changed, target: "x", was: starting, is: up}, notice{kind: changed, target: "y", was: starting, is: up}))
		}, `level=WARN msg="Targets are down" targets=100 first="t00000, t00001, t00002, t00003, t00004" failures="connect/refused: 100"
line
line
`},
		{"over 20 s", func(n *notices) {
			all := many(10_000, refused)
			for i := range 40 {
				came := []notice(nil)
				if i < 20 {
					came = all[500*i : 500*i+500]
				}
				n.tell(at(i), came)
			}
			// The first 500 at once, what came until 10 s then, the rest 10 s later.
		}, `level=WARN msg="Targets are down" targets=500 first="t00000, t00001, t00002, t00003, t00004" failures="connect/refused: 500"
level=WARN msg="Targets are down" targets=5000 first="t00500, t00501, t00502, t00503, t00504" failures="connect/refused: 5000"
level=WARN msg="Targets are down" targets=4500 first="t05500, t05501, t05502, t05503, t05504" failures="connect/refused: 4500"
`},
		{"some change again before they are told of", func(n *notices) {
			n.tell(at(0), many(100, refused))
			n.tell(at(1), many(100, slow))
			n.tell(at(2), many(30, notice{kind: changed, was: degraded, is: up}))
			n.tell(at(3), many(20, notice{kind: flapsNow, was: up, is: down, failure: "read/eof"}))
			n.tell(at(10), nil)
			// 20 flap, 10 are again what they were, 70 are degraded.
		}, `level=WARN msg="Targets are down" targets=100 first="t00000, t00001, t00002, t00003, t00004" failures="connect/refused: 100"
level=WARN msg="Targets are degraded" targets=70 first="t00030, t00031, t00032, t00033, t00034" failures="read/timeout: 70"
level=WARN msg="Targets flap" targets=20 first="t00000, t00001, t00002, t00003, t00004" failures="read/eof: 20"
`},
		{"of many kinds of failures the most frequent", func(n *notices) {
			all := many(27, refused)
			for i := range all {
				all[i].failure = fmt.Sprintf("read/%d", min(i, 6))
			}
			n.tell(at(0), all)
		}, `level=WARN msg="Targets are down" targets=27 first="t00000, t00001, t00002, t00003, t00004" failures="read/6: 21, read/0: 1, read/1: 1, read/2: 1, read/3: 1, 2 others"
`},
	} {
		t.Run(row.name, func(t *testing.T) {
			var n notices
			var text *bytes.Buffer
			n.logger, text = plainLog()
			row.tell(&n)
			got := text.String()
			for line := range strings.Lines(got) { // one of its own
				if strings.Contains(line, "msg=\"Target ") {
					got = strings.Replace(got, line, "line\n", 1)
				}
			}
			if got != row.want {
				t.Errorf("the log says\n%swant\n%s", got, row.want)
			}
			if len(n.pending) != 0 {
				t.Errorf("%d are never told of", len(n.pending))
			}
		})
	}
}

// TestFirstFailures tells of 1,000 targets that cannot be reached in a second,
// and of one a minute later.
func TestFirstFailures(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		logger, text := plainLog()
		f := &firstFailures{logger: logger, clock: probe.NewClock()}
		for i := range 1000 {
			f.tell(fmt.Sprintf("t%d", i), probe.ConnectRefused, errors.New("nobody is there"))
			time.Sleep(time.Millisecond)
		}
		time.Sleep(time.Minute)
		f.tell("late", probe.TLSCertificate, errors.New("it has expired"))
		lines := strings.Split(strings.TrimSpace(text.String()), "\n")
		const first = `level=WARN msg="A connection could not be opened; more of the same are only counted" target=t0 failure=connect/refused err="nobody is there"`
		const last = `level=WARN msg="A connection could not be opened; more of the same are only counted" target=late failure=tls/certificate err="it has expired" lines_dropped_before=980`
		if len(lines) != 21 || lines[0] != first || lines[20] != last {
			t.Errorf("%d lines:\n%s", len(lines), text)
		}
	})
}

// TestNobodyFloodsTheLog lets 2,000 targets change every second for an hour.
func TestNobodyFloodsTheLog(t *testing.T) {
	var n notices
	var text *bytes.Buffer
	n.logger, text = plainLog()
	all := make([]flaps, 2_000)
	for i := range 3600 {
		now := probe.Instant(i+1) * probe.Instant(time.Second)
		var came []notice
		for j := range all {
			if k, changes := all[j].look(now, true); k != nothing {
				came = append(came, notice{kind: k, target: fmt.Sprint(j), was: up, is: down, changes: changes})
			}
		}
		n.tell(now, came)
	}
	// Each is told of 3 times, that it flaps, and 11 times that it still does.
	if lines := strings.Count(text.String(), "\n"); lines < 12 || lines > 20 {
		t.Errorf("%d lines in an hour:\n%s", lines, text)
	}
}
