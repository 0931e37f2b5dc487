package app

import (
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/steadyprobe/steadyprobe/churn"
	"github.com/steadyprobe/steadyprobe/config"
	"github.com/steadyprobe/steadyprobe/internal/faultdoor"
	"github.com/steadyprobe/steadyprobe/probe"
)

// The probe's own failures are in neither count, all others in both.
func TestTrafficOfALedger(t *testing.T) {
	var l probe.Ledger
	for phase := range l.Completed {
		for i := range l.Completed[phase] {
			l.Completed[phase][i] = 1
		}
	}
	phases, outcomes := uint64(probe.NumChurnPhases), uint64(probe.NumOutcomes)
	want := churn.Traffic{Completed: phases * (outcomes - 2), Failed: phases * (outcomes - 3)}
	if got := trafficIn(&l); got != want {
		t.Errorf("got %+v, want %+v: %d phases of %d outcomes, 2 of them the probe's own, one a success", got, want, phases, outcomes)
	}
}

// built returns a daemon whose parts are built and not started.
func built(t *testing.T, text string, workload churn.Workload) *daemon {
	t.Helper()
	loaded, _, err := config.Parse([]byte(text), "test.yml")
	if err != nil {
		t.Fatal(err)
	}
	d := &daemon{options: options(""), config: loaded, embedded: workload, loaded: time.Now()}
	if err := d.build(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(d.engine.close)
	t.Cleanup(d.closeDiscovery)
	d.churns.tie(d.first.churns, d.first.after)
	return d
}

// retie ties targets to the churns that they name now.
func retie(d *daemon) {
	d.churns.tie(&churnPlan{all: d.churns.list()}, d.state.Load())
}

// TestTiedTargetsComeAndGo keeps what the ones that are gone have done, and does
// not take over what new ones had done before.
func TestTiedTargetsComeAndGo(t *testing.T) {
	named := faultdoor.Reply(faultdoor.Answer{Header: []string{"X-Backend: b"}, Body: []byte("ok\n")})
	door, dead := faultdoor.Listen(t, faultdoor.HTTP(named)), faultdoor.Listen(t, faultdoor.ResetAtOnce())
	d := built(t, "targets:\n"+
		targetOf("good", door.URL("http"), "rate: 500, churn: a, backend: {header: X-Backend}")+
		targetOf("bad", dead.URL("http"), "rate: 500")+
		"churns: [{name: a, embedded: {}, steps: [{replicas: 4, hold: 1h}]}]\n", &fakeWorkload{})
	tied := &d.churns.list()[0].tied
	good, bad := d.state.Load().probed[0], d.state.Load().probed[1]
	if got := tied.names(); !slices.Equal(got, []string{"good"}) {
		t.Fatalf("tied %q, want the one that names the churn", got)
	}
	if !tied.lastFailure().IsZero() || len(tied.backends(false)) > 0 || tied.traffic() != (churn.Traffic{}) {
		t.Errorf("before anything was sent: %v, %v, %v", tied.lastFailure(), tied.backends(false), tied.traffic())
	}
	began := time.Now()
	ctx := t.Context()
	d.start(ctx)
	eventually(t, "answers and failures", func() bool {
		return tied.traffic().Completed >= 5 && trafficOf(bad.prober).Failed >= 5
	})
	seen := tied.backends(true)
	if len(seen) != 1 || seen[0].Name != "b" || seen[0].Answers == 0 || seen[0].First.Before(began) || seen[0].Last.Before(seen[0].First) || seen[0].Last.After(time.Now()) {
		t.Errorf("seen %+v since %v", seen, began)
	}
	d.stop()
	before := tied.traffic()
	if before.Failed > 0 {
		t.Errorf("traffic %+v, want no failures of a door that answers", before)
	}
	if again := tied.backends(false); again[0].Answers > before.Completed-seen[0].Answers || again[0].Last.IsZero() {
		t.Errorf("since the mark %+v, before it %+v of %d", again, seen, before.Completed)
	}

	good.config.Churn, bad.config.Churn = "", "a"
	retie(d)
	if got := tied.names(); !slices.Equal(got, []string{"bad"}) {
		t.Errorf("tied %q, want the other one", got)
	}
	if got := tied.traffic(); got != before {
		t.Errorf("traffic %+v, want the %+v of the one that is gone, and nothing of what the other had done before", got, before)
	}
	failed := tied.lastFailure()
	if failed.Before(began) || failed.After(time.Now()) {
		t.Errorf("the last failure was at %v, want one since %v", failed, began)
	}
	bad.config.Churn = ""
	retie(d)
	if got := tied.traffic(); got != before || len(tied.names()) > 0 {
		t.Errorf("traffic %+v of %q, want the %+v of before", got, tied.names(), before)
	}
	if got := tied.lastFailure().Sub(failed).Abs(); got > time.Millisecond {
		t.Errorf("the last failure of the one that is gone has moved by %v", got)
	}
}

// TestPhasesOfTiedTargets counts ticks for the phase of the churn that a target
// names, and for none where it names none any more.
func TestPhasesOfTiedTargets(t *testing.T) {
	door := faultdoor.Listen(t, good())
	d := built(t, "targets:\n"+targetOf("one", door.URL("http"), "rate: 1, churn: a")+
		"churns: [{name: a, embedded: {}, steps: [{replicas: 4, hold: 1h}]}]\n", &fakeWorkload{})
	defer d.churns.close()
	one, c := d.state.Load().probed[0], d.churns
	taken := func() (phases [probe.NumChurnPhases]uint64) {
		one.prober.Take(d.engine.clock.Now())
		eventually(t, "the tick's end", func() bool { l := one.prober.Ledger(); return l.InFlight == 0 && l.Backlog == 0 })
		l := one.prober.Ledger()
		for i := range l.Completed {
			for _, n := range l.Completed[i] {
				phases[i] += n
			}
		}
		return phases
	}
	one.resolver.Start()
	defer drain(t.Context(), d.state.Load().targets())
	if got := taken(); got[probe.Settled] != 1 {
		t.Errorf("ticks by phase %v, want one while settled", got)
	}
	c.list()[0].tied.setPhase(probe.ScalingUp)
	if got := taken(); got[probe.ScalingUp] != 1 {
		t.Errorf("ticks by phase %v, want one while scaling up", got)
	}
	c.list()[0].tied.keep(nil)
	c.list()[0].tied.setPhase(probe.ScalingDown) // which it is not told
	if got := taken(); got[probe.NoChurn] != 1 {
		t.Errorf("ticks by phase %v, want one of no churn, as it is not tied", got)
	}
	retie(d)
	if got := taken(); got[probe.ScalingDown] != 1 || got[probe.ScalingUp] != 1 {
		t.Errorf("ticks by phase %v, want one while scaling down, as it is tied again", got)
	}
	one.config.Churn = ""
	retie(d)
	if got := taken(); got[probe.NoChurn] != 2 {
		t.Errorf("ticks by phase %v, want one of no churn", got)
	}
}

func TestMergedSightings(t *testing.T) {
	at := func(s int) time.Time { return time.Unix(int64(s), 0) }
	var none time.Time
	var got []churn.Sighting
	for _, s := range []churn.Sighting{
		{Name: "a", First: none, Last: at(5)},
		{Name: "b", First: at(8), Last: at(9), Answers: 2},
		{Name: "a", First: at(7), Last: at(7), Answers: 1}, // through another door
		{Name: "b", First: at(6), Last: at(8), Answers: 3},
		{Name: "b", First: none, Last: at(2)},
	} {
		got = merged(got, s)
	}
	want := []churn.Sighting{
		{Name: "a", First: at(7), Last: at(7), Answers: 1},
		{Name: "b", First: at(6), Last: at(9), Answers: 5},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("sightings (-want +got):\n%s", diff)
	}
}
