package report

import (
	"bufio"
	"fmt"
	"io"
	"math"
)

// PhaseRow is what was measured of one target while its backend was in one
// churn phase.
type PhaseRow struct {
	Target string
	Phase  string // settled, scaling_up or scaling_down

	Completed, Failed uint64
	TopFailure        string // the most frequent one, as STAGE/REASON; empty where none failed

	// Latency quantiles in seconds, of successes, timeouts and expired requests;
	// NaN where there were too few.
	P50, P99, P999 float64
}

// WritePhases writes latency and failures split by churn phase as a table for
// people, the rows of a target one below the other. It returns the error of w.
func WritePhases(w io.Writer, rows []PhaseRow) error {
	out := bufio.NewWriter(w)
	wide := len("Target")
	for i := range rows {
		wide = max(wide, len(rows[i].Target))
	}
	fmt.Fprintf(out, "  %-*s  %-12s %10s %8s %10s %10s %10s\n", wide, "Target", "Backend", "Requests", "Failed", "p50", "p99", "p99.9")
	before := ""
	for i := range rows {
		r := &rows[i]
		name := printable(r.Target)
		if r.Target == before {
			name = ""
		}
		before = r.Target
		fmt.Fprintf(out, "  %-*s  %-12s %10d %8d %10s %10s %10s", wide, name, r.Phase, r.Completed, r.Failed,
			Duration(r.P50), Duration(r.P99), Duration(r.P999))
		if r.TopFailure != "" {
			fmt.Fprintf(out, "  mostly %s", r.TopFailure)
		}
		fmt.Fprintln(out)
	}
	if err := out.Flush(); err != nil {
		return fmt.Errorf("writing the table of churn phases: %w", err)
	}
	return nil
}

// Duration returns a time for people, such as "70.00us", "1.25ms" or "30.00s",
// and a dash for NaN.
func Duration(seconds float64) string {
	if math.IsNaN(seconds) {
		return "-"
	}
	return formatSeconds(seconds)
}
