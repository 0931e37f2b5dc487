package main

import (
	"github.com/grafana/grafana-foundation-sdk/go/cog"
	"github.com/grafana/grafana-foundation-sdk/go/dashboard"
	"github.com/grafana/grafana-foundation-sdk/go/table"
	"github.com/grafana/grafana-foundation-sdk/go/timeseries"
)

// byTarget keeps the series of one target in one job together.
const byTarget = "job, target"

// perTarget names a series by its target.
const perTarget = "{{target}}"

// overview shows all doors at once.
func overview() board {
	return board{
		name:        "overview",
		title:       "all doors",
		description: "Whether every door keeps up with its schedule, how many requests fail, and what a user of each door waits for.",
		variables: []cog.Builder[dashboard.VariableModel]{
			source(), anyJobs(), anyTargets(manyJobs), window(), labelFilter(),
		},
		annotations: []cog.Builder[dashboard.AnnotationQuery]{
			untrusted(manyJobs), churning(manyJobs), readdressed(manyTargets),
		},
		sections: []section{
			{panels: overviewNow()},
			{title: "Rate and failures", panels: overviewTraffic()},
			{title: "Latency, waiting included", panels: overviewLatency()},
			{title: "Distribution of latency: $job", repeat: "job", panels: overviewDensity()},
			{title: "Objectives", panels: objectives(manyTargets)},
			{title: "How to read latency", panels: panels(corrected())},
		},
	}
}

func overviewNow() []cog.Builder[dashboard.Panel] {
	const t = manyTargets
	return panels(
		figure(head{"Doors", "Targets that are probed now.", count}, neutral(),
			q("", "count("+highest("steadyprobe_target_info", t, byTarget)+")")),
		figure(head{"Requests per second", "Requests completed by all doors together, whatever their outcome.", perSecond}, neutral(),
			q("", "sum("+rate("steadyprobe_requests_total", t, byTarget)+")")),
		figure(head{"Lowest rate kept", "Of the door that does worst, the share of its configured rate that is begun and completed. Less than all means that the door answers more slowly than requests are due.", share}, falling(0.95, 0.99),
			q("", "min("+rateKept(t)+")")),
		figure(head{"Highest share of failures", "Of the door that does worst, the share of its requests that fail.", share}, rising(0.001, 0.01),
			q("", "max("+failedShare(t, byTarget)+")")),
		figure(head{"Highest p99", "The 99th percentile of latency over 5 minutes of the door that does worst.", seconds}, neutral(),
			q("", "max("+latest("0.99", t, byTarget)+")")),
		figure(head{"Longest latency", "The longest latency of 5 minutes at any door.", seconds}, neutral(),
			q("", "max("+latest("1", t, byTarget)+")")),
		figure(head{"Fastest burn", "How many times faster than allowed the error budget is used up, over one hour, at the door that does worst. 1 uses up exactly the budget. Doors without an objective are left out.", times}, rising(1, 6),
			q("", "max("+burn(t, "1h")+")")),
		trust(manyJobs),
		doors(),
	)
}

// trust says whether figures can be believed.
func trust(selection string) cog.Builder[dashboard.Panel] {
	return figure(head{"Trust the probe", "Whether the probe had all it needs: CPU, file descriptors, ports and memory. If it did not, latencies are partly its own; see the dashboard on probe health.", count}, rising(1, 2),
		q("", "max(steadyprobe_saturated{"+selection+"})")).
		Mappings(states(state{"yes", "green"}, state{"no", "red"}))
}

// doors is the list of doors, each with a link to its detail.
func doors() *table.PanelBuilder {
	const t = manyTargets
	return rows(head{"Doors", "One row for each door. Percentiles and the maximum are exact, over the last 5 minutes, with the time spent waiting for the door included; an empty cell means too few requests for that percentile. Within objective counts over the chosen time range, without the time in which a churn scaled. Click a target for its detail.", seconds},
		column{"Configured", perSecond, sum("steadyprobe_target_requests_per_second", t, byTarget)},
		column{"Rate kept", share, rateKept(t)},
		column{"Failed", share, failedShare(t, byTarget)},
		column{"p50", seconds, latest("0.5", t, byTarget)},
		column{"p99", seconds, latest("0.99", t, byTarget)},
		column{"p99.9", seconds, latest("0.999", t, byTarget)},
		column{"p99.99", seconds, latest("0.9999", t, byTarget)},
		column{"Max", seconds, latest("1", t, byTarget)},
		column{"Within objective", share, withinObjective(with(t, calm), "$__range", byTarget)},
		column{"Backlog", count, sum("steadyprobe_requests_backlog", t, byTarget)},
		column{"Connections", count, sum("steadyprobe_connections", t, byTarget)},
	).OverrideByName("target", []dashboard.DynamicConfigValue{{Id: "links", Value: []any{
		link("Detail of this door", "door", "__data.fields.job", "__data.fields.target"),
	}}})
}

func overviewTraffic() []cog.Builder[dashboard.Panel] {
	const t = manyTargets
	return panels(
		dashed(graph(head{"Rate", "Requests completed per second; dashed, the rate that is configured. A line below its dashed one is a door that does not keep up; one above is working off its backlog.", perSecond},
			q(perTarget, rate("steadyprobe_requests_total", t, byTarget)),
			q("{{target}} configured", sum("steadyprobe_target_requests_per_second", t, byTarget))), "B").
			OverrideByFieldType("number", doorLinks()),
		graph(head{"Share of requests that failed", "Failed requests among those completed. Timeouts and requests that expired in the backlog are among them.", share},
			q(perTarget, failedShare(t, byTarget))).
			OverrideByFieldType("number", doorLinks()),
		bars(head{"Failures by stage and reason", "Where on its way a request failed and why, over all chosen doors. The stage schedule means that the request never got a connection in time.", perSecond},
			q("{{failure_stage}}/{{reason}}", rate("steadyprobe_request_failures_total", t, "job, failure_stage, reason")+" > 0")),
	)
}

func overviewLatency() []cog.Builder[dashboard.Panel] {
	const about = " The highest value within each step is drawn, so that zooming out hides nothing. From the probe's own exact record, over the chosen window."
	percentile := func(title, description, quantile string) *timeseries.PanelBuilder {
		return latencies(head{title: title, description: description + about},
			q(perTarget, peak(quantile, manyTargets, byTarget))).
			OverrideByFieldType("number", doorLinks())
	}
	return panels(
		percentile("p50", "Half of the requests took at most this long.", "0.5"),
		percentile("p99", "One request of 100 took longer.", "0.99"),
		percentile("p99.9", "One request of 1,000 took longer.", "0.999"),
		percentile("p99.99", "One request of 10,000 took longer. Needs 10,000 requests within the window.", "0.9999"),
		percentile("Maximum", "The longest latency of all.", "1"),
		graph(head{"Backlog", "Requests that are due and wait for a connection. Their waiting is part of their latency.", count},
			q(perTarget, sum("steadyprobe_requests_backlog", manyTargets, byTarget))),
	)
}

func overviewDensity() []cog.Builder[dashboard.Panel] {
	return panels(
		density(head{"Latency of all chosen doors", "How many requests per second took how long. A second band above the first is a group of requests with a fate of its own: a retry of the network, a slow backend, a reload. Finest with native (exponential) histograms, whose cells are 9 % high; coarse with classic buckets.", seconds},
			buckets("steadyprobe_latency_seconds", manyTargets, "job")).
			Span(whole),
	)
}

// objectives shows how the doors do against what is promised for them.
func objectives(selection string) []cog.Builder[dashboard.Panel] {
	const own = " What the probe failed by itself and what was due while a churn scaled is left out. Only targets with an objective are shown."
	return panels(
		graph(head{"Within objective", "Share of requests that succeeded within the latency objective; dashed, the share that is promised." + own, share},
			q(perTarget, withinObjective(with(selection, calm), step, byTarget)),
			q("{{target}} promised", highest("steadyprobe_objective_ratio", selection, byTarget))).
			OverrideByQuery("B", []dashboard.DynamicConfigValue{{Id: "custom.lineStyle", Value: map[string]any{"fill": "dash", "dash": []int{8, 8}}}}),
		graph(head{"Burn over 1 hour", "How many times faster than allowed the error budget is used up. At 14.4 a budget of 30 days is gone in 50 hours." + own, times},
			q(perTarget, burn(selection, "1h"))),
		graph(head{"Burn over 6 hours", "How many times faster than allowed the error budget is used up. At 6 a budget of 30 days is gone in 5 days." + own, times},
			q(perTarget, burn(selection, "6h"))),
	)
}

// corrected explains what every latency here means.
func corrected() cog.Builder[dashboard.Panel] {
	return page("What latency means here", `**Latency counts from the instant at which a request was due**, not from the one at which it could be sent. steadyprobe sends at a constant rate, whatever the door does. When a door stalls for one second at 1,000 requests/s, 1,000 users would have felt it: the first waits a second, the last hardly at all. A tool that waits for an answer before it sends the next request reports *one* slow request and misses the other 999 (coordinated omission). Here all 1,000 are in the distribution (wrk2 calls that *corrected* latency).

| | from | to |
|---|---|---|
| **latency** | the request was due | last byte of the answer |
| **service time** | a connection was given to it, or its opening began | last byte: what most other tools report |
| **wait** | the request was due and all connections were busy | a connection became free |
| **lateness** | the request was due | the probe dealt with it: the probe's own fault |

For each request, latency = lateness + wait + service time, and service time = resolve + connect + tls + processing + transfer. A request that times out counts with the time it took.
*Latency far above service time:* the door stalls, or the target has too few connections. *Lateness that is not far below latency:* the probe lacks CPU; do not blame the door.`).
		Height(9)
}
