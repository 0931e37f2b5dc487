package churn

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"
)

func TestCourse(t *testing.T) {
	start := time.Now()
	c := course{plan: Plan{Steps: []Step{{Replicas: 4, Hold: 10 * time.Second}, {Replicas: 2, Hold: 3 * time.Second}, {Replicas: 2, Hold: time.Second}}}}
	for i, want := range []struct {
		replicas int
		at       time.Duration // of the scale call
		due      time.Duration // then
	}{
		{4, 0, 10 * time.Second},
		{2, 10 * time.Second, 13 * time.Second},
		{2, 15 * time.Second, 16 * time.Second}, // it settled late: the hold counts from its own call
		{4, 16 * time.Second, 26 * time.Second},
	} {
		if got := c.next().Replicas; got != want.replicas {
			t.Errorf("step %d is to %d replicas, want %d", i, got, want.replicas)
		}
		c.take(start.Add(want.at))
		if got := c.due.Sub(start); got != want.due {
			t.Errorf("step %d holds until %v, want %v", i, got, want.due)
		}
	}
}

// TestCourseCounts cycles once each, when their last hold is over.
func TestCourseCounts(t *testing.T) {
	c := course{plan: Plan{Steps: steps(to(4), to(2))}}
	var turns []bool
	for range 5 {
		turns = append(turns, c.turn(), c.turn())
		c.take(time.Now())
	}
	if want := []bool{false, false, false, false, true, false, false, false, true, false}; !slices.Equal(turns, want) || c.cycles != 2 {
		t.Errorf("turned %v, %d cycles", turns, c.cycles)
	}
	c.take(time.Now())
	if c.restart(); c.turn() || c.index != 0 || !c.due.IsZero() || c.cycles != 2 {
		t.Errorf("after a restart: %+v", c)
	}
}

func TestCourseHasJitter(t *testing.T) {
	c := course{plan: Plan{Steps: steps(to(4)), Jitter: 10 * ms}, random: rand.N[time.Duration]}
	start := time.Now()
	least, most := time.Hour, time.Duration(0)
	for range 10_000 {
		c.take(start)
		extra := c.due.Sub(start) - time.Second
		least, most = min(least, extra), max(most, extra)
	}
	if least < 0 || least > ms || most > 10*ms || most < 9*ms {
		t.Errorf("from %v to %v more, want from 0s to 10ms", least, most)
	}
	c.random = func(below time.Duration) time.Duration { return below - 1 }
	if c.take(start); c.due.Sub(start) != time.Second+10*ms {
		t.Errorf("at most %v, want the jitter itself", c.due.Sub(start))
	}
}

func TestOptions(t *testing.T) {
	good := func() Options {
		return Options{Name: "shop", Plan: upAndDown(time.Second), Workload: newFake(2)}
	}
	for _, tc := range []struct {
		name   string
		change func(*Options)
		want   []string // lines; none: it is good
	}{
		{"good", func(*Options) {}, nil},
		{"one step", func(o *Options) { o.Plan.Steps = o.Plan.Steps[:1] }, nil},
		{"to none", func(o *Options) { o.Plan.Steps[0].Replicas = 0 }, nil},
		{"no name", func(o *Options) { o.Name = "" }, []string{`checking churn "": name: want one`}},
		{"no workload", func(o *Options) { o.Workload = nil }, []string{`checking churn "shop": workload: want one`}},
		{"no steps", func(o *Options) { o.Plan = Plan{} }, []string{`checking churn "shop": steps: want at least one`}},
		{
			"bad steps", func(o *Options) {
				o.Plan.Steps = []Step{{Replicas: -1, Hold: time.Second}, {Replicas: 2, Hold: 0}, {Replicas: 3, Hold: -time.Second}}
			},
			[]string{
				`checking churn "shop": step 1: -1 replicas: want 0 or more`,
				`step 2: hold 0s: want more than 0s`,
				`step 3: hold -1s: want more than 0s`,
			},
		},
		{
			"bad times", func(o *Options) {
				o.Settle, o.Poll, o.CallTimeout, o.StuckAfter, o.RestoreWithin = -1, -1, -1, -1, -1
			},
			[]string{
				`checking churn "shop": settle -1ns: want 0s or more`,
				`poll -1ns: want more than 0s, or 0s for 50ms`,
				`call timeout -1ns: want more than 0s, or 0s for 10s`,
				`stuck after -1ns: want more than 0s, or 0s for 5m0s`,
				`restore within -1ns: want more than 0s, or 0s for 30s`,
			},
		},
		{"kills", func(o *Options) {
			o.Workload = &fakeKiller{newFake(2), nil}
			o.Plan.Steps[1] = Step{Kill: 1, Hold: time.Second}
		}, nil},
		{
			"kills of what cannot be", func(o *Options) { o.Plan.Steps[1] = Step{Kill: 1, Hold: time.Second} },
			[]string{`checking churn "shop": step 2: kill 1: this workload cannot stop backends`},
		},
		{
			"bad kills", func(o *Options) {
				o.Workload = &fakeKiller{newFake(2), nil}
				o.Plan.Steps = []Step{{Kill: -1, Hold: time.Second}, {Replicas: 2, Kill: 1, Hold: time.Second}}
			},
			[]string{
				`checking churn "shop": step 1: kill -1: want 0 or more`,
				`step 2: 2 replicas and kill 1: want only one of them`,
			},
		},
		{
			"bad rest of a plan", func(o *Options) { o.Plan.Jitter, o.Plan.MaxCycles, o.Plan.Hours = -1, -1, &Hours{From: -1} },
			[]string{
				`checking churn "shop": jitter -1ns: want 0s or more`,
				`max cycles -1: want 0 or more`,
				`hours: from minute -1: want 0 to 1439`,
			},
		},
		{
			"bad guard", func(o *Options) { o.Guard.Cooldown = -1 },
			[]string{`checking churn "shop": cooldown -1ns: want 0s or more`},
		},
		{
			"an abort of nothing", func(o *Options) { o.Guard.AbortShare = 0.05 },
			[]string{`checking churn "shop": abort share 0.05: wants the traffic`},
		},
		{
			"an election without a note", func(o *Options) { o.Election = new(fakeElection).candidate("a") },
			[]string{`checking churn "shop": election: wants a notebook`},
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			o := good()
			tc.change(&o)
			c, err := New(o)
			if got := fmt.Sprint(err); len(tc.want) > 0 && got != strings.Join(tc.want, "\n") {
				t.Errorf("got\n%s\nwant\n%s", got, strings.Join(tc.want, "\n"))
			}
			if (err == nil) != (len(tc.want) == 0) || (c == nil) != (err != nil) {
				t.Errorf("got %v, %v", c, err)
			}
		})
	}
}

func TestReasonOf(t *testing.T) {
	cause := errors.New("boom")
	for _, tc := range []struct {
		name string
		err  error
		want Reason
	}{
		{"none", nil, NoReason},
		{"said", &Error{Forbidden, cause}, Forbidden},
		{"said inside", fmt.Errorf("scaling: %w", &Error{Conflict, cause}), Conflict},
		{"said, with a deadline inside", &Error{NotFound, context.DeadlineExceeded}, NotFound},
		{"not said", cause, Other},
		{"deadline", fmt.Errorf("scaling: %w", context.DeadlineExceeded), Unreachable},
		{"no reason said", &Error{NoReason, cause}, Other},
		{"no reason said, deadline", &Error{NoReason, context.DeadlineExceeded}, Unreachable},
		{"out of the list", &Error{Reason(NumReasons), cause}, Other},
	} {
		if got := reasonOf(tc.err); got != tc.want {
			t.Errorf("%s: %v, want %v", tc.name, got, tc.want)
		}
	}
	err := &Error{Forbidden, cause}
	if err.Error() != "forbidden: boom" || !errors.Is(err, cause) {
		t.Errorf("%q does not hold its cause", err)
	}
}

// TestLabels compares with section 5 of the design, whose lists are closed.
func TestLabels(t *testing.T) {
	var reasons, states, directions []string
	for i := range NumReasons {
		reasons = append(reasons, Reason(i).String())
	}
	for i := range NumStates {
		states = append(states, State(i).String())
	}
	for i := range NumDirections {
		directions = append(directions, Direction(i).String())
	}
	for _, tc := range []struct{ got, want string }{
		{
			strings.Join(reasons, " "),
			" external_change conflict forbidden unreachable not_found stuck aborted refused error",
		},
		{strings.Join(states, " "), "stopped running dry_run standby paused"},
		{strings.Join(directions, " "), "up down"},
	} {
		if tc.got != tc.want {
			t.Errorf("got %q, want %q", tc.got, tc.want)
		}
	}
}
