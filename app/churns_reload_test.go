package app

import (
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/steadyprobe/steadyprobe/config"
	"github.com/steadyprobe/steadyprobe/internal/faultdoor"
	"github.com/steadyprobe/steadyprobe/probe"
)

// TestReloadOfChurns ties targets to a churn that goes on, changes it and takes
// it away: what it has changed is put back before anything else is done, and
// the reload does not wait for that.
func TestReloadOfChurns(t *testing.T) {
	door := faultdoor.Listen(t, good())
	parsed := func(churns string, tied ...string) *config.Config {
		t.Helper()
		text := "targets:\n"
		for i, name := range []string{"one", "two"} {
			rest := "rate: 1"
			if tied[i] != "" {
				rest += ", churn: " + tied[i]
			}
			text += targetOf(name, door.URL("http"), rest)
		}
		c, _, err := config.Parse([]byte(text+churns), "test.yml")
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	of := func(replicas string) string {
		return "churns: [{name: a, embedded: {}, dry_run: false, steps: [{replicas: " + replicas + ", hold: 1h}]}]\n"
	}
	var mu sync.Mutex
	var scaled []int
	restore := make(chan struct{})
	workload := &fakeWorkload{onScale: func(replicas int) {
		mu.Lock()
		scaled = append(scaled, replicas)
		mu.Unlock()
		if replicas == 2 {
			<-restore
		}
	}}
	calls := func() []int {
		mu.Lock()
		defer mu.Unlock()
		return slices.Clone(scaled)
	}
	d := &daemon{options: options(""), config: parsed(of("4"), "a", ""), embedded: workload, loaded: time.Now()}
	if err := d.build(); err != nil {
		t.Fatal(err)
	}
	defer d.engine.close()
	defer d.closeDiscovery()
	ctx, cancel := contextFor(t)
	d.start(ctx)
	eventually(t, "the first step", func() bool { return slices.Equal(calls(), []int{4}) })

	// In embedded churns Check refuses what is no demo, so that the plan is made here.
	to := func(c *config.Config) {
		t.Helper()
		p, err := d.plan(c, nil)
		if err != nil {
			t.Fatal(err)
		}
		if err := d.show(p); err != nil {
			t.Fatal(err)
		}
		d.apply(ctx, p)
	}
	phases := func(what string, one, two bool) {
		t.Helper()
		for name, tied := range map[string]bool{"one": one, "two": two} {
			p := d.named(name)
			before := p.prober.Ledger()
			var now probe.Ledger
			p.prober.Take(d.engine.clock.Now())
			eventually(t, "a request", func() bool { now = p.prober.Ledger(); return now.Done() > before.Done() && now.InFlight == 0 })
			untied := now.Completed[probe.NoChurn][probe.Success] > before.Completed[probe.NoChurn][probe.Success]
			if untied == tied {
				t.Errorf("%s: target %s is tied: %v, want %v", what, name, !untied, tied)
			}
		}
	}
	phases("at first", true, false)
	to(parsed(of("4"), "", "a"))
	phases("the other one", false, true)
	to(parsed(of("4"), "a", "a"))
	phases("both", true, true)
	if got := calls(); !slices.Equal(got, []int{4}) {
		t.Errorf("scaled %v by reloads that say nothing else of the churn", got)
	}

	to(parsed(of("3"), "a", ""))
	eventually(t, "the baseline", func() bool { return slices.Equal(calls(), []int{4, 2}) })
	phases("changed", true, false)
	if n := len(d.churns.view()); n != 1 {
		t.Errorf("%d churns are shown, want 1", n)
	}
	to(parsed("", "", "")) // before the one of before has put back what it changed
	to(parsed(of("1"), "a", "a"))
	if got := calls(); !slices.Equal(got, []int{4, 2}) {
		t.Errorf("scaled %v while the baseline is restored", got)
	}
	close(restore)
	eventually(t, "the last churn", func() bool { return slices.Equal(calls(), []int{4, 2, 1}) })
	cancel()
	d.stop()
	if got := calls(); !slices.Equal(got, []int{4, 2, 1, 2}) {
		t.Errorf("scaled %v, want the baseline 2 in the end", got)
	}
}
