package exporter

import (
	"testing"
	"time"

	dto "github.com/prometheus/client_model/go"

	"github.com/steadyprobe/steadyprobe/probe"
	"github.com/steadyprobe/steadyprobe/probe/record"
)

// usualTarget is a target whose host is a name, with an objective, that has
// seen one status code and, over TLS, one kind of handshake.
func usualTarget(tls, churned bool) Target {
	f := &fakeTarget{snapshot: emptySnapshot()}
	f.snapshot.Responses = []record.ResponseCount{{Code: 200, Protocol: probe.HTTP11}}
	if tls {
		f.snapshot.Handshakes = []record.HandshakeCount{{Version: 0x0304, Cipher: 0x1301, Group: 29}}
		f.snapshot.Certificate.Seen = true
	}
	return f.fill(Target{
		Name: "door", TLS: tls, Named: true, Churned: churned,
		Objective: time.Second, ObjectiveRatio: 0.99,
	})
}

// closedLoop is a usualTarget, without an objective, in a closed loop.
func closedLoop(tls bool) Target {
	t := usualTarget(tls, false)
	t.Loop, t.Objective, t.ObjectiveRatio = "closed", 0, 0
	return t
}

// seriesOf counts the series that a Prometheus stores of each family of a
// target.
func seriesOf(t *testing.T, target Target, classic, native bool) (by [numFamilies]int, all int) {
	t.Helper()
	h := DefaultHistograms()
	h.Classic, h.Native = classic, native
	return storedSeries(t, newExporter(t, Options{Histograms: h}, target), PerTarget)
}

// seriesOfChurn counts the series that a Prometheus stores of each family of a
// churn.
func seriesOfChurn(t *testing.T, classic, native bool) (by [numFamilies]int, all int) {
	t.Helper()
	h := DefaultHistograms()
	h.Classic, h.Native = classic, native
	return storedSeries(t, withChurns(t, newExporter(t, Options{Histograms: h}), newChurn()), PerChurn)
}

// storedSeries counts the series of each family of the scope: a native
// histogram is one, a classic one is its buckets, the infinite one, sum and
// count.
func storedSeries(t *testing.T, e *Exporter, scope Scope) (by [numFamilies]int, all int) {
	t.Helper()
	classic, native := e.options.Histograms.Classic, e.options.Histograms.Native
	families, err := checked(e).Gather()
	if err != nil {
		t.Fatal(err)
	}
	byName := map[string]*dto.MetricFamily{}
	for _, f := range families {
		byName[f.GetName()] = f
	}
	for i, m := range catalogue {
		if m.Scope != scope {
			continue
		}
		for _, metric := range byName[m.Name].GetMetric() {
			n := 1
			if h := metric.GetHistogram(); h != nil {
				n = 0
				if native {
					n++
				}
				if classic {
					n += len(h.GetBucket()) + 3
				}
			}
			by[i] += n
			all += n
		}
	}
	return by, all
}

// TestSeries holds the numbers that the documentation and the planning of a
// Prometheus rest on.
func TestSeries(t *testing.T) {
	http, https, churned := usualTarget(false, false), usualTarget(true, false), usualTarget(true, true)
	for _, row := range []struct {
		name            string
		target          Target
		classic, native bool
		want            int
	}{
		// Failures: schedule 2, resolve 3, connect 6, write 4, read 6, response 5
		// = 26; with tls 7 = 33. Openings: resolve 3, connect 6 = 9; with tls 16.
		// Single series: scheduled, requests, within objective, 2 objectives, 1
		// response, 2 bytes, in flight, backlog, rate, info, clamped, 2
		// connections, opened, lookups, addresses = 18. Several: 21 quantiles, 10
		// close reasons, 3 lookup failures, 2 address changes = 36.
		// Histograms of 16 bounds: latency 2, service time 2, phases without tls
		// 5 = 9, each 16 + 3 = 19: 171. Lateness 9 + 3 = 12.
		{"HTTP, classic", http, true, false, 26 + 9 + 18 + 36 + 171 + 12},
		{"HTTP, native", http, false, true, 26 + 9 + 18 + 36 + 9 + 1},
		{"HTTP, both", http, true, true, 26 + 9 + 18 + 36 + 171 + 12 + 9 + 1},
		// TLS: 1 kind of handshake, 4 of the certificate, histograms of the phase
		// and 2 of handshakes.
		{"HTTPS, classic", https, true, false, 33 + 16 + 18 + 36 + 5 + 171 + 3*19 + 12},
		{"HTTPS, native", https, false, true, 33 + 16 + 18 + 36 + 5 + 9 + 3 + 1},
		// Two more churn phases: requests, within objective, 33 failures and 2
		// latency histograms each.
		{"HTTPS with churn, classic", churned, true, false, 348 + 2*(1+1+33+2*19)},
		{"HTTPS with churn, native", churned, false, true, 121 + 2*(1+1+33+2)},
		// Without an intended time: no schedule/expired, 5 of the single series
		// (within objective, 2 objectives, rate, clamped), no quantiles, latency,
		// wait and lateness.
		{"closed loop over HTTP, classic", closedLoop(false), true, false, 272 - 1 - 5 - 21 - 3*19 - 12},
		{"closed loop over HTTPS, classic", closedLoop(true), true, false, 348 - 1 - 5 - 21 - 3*19 - 12},
		{"closed loop over HTTPS, native", closedLoop(true), false, true, 121 - 1 - 5 - 21 - 3 - 1},
	} {
		t.Run(row.name, func(t *testing.T) {
			if by, got := seriesOf(t, row.target, row.classic, row.native); got != row.want {
				t.Errorf("%d series, want %d", got, row.want)
				for i, n := range by {
					t.Logf("%s: %d", catalogue[i].Name, n)
				}
			}
		})
	}
}

func TestSeriesOfAChurn(t *testing.T) {
	for _, row := range []struct {
		name            string
		classic, native bool
		want            int
	}{
		// Single series: baseline, desired, ready, endpoints, leader, restore
		// pending, last beat = 7. Several: 3 phases, 5 states, 2 directions of
		// steps, 9 reasons = 19. Convergence in 2 directions, first and last
		// response, fail-over: 5 histograms, 11 bounds + 3 each.
		{"classic", true, false, 7 + 19 + 5*14},
		{"native", false, true, 7 + 19 + 5},
		{"both", true, true, 7 + 19 + 5*14 + 5},
	} {
		t.Run(row.name, func(t *testing.T) {
			if by, got := seriesOfChurn(t, row.classic, row.native); got != row.want {
				t.Errorf("%d series, want %d: %v", got, row.want, by)
			}
		})
	}
}
