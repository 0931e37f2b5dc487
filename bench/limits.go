package main

import (
	"fmt"
	"math"
	"strings"
)

// limit is what the project wants to reach in a case. The value is the figure
// of tool, divided by that of against in the same round where there is one.
type limit struct {
	in      string
	tool    string
	what    metric
	against string
	least   float64
	most    float64
}

// limits returns all of them. They hold on a quiet machine only, so nothing
// fails where one is missed.
func limits() []limit {
	const economy = reference + " economy"
	inf := math.Inf(1)
	return []limit{
		{"constant-1000", reference, latenessP50, "", 0, 40e-6},
		{"constant-1000", reference, latenessP99, "", 0, 120e-6},
		{"constant-1000", reference, p50, "wrk2", 0, 1. / 8},
		{"constant-10000", reference, p50, "wrk2", 0, 1. / 8},
		{"constant-1000", reference, cpu, "vegeta", 0, 0.35},
		{"constant-10000", reference, cpu, "wrk2", 0, 3},
		{"constant-10000", reference, cpu, "vegeta", 0, 0.45},
		{"constant-10000", economy, cpu, "wrk2", 0, 1},
		{"closed", reference, doorRate, "wrk", 1, inf},
		{"closed", reference, doorRate, "h2load", 1, inf},
		{"tls12-full", reference, handshakeRate, "ab", 1, inf},
		{"tls13-full", reference, handshakeRate, "ab", 1, inf},
		{"tls12-resumed", reference, handshakeRate, "wrk", 0.9, inf},
		{"tls13-resumed", reference, handshakeRate, "wrk", 0.9, inf},
		{"stall", reference, p95Error, "", 0.95, 1.05},
	}
}

// verdict judges a limit by the median of its rounds.
func (l limit) verdict(runs []*result) (s summary, text string) {
	tools := rows(runs, l.in)
	values := tools[l.tool].figures(l.what)
	if l.against != "" {
		values = tools[l.tool].ratios(tools[l.against], l.what)
	}
	s, ok := summarise(values)
	switch {
	case !ok:
		return s, "not measured"
	case s.Median < l.least || s.Median > l.most:
		return s, "missed"
	}
	return s, "met"
}

// show returns a value of the limit.
func (l limit) show(v float64) string {
	if l.against != "" {
		return significant(v) + " x"
	}
	return l.what.show(v)
}

// bounds returns what the value has to be.
func (l limit) bounds() string {
	switch {
	case math.IsInf(l.most, 1):
		return "at least " + l.show(l.least)
	case l.least == 0:
		return "at most " + l.show(l.most)
	}
	return l.show(l.least) + " to " + l.show(l.most)
}

// renderLimits returns the table of limits of the cases that were run.
func renderLimits(cases []workload, runs []*result) string {
	var b strings.Builder
	b.WriteString("## Limits\n\n| case | figure | against | limit | median (least to most) | |\n|---|---|---|---|---|---|\n")
	for _, l := range limits() {
		for _, w := range cases {
			if w.name != l.in {
				continue
			}
			s, verdict := l.verdict(runs)
			found := "–"
			if s.Rounds > 0 {
				found = spread(s, l.show)
			}
			what := fmt.Sprintf("%s, %s", l.tool, l.what)
			fmt.Fprintf(&b, "| %s | %s | %s | %s | %s | %s |\n", l.in, what, l.against, l.bounds(), found, verdict)
		}
	}
	return b.String()
}
