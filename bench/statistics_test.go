package main

import (
	"math"
	"slices"
	"testing"
)

func TestSummarise(t *testing.T) {
	nan, inf := math.NaN(), math.Inf(1)
	for _, row := range []struct {
		name   string
		values []float64
		want   summary
		ok     bool
	}{
		{"nothing", nil, summary{}, false},
		{"only what is no number", []float64{nan, inf}, summary{}, false},
		{"one", []float64{3}, summary{3, 3, 3, 1}, true},
		{"odd", []float64{9, 1, 2}, summary{2, 1, 9, 3}, true},
		{"even", []float64{4, 1, 2, 9}, summary{3, 1, 9, 4}, true}, // (2 + 4) / 2
		{"a round without it", []float64{nan, 5, 1}, summary{3, 1, 5, 2}, true},
	} {
		t.Run(row.name, func(t *testing.T) {
			if got, ok := summarise(row.values); got != row.want || ok != row.ok {
				t.Errorf("summary = %+v %v, want %+v %v", got, ok, row.want, row.ok)
			}
		})
	}
}

// withCPU is a run whose CPU per request is so many seconds.
func withCPU(tool string, round int, seconds float64) *result {
	return &result{Case: "c", Tool: tool, Round: round, User: 75 * seconds, System: 25 * seconds, Door: counts{Requests: 100}}
}

func TestRatiosArePairedByRound(t *testing.T) {
	failed := withCPU("b", 4, 1)
	failed.Error = "exit status 1"
	elsewhere := withCPU("b", 3, 1)
	elsewhere.Case = "another"
	tools := rows([]*result{
		withCPU("a", 1, 8), withCPU("a", 2, 20), withCPU("a", 3, 7), withCPU("a", 4, 7),
		withCPU("b", 1, 4), withCPU("b", 2, 5), elsewhere, failed,
	}, "c")
	got := tools["a"].ratios(tools["b"], cpu)
	slices.Sort(got)
	// 8/4 and 20/5; rounds 3 and 4 have no run of b.
	if !slices.Equal(got, []float64{2, 4}) {
		t.Errorf("ratios = %v, want 2 and 4", got)
	}
	if got := tools["a"].ratios(tools["c"], cpu); len(got) != 0 {
		t.Errorf("ratios to a tool that did not run = %v, want none", got)
	}
	if got := tools["c"].ratios(tools["a"], cpu); len(got) != 0 {
		t.Errorf("ratios of a tool that did not run = %v, want none", got)
	}
}

func TestVerdict(t *testing.T) {
	for _, row := range []struct {
		name   string
		limit  limit
		want   string
		bounds string
	}{
		{"below", limit{"c", "a", cpu, "b", 0, 2.5}, "missed", "at most 2.50 x"}, // the median of 2, 3, 4 is 3
		{"at it", limit{"c", "a", cpu, "b", 0, 3}, "met", "at most 3.00 x"},
		{"above", limit{"c", "a", cpu, "b", 3, math.Inf(1)}, "met", "at least 3.00 x"},
		{"by itself", limit{"c", "b", cpu, "", 0.9e-3, 1.1e-3}, "met", "900 us to 1.10 ms"},
		{"not there", limit{"c", "a", cpu, "x", 0, 3}, "not measured", "at most 3.00 x"},
		{"no such figure", limit{"c", "a", p50, "b", 0, 3}, "not measured", "at most 3.00 x"},
	} {
		t.Run(row.name, func(t *testing.T) {
			_, got := row.limit.verdict([]*result{
				withCPU("a", 1, 2e-3), withCPU("a", 2, 4e-3), withCPU("a", 3, 3e-3),
				withCPU("b", 1, 1e-3), withCPU("b", 2, 1e-3), withCPU("b", 3, 1e-3),
			})
			if got != row.want || row.limit.bounds() != row.bounds {
				t.Errorf("verdict = %q on %q, want %q on %q", got, row.limit.bounds(), row.want, row.bounds)
			}
		})
	}
}

// TestLimitsAreMeasured checks that every limit is about a case, and about
// tools that take part in it.
func TestLimitsAreMeasured(t *testing.T) {
	for _, l := range limits() {
		if !slices.ContainsFunc(catalogue(), func(w workload) bool {
			return w.name == l.in && fit(w, l.tool) && (l.against == "" || fit(w, l.against))
		}) {
			t.Errorf("the limit of %s in %q against %q is not measured", l.tool, l.in, l.against)
		}
	}
}
