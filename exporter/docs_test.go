package exporter

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/steadyprobe/steadyprobe/probe"
	"github.com/steadyprobe/steadyprobe/probe/record"
)

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
	b.WriteString(docsChurn)
	writeTable(&b, PerChurn)
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
		{"convergence, first and last response, fail-over of a churn", bounds.Convergence},
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
	var columns []column
	for _, target := range targets {
		for _, classic := range []bool{true, false} {
			var c column
			c.by, c.all = seriesOf(t, target, classic, !classic)
			columns = append(columns, c)
		}
	}
	writeColumns(b, PerTarget, columns)
	b.WriteString(docsSeriesOfChurn)
	columns = make([]column, 2)
	for i := range columns {
		columns[i].by, columns[i].all = seriesOfChurn(t, i == 0, i == 1)
	}
	writeColumns(b, PerChurn, columns)
}

// column is how many series each family has in one case.
type column struct {
	by  [numFamilies]int
	all int
}

func writeColumns(b *strings.Builder, scope Scope, columns []column) {
	for _, m := range Catalogue() {
		if m.Scope != scope {
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

const docsChurn = `
## Of each churn

Every series carries ` + "`churn`" + `, the name of the churn, besides the labels below, and exists from the start.
[CHURN.md](CHURN.md) says what a churn does and how these figures come about.

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

const docsSeriesOfChurn = `
## Series of a churn

Of each churn, besides what its targets have more because they are tied to one.

| metric | classic | native |
|---|---:|---:|
`
