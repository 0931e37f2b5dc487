package app

import (
	"math"
	"slices"
	"testing"
	"time"

	"github.com/steadyprobe/steadyprobe/config"
	"github.com/steadyprobe/steadyprobe/probe"
)

// A closed loop has no latency, and is counted by churn phase as all others.
func TestViewOfTargets(t *testing.T) {
	text := "limits: {allow_closed_loop: true}\ntargets:\n" +
		targetOf("open", "http://127.0.0.1:1/", "rate: 1") +
		targetOf("churned", "http://127.0.0.1:1/", "rate: 1, churn: a") +
		targetOf("closed", "http://127.0.0.1:1/", "rate: max, churn: a") +
		"churns: [{name: a, embedded: {}, steps: [{replicas: 1, hold: 1s}]}]\n"
	loaded, _, err := config.Parse([]byte(text), "test.yml")
	if err != nil {
		t.Fatal(err)
	}
	d := &daemon{options: options(""), config: loaded, embedded: &fakeWorkload{}, loaded: time.Now()}
	if err := d.build(); err != nil {
		t.Fatal(err)
	}
	defer d.engine.close()
	defer d.closeDiscovery()
	want := []struct {
		name            string
		windows, phases int
	}{{"open", 3, 0}, {"churned", 3, 3}, {"closed", 0, 3}}
	for i, v := range d.viewTargets() {
		if w := want[i]; v.Name != w.name || len(v.Latency) != w.windows || len(v.Phases) != w.phases {
			t.Errorf("%s has %d windows and %d churn phases, want %s with %d and %d", v.Name, len(v.Latency), len(v.Phases), w.name, w.windows, w.phases)
		}
	}
}

func TestUnexpectedStatuses(t *testing.T) {
	accepts := config.Expect{Status: []string{"2xx", "3xx", "599"}}.Accepts
	for _, row := range []struct {
		name      string
		responses map[string]uint64
		failed    uint64
		want      []string
	}{
		{"none", map[string]uint64{"200": 9, "304": 1}, 0, nil},
		{"most frequent first", map[string]uint64{"200": 9, "404": 1, "502": 3, "503": 3}, 7, []string{"502", "503", "404"}},
		{"unknown ones that were accepted", map[string]uint64{"502": 3, "other": 9}, 3, []string{"502"}},
		{"unknown ones that were not", map[string]uint64{"502": 3, "other": 9}, 4, []string{"other", "502"}},
		{"counted before the ledger was", map[string]uint64{"502": 4}, 3, []string{"502"}},
	} {
		if got := unexpected(row.responses, row.failed, accepts); !slices.Equal(got, row.want) {
			t.Errorf("%s: %v, want %v", row.name, got, row.want)
		}
	}
}

func TestViewOfObjective(t *testing.T) {
	var l probe.Ledger
	l.WithinObjective[probe.Settled], l.WithinObjective[probe.ScalingUp] = 40, 2
	if got := viewObjective(&config.Objective{Ratio: 0.999}, &l); got != nil {
		t.Errorf("without a latency %+v", got)
	}
	got := viewObjective(&config.Objective{Latency: 250 * time.Millisecond}, &l)
	if got.Latency != 0.25 || !math.IsNaN(float64(got.Ratio)) || got.Within != 42 {
		t.Errorf("without a ratio %+v", got)
	}
	if got := viewObjective(&config.Objective{Latency: time.Second, Ratio: 0.999}, &l); got.Ratio != 0.999 {
		t.Errorf("with a ratio %+v", got)
	}
}
