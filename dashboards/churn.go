package main

import (
	"fmt"

	"github.com/grafana/grafana-foundation-sdk/go/cog"
	"github.com/grafana/grafana-foundation-sdk/go/dashboard"
	"github.com/grafana/grafana-foundation-sdk/go/timeseries"
)

// byPhase keeps the churn phases of a target apart.
const byPhase = "job, target, churn_phase"

// churn shows what scaling the backend costs the users of its doors.
func churn() board {
	return board{
		name:        "churn",
		title:       "churn",
		description: "What users of the doors feel while the backend is scaled: latency and failures by churn phase, beside the replicas.",
		variables: []cog.Builder[dashboard.VariableModel]{
			source(),
			one("job", "Job", aboutJob, values("steadyprobe_churn_phase", "", "job")),
			one("churn", "Churn", "The cycle of replica counts, by its name.", values("steadyprobe_churn_phase", `job="$job"`, "churn")),
			anyTargets(`job="$job"`),
			window(),
		},
		annotations: []cog.Builder[dashboard.AnnotationQuery]{
			churning(oneChurn), untrusted(`job="$job"`), readdressed(churnDoors),
		},
		sections: []section{
			{panels: churnNow()},
			{title: "Latency while the backend is scaled", panels: churnLatency()},
			{title: "Failures by churn phase", panels: churnFailures()},
			{title: "How the workload follows", panels: churnConvergence()},
			{title: "The churn itself", panels: churnSelf()},
		},
	}
}

// oneOf makes a number of series of which one is 1: the place of that one in
// the list, counted from 0.
func oneOf(metric, selection, label, by string, all ...string) string {
	expr := ""
	for i, value := range all[1:] {
		if i > 0 {
			expr += " + "
		}
		expr += fmt.Sprintf("%d * %s", i+1, highest(metric, with(selection, fmt.Sprintf(`%s="%s"`, label, value)), by))
	}
	return expr
}

func churnNow() []cog.Builder[dashboard.Panel] {
	return panels(
		timeline(head{"Phase", "The churn phase. A scaling phase lasts from the scale call until the ready endpoints have matched for as long as the door needs to settle: the harm done then belongs to the step.", plain},
			states(state{"settled", "green"}, state{"scaling up", "orange"}, state{"scaling down", "blue"}),
			q("{{churn}}", oneOf("steadyprobe_churn_phase", oneChurn, "phase", "job, churn", "settled", "scaling_up", "scaling_down"))).
			Height(5),
		timeline(head{"State", "What the churn does: only while it runs does it scale. A standby is not the leader; a dry run scales nothing.", plain},
			states(state{"running", "green"}, state{"dry run", "blue"}, state{"standby", "purple"}, state{"paused", "orange"}, state{"stopped", "red"}),
			q("{{churn}}", oneOf("steadyprobe_churn_state", oneChurn, "state", "job, churn", "running", "dry_run", "standby", "paused", "stopped"))).
			Height(5),
		timeline(head{"Replicas", "Replicas asked for, ready, and endpoints that the door can use; the baseline is what the workload goes back to. Endpoints that trail the ready replicas are the time in which the door must catch up.", count}, nil,
			q("asked for", highest("steadyprobe_churn_desired_replicas", oneChurn, "job, churn")),
			q("ready", highest("steadyprobe_churn_ready_replicas", oneChurn, "job, churn")),
			q("endpoints", highest("steadyprobe_churn_ready_endpoints", oneChurn, "job, churn")),
			q("baseline", highest("steadyprobe_churn_baseline_replicas", oneChurn, "job, churn"))).
			ColorScheme(dashboard.NewFieldColorBuilder().Mode(dashboard.FieldColorModeIdContinuousBlues)).Min(0).
			Span(whole),
	)
}

func churnLatency() []cog.Builder[dashboard.Panel] {
	phase := func(title, description, p string) *timeseries.PanelBuilder {
		return latencies(head{title: title, description: description},
			q("{{target}} {{churn_phase}}", quantile(p, "steadyprobe_latency_seconds", with(churnDoors, `churn_phase!=""`), byPhase)))
	}
	return panels(
		latencies(head{title: "Latency, p99 and longest", description: "Exact, over the chosen window, the highest value within each step, with the scaling phases marked. A hump over a mark is what the step cost the users."},
			q("{{target}} p99", peak("0.99", churnDoors, byTarget)),
			q("{{target}} max", peak("1", churnDoors, byTarget))).
			Span(whole).Height(10),
		phase("p50 by churn phase", "The median of the requests that were due in each phase.", "0.5"),
		phase("p99 by churn phase", "One request of 100 that were due in the phase took longer.", "0.99"),
		phase("p99.9 by churn phase", "One request of 1,000 that were due in the phase took longer.", "0.999"),
		graph(head{"p99 while scaling against settled", "How many times the p99 of the settled time the p99 of each scaling phase is, over the last hour. 1: scaling costs nothing. Far above: users feel every step.", times},
			q("{{target}} {{churn_phase}}", scalingRatio())).
			Span(half),
		density(head{"Distribution of latency while scaling", "How many requests per second, due in a scaling phase, took how long. Finest with native (exponential) histograms; coarse with classic buckets.", seconds},
			buckets("steadyprobe_latency_seconds", with(churnDoors, `churn_phase=~"scaling_.+"`), "job")),
	)
}

// scalingRatio is the p99 of the scaling phases over that of the settled ones.
// Phases take turns, so that only a long range holds requests of all.
func scalingRatio() string {
	p99 := func(phase, by string) string {
		selection := with(churnDoors, phase)
		return fmt.Sprintf("histogram_quantile(0.99, sum by (%[1]s) (rate(steadyprobe_latency_seconds{%[2]s}[1h])) or on (%[1]s) sum by (%[1]s, le) (rate(steadyprobe_latency_seconds_bucket{%[2]s}[1h])))",
			by, selection)
	}
	return p99(`churn_phase=~"scaling_.+"`, byPhase) + " / on (job, target) group_left () " + p99(`churn_phase="settled"`, byTarget)
}

func churnFailures() []cog.Builder[dashboard.Panel] {
	doors := with(churnDoors, `churn_phase!=""`)
	return panels(
		graph(head{"Share of failures by churn phase", "Of the requests that were due in each phase, the share that failed.", share},
			q("{{target}} {{churn_phase}}", failedShare(doors, byPhase))).
			Span(half),
		graph(head{"Within objective by churn phase", "Of the requests that were due in each phase, the share that succeeded within the latency objective. Only targets with an objective are shown.", share},
			q("{{target}} {{churn_phase}}", withinObjective(doors, step, byPhase))).
			Span(half),
		bars(head{"Failures by stage while scaling", "Where and why requests failed that were due in a scaling phase.", perSecond},
			q("{{target}} {{failure_stage}}/{{reason}}",
				rate("steadyprobe_request_failures_total", with(churnDoors, `churn_phase=~"scaling_.+"`), "job, target, failure_stage, reason")+" > 0")).
			Span(half),
		stacked(head{"Requests by churn phase", "Requests completed per second, by the phase in which they were due.", perSecond},
			q("{{target}} {{churn_phase}}", rate("steadyprobe_requests_total", doors, byPhase))).
			Span(half),
	)
}

func churnConvergence() []cog.Builder[dashboard.Panel] {
	over := func(title, description, metric, by, legend string) *timeseries.PanelBuilder {
		return latencies(head{title: title, description: description},
			q(legend+" p50", quantile("0.5", metric, oneChurn, by)),
			q(legend+" p99", quantile("0.99", metric, oneChurn, by))).
			Span(half)
	}
	return panels(
		over("Convergence", "From the scale call until the ready endpoints matched for good.",
			"steadyprobe_churn_convergence_seconds", "job, churn, direction", "{{direction}}"),
		over("First answer of a new backend", "From the scale call to the first answer of a backend that was not there before: when the door began to use it. Only where the target reads the backend from the answer.",
			"steadyprobe_churn_first_response_seconds", "job, churn", "first answer"),
		over("Last answer of a removed backend", "From the scale call to the last answer of a backend that went away: how long the door kept using it. Only where the target reads the backend from the answer.",
			"steadyprobe_churn_last_response_seconds", "job, churn", "last answer"),
		over("Fail-over", "From the stop of backends without drain to the last failure that followed: how long users felt it. Only of steps that kill.",
			"steadyprobe_churn_failover_seconds", "job, churn", "last failure"),
	)
}

func churnSelf() []cog.Builder[dashboard.Panel] {
	return panels(
		bars(head{"Steps", "Scale calls per second that were accepted, by direction.", events},
			q("{{direction}}", rate("steadyprobe_churn_steps_total", oneChurn, "job, churn, direction"))),
		bars(head{"What kept it from its steps", "Refused or failed steps per second, by reason. An external change means that somebody else scaled the workload.", events},
			q("{{reason}}", rate("steadyprobe_churn_errors_total", oneChurn, "job, churn, reason")+" > 0")),
		graph(head{"Since it last looked", "Time since the churn last looked at its workload. A line that climbs is a churn that hangs.", seconds},
			q("{{instance}}", "time() - max by (job, churn, instance) (steadyprobe_churn_last_beat_timestamp_seconds{"+oneChurn+"} > 0)")),
		graph(head{"Leaders", "Processes that lead the churn. It must be one: none scales, and two work against each other.", count},
			q("leaders", sum("steadyprobe_churn_leader", oneChurn, "job, churn"))).Span(half),
		timeline(head{"Restore pending", "Whether the baseline is to be restored and is not yet, or is not known to be. After the churn was stopped or paused it must end soon; the alert waits for 5 minutes.", plain},
			states(state{"no", "green"}, state{"yes", "orange"}),
			q("{{instance}}", highest("steadyprobe_churn_restore_pending", oneChurn, "job, churn, instance"))),
	)
}
