package report

import (
	"bufio"
	"fmt"
	"io"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/HdrHistogram/hdrhistogram-go"
)

// TextOptions say what [WriteText] writes.
type TextOptions struct {
	// Spectra adds the detailed percentile spectra, some hundred lines.
	Spectra bool
}

// WriteText writes the results for people, laid out as a user of wrk2 expects
// it: summary, distribution, detailed percentile spectra where they are asked
// for, totals, and what must be known before the figures are believed. Values of
// a spectrum are in milliseconds, as the HdrHistogram plotter reads them. It
// returns the error of w.
func WriteText(w io.Writer, results []Result, o TextOptions) error {
	out := bufio.NewWriter(w)
	for i := range results {
		if i > 0 {
			fmt.Fprintln(out)
		}
		t := text{Writer: out, r: &results[i]}
		t.head()
		t.summary()
		t.distribution()
		if o.Spectra {
			t.spectrum("Recorded Latency, from the intended time", &t.r.Latency, t.r.latencySpectrum)
			t.spectrum("Uncorrected: service time, from the begun time", &t.r.ServiceTime, t.r.serviceSpectrum)
		}
		t.totals()
		t.breakdown()
		t.rates()
		t.notes()
	}
	if err := out.Flush(); err != nil {
		return fmt.Errorf("writing the text report: %w", err)
	}
	return nil
}

// WriteSummary writes what [WriteText] ends each result with: totals, failures,
// rates, and what must be known before the figures are believed. It is for a
// person at a terminal whose report goes elsewhere. It returns the error of w.
func WriteSummary(w io.Writer, results []Result) error {
	out := bufio.NewWriter(w)
	for i := range results {
		t := text{Writer: out, r: &results[i]}
		t.linef("%s", printable(t.r.Target))
		t.totals()
		t.breakdown()
		t.rates()
		t.notes()
	}
	if err := out.Flush(); err != nil {
		return fmt.Errorf("writing the summary: %w", err)
	}
	return nil
}

// text writes one result. Its writer keeps the first error.
type text struct {
	*bufio.Writer
	r *Result
}

func (t text) linef(format string, args ...any) { fmt.Fprintf(t, format+"\n", args...) }

func (t text) head() {
	interrupted := ""
	if t.r.Interrupted {
		interrupted = " (interrupted)"
	}
	t.linef("Running %s test @ %s%s", formatWindow(t.r.DurationSeconds), printable(t.r.URL), interrupted)
	if t.r.Target != t.r.URL {
		t.linef("  target %s", printable(t.r.Target))
	}
	traffic := "closed loop"
	if !t.r.closed() {
		traffic = printable(t.r.rate()) + " requests/s"
	}
	if t.r.Arrival == arrivalPoisson {
		traffic += ", poisson arrival"
	}
	if t.r.Pacing == pacingEconomy {
		traffic += ", economical pacing"
	}
	t.linef("  %s, %s", count(uint64(max(t.r.Connections, 0)), "connection"), traffic)
}

// row is one of the distributions that the tables show.
type row struct {
	name string
	*Summary
}

// rows returns those that there are: a closed loop has nothing that counts from
// an intended time.
func (t text) rows() []row {
	service, self := row{"Service time", &t.r.ServiceTime}, row{"Self latency", &t.r.SelfLatency}
	if t.r.closed() {
		return []row{service, self}
	}
	return []row{{"Latency", &t.r.Latency}, service, {"Lateness", &t.r.Lateness}, self}
}

// formatWindow drops the decimals of a whole number of seconds.
func formatWindow(s float64) string {
	if s == math.Trunc(s) {
		return fmt.Sprintf("%.0fs", s)
	}
	return formatSeconds(s)
}

func (t text) summary() {
	t.linef("\n  %-14s %10s %10s %10s %10s %10s %12s", "", "Avg", "Stdev", "p50", "p99", "Max", "Count")
	for _, s := range t.rows() {
		if s.Count == 0 {
			t.linef("  %-14s %10s %10s %10s %10s %10s %12d", s.name, "-", "-", "-", "-", "-", 0)
			continue
		}
		t.linef("  %-14s %10s %10s %10s %10s %10s %12d", s.name, formatSeconds(s.Mean), formatSeconds(s.StdDev),
			formatSeconds(s.P50), formatSeconds(s.P99), formatSeconds(s.Max), s.Count)
	}
}

// quantiles returns a summary's lines of the distribution table.
func (s *Summary) quantiles() [9]float64 {
	return [...]float64{s.P50, s.P75, s.P90, s.P95, s.P99, s.P999, s.P9999, s.P99999, s.Max}
}

func (t text) distribution() {
	title := "Latency Distribution (HdrHistogram - Recorded Latency)"
	if t.r.closed() {
		title = "Service Time Distribution (HdrHistogram - a closed loop has no latency)"
	}
	t.linef("\n  %s", title)
	fmt.Fprintf(t, "  %8s ", "")
	for _, s := range t.rows() {
		fmt.Fprintf(t, " %12s", s.name)
	}
	t.linef("")
	for i, percent := range []string{"50.000", "75.000", "90.000", "95.000", "99.000", "99.900", "99.990", "99.999", "100.000"} {
		fmt.Fprintf(t, "  %7s%% ", percent)
		for _, s := range t.rows() {
			value := "-"
			if s.Count > 0 {
				value = formatSeconds(s.quantiles()[i])
			}
			fmt.Fprintf(t, " %12s", value)
		}
		t.linef("")
	}
}

func (t text) spectrum(title string, s *Summary, brackets []hdrhistogram.Bracket) {
	if len(brackets) == 0 {
		return
	}
	t.linef("\n  %s, values in ms", title)
	t.linef("  Detailed Percentile spectrum:")
	t.linef("%12s %12s %12s %15s\n", "Value", "Percentile", "TotalCount", "1/(1-Percentile)")
	for _, b := range brackets {
		p := b.Quantile / 100
		inverse := "inf"
		if p < 1 {
			inverse = fmt.Sprintf("%.2f", 1/(1-p))
		}
		t.linef("%12.3f %12.6f %12d %15s", float64(b.ValueAt)/1e6, p, b.Count, inverse)
	}
	t.linef("#[Mean    = %12.3f, StdDeviation   = %12.3f]", s.Mean*1000, s.StdDev*1000)
	t.linef("#[Max     = %12.3f, Total count    = %12d]", s.Max*1000, s.Count)
}

func (t text) totals() {
	r := t.r
	t.linef("----------------------------------------------------------")
	w := &r.WithinWindow
	t.linef("  %s answered in %s, %s read", count(w.Answered, "request"), formatSeconds(r.DurationSeconds), formatBytes(float64(w.ReceivedBytes)))
	t.linef("  Scheduled %d: %d completed, %d in flight, %d in the backlog", r.Scheduled, r.Completed, r.InFlight, r.Backlog)
	if u := r.Unfinished; u != (Unfinished{}) {
		t.linef("  When the window ended: %d in flight, %d in the backlog", u.InFlight, u.Backlog)
	}
}

func (t text) breakdown() {
	r := t.r
	t.linef("  Responses: %s", inline(r.Responses))
	t.linef("  Failures: %d", r.Failures)
	t.counts(r.FailuresBy)
	t.linef("  Connections: %d opened, closed: %s", r.ConnectionsOpened, inline(r.ConnectionsClosedBy))
	if len(r.ConnectionFailuresBy) > 0 {
		t.linef("  Openings that failed and had no request:")
		t.counts(r.ConnectionFailuresBy)
	}
	if r.TLS.Handshakes == 0 {
		return
	}
	t.linef("  TLS handshakes: %d, resumed: %d", r.TLS.Handshakes, r.TLS.Resumed)
	for _, k := range r.TLS.Kinds {
		how := "full"
		if k.Resumed {
			how = "resumed"
		}
		t.linef("    %-60s %12d", strings.Join([]string{k.Version, k.Cipher, k.KeyExchange, how}, " "), k.Count)
	}
}

// counts writes one line for each count, the largest first.
func (t text) counts(by map[string]uint64) {
	names := slices.Sorted(maps.Keys(by))
	slices.SortStableFunc(names, func(a, b string) int {
		switch {
		case by[a] > by[b]:
			return -1
		case by[a] < by[b]:
			return 1
		}
		return 0
	})
	for _, name := range names {
		t.linef("    %-24s %12d", name, by[name])
	}
}

// inline writes counts in one line, ordered by name.
func inline(by map[string]uint64) string {
	if len(by) == 0 {
		return "none"
	}
	var parts []string
	for _, name := range slices.Sorted(maps.Keys(by)) {
		parts = append(parts, fmt.Sprintf("%s %d", name, by[name]))
	}
	return strings.Join(parts, ", ")
}

func (t text) rates() {
	r := t.r
	if r.closed() {
		t.linef("  Rate: closed loop, %.2f achieved: completed in the window, answered or not", r.AchievedRate)
	} else {
		share := ""
		if due := r.due(); due > 0 {
			share = fmt.Sprintf(" (%.2f%% of those due)", 100*r.achievedShare())
		}
		t.linef("  Rate: %s requests/s configured, %.2f achieved: begun in time, answered or not%s", printable(r.rate()), r.AchievedRate, share)
	}
	transfer := 0.0
	if r.DurationSeconds > 0 {
		transfer = float64(r.WithinWindow.ReceivedBytes) / r.DurationSeconds
	}
	t.linef("Requests/sec: %10.2f", r.AnsweredRate)
	t.linef("Transfer/sec: %10s", formatBytes(transfer))
}

func (t text) notes() {
	for _, n := range []struct {
		title string
		lines []string
	}{
		{"NOTE: these figures are not to be trusted:", t.r.Distrust},
		{noteTitle(t.r), t.r.Remarks},
		{"WARNING:", t.r.Warnings},
	} {
		if len(n.lines) == 0 {
			continue
		}
		t.linef("\n%s", n.title)
		for _, line := range n.lines {
			t.linef("  - %s", printable(line))
		}
	}
}

func noteTitle(r *Result) string {
	if r.ScheduleKept || r.closed() {
		return "NOTE: about these figures:"
	}
	return "NOTE: the schedule was not kept:"
}
