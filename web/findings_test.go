package web

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// quantiles are those of p50, p99 and p99.9 in seconds.
func quantiles(p50, p99, p999 float64) Quantiles {
	return Quantiles{{0.5, Number(p50)}, {0.99, Number(p99)}, {0.999, Number(p999)}}
}

// door is a target of a churn in whose phases p99 was so many seconds, and of
// whose 1,000 requests so many failed: settled, scaling up and down.
func door(name string, p99 [3]float64, failed [3]uint64) Target {
	t := Target{Name: name, Churn: "web", Loop: "open", Condition: Condition{State: stateUp}}
	for i, phase := range []string{phaseSettled, "scaling_up", "scaling_down"} {
		p := ChurnPhase{Phase: phase, Completed: 1000, Failed: failed[i], Latency: quantiles(0.001, p99[i], p99[i])}
		if failed[i] > 0 {
			p.Failures = []Failure{{"response", "status", failed[i], 0, nil}}
			t.Failures = []Failure{{"response", "status", t.Failed + failed[i], failed[i], []string{"502"}}}
			t.Failed += failed[i]
		}
		t.Phases = append(t.Phases, p)
	}
	return t
}

// probedLate is a target whose lateness had such a p99, in seconds.
func probedLate(t Target, p99 float64) Target {
	t.Lateness = quantiles(0, p99, p99)
	return t
}

// windowed is a target without churn, with such a p99 in its windows.
func windowed(minute, five, hour float64) Target {
	return Target{Name: "a", Loop: "open", Condition: Condition{State: stateUp}, Latency: []Window{
		{"1m", quantiles(0.001, minute, 0)}, {"5m", quantiles(0.001, five, 0)}, {"1h", quantiles(0.001, hour, 0)}}}
}

func TestFind(t *testing.T) {
	steady := door("steady", [3]float64{0.004, 0.004, 0.0042}, [3]uint64{})
	none := float64(none())
	for _, row := range []struct {
		name    string
		targets []Target
		want    []string
	}{
		{"no target", nil, nil},
		{"a target before its first request", []Target{{Name: "new", Rate: 1, RateKept: Number(none)}}, nil},
		{"all is well", []Target{steady, windowed(0.004, 0.004, 0.004)}, nil},
		{"slow while scaling down", []Target{door("a", [3]float64{0.0041, 0.004, 0.312}, [3]uint64{})},
			[]string{"a: p99 is 312 ms while scaling down, 4.10 ms while settled."}},
		{"slow while scaling either way", []Target{door("a", [3]float64{0.0041, 0.4, 0.312}, [3]uint64{})},
			[]string{"a: p99 is 400 ms while scaling up and 312 ms while scaling down, 4.10 ms while settled."}},
		// 312 ms is less than twice 160 ms.
		{"slow as the probe is late", []Target{probedLate(door("a", [3]float64{0.0041, 0.004, 0.312}, [3]uint64{}), 0.16)}, nil},
		{"slower than the probe is late", []Target{probedLate(door("a", [3]float64{0.0041, 0.004, 0.312}, [3]uint64{}), 0.15)},
			[]string{"a: p99 is 312 ms while scaling down, 4.10 ms while settled."}},
		// Of 1,000 requests of the other door 4 and 5 would have failed.
		{"failures that may be chance", []Target{door("a", [3]float64{0.004, 0.004, 0.004}, [3]uint64{0, 0, 4}), steady},
			[]string{"a: 0.4 % of its requests failed while scaling down, none while settled, all as response/status (HTTP 502 Bad Gateway). " +
				"502 Bad Gateway: the door got no valid answer from its backend."}},
		{"failures that are none", []Target{door("a", [3]float64{0.004, 0.004, 0.004}, [3]uint64{0, 0, 5}), steady},
			[]string{"a: 0.5 % of its requests failed while scaling down, none while settled, all as response/status (HTTP 502 Bad Gateway). " +
				"502 Bad Gateway: the door got no valid answer from its backend. " +
				"In front of the same backends steady failed none: it is this door rather than the backends."}},
		{"at the thresholds", []Target{door("a", [3]float64{0.005, 0.0101, 0.005}, [3]uint64{})},
			[]string{"a: p99 is 10.1 ms while scaling up, 5.00 ms while settled."}},
		{"below the ratio", []Target{door("a", [3]float64{0.1, 0.199, 0.1}, [3]uint64{})}, nil},
		{"below the difference", []Target{door("a", [3]float64{0.001, 0.0059, 0.001}, [3]uint64{})}, nil},
		{"too few requests while scaling", []Target{door("a", [3]float64{0.001, none, none}, [3]uint64{})}, nil},
		{"too few requests while settled", []Target{door("a", [3]float64{none, 1, 1}, [3]uint64{})}, nil},
		// 13 of 1,000.
		{"failing while scaling down", []Target{door("a", [3]float64{}, [3]uint64{0, 1, 13})},
			[]string{"a: 1.3 % of its requests failed while scaling down, 0.1 % while scaling up, none while settled, all as response/status (HTTP 502 Bad Gateway). 502 Bad Gateway: the door got no valid answer from its backend."}},
		{"failing always, more while scaling", []Target{door("a", [3]float64{}, [3]uint64{2, 1, 13})},
			[]string{"a: 1.3 % of its requests failed while scaling down, 0.2 % while settled, 0.1 % while scaling up, all as response/status (HTTP 502 Bad Gateway). 502 Bad Gateway: the door got no valid answer from its backend."}},
		{"failing most while settled", []Target{door("a", [3]float64{}, [3]uint64{13, 1, 2})},
			[]string{"a: 1.3 % of its requests failed while settled, 0.2 % while scaling down, 0.1 % while scaling up, all as response/status (HTTP 502 Bad Gateway). 502 Bad Gateway: the door got no valid answer from its backend."}},
		{"slow and failing beside a peer", []Target{steady, door("a", [3]float64{0.0041, 0.004, 0.312}, [3]uint64{0, 0, 13})},
			[]string{"a: p99 is 312 ms while scaling down, 4.10 ms while settled. " +
				"1.3 % of its requests failed while scaling down, none while settled, all as response/status (HTTP 502 Bad Gateway). 502 Bad Gateway: the door got no valid answer from its backend. " +
				"In front of the same backends steady has a p99 of 4.20 ms while scaling down and failed none: it is this door rather than the backends."}},
		{"failing beside a peer that fails", []Target{door("a", [3]float64{}, [3]uint64{0, 0, 13}), door("b", [3]float64{}, [3]uint64{0, 0, 20})},
			[]string{"b: 2 % of its requests failed while scaling down, none while settled, all as response/status (HTTP 502 Bad Gateway). 502 Bad Gateway: the door got no valid answer from its backend.",
				"a: 1.3 % of its requests failed while scaling down, none while settled, all as response/status (HTTP 502 Bad Gateway). 502 Bad Gateway: the door got no valid answer from its backend."}},
		{"failing for another reason in each phase", func() []Target {
			a := door("a", [3]float64{}, [3]uint64{0, 8, 13})
			a.Phases[1].Failures = []Failure{{"read", "eof", 5, 0, nil}, {"read", "stale", 3, 0, nil}}
			return []Target{a}
		}(), []string{"a: 1.3 % of its requests failed while scaling down, all as response/status (HTTP 502 Bad Gateway); " +
			"0.8 % while scaling up, most of them as read/eof; none while settled. 502 Bad Gateway: the door got no valid answer from its backend. " +
			"read/eof: the door had the request and closed the connection before it answered."}},
		// 13 + 5 of 13 + 8.
		{"failing for the same reason, not only", func() []Target {
			a := door("a", [3]float64{}, [3]uint64{0, 8, 13})
			a.Phases[1].Failures = []Failure{{"response", "status", 5, 0, nil}, {"read", "stale", 3, 0, nil}}
			a.Failures[0].Codes = []string{"503", "502"}
			return []Target{a}
		}(), []string{"a: 1.3 % of its requests failed while scaling down, 0.8 % while scaling up, none while settled, " +
			"most of them as response/status (HTTP 503, 502). 503 Service Unavailable: the door has no backend to ask, or refuses for now."}},
		{"the same peer whoever is best", []Target{
			door("first", [3]float64{0.004, 0.004, 0.0044}, [3]uint64{}), door("best", [3]float64{0.002, 0.002, 0.002}, [3]uint64{}),
			door("a", [3]float64{0.0041, 0.004, 0.312}, [3]uint64{})},
			[]string{"a: p99 is 312 ms while scaling down, 4.10 ms while settled. " +
				"In front of the same backends first has a p99 of 4.40 ms while scaling down: it is this door rather than the backends."}},
		{"down beside a peer that is up", func() []Target {
			a := door("a", [3]float64{0.0041, 0.004, 0.312}, [3]uint64{900, 900, 900})
			a.Condition, a.Rate, a.RateKept = Condition{State: stateDown, Reason: responseStatus, Since: testNow}, 200, 0
			return []Target{steady, a}
		}(), []string{"a: It has been down since 19:21:05 UTC, most often by response/status (HTTP 502 Bad Gateway). " +
			"502 Bad Gateway: the door got no valid answer from its backend. " +
			"In front of the same backends steady is up: it is this door rather than the backends."}},
		{"down, nothing completed", []Target{{Name: "a", Condition: Condition{State: stateDown, Since: testNow}, Rate: 200, Backlog: 400}},
			[]string{"a: It has been down since 19:21:05 UTC."}},
		{"slow as its peers are", []Target{door("a", [3]float64{0.004, 0.3, 0}, [3]uint64{}), door("b", [3]float64{0.004, 0.4, 0}, [3]uint64{})},
			[]string{"b: p99 is 400 ms while scaling up, 4.00 ms while settled.", "a: p99 is 300 ms while scaling up, 4.00 ms while settled."}},
		{"slower than its peer", func() []Target {
			a, b := windowed(none, 0.21, none), windowed(none, 0.004, none)
			a.Churn, b.Churn, b.Name = "web", "web", "b"
			return []Target{a, b}
		}(), []string{"a: p99 of the last 5 minutes is 210 ms; in front of the same backends b is at 4.00 ms."}},
		{"slow now", []Target{windowed(0.08, 0.01, 0.004)}, []string{"a: p99 of the last minute is 80.0 ms, that of the last hour 4.00 ms."}},
		{"failing without churn", []Target{{Name: "a", Failures: []Failure{{"read", "timeout", 900, 0, nil}, {"read", "eof", 3, 3, nil}, {"read", "reset", 2, 2, nil}, {"tls", "alert", 1, 1, nil}}}},
			[]string{"a: 6 requests failed in the last 5 minutes, most often as read/eof. read/eof: the door had the request and closed the connection before it answered."}},
		{"most of them", []Target{{Name: "a", Failures: []Failure{{"read", "timeout", 3, 3, nil}, {"read", "eof", 2, 2, nil}}}},
			[]string{"a: 5 requests failed in the last 5 minutes, most of them as read/timeout. read/timeout: the whole answer did not arrive in time."}},
		{"one failure", []Target{{Name: "a", Failures: []Failure{{"read", "timeout", 3, 1, nil}}}},
			[]string{"a: 1 request failed in the last 5 minutes, as read/timeout. read/timeout: the whole answer did not arrive in time."}},
		{"failed long ago", []Target{{Name: "a", Failures: []Failure{{"read", "timeout", 3, 0, nil}}}}, nil},
		{"failed long ago under churn", func() []Target {
			a := door("a", [3]float64{}, [3]uint64{0, 0, 13})
			a.Failures[0].Recent = 0
			return []Target{a}
		}(), []string{"a: 1.3 % of its requests failed while scaling down, none while settled, all as response/status (HTTP 502 Bad Gateway); none in the last 5 minutes. 502 Bad Gateway: the door got no valid answer from its backend."}},
		// 1,000 - 412 is more than 5 %, and 588 × 60 more than 4 × √60,000.
		{"rate missed", []Target{{Name: "a", Rate: 1000, RateKept: 412, Backlog: 4123}},
			[]string{"a: 412 of 1,000 requests per second were completed in the last minute; 4,123 wait for a connection."}},
		// 0.8 × 60 = 48 requests missed of 240: more than 5 %, less than 1 + 4 × √240 = 63.
		{"rate missed by chance", []Target{{Name: "a", Rate: 4, RateKept: 3.2}}, nil},
		{"closed loop", []Target{{Name: "a", Loop: loopClosed, Rate: Number(none), RateKept: 63000}}, nil},
		{"the worst first", []Target{
			windowed(0.08, 0.01, 0.004),
			{Name: "failing", Failures: []Failure{{"read", "timeout", 3, 1, nil}}},
			{Name: "down", Condition: Condition{State: stateDown, Since: time.Date(2026, 11, 30, 19, 20, 5, 0, time.UTC), Reason: "connect/refused"}},
		}, []string{"down: It has been down since 19:20:05 UTC, most often by connect/refused. connect/refused: nobody listens at the door’s address and port.",
			"failing: 1 request failed in the last 5 minutes, as read/timeout. read/timeout: the whole answer did not arrive in time.",
			"a: p99 of the last minute is 80.0 ms, that of the last hour 4.00 ms."}},
	} {
		t.Run(row.name, func(t *testing.T) {
			var got []string
			for _, f := range Findings(row.targets) {
				got = append(got, fmt.Sprintf("%s: %s", f.Target, strings.Join(f.Sentences, " ")))
			}
			if diff := cmp.Diff(row.want, got); diff != "" {
				t.Errorf("findings (-want +got):\n%s", diff)
			}
		})
	}
}

// TestPeerOfFewRequests does not let a target that hardly asked speak against
// another one: none of 10 requests may have failed by chance.
func TestPeerOfFewRequests(t *testing.T) {
	few := door("few", [3]float64{}, [3]uint64{})
	few.Phases[2].Completed = 10
	found := Findings([]Target{few, door("a", [3]float64{}, [3]uint64{0, 0, 13})})
	if len(found) != 1 || strings.Contains(strings.Join(found[0].Sentences, " "), "In front of") {
		t.Errorf("found %+v", found)
	}
}
