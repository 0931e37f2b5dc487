package web

import (
	"strings"
	"testing"
	"time"

	"golang.org/x/net/html/atom"
)

func TestNoticesOfAChurn(t *testing.T) {
	in := func(d time.Duration) Time { return Time{testNow.Add(d)} }
	const resumed = "It goes on when somebody resumes it: POST api/v1/churns/web/resume."
	for _, row := range []struct {
		name   string
		change func(*Churn)
		want   []string // of the notice; none: there is no notice
		loud   bool
	}{
		{"running", func(c *Churn) { c.State = churnRunning }, nil, false},
		{"running, with a call that is tried again", func(c *Churn) { c.State, c.Cause = churnRunning, "conflict" },
			[]string{"Somebody else changes the workload, or leads, at the same time."}, false},
		{"dry run", func(c *Churn) { c.State = churnDryRun }, []string{"Dry run: nothing is scaled. Write dry_run: false to scale."}, false},
		{"standby", func(c *Churn) { c.State, c.LeaderName = churnStandby, "probe-1" }, []string{"Standby: probe-1 churns."}, false},
		{"standby of nobody", func(c *Churn) { c.State = churnStandby }, []string{"Standby: no instance is elected yet."}, false},
		{"standby of a dead cluster", func(c *Churn) { c.State, c.Cause = churnStandby, "unreachable" },
			[]string{"Standby: no instance is elected yet. Nobody answers."}, true},
		{"paused by hand", func(c *Churn) { c.State, c.PausedByHand = churnPaused, true }, []string{resumed}, false},
		{"outside of its hours", func(c *Churn) { c.State, c.PausedUntil = churnPaused, in(90*time.Minute) },
			[]string{"It goes on by itself in 1 h 30 min, or now by POST api/v1/churns/web/resume."}, false},
		{"aborted", func(c *Churn) { c.State, c.Cause, c.PausedUntil = churnPaused, "aborted", in(10*time.Minute) },
			[]string{"More requests failed than abort_when allows", "It goes on by itself in 10 min, or now by POST"}, true},
		{"cooled down", func(c *Churn) { c.State, c.Cause, c.PausedUntil = churnPaused, "stuck", in(0) },
			[]string{"The step did not converge", "It goes on soon, by itself."}, true},
		{"unreachable", func(c *Churn) { c.State, c.Cause = churnPaused, "unreachable" },
			[]string{"Nobody answers. It goes on by itself as soon as somebody does"}, true},
		{"somebody else's change", func(c *Churn) { c.State, c.Cause, c.Reason = churnStopped, "external_change", "from 4 to 3" },
			[]string{"Somebody else scaled the workload, and it was left as they wanted it.", resumed}, true},
		{"all cycles done", func(c *Churn) { c.State, c.Reason = churnStopped, "all cycles are done" }, []string{resumed}, false},
		{"not begun", func(c *Churn) { c.State = churnStopped }, nil, false},
		{"not restored", func(c *Churn) {
			c.State, c.Cause, c.RestorePending, c.Baseline, c.Desired = churnPaused, "forbidden", true, 4, 2
		},
			[]string{"The baseline of 4 replicas is not back yet, 2 are asked for. The probe may not do that."}, true},
		{"cause without advice", func(c *Churn) { c.State, c.Cause = churnRunning, "new" }, nil, false},
	} {
		t.Run(row.name, func(t *testing.T) {
			k := newKit()
			c := Churn{Name: "web", Phase: "settled", Since: testNow}
			row.change(&c)
			k.churns = []Churn{c}
			var notices []node
			for _, p := range loadPage(t, k.handler(t)).section(t, "Churn").all(atom.P) {
				if strings.HasPrefix(p.attribute("class"), "notice") {
					notices = append(notices, p)
				}
			}
			if len(row.want) == 0 {
				if len(notices) > 0 {
					t.Errorf("got the notice %q, want none", notices[0].text())
				}
				return
			}
			if len(notices) != 1 {
				t.Fatalf("%d notices, want one", len(notices))
			}
			for _, want := range row.want {
				if !strings.Contains(notices[0].text(), want) {
					t.Errorf("the notice is %q, want %q in it", notices[0].text(), want)
				}
			}
			if loud := notices[0].attribute("class") == "notice"; loud != row.loud {
				t.Errorf("loud: %v, want %v", loud, row.loud)
			}
		})
	}
}

func TestNextStepOfAChurn(t *testing.T) {
	for _, row := range []struct {
		name, state string
		next        *NextStep
		want        string // empty: nothing is said
	}{
		{"replicas", churnRunning, &NextStep{At: testNow.Add(3 * time.Second), Replicas: 4}, "4 replicas in 3 s"},
		{"killed", churnRunning, &NextStep{At: testNow.Add(time.Minute), Kill: 1}, "1 killed in 1 min"},
		{"late", churnRunning, &NextStep{At: testNow.Add(-time.Second)}, "0 replicas when settled"},
		{"in a dry run", churnDryRun, &NextStep{At: testNow.Add(3 * time.Second), Replicas: 4}, "4 replicas in 3 s"},
		{"none", churnRunning, nil, ""},
		{"of another instance", churnStandby, &NextStep{At: testNow.Add(3 * time.Second), Replicas: 4}, ""},
	} {
		t.Run(row.name, func(t *testing.T) {
			k := newKit()
			k.churns = []Churn{{Name: "web", State: row.state, Next: row.next}}
			text := loadPage(t, k.handler(t)).section(t, "Churn").text()
			_, got, there := strings.Cut(text, "Next step ")
			if there != (row.want != "") || !strings.HasPrefix(got, row.want) {
				t.Errorf("the page says %q, want %q", text, row.want)
			}
		})
	}
}

// TestEveryCauseHasAnAdvice holds the advice to the reasons of a churn's
// errors, as docs/METRICS.md lists them.
func TestEveryCauseHasAnAdvice(t *testing.T) {
	for _, cause := range []string{"external_change", "conflict", "forbidden", "unreachable", "not_found", "stuck", "aborted", "refused", "error"} {
		if means(churnAdvice[:], cause) == "" {
			t.Errorf("there is no advice for %s", cause)
		}
	}
	if len(churnAdvice) != 9 {
		t.Errorf("there are %d pieces of advice, want one for each reason", len(churnAdvice))
	}
}
