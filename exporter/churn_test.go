package exporter

import (
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/steadyprobe/steadyprobe/probe"
	"github.com/steadyprobe/steadyprobe/probe/record"
)

func TestSetChurnsRefuses(t *testing.T) {
	for _, row := range []struct {
		name   string
		churns []Churn
		want   string
	}{
		{"same name", []Churn{testChurn(), newChurn(), testChurn()}, `exposing churn "shop-backend": there are two of that name`},
		{"no function", []Churn{{Name: "a"}}, `exposing churn "a": it has no function that reads its state`},
		{"name not UTF-8", []Churn{{Name: "\xff", Read: newChurn().Read}}, `exposing churn "\xff": "\xff" is not valid UTF-8`},
	} {
		t.Run(row.name, func(t *testing.T) {
			e := withChurns(t, newExporter(t, testOptions()), newChurn())
			if err := e.SetChurns(row.churns); err == nil || err.Error() != row.want {
				t.Errorf("got error %v, want %q", err, row.want)
			}
			if got := churnNames(t, e); !slices.Equal(got, []string{"a-backend"}) {
				t.Errorf("after the error the churns are %q, want those of before", got)
			}
		})
	}
}

func churnNames(t *testing.T, e *Exporter) (names []string) {
	t.Helper()
	families, err := checked(e).Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		if f.GetName() == catalogue[churnLeader].Name {
			for _, m := range f.GetMetric() {
				names = append(names, m.GetLabel()[0].GetValue())
			}
		}
	}
	return names
}

// TestChurnsComeAndGo replaces the churns between scrapes, and the targets
// beside them.
func TestChurnsComeAndGo(t *testing.T) {
	e := newExporter(t, testOptions())
	check := func(what string, want ...string) {
		t.Helper()
		if got := churnNames(t, e); !slices.Equal(got, want) {
			t.Errorf("%s: churns %q, want %q", what, got, want)
		}
	}
	check("at first")
	withChurns(t, e, testChurn(), newChurn())
	check("added", "a-backend", "shop-backend")
	if err := e.SetTargets([]Target{plainTarget()}); err != nil {
		t.Fatal(err)
	}
	check("with other targets", "a-backend", "shop-backend")
	withChurns(t, e, testChurn())
	check("one removed", "shop-backend")
	withChurns(t, e)
	check("all removed")
}

// TestChurnPhaseAndState has exactly one 1 among the phases and among the
// states, and none for what is not in the lists.
func TestChurnPhaseAndState(t *testing.T) {
	for _, row := range []struct {
		name  string
		phase probe.ChurnPhase
		state string
		want  []string // label values that are 1
	}{
		{"settled", probe.Settled, "running", []string{"settled", "running"}},
		{"scaling up in a dry run", probe.ScalingUp, "dry_run", []string{"scaling_up", "dry_run"}},
		{"scaling down, on standby", probe.ScalingDown, "standby", []string{"scaling_down", "standby"}},
		{"paused", probe.Settled, "paused", []string{"settled", "paused"}},
		{"stopped", probe.Settled, "stopped", []string{"settled", "stopped"}},
		{"neither", probe.NoChurn, "", nil},
		{"unknown state", probe.Settled, "waiting", []string{"settled"}},
	} {
		t.Run(row.name, func(t *testing.T) {
			c := Churn{Name: "a", Read: func(s *ChurnState) { s.Phase, s.State = row.phase, row.state }}
			families, err := checked(withChurns(t, newExporter(t, testOptions()), c)).Gather()
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			series := 0
			for _, f := range families {
				if n := f.GetName(); n != catalogue[churnPhase].Name && n != catalogue[churnState].Name {
					continue
				}
				for _, m := range f.GetMetric() {
					series++
					if m.GetGauge().GetValue() == 1 {
						got = append(got, m.GetLabel()[1].GetValue())
					}
				}
			}
			if !slices.Equal(got, row.want) {
				t.Errorf("1 for %q, want %q", got, row.want)
			}
			if series != 3+5 {
				t.Errorf("%d series, want 3 phases and 5 states", series)
			}
		})
	}
}

// TestConvergenceWithAddedBoundary counts on boundaries that a user added to,
// and is scraped beside a churn that says nothing: what one showed must not be
// seen at the other.
func TestConvergenceWithAddedBoundary(t *testing.T) {
	bounds, err := record.NewBounds(record.Additional{Convergence: []float64{2}})
	if err != nil {
		t.Fatal(err)
	}
	counted := record.NewHistogram(bounds.Convergence)
	counted.Observe(1500 * time.Millisecond)
	counted.Observe(400 * time.Second)
	first := Churn{Name: "a", Read: func(s *ChurnState) {
		counted.Snapshot(&s.Convergence[Up])
		s.Steps[Up], s.Errors[ChurnStuck], s.Leader = 2, 1, true
	}}
	second := Churn{Name: "b", Read: func(*ChurnState) {}}
	o := Options{Histograms: DefaultHistograms()}
	o.Histograms.Bounds = bounds
	e := withChurns(t, newExporter(t, o), first, second)
	want := `# HELP steadyprobe_churn_convergence_seconds Time from the scale call of a step until the ready endpoints matched for good.
# TYPE steadyprobe_churn_convergence_seconds histogram
` + convergenceText("a", "down", 0, 0, 0, "0") + convergenceText("a", "up", 0, 1, 2, "401.5") +
		convergenceText("b", "down", 0, 0, 0, "0") + convergenceText("b", "up", 0, 0, 0, "0") +
		`# HELP steadyprobe_churn_leader Whether this process is the one that churns the workload.
# TYPE steadyprobe_churn_leader gauge
steadyprobe_churn_leader{churn="a"} 1
steadyprobe_churn_leader{churn="b"} 0
# HELP steadyprobe_churn_steps_total Steps of the plan whose scale call was accepted, by the direction in which they change the replicas.
# TYPE steadyprobe_churn_steps_total counter
steadyprobe_churn_steps_total{churn="a",direction="down"} 0
steadyprobe_churn_steps_total{churn="a",direction="up"} 2
steadyprobe_churn_steps_total{churn="b",direction="down"} 0
steadyprobe_churn_steps_total{churn="b",direction="up"} 0
`
	for range 2 {
		if err := testutil.GatherAndCompare(checked(e), strings.NewReader(want),
			catalogue[churnConvergence].Name, catalogue[churnLeader].Name, catalogue[churnSteps].Name); err != nil {
			t.Fatal(err)
		}
	}
}

// TestTimesOfBackends has each of the three times where it belongs, on
// boundaries that a user added to.
func TestTimesOfBackends(t *testing.T) {
	bounds, err := record.NewBounds(record.Additional{Convergence: []float64{2}})
	if err != nil {
		t.Fatal(err)
	}
	c := Churn{Name: "a", Read: func(s *ChurnState) {
		s.FirstResponse = distribution(bounds.Convergence, 1500*time.Millisecond)
		s.LastResponse = distribution(bounds.Convergence, 1500*time.Millisecond, 1500*time.Millisecond)
		s.Failover = distribution(bounds.Convergence, 400*time.Second)
	}}
	o := Options{Histograms: DefaultHistograms()}
	o.Histograms.Bounds = bounds
	e := withChurns(t, newExporter(t, o), c)
	families, err := checked(e).Gather()
	if err != nil {
		t.Fatal(err)
	}
	type found struct {
		count uint64
		to2   uint64 // up to 2 s
	}
	got := map[string]found{}
	for _, f := range families {
		for _, m := range f.GetMetric() {
			for _, b := range m.GetHistogram().GetBucket() {
				if b.GetUpperBound() == 2 {
					got[f.GetName()] = found{m.GetHistogram().GetSampleCount(), b.GetCumulativeCount()}
				}
			}
		}
	}
	want := map[string]found{
		"steadyprobe_churn_convergence_seconds":    {},
		"steadyprobe_churn_first_response_seconds": {1, 1},
		"steadyprobe_churn_last_response_seconds":  {2, 2},
		"steadyprobe_churn_failover_seconds":       {1, 0},
	}
	if !maps.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

// convergenceText is a histogram whose buckets up to 1 s hold below, those up
// to 300 s at, and the infinite one all.
func convergenceText(churn, direction string, below, at, all int, sum string) string {
	var b strings.Builder
	name, labels := "steadyprobe_churn_convergence_seconds", `{churn="`+churn+`",direction="`+direction+`"`
	line := func(suffix, le, value string) {
		b.WriteString(name + suffix + labels + le + "} " + value + "\n")
	}
	digit := func(n int) string { return string(rune('0' + n)) }
	for _, le := range []string{"0.1", "0.25", "0.5", "1"} {
		line("_bucket", `,le="`+le+`"`, digit(below))
	}
	for _, le := range []string{"2", "2.5", "5", "10", "30", "60", "120", "300"} {
		line("_bucket", `,le="`+le+`"`, digit(at))
	}
	line("_bucket", `,le="+Inf"`, digit(all))
	line("_sum", "", sum)
	line("_count", "", digit(all))
	return b.String()
}

func TestChurnErrorsAreThoseOfTheCatalogue(t *testing.T) {
	seen := map[string]bool{}
	for i := range NumChurnErrors {
		reason := ChurnError(i).String()
		if reason == "" || seen[reason] {
			t.Errorf("reason %d is %q, want another one", i, reason)
		}
		seen[reason] = true
		if !strings.Contains(catalogue[churnErrors].Note, "`"+reason+"`") {
			t.Errorf("the catalogue does not tell of the reason %s", reason)
		}
	}
}
