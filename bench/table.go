package main

import (
	"fmt"
	"strings"
)

// render returns the whole result as a page of Markdown: the machine, a table
// for each case, and the limits.
func render(m machine, cases []workload, runs []*result) string {
	var b strings.Builder
	b.WriteString("# Side by side\n\n")
	b.WriteString(m.render())
	for i := range cases {
		b.WriteString(renderCase(&cases[i], runs))
	}
	b.WriteString(renderLimits(cases, runs))
	return b.String()
}

// renderCase returns the table of one case: a row for each tool, in the order
// in which they ran, and a line for each that could not take part.
func renderCase(w *workload, runs []*result) string {
	var b strings.Builder
	fmt.Fprintf(&b, "## %s: %s\n\n| tool |", w.name, w.title)
	for _, m := range w.columns {
		fmt.Fprintf(&b, " %s |", m)
	}
	for _, m := range w.ratios {
		fmt.Fprintf(&b, " %s: %s ÷ it |", m, reference)
	}
	b.WriteString("\n|---|" + strings.Repeat("---|", len(w.columns)+len(w.ratios)) + "\n")
	tools := rows(runs, w.name)
	var notes []string
	done := map[string]bool{}
	for _, r := range runs {
		if r.Case != w.name {
			continue
		}
		if r.Error != "" {
			notes = append(notes, fmt.Sprintf("- %s, round %d: %s\n", r.Tool, r.Round, r.Error))
		}
		if !done[r.Tool] && tools[r.Tool] != nil {
			done[r.Tool] = true
			b.WriteString(renderRow(w, r.Tool, tools))
		}
	}
	b.WriteString("\n")
	if len(notes) > 0 {
		b.WriteString("Left out:\n\n" + strings.Join(notes, "") + "\n")
	}
	return b.String()
}

func renderRow(w *workload, tool string, tools map[string]row) string {
	var b strings.Builder
	fmt.Fprintf(&b, "| %s |", tool)
	for _, m := range w.columns {
		b.WriteString(" " + cell(tools[tool].figures(m), m.show) + " |")
	}
	for _, m := range w.ratios {
		if tool == reference {
			b.WriteString(" 1 |")
			continue
		}
		b.WriteString(" " + cell(tools[reference].ratios(tools[tool], m), significant) + " |")
	}
	return b.String() + "\n"
}

// cell returns what rounds gave, or a dash for nothing.
func cell(values []float64, show func(float64) string) string {
	s, ok := summarise(values)
	if !ok {
		return "–"
	}
	return spread(s, show)
}

// spread returns "median (least to most)", or the value that all rounds agree on.
func spread(s summary, show func(float64) string) string {
	median, least, most := show(s.Median), show(s.Least), show(s.Most)
	if least == most {
		return median
	}
	return fmt.Sprintf("%s (%s to %s)", median, least, most)
}
