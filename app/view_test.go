package app

import (
	"context"
	"testing"
	"time"

	"github.com/steadyprobe/steadyprobe/churn"
	"github.com/steadyprobe/steadyprobe/config"
)

// fakeWorkload is one that nothing is asked of.
type fakeWorkload struct{}

func (fakeWorkload) Scale(context.Context, int) error { return nil }

func (fakeWorkload) Observe(context.Context) (churn.Observation, error) {
	return churn.Observation{}, nil
}

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
	d := &daemon{options: options(""), config: loaded, embedded: fakeWorkload{}, loaded: time.Now()}
	if err := d.build(); err != nil {
		t.Fatal(err)
	}
	defer d.engine.close()
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
