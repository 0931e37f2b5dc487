package main

import (
	"math"
	"slices"
)

// summary is what several rounds gave.
type summary struct {
	Median, Least, Most float64
	Rounds              int
}

// summarise leaves out what is not a number; without any value there is no
// summary. The median of an even number of values is the mean of the two in the
// middle.
func summarise(values []float64) (s summary, ok bool) {
	var sorted []float64
	for _, v := range values {
		if !math.IsNaN(v) && !math.IsInf(v, 0) {
			sorted = append(sorted, v)
		}
	}
	n := len(sorted)
	if n == 0 {
		return s, false
	}
	slices.Sort(sorted)
	return summary{
		Median: (sorted[(n-1)/2] + sorted[n/2]) / 2,
		Least:  sorted[0],
		Most:   sorted[n-1],
		Rounds: n,
	}, true
}

// row is what one tool did in one case: its runs by round.
type row map[int]*result

// rows returns the runs of a case by tool, those that failed left out.
func rows(runs []*result, name string) map[string]row {
	all := map[string]row{}
	for _, r := range runs {
		if r.Case != name || r.Error != "" {
			continue
		}
		if all[r.Tool] == nil {
			all[r.Tool] = row{}
		}
		all[r.Tool][r.Round] = r
	}
	return all
}

// figures returns a figure of every round.
func (w row) figures(m metric) []float64 {
	var values []float64
	for _, r := range w {
		values = append(values, m.of(r))
	}
	return values
}

// ratios returns the figure divided by that of other in the same round, for
// every round that both have: what the machine did in a round met both.
func (w row) ratios(other row, m metric) []float64 {
	var values []float64
	for round, r := range w {
		if o := other[round]; o != nil {
			values = append(values, m.of(r)/m.of(o))
		}
	}
	return values
}
