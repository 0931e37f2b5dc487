package report

import (
	"math"
	"strconv"
)

type unit struct {
	name string
	size float64
}

// formatSeconds returns a time in the unit that suits it, with two decimals:
// "70.00us", "1.25ms", "30.00s".
func formatSeconds(s float64) string {
	return inUnit(s, 1000, []unit{{"us", 1e-6}, {"ms", 1e-3}, {"s", 1}})
}

// formatBytes returns a number of bytes as wrk2 does, in powers of 1024:
// "1.00KB".
func formatBytes(n float64) string {
	return inUnit(n, 1024, []unit{{"B", 1}, {"KB", 1 << 10}, {"MB", 1 << 20}, {"GB", 1 << 30}, {"TB", 1 << 40}})
}

// inUnit takes the first unit in which v, rounded to two decimals, is below
// step, or the last.
func inUnit(v, step float64, units []unit) string {
	u := units[0]
	for _, next := range units[1:] {
		if math.Round(math.Abs(v)/u.size*100)/100 < step {
			break
		}
		u = next
	}
	return strconv.FormatFloat(v/u.size, 'f', 2, 64) + u.name
}

// count returns a number with its noun: "1 tick", "2 ticks".
func count(n uint64, noun string) string {
	if n != 1 {
		noun += "s"
	}
	return strconv.FormatUint(n, 10) + " " + noun
}
