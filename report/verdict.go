package report

import (
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/steadyprobe/steadyprobe/internal/saturation"
	"github.com/steadyprobe/steadyprobe/probe"
)

// economySeconds is the least limit of lateness under economical pacing: the
// millisecond between two of its wake-ups, and half of one for being late. The
// watch over the process (steadyprobe_saturated) leaves such lateness out.
const economySeconds = 0.0015

// The schedule counts as kept when this part of what was due was begun in time.
const keptShare = 0.99

// judge fills in what is to be said about the figures.
func (r *Result) judge(l *probe.Ledger) {
	r.Distrust = append([]string{}, r.distrust()...)
	r.Trustworthy = len(r.Distrust) == 0
	kept, remarks := r.schedule(l)
	r.ScheduleKept = kept
	r.Remarks = append(append([]string{}, remarks...), r.losses(l)...)
}

// distrust returns the reasons not to trust the figures.
func (r *Result) distrust() (why []string) {
	// The same limit as that of the watch over the process.
	limit := saturation.Limit(time.Duration(r.ServiceTime.P50 * float64(time.Second))).Seconds()
	late := limit
	if r.Pacing == pacingEconomy {
		late = max(limit, economySeconds)
	}
	for _, own := range []struct {
		name       string
		p99, limit float64
	}{{"lateness", r.Lateness.P99, late}, {"self latency", r.SelfLatency.P99, limit}} {
		if own.p99 > own.limit {
			why = append(why, fmt.Sprintf("%s p99 is %s, above %s: the probe itself was too slow%s",
				own.name, formatSeconds(own.p99), formatSeconds(own.limit), beside(&r.ServiceTime)))
		}
	}
	if len(r.Saturated) > 0 {
		why = append(why, "the probe's resources ran short: "+strings.Join(r.Saturated, ", "))
	}
	if r.Scheduled != r.Completed+r.InFlight+r.Backlog {
		why = append(why, fmt.Sprintf("%d scheduled, but %d completed, %d in flight and %d in the backlog: ticks were lost or counted twice",
			r.Scheduled, r.Completed, r.InFlight, r.Backlog))
	}
	return why
}

// beside returns the figure that a disturbance is to be compared with, if there
// is one.
func beside(serviceTime *Summary) string {
	if serviceTime.Count == 0 {
		return ""
	}
	return fmt.Sprintf(" (median service time %s)", formatSeconds(serviceTime.P50))
}

// schedule reports whether the schedule was kept: all ticks scheduled, none
// dropped, and keptShare of them begun within the window. The remarks tell
// what was not.
func (r *Result) schedule(l *probe.Ledger) (kept bool, remarks []string) {
	if r.DurationSeconds <= 0 {
		return false, []string{"the measured window is empty"}
	}
	if r.closed() {
		return true, nil
	}
	kept = true
	if due := finite(r.Rate * r.DurationSeconds); float64(r.Scheduled) < dueAtLeast(due, r.Arrival == arrivalPoisson) {
		kept = false
		remarks = append(remarks, fmt.Sprintf("%d of %.0f ticks scheduled: the probe did not keep its schedule", r.Scheduled, due))
	}
	if n := l.Failures(probe.ScheduleExpired); n > 0 {
		kept = false
		remarks = append(remarks, fmt.Sprintf("%s expired in the backlog: the door did not take them, or connections are too few", count(n, "tick")))
	}
	if l.Failures(probe.ScheduleShutdown) > 0 {
		kept = false // losses has the remark
	}
	if r.achievedShare() < keptShare {
		kept = false
		remarks = append(remarks, fmt.Sprintf("%.2f of %s requests/s begun in time, %s waiting for a connection at the end",
			r.AchievedRate, r.rate(), count(r.Unfinished.Backlog, "tick")))
	}
	return kept, remarks
}

// dueAtLeast is the least number of ticks in a window that holds due of them:
// the window's borders may cut one, and are known to a thousandth. Of those
// that come at random the number has sqrt(due) as its standard deviation, and
// one window in three million is 5 of these short.
func dueAtLeast(due float64, poisson bool) float64 {
	least := math.Floor(due*0.999) - 1
	if poisson {
		least -= 5 * math.Sqrt(max(due, 0))
	}
	return least
}

// losses tells what the figures do not show, or show wrongly.
func (r *Result) losses(l *probe.Ledger) (remarks []string) {
	if r.Interrupted {
		remarks = append(remarks, "the run was interrupted: its window may be shorter than asked for, and the last requests were not waited for")
	}
	if n := l.Failures(probe.ScheduleShutdown); n > 0 {
		remarks = append(remarks, fmt.Sprintf("%s without an outcome when the run was stopped, counted as schedule/shutdown", count(n, "tick")))
	}
	if n := r.InFlight + r.Backlog; n > 0 {
		remarks = append(remarks, fmt.Sprintf("%s without an outcome, in no figure", count(n, "tick")))
	}
	if n := untimed(l); n > 0 {
		where := "in neither latency nor service time: these are of successes, timeouts and expired ticks"
		if r.closed() {
			where = "not in the service time: that is of successes and timeouts"
		}
		remarks = append(remarks, count(n, "failure")+" "+where)
	}
	if r.Clamped > 0 {
		remarks = append(remarks, fmt.Sprintf("%s above the recordable range, counted as its maximum", count(r.Clamped, "sample")))
	}
	if n := l.Failures(probe.ConnectLocalResource); n > 0 {
		remarks = append(remarks, fmt.Sprintf("%s failed for want of a local port or file descriptor: the probe's fault, not the door's", count(n, "request")))
	}
	if r.Pacing == pacingEconomy {
		remarks = append(remarks, "pacing is economical: due ticks are sent once a millisecond, and latency holds what that makes them late")
	}
	return remarks
}

// untimed counts the failures that latency and service time leave out, because
// fast ones would make an outage look fast. What was dropped when the run was
// stopped has a remark of its own.
func untimed(l *probe.Ledger) (n uint64) {
	for o := range probe.Outcome(probe.NumOutcomes) {
		if !o.Slow() && o != probe.ScheduleShutdown {
			n += l.Failures(o)
		}
	}
	return n
}
