package exporter

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
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
// target: a native histogram is one, a classic one is its buckets, the
// infinite one, sum and count.
func seriesOf(t *testing.T, target Target, classic, native bool) (by [numFamilies]int, all int) {
	t.Helper()
	h := DefaultHistograms()
	h.Classic, h.Native = classic, native
	families, err := checked(newExporter(t, Options{Histograms: h}, target)).Gather()
	if err != nil {
		t.Fatal(err)
	}
	byName := map[string]*dto.MetricFamily{}
	for _, f := range families {
		byName[f.GetName()] = f
	}
	for i, m := range catalogue {
		if m.Scope != PerTarget {
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

func TestDocumentation(t *testing.T) {
	file := filepath.Join("..", "docs", "METRICS.md")
	want := documentation(t)
	if *update {
		if err := os.WriteFile(file, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if string(got) != want {
		t.Errorf("docs/METRICS.md does not say what the catalogue says: run go test ./exporter -update")
	}
}

func documentation(t *testing.T) string {
	var b strings.Builder
	b.WriteString(docsHead)
	writeTable(&b, PerTarget)
	b.WriteString(docsProcess)
	writeTable(&b, PerProcess)
	writeTaxonomy(&b)
	b.WriteString(docsHistograms)
	bounds := record.DefaultBounds()
	for _, f := range []struct {
		names  string
		bounds *record.Boundaries
	}{
		{"latency, service time, phase, TLS handshake", bounds.Latency},
		{"lateness, self latency", bounds.Lateness},
	} {
		fmt.Fprintf(&b, "| %s | %s |\n", f.names, strings.Trim(fmt.Sprint(f.bounds.Seconds()), "[]"))
	}
	writeSeries(t, &b)
	return b.String()
}

func writeTable(b *strings.Builder, scope Scope) {
	b.WriteString("| metric | type | labels | meaning |\n|---|---|---|---|\n")
	for _, m := range Catalogue() {
		if m.Scope != scope {
			continue
		}
		labels := ""
		for i, l := range m.Labels {
			if i > 0 {
				labels += ", "
			}
			labels += "`" + l + "`"
		}
		meaning := m.Help
		if m.Note != "" {
			meaning += " " + m.Note
		}
		fmt.Fprintf(b, "| `%s` | %s | %s | %s |\n", m.Name, m.Type, labels, meaning)
	}
}

func writeTaxonomy(b *strings.Builder) {
	b.WriteString(docsTaxonomy)
	last := ""
	for i := range probe.NumOutcomes {
		o := probe.Outcome(i)
		switch {
		case o == probe.Success:
			continue
		case o.Stage() == last:
			fmt.Fprintf(b, ", `%s`", o.Reason())
		default:
			if last != "" {
				b.WriteString(" |\n")
			}
			fmt.Fprintf(b, "| `%s` | `%s`", o.Stage(), o.Reason())
		}
		last = o.Stage()
	}
	b.WriteString(" |\n")
}

func writeSeries(t *testing.T, b *strings.Builder) {
	b.WriteString(docsSeries)
	targets := []Target{usualTarget(false, false), usualTarget(true, false), usualTarget(true, true), closedLoop(true)}
	type column struct {
		by  [numFamilies]int
		all int
	}
	var columns []column
	for _, target := range targets {
		for _, classic := range []bool{true, false} {
			var c column
			c.by, c.all = seriesOf(t, target, classic, !classic)
			columns = append(columns, c)
		}
	}
	for _, m := range Catalogue() {
		if m.Scope != PerTarget {
			continue
		}
		fmt.Fprintf(b, "| `%s` |", m.Name)
		for _, c := range columns {
			for i := range catalogue {
				if catalogue[i].Name == m.Name {
					fmt.Fprintf(b, " %d |", c.by[i])
				}
			}
		}
		b.WriteString("\n")
	}
	b.WriteString("| **all** |")
	for _, c := range columns {
		fmt.Fprintf(b, " **%d** |", c.all)
	}
	b.WriteString("\n")
}

const docsHead = `# Metrics

<!-- Written by go test ./exporter -update from exporter/catalogue.go. Do not edit. -->

These names, types and labels are the public interface of steadyprobe: they are only added to, never
renamed. The words are those of [TERMINOLOGY.md](TERMINOLOGY.md); how each figure is taken says
[MEASUREMENT.md](MEASUREMENT.md). All times are in seconds.

## Of each target

Besides the labels below, every series carries ` + "`target`" + ` and the union of the user labels of all
targets; a label that a target does not set is empty there. Counters begin at 0 with the process: this
version reads its configuration once, when it starts.

For every target, at every scrape:

` + "```" + `
requests_scheduled_total = sum(requests_total) + requests_in_flight + requests_backlog
` + "```" + `

Histograms may be ahead of the counters by the requests in flight, and are never behind.

`

const docsProcess = `
## Of the process

`

const docsTaxonomy = `
Also exposed are the usual ` + "`process_*`" + ` metrics where the system tells them, and the usual ` + "`go_*`" + ` metrics with
` + "`go_sched_latencies_seconds`" + `, the time that goroutines wait to run.

## Closed lists

Every pair of ` + "`failure_stage` and `reason`" + ` that a target can meet is exposed at 0 from the start: the stage
resolve needs a host that is a name, tls needs TLS, proxy a PROXY header. Openings that no request was bound to fail at the
stages resolve, connect, proxy and tls. ` + "`schedule/shutdown` and `connect/local_resource`" + ` are the probe's own.

| failure_stage | reason |
|---|---|
`

const docsHistograms = `
` + "`protocol`" + ` is http1.0, http1.1, http2, http3, websocket, grpc, tcp or tls. ` + "`tls_version`" + ` is TLS1.0 to TLS1.3.
` + "`resumed`" + ` is true or false.

## Histograms

Each family is exposed as classic and as native histogram under one name; each kind can be turned off. Text formats show
classic buckets, the protobuf format carries both. To store both kinds, scrape with ` + "`scrape_native_histograms: true`" + `
and ` + "`always_scrape_classic_histograms: true`" + ` (Prometheus 3).

Native buckets have schema 3 (each bound is 9 % above the last) and at most 160 populated ones; a histogram that needs more goes
to a coarser schema by itself, and Prometheus merges the two exactly.

| families | classic boundaries |
|---|---|
`

const docsSeries = `
## Series of a target

Of a target whose host is a name and that has an objective, has seen one status code and, over TLS, one kind of handshake. Each
further one adds a series; a closed loop has no objective and nothing that counts from an intended time. "Classic" is what text formats show; with native histograms alone each histogram is one series; with
both kinds stored, a target has the classic number and one more for each histogram.

| metric | HTTP, classic | native | HTTPS, classic | native | HTTPS with churn, classic | native | HTTPS, closed loop, classic | native |
|---|---:|---:|---:|---:|---:|---:|---:|---:|
`
