package exporter

import (
	"bytes"
	"errors"
	"flag"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"

	"github.com/steadyprobe/steadyprobe/probe"
	"github.com/steadyprobe/steadyprobe/probe/record"
)

var update = flag.Bool("update", false, "write the expected files anew")

// ownNames are the families whose figures do not change from run to run.
func ownNames() (names []string) {
	for _, m := range Catalogue() {
		if m.Name != catalogue[buildInfo].Name {
			names = append(names, m.Name)
		}
	}
	return names
}

func TestExposition(t *testing.T) {
	for _, row := range []struct {
		name    string
		targets []Target
		churns  []Churn
	}{
		{"no_targets", nil, nil},
		{"plain", []Target{plainTarget()}, nil},
		{"all", []Target{plainTarget(), fullTarget()}, []Churn{testChurn()}},
		{"closed", []Target{closedTarget()}, nil},
		{"churned", []Target{churnedTarget()}, []Churn{newChurn()}},
		{"churns", nil, []Churn{testChurn(), newChurn()}},
	} {
		t.Run(row.name, func(t *testing.T) {
			e := withChurns(t, newExporter(t, testOptions(), row.targets...), row.churns...)
			file := filepath.Join("testdata", row.name+".prom")
			if *update {
				text, err := testutil.GatherAndFormat(checked(e), expfmt.TypeTextPlain, ownNames()...)
				if err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(file, text, 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			for range 2 { // the second scrape reuses the memory of the first
				if err := testutil.GatherAndCompare(checked(e), bytes.NewReader(want), ownNames()...); err != nil {
					t.Fatal(err)
				}
			}
		})
	}
}

// TestTargetThatBecameClosed keeps what was counted in an open loop: a counter
// must not vanish under its name.
func TestTargetThatBecameClosed(t *testing.T) {
	target := plainTarget()
	target.Loop = "closed"
	families, err := checked(newExporter(t, testOptions(), target)).Gather()
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]int{}
	for _, f := range families {
		got[f.GetName()] = len(f.GetMetric())
	}
	for f, want := range map[family]int{
		latency: 2, lateness: 1, latencyClamped: 1,
		phaseTime:         4, // wait, connect, processing, transfer
		latencyQuantile:   0,
		requestsPerSecond: 0,
	} {
		if name := catalogue[f].Name; got[name] != want {
			t.Errorf("%s: %d series, want %d", name, got[name], want)
		}
	}
}

func TestLint(t *testing.T) {
	e := withChurns(t, newExporter(t, testOptions(), plainTarget(), fullTarget()), testChurn())
	problems, err := testutil.GatherAndLint(checked(e))
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range problems {
		t.Errorf("%s: %s", p.Metric, p.Text)
	}
}

func TestCatalogueMatchesExposition(t *testing.T) {
	e := withChurns(t, newExporter(t, testOptions(), plainTarget(), fullTarget()), testChurn())
	families, err := checked(e).Gather()
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	for _, f := range families {
		i := slices.IndexFunc(catalogue[:], func(m Metric) bool { return m.Name == f.GetName() })
		if i < 0 {
			if !strings.HasPrefix(f.GetName(), "go_") && !strings.HasPrefix(f.GetName(), "process_") {
				t.Errorf("%s is not in the catalogue", f.GetName())
			}
			continue
		}
		m := catalogue[i]
		seen[m.Name] = true
		if got := strings.ToLower(f.GetType().String()); got != string(m.Type) {
			t.Errorf("%s is a %s, the catalogue says %s", m.Name, got, m.Type)
		}
		if f.GetHelp() != m.Help {
			t.Errorf("%s has the help %q, the catalogue says %q", m.Name, f.GetHelp(), m.Help)
		}
		want := slices.Clone(m.Labels)
		switch m.Scope {
		case PerTarget:
			want = append(want, "target", "front", "site")
		case PerChurn:
			want = append(want, "churn")
		}
		slices.Sort(want)
		for _, metric := range f.GetMetric() {
			var got []string
			for _, l := range metric.GetLabel() {
				got = append(got, l.GetName())
			}
			if !slices.Equal(got, want) {
				t.Errorf("%s has the labels %q, the catalogue says %q", m.Name, got, want)
			}
		}
	}
	for _, m := range catalogue {
		if !seen[m.Name] {
			t.Errorf("%s is in the catalogue and not exposed", m.Name)
		}
		if !slices.IsSorted(m.Labels) {
			t.Errorf("%s lists its labels unsorted: %q", m.Name, m.Labels)
		}
	}
	for _, name := range []string{"go_sched_latencies_seconds", "go_goroutines"} {
		if !slices.ContainsFunc(families, func(f *dto.MetricFamily) bool { return f.GetName() == name }) {
			t.Errorf("%s is not exposed", name)
		}
	}
}

func TestProvidersThatAreMissing(t *testing.T) {
	e := newExporter(t, Options{Histograms: DefaultHistograms()})
	families, err := checked(e).Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		if strings.HasPrefix(f.GetName(), "steadyprobe_") && f.GetName() != catalogue[buildInfo].Name && f.GetName() != catalogue[shardInfo].Name {
			t.Errorf("%s is exposed without anything to say", f.GetName())
		}
	}
}

func TestNewRefuses(t *testing.T) {
	for _, row := range []struct {
		name   string
		change func(*Histograms)
		want   string
	}{
		{"no kind", func(h *Histograms) { h.Classic, h.Native = false, false }, "neither classic nor native histograms are on: turn one of them on"},
		{"schema below", func(h *Histograms) { h.Schema = -1 }, "native schema -1 is out of range: choose 0 to 5"},
		{"schema above", func(h *Histograms) { h.Schema = 6 }, "native schema 6 is out of range: choose 0 to 5"},
		{"few buckets", func(h *Histograms) { h.MaxBuckets = 9 }, "at most 9 native buckets are too few: allow 10 or more"},
		{"no threshold", func(h *Histograms) { h.ZeroThreshold = 0 }, "zero threshold 0 is out of range: choose 2^-128 to 1 second"},
		{"wide threshold", func(h *Histograms) { h.ZeroThreshold = 2 }, "zero threshold 2 is out of range: choose 2^-128 to 1 second"},
		{"no bounds", func(h *Histograms) { h.Bounds = nil }, "there are no classic boundaries: take those of the recorders"},
	} {
		t.Run(row.name, func(t *testing.T) {
			o := testOptions()
			row.change(&o.Histograms)
			_, err := New(o)
			if want := "setting up histograms: " + row.want; err == nil || err.Error() != want {
				t.Errorf("got error %v, want %q", err, want)
			}
		})
	}
}

func TestSetTargetsRefuses(t *testing.T) {
	with := func(change func(*Target)) []Target {
		target := plainTarget()
		change(&target)
		return []Target{target}
	}
	label := func(name, value string) []Target {
		return with(func(t *Target) { t.Labels = map[string]string{name: value} })
	}
	for _, row := range []struct {
		name    string
		targets []Target
		want    string
	}{
		{"same name", []Target{plainTarget(), fullTarget(), plainTarget()}, `exposing target "plain": there are two of that name`},
		{"no ledger", with(func(t *Target) { t.Ledger = nil }), `exposing target "plain": it has no ledger or no snapshot`},
		{"no snapshot", with(func(t *Target) { t.Snapshot = nil }), `exposing target "plain": it has no ledger or no snapshot`},
		{"name not UTF-8", with(func(t *Target) { t.Name = "\xff" }), `exposing target "\xff": "\xff" is not valid UTF-8`},
		{"URL not UTF-8", with(func(t *Target) { t.URL = "\xff" }), `exposing target "plain": "\xff" is not valid UTF-8`},
		{"kept label", label("reason", "x"), `exposing target "plain": label name "reason" is kept for the metrics themselves`},
		{"churn label", label("churn", "x"), `exposing target "plain": label name "churn" is kept for the metrics themselves`},
		{"target label", label("target", "x"), `exposing target "plain": label name "target" is kept for the metrics themselves`},
		{"bucket label", label("le", "x"), `exposing target "plain": label name "le" is kept for the metrics themselves`},
		{"job label", label("job", "x"), `exposing target "plain": label name "job" is kept for the metrics themselves`},
		{"label with dash", label("a-b", "x"), `exposing target "plain": label name "a-b" is not valid`},
		{"empty label", label("", "x"), `exposing target "plain": label name "" is not valid`},
		{"reserved prefix", label("__x", "x"), `exposing target "plain": label name "__x" is not valid`},
		{"value not UTF-8", label("x", "\xff"), `exposing target "plain": value "\xff" of label "x" is not valid UTF-8`},
	} {
		t.Run(row.name, func(t *testing.T) {
			e := newExporter(t, testOptions(), fullTarget())
			err := e.SetTargets(row.targets)
			if err == nil || err.Error() != row.want {
				t.Errorf("got error %v, want %q", err, row.want)
			}
			if got := targetNames(t, e); !slices.Equal(got, []string{"full"}) {
				t.Errorf("after the error the targets are %q, want those of before", got)
			}
		})
	}
}

func targetNames(t *testing.T, e *Exporter) (names []string) {
	t.Helper()
	families, err := checked(e).Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		if f.GetName() != catalogue[targetInfo].Name {
			continue
		}
		for _, m := range f.GetMetric() {
			for _, l := range m.GetLabel() {
				if l.GetName() == labelTarget {
					names = append(names, l.GetValue())
				}
			}
		}
	}
	return names
}

func TestReloadChangesLabels(t *testing.T) {
	e := newExporter(t, testOptions(), plainTarget())
	info := func() string {
		text, err := testutil.GatherAndFormat(checked(e), expfmt.TypeTextPlain, catalogue[targetInfo].Name)
		if err != nil {
			t.Fatal(err)
		}
		_, rest, _ := strings.Cut(string(text), "gauge\n")
		return rest
	}
	const (
		alone = `steadyprobe_target_info{arrival="uniform",loop="open",pacing="precise",reuse="false",target="plain",url="http://192.0.2.1/"} 1` + "\n"
		// With another target that has user labels, those are empty here.
		both = `steadyprobe_target_info{arrival="uniform",front="",loop="open",pacing="precise",reuse="false",site="",target="plain",url="http://192.0.2.1/"} 1` + "\n" +
			`steadyprobe_target_info{arrival="uniform",front="ingress",loop="open",pacing="precise",reuse="true",site="fra1",target="full",url="https://shop.example.com/healthz"} 1` + "\n"
	)
	if got := info(); got != alone {
		t.Errorf("before the reload:\n%swant\n%s", got, alone)
	}
	if err := e.SetTargets([]Target{fullTarget(), plainTarget()}); err != nil {
		t.Fatal(err)
	}
	if got := info(); got != both {
		t.Errorf("after the reload:\n%swant\n%s", got, both)
	}
	if err := e.SetTargets([]Target{plainTarget()}); err != nil {
		t.Fatal(err)
	}
	if got := info(); got != alone {
		t.Errorf("after the removal:\n%swant\n%s", got, alone)
	}
}

func TestFewerSeriesThanBefore(t *testing.T) {
	many, few := fullTarget(), plainTarget()
	few.Name = many.Name
	snapshot, first := few.Snapshot, true
	few.Snapshot = func(s *record.Snapshot) {
		if many.Snapshot(s); !first {
			snapshot(s)
		}
		first = false
	}
	e := newExporter(t, testOptions(), few)
	if _, err := checked(e).Gather(); err != nil {
		t.Fatal(err)
	}
	alone := newExporter(t, testOptions(), few)
	want, err := testutil.GatherAndFormat(checked(alone), expfmt.TypeTextPlain, ownNames()...)
	if err != nil {
		t.Fatal(err)
	}
	if err := testutil.GatherAndCompare(checked(e), bytes.NewReader(want), ownNames()...); err != nil {
		t.Errorf("what an earlier scrape showed is still there: %v", err)
	}
}

func TestWrongClassicBuckets(t *testing.T) {
	target := plainTarget()
	snapshot := target.Snapshot
	target.Snapshot = func(s *record.Snapshot) {
		snapshot(s)
		s.Lateness.Classic = s.Lateness.Classic[1:]
	}
	e := newExporter(t, testOptions(), target)
	families, err := copied{e}.Gather()
	const want = `exposing "steadyprobe_lateness_seconds": counted in 9 classic buckets, but 10 are configured`
	if err == nil || err.Error() != want {
		t.Errorf("got error %v, want %q", err, want)
	}
	if len(families) < len(ownNames()) {
		t.Errorf("%d families besides the error, want the rest all the same", len(families))
	}
}

func TestRegister(t *testing.T) {
	e := newExporter(t, testOptions())
	g := prometheus.NewGauge(prometheus.GaugeOpts{Name: "steadyprobe_other_info", Help: "Test."})
	if err := e.Register(g); err != nil {
		t.Fatal(err)
	}
	if n, err := testutil.GatherAndCount(checked(e), "steadyprobe_other_info"); n != 1 || err != nil {
		t.Errorf("got %d series and error %v, want 1", n, err)
	}
	if err := e.Register(g); !errors.As(err, new(prometheus.AlreadyRegisteredError)) {
		t.Errorf("registering twice: got %v, want an AlreadyRegisteredError", err)
	}
}

// TestConcurrently lets scrapes and reloads meet; the race detector looks on,
// and every scrape must be whole.
func TestConcurrently(t *testing.T) {
	e := newExporter(t, testOptions(), plainTarget())
	text := expfmt.NewFormat(expfmt.TypeTextPlain)
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			for range 20 {
				if _, err := checked(e).Gather(); err != nil {
					t.Error(err)
				}
				scrape(t, e, text)
			}
		})
	}
	all.Go(func() {
		for range 50 {
			if err := e.SetTargets([]Target{plainTarget(), fullTarget()}); err != nil {
				t.Error(err)
			}
			if err := e.SetTargets([]Target{fullTarget()}); err != nil {
				t.Error(err)
			}
			if err := e.SetChurns([]Churn{testChurn(), newChurn()}); err != nil {
				t.Error(err)
			}
			if err := e.SetChurns(nil); err != nil {
				t.Error(err)
			}
		}
	})
	all.Wait()
}

// TestPageIsKept holds a scrape open while another runs: its families must not
// change under it.
func TestPageIsKept(t *testing.T) {
	target := plainTarget()
	scheduled, ledger := uint64(1), target.Ledger
	read := ledger
	target.Ledger = func() (l probe.Ledger) { l = read(); l.Scheduled = scheduled; return l }
	e := newExporter(t, testOptions(), target)
	value := func(families []*dto.MetricFamily) float64 {
		for _, f := range families {
			if f.GetName() == catalogue[requestsScheduled].Name {
				return f.GetMetric()[0].GetCounter().GetValue()
			}
		}
		return -1
	}
	first, done, err := e.Gather()
	if err != nil {
		t.Fatal(err)
	}
	scheduled = 2
	second, doneToo, err := e.Gather()
	if err != nil {
		t.Fatal(err)
	}
	if a, b := value(first), value(second); a != 1 || b != 2 {
		t.Errorf("the scrapes show %v and %v, want 1 and 2", a, b)
	}
	done()
	doneToo()
}

func TestLedgerIsReadFirst(t *testing.T) {
	target := plainTarget()
	var order []string
	ledger, snapshot := target.Ledger, target.Snapshot
	target.Ledger = func() probe.Ledger { order = append(order, "ledger"); return ledger() }
	target.Snapshot = func(s *record.Snapshot) { order = append(order, "snapshot"); snapshot(s) }
	scrape(t, newExporter(t, testOptions(), target), expfmt.NewFormat(expfmt.TypeTextPlain))
	if want := []string{"ledger", "snapshot"}; !slices.Equal(order, want) {
		t.Errorf("read %q, want %q", order, want)
	}
}

func TestCreatedTimestamps(t *testing.T) {
	e := withChurns(t, newExporter(t, testOptions(), plainTarget()), testChurn())
	families, err := checked(e).Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		i := slices.IndexFunc(catalogue[:], func(m Metric) bool { return m.Name == f.GetName() })
		if i < 0 || catalogue[i].Type == Gauge {
			continue
		}
		want := testStart
		if catalogue[i].Scope != PerProcess {
			want = testCreated
		}
		for _, m := range f.GetMetric() {
			got := m.GetCounter().GetCreatedTimestamp()
			if catalogue[i].Type == Histogram {
				got = m.GetHistogram().GetCreatedTimestamp()
			}
			if !got.AsTime().Equal(want) {
				t.Errorf("%s was created at %v, want %v", f.GetName(), got.AsTime(), want.Format(time.RFC3339))
			}
		}
	}
}
