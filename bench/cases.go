package main

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/steadyprobe/steadyprobe/bench/peer"
	"github.com/steadyprobe/steadyprobe/internal/testbed"
)

// workload is one case: what all tools do in turn.
type workload struct {
	name    string
	title   string
	door    func(*testbed.Holder) door
	work    peer.Work     // without what depends on the run
	stalls  bool          // the door stalls, see stallEvery
	tools   []string      // programs that take part; empty: all that can
	columns []metric      // of the table
	ratios  []metric      // columns that are compared too
	shortly time.Duration // the length is a multiple of this
}

// A stalling door stalls for stallFor in the middle of every stallEvery. Of
// requests at a constant rate a share of 1/10 waits then, evenly spread over 0
// to 1 s: a latency of x s is exceeded by (1 - x)/10 of them, so that p95 is
// 0.5 s, p99 0.9 s, p99.9 0.99 s and the largest 1 s.
const (
	stallEvery = 10 * time.Second
	stallFor   = time.Second
	exactP95   = 0.5
)

// catalogue returns all cases.
func catalogue() []workload {
	constant := []metric{doorRequests, toldRequests, failures, p50, p99, p999, largest, cpu, memory}
	rate := func(requests int, text string) workload {
		return workload{
			name: fmt.Sprintf("constant-%d", requests), title: "constant rate, " + text + " requests/s, 50 connections, 1 KB",
			door: newPlainDoor, work: peer.Work{Rate: requests, Connections: 50},
			columns: constant, ratios: []metric{cpu, p50, p99},
		}
	}
	handshakes := func(name, title string, versions testbed.TLSVersions, resumes bool, tools ...string) workload {
		w := workload{
			name: name, title: "new TLS connections, " + title + ", 50 at once, RSA-2048, empty body",
			door: newTLSDoor(versions, resumes), work: peer.Work{Connections: 50, NewConnections: true, TLS: "1.3"},
			tools: tools, columns: []metric{handshakeRate, resumedShare, failures, cpu, memory}, ratios: []metric{handshakeRate, cpu},
		}
		if versions == testbed.TLS12 {
			w.work.TLS = "1.2"
		}
		return w
	}
	return []workload{
		rate(1000, "1,000"),
		rate(10000, "10,000"),
		{
			name: "closed", title: "closed loop, 50 connections, 1 KB",
			door: newPlainDoor, work: peer.Work{Connections: 50},
			columns: []metric{doorRate, failures, p50, p99, largest, cpu, memory}, ratios: []metric{doorRate, cpu},
		},
		handshakes("tls12-full", "full handshakes, ECDHE-RSA-AES256-GCM-SHA384 (TLS 1.2)", testbed.TLS12, false, "ab", "wrk", "h2load", "bombardier"),
		handshakes("tls13-full", "full handshakes, TLS 1.3", testbed.TLS13, false, "ab", "wrk", "h2load", "bombardier"),
		handshakes("tls12-resumed", "resumed, TLS 1.2", testbed.TLS12, true, "wrk", "h2load"),
		handshakes("tls13-resumed", "resumed, TLS 1.3", testbed.TLS13, true, "wrk", "h2load"),
		{
			name: "stall", title: "a door that stalls for 1 s in 10 s, 200 requests/s, 20 connections (exact: p95 0.5 s, p99 0.9 s, p99.9 0.99 s, max 1 s)",
			door: newPlainDoor, work: peer.Work{Rate: 200, Connections: 20}, stalls: true, shortly: stallEvery,
			columns: []metric{doorRequests, toldRequests, failures, p50, p95, p99, p999, largest, p95Error},
		},
	}
}

// choose returns the cases whose name matches an expression.
func choose(expression string) ([]workload, error) {
	match, err := regexp.Compile(expression)
	if err != nil {
		return nil, fmt.Errorf("reading -case: %w", err)
	}
	var names []string
	var chosen []workload
	for _, w := range catalogue() {
		names = append(names, w.name)
		if match.MatchString(w.name) {
			chosen = append(chosen, w)
		}
	}
	if len(chosen) == 0 {
		return nil, fmt.Errorf("reading -case: %q matches none of %s", expression, strings.Join(names, ", "))
	}
	return chosen, nil
}

// takesPart reports whether a tool is among those of the case.
func (w *workload) takesPart(t peer.Tool) bool {
	return len(w.tools) == 0 || slices.Contains(w.tools, t.Program) || strings.HasPrefix(t.Name, reference)
}

// length returns how long a tool works, at least about wanted.
func (w *workload) length(t peer.Tool, wanted time.Duration) time.Duration {
	d := max(wanted, t.Shortest)
	if w.shortly > 0 {
		d = max(d.Round(w.shortly), w.shortly)
	}
	return d
}
