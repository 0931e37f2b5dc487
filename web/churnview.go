package web

import (
	"fmt"
	"net/url"
	"strings"
	"time"
)

// churnView is a churn as the page shows it. What somebody has to know before
// anything else is a notice: loud where it has to be acted upon.
type churnView struct {
	Name, Workload, State, Reason, Phase string
	Notice                               string
	Loud                                 bool
	Since                                instant
	Baseline, Desired, Ready, Endpoints  int
	Limits, Steps, Next                  string
}

// The states of a churn.
const (
	churnRunning = "running"
	churnDryRun  = "dry_run"
	churnStandby = "standby"
	churnPaused  = "paused"
	churnStopped = "stopped"
)

// churnAdvice says what to do about what keeps a churn from its steps.
var churnAdvice = [...]meaning{
	{"external_change", "Somebody else scaled the workload, and it was left as they wanted it. Find out who it was, a person, an autoscaler or a GitOps controller; then resume the churn."},
	{"conflict", "Somebody else changes the workload, or leads, at the same time. It is tried again by itself; if it lasts, find out who that is."},
	{"forbidden", "The probe may not do that. See to its rights: the Role of its service account, the level of the HAProxy socket, the owner of the folder."},
	{"unreachable", "Nobody answers. It goes on by itself as soon as somebody does; the requests to the doors go on meanwhile."},
	{"not_found", "There is no such workload. See whether its name is right, or whether it was deleted."},
	{"stuck", "The step did not converge: see why replicas do not become ready, or why the door is not told of them."},
	{"aborted", "More requests failed than abort_when allows: the door does not bear these steps. See which failures they are before it is tried again."},
	{"refused", "The workload, or a rule of safety, does not allow it. What is in the way stands above; it is not to be worked around."},
	{"error", "See the log."},
}

func newChurnView(c *Churn, now time.Time) churnView {
	v := churnView{
		Name: c.Name, Workload: c.Workload, State: words(c.State), Reason: c.Reason, Phase: words(c.Phase), Since: instantOf(c.Since, now),
		Baseline: c.Baseline, Desired: c.Desired, Ready: c.Ready, Endpoints: c.ReadyEndpoints, Steps: count(c.Steps),
	}
	if c.Ceiling > 0 {
		v.Limits = fmt.Sprintf("%d to %d", c.Floor, c.Ceiling)
	}
	if n := c.Next; n != nil && (c.State == churnRunning || c.State == churnDryRun) {
		v.Next = nextStep(n, now)
	}
	v.Notice, v.Loud = churnNotice(c, now)
	return v
}

// nextStep says what comes next, and when.
func nextStep(n *NextStep, now time.Time) string {
	what := fmt.Sprintf("%d replicas", n.Replicas)
	if n.Kill > 0 {
		what = fmt.Sprintf("%d killed", n.Kill)
	}
	if in := n.At.Sub(now); in > 0 {
		return fmt.Sprintf("%s in %s", what, age(in))
	}
	return what + " when settled"
}

// churnNotice says in sentences what has to be known of a churn, and whether
// somebody has to act; nothing where all is as it should be.
func churnNotice(c *Churn, now time.Time) (text string, loud bool) {
	var all []string
	say := func(format string, args ...any) { all = append(all, fmt.Sprintf(format, args...)) }
	if c.RestorePending {
		loud = true
		say("The baseline of %d replicas is not back yet, %d are asked for.", c.Baseline, c.Desired)
	}
	switch c.State {
	case churnDryRun:
		say("Dry run: nothing is scaled. Write dry_run: false to scale.")
	case churnStandby:
		if c.LeaderName == "" {
			say("Standby: no instance is elected yet.")
		} else {
			say("Standby: %s churns.", c.LeaderName)
		}
	}
	loud = loud || c.Cause != "" && c.State != churnRunning && c.State != churnDryRun
	if c.Cause != "" {
		if advice := means(churnAdvice[:], c.Cause); advice != "" {
			say("%s", advice)
		}
	}
	if c.State == churnPaused || c.State == churnStopped && c.Reason != "" {
		all = append(all, howResumed(c, now))
	}
	return strings.TrimSpace(strings.Join(all, " ")), loud
}

// howResumed says how a churn that waits goes on.
func howResumed(c *Churn, now time.Time) string {
	post := "POST " + pathAPI + "churns/" + url.PathEscape(c.Name) + "/" + string(Resume)
	switch in := c.PausedUntil.Sub(now); {
	case c.PausedByHand, c.State == churnStopped:
		return "It goes on when somebody resumes it: " + post + "."
	case c.PausedUntil.IsZero():
		return ""
	case in <= 0:
		return "It goes on soon, by itself."
	default:
		return fmt.Sprintf("It goes on by itself in %s, or now by %s.", age(in), post)
	}
}
