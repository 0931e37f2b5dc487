package main

import (
	"strings"
	"testing"
	"time"

	"github.com/steadyprobe/steadyprobe/bench/peer"
)

// fit reports whether a tool takes part in a case and can do its work.
func fit(w workload, name string) bool {
	for _, t := range peer.All(reference) {
		if t.Name == name && w.takesPart(t) {
			_, err := t.Call(w.work)
			return err == nil
		}
	}
	return false
}

func TestRender(t *testing.T) {
	run := func(tool string, round int, requests uint64, p50 float64) *result {
		return &result{
			Case: "c", Tool: tool, Round: round, User: 1.5, System: 0.5, MaxRSS: 12 << 20,
			Door: counts{Requests: requests}, Report: peer.Report{Requests: requests, Latency: peer.Quantiles{peer.P50: p50}},
		}
	}
	silent := run("silent", 1, 10000, 0)
	silent.Silent, silent.Report, silent.MaxRSS = true, peer.Report{}, 0
	w := workload{name: "c", title: "a case", columns: []metric{doorRequests, toldRequests, p50, cpu, memory}, ratios: []metric{cpu}}
	m := machine{Began: time.Date(2026, 5, 1, 8, 0, 0, 0, time.UTC), Cores: 2, CPU: "fast", Kernel: "6.1", Load: 1.5, Missing: []string{"oha"}}
	got := render(m, []workload{w}, []*result{
		run(reference, 1, 10000, 100e-6), run("wrk2", 1, 20000, 1.5e-3), silent,
		{Case: "c", Tool: "broken", Round: 1, Error: "exit status 2"},
		run(reference, 2, 10000, 300e-6), run("wrk2", 2, 5000, 1.5e-3),
	})
	// CPU: 2 s for 10,000 requests are 200 us; wrk2's 100 us and 400 us, so that
	// steadyprobe is at 2 and 0.5 of it.
	const want = `# Side by side

2026-05-01T08:00:00Z, 2 cores (fast), kernel 6.1, load average 1.50 at the start.
Not installed: oha.

**the load average was 1.5 at the start, above 0.5 for each of 2 cores: figures are not to be trusted**

Medians of the rounds, with the least and the most of them in brackets.

## c: a case

| tool | requests at the door | as it says | p50 | CPU per request | memory | CPU per request: steadyprobe ÷ it |
|---|---|---|---|---|---|---|
| steadyprobe | 10,000 | 10,000 | 200 us (100 us to 300 us) | 200 us | 12.0 MiB | 1 |
| wrk2 | 12,500 (5,000 to 20,000) | 12,500 (5,000 to 20,000) | 1.50 ms | 250 us (100 us to 400 us) | 12.0 MiB | 1.25 (0.5 to 2.00) |
| silent | 10,000 | – | – | 200 us | – | 1.00 |

Left out:

- broken, round 1: exit status 2

## Limits

| case | figure | against | limit | median (least to most) | |
|---|---|---|---|---|---|
`
	if got != want {
		t.Errorf("page:\n%s\nwant:\n%s", got, want)
	}
}

func TestShow(t *testing.T) {
	for _, row := range []struct {
		m    metric
		v    float64
		want string
	}{
		{p50, 0.0000004, "0.4 us"},
		{p50, 0.00012345, "123 us"},
		{p50, 0.0123, "12.3 ms"},
		{p50, 1.0049, "1.00 s"},
		{cpu, 0.0024961, "2.50 ms"},
		{doorRequests, 999, "999"},
		{doorRequests, 1234567, "1,234,567"},
		{handshakeRate, 1799.6, "1,800"},
		{resumedShare, 0.996, "100 %"},
		{memory, 17.5 * (1 << 20), "17.5 MiB"},
		{p95Error, 0.00153, "0.00153"},
	} {
		if got := row.m.show(row.v); got != row.want {
			t.Errorf("%s of %v = %q, want %q", row.m, row.v, got, row.want)
		}
	}
}

func TestChoose(t *testing.T) {
	for _, row := range []struct {
		expression, want string // the names; empty: an error
	}{
		{"", "constant-1000 constant-10000 closed tls12-full tls13-full tls12-resumed tls13-resumed stall"},
		{"^tls", "tls12-full tls13-full tls12-resumed tls13-resumed"},
		{"constant-1000$", "constant-1000"},
		{"none", ""},
		{"(", ""},
	} {
		cases, err := choose(row.expression)
		var names []string
		for _, w := range cases {
			names = append(names, w.name)
		}
		if got := strings.Join(names, " "); got != row.want || (err != nil) != (row.want == "") {
			t.Errorf("cases of %q = %q (%v), want %q", row.expression, got, err, row.want)
		}
	}
}

func TestLength(t *testing.T) {
	patient := peer.Tool{Shortest: 30 * time.Second}
	stalls := workload{shortly: stallEvery}
	for _, row := range []struct {
		name   string
		w      workload
		t      peer.Tool
		wanted time.Duration
		want   time.Duration
	}{
		{"as wanted", workload{}, peer.Tool{}, 3 * time.Second, 3 * time.Second},
		{"at least what it needs", workload{}, patient, 3 * time.Second, 30 * time.Second},
		{"a whole stall", stalls, peer.Tool{}, 3 * time.Second, 10 * time.Second},
		{"whole stalls", stalls, peer.Tool{}, 24 * time.Second, 20 * time.Second},
	} {
		if got := row.w.length(row.t, row.wanted); got != row.want {
			t.Errorf("%s: length = %v, want %v", row.name, got, row.want)
		}
	}
}
