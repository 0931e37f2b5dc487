package main

import (
	"fmt"

	"github.com/grafana/grafana-foundation-sdk/go/cog"
	"github.com/grafana/grafana-foundation-sdk/go/dashboard"
)

// door shows everything that is known of one door.
func door() board {
	return board{
		name:        "door",
		title:       "one door",
		description: "Where the time of a request goes at one door, how its requests fail, and what its connections, addresses and backends do.",
		variables: []cog.Builder[dashboard.VariableModel]{
			source(), oneJob(),
			one("target", "Target", "The door, by the name of its target.", values("steadyprobe_target_info", `job="$job"`, "target")),
			window(), labelFilter(),
		},
		annotations: []cog.Builder[dashboard.AnnotationQuery]{
			untrusted(`job="$job"`), churning(`job="$job"`), readdressed(oneTarget),
		},
		sections: []section{
			{panels: doorNow()},
			{title: "Latency, waiting included", panels: doorLatency()},
			{title: "Where the time goes", panels: doorPhases()},
			{title: "Answers and failures", panels: doorFailures()},
			{title: "Connections", panels: doorConnections()},
			{title: "Addresses and backends", panels: doorAddresses()},
			{title: "Objective", panels: objectives(oneTarget)},
			{title: "How to read latency", panels: panels(corrected())},
		},
	}
}

func doorNow() []cog.Builder[dashboard.Panel] {
	const t = oneTarget
	return panels(
		figure(head{"Rate kept", "Share of the configured rate that is begun and completed.", share}, falling(0.95, 0.99), q("", rateKept(t))),
		figure(head{"Failed", "Share of the requests that fail.", share}, rising(0.001, 0.01), q("", failedShare(t, byTarget))),
		figure(head{"p50", "Half of the requests of the last 5 minutes took at most this long.", seconds}, neutral(), q("", latest("0.5", t, byTarget))),
		figure(head{"p99", "One request of 100 took longer, in the last 5 minutes.", seconds}, neutral(), q("", latest("0.99", t, byTarget))),
		figure(head{"p99.9", "One request of 1,000 took longer, in the last 5 minutes.", seconds}, neutral(), q("", latest("0.999", t, byTarget))),
		figure(head{"Maximum", "The longest latency of the last 5 minutes.", seconds}, neutral(), q("", latest("1", t, byTarget))),
		figure(head{"Backlog", "Requests that are due and wait for a connection.", count}, rising(1, 100), q("", sum("steadyprobe_requests_backlog", t, byTarget))),
		trust(`job="$job"`),
		rows(head{"Target", "How the door is probed, with the labels that you gave to the target.", plain},
			column{"Configured rate", perSecond, "max without (__name__, instance) (steadyprobe_target_info{" + t + "}) * on (job, target) group_left () " +
				sum("steadyprobe_target_requests_per_second", t, byTarget)},
		).Height(4),
	)
}

func doorLatency() []cog.Builder[dashboard.Panel] {
	const t = oneTarget
	named := []query{
		q("p50", peak("0.5", t, byTarget)), q("p90", peak("0.9", t, byTarget)), q("p99", peak("0.99", t, byTarget)),
		q("p99.9", peak("0.999", t, byTarget)), q("p99.99", peak("0.9999", t, byTarget)),
		q("p99.999", peak("0.99999", t, byTarget)), q("max", peak("1", t, byTarget)),
	}
	success := with(t, `outcome="success"`)
	var against []query
	for _, p := range []struct{ name, quantile string }{{"p50", "0.5"}, {"p99", "0.99"}, {"p99.9", "0.999"}} {
		against = append(against,
			q(p.name+" latency", quantile(p.quantile, "steadyprobe_latency_seconds", success, byTarget)),
			q(p.name+" service time", quantile(p.quantile, "steadyprobe_service_time_seconds", success, byTarget)))
	}
	return panels(
		latencies(head{title: "Latency by percentile", description: "Exact percentiles over the chosen window, the highest value within each step. A percentile is missing while the window holds too few requests for it. Fast failures are left out, timeouts are not."}, named...).
			Span(half).Height(10),
		density(head{"Distribution of latency", "How many requests per second took how long, failures included. Finest with native (exponential) histograms, whose cells are 9 % high; coarse with classic buckets.", seconds},
			buckets("steadyprobe_latency_seconds", t, byTarget)).
			Height(10),
		latencies(head{title: "Latency against service time", description: "The same successful requests, from when they were due and from when they had a connection. A tool that waits for answers shows only the service time. Lines of one percentile that part say that requests waited for the door: that time a user feels and such a tool hides."}, against...).
			Span(half),
		latencies(head{title: "Lateness of the probe", description: "How late the probe itself dealt with requests, and what its own measuring path adds to every figure. Both must stay far below the latencies above; if they do not, the probe lacks CPU."},
			q("lateness p50", quantile("0.5", "steadyprobe_lateness_seconds", t, byTarget)),
			q("lateness p99", quantile("0.99", "steadyprobe_lateness_seconds", t, byTarget)),
			q("lateness p99.9", quantile("0.999", "steadyprobe_lateness_seconds", t, byTarget)),
			q("self latency p99 {{instance}}", quantile("0.99", "steadyprobe_self_latency_seconds", `job="$job"`, "job, instance"))).
			Span(half),
	)
}

func doorPhases() []cog.Builder[dashboard.Panel] {
	const t = oneTarget
	completed := rate("steadyprobe_requests_total", t, byTarget)
	perRequest := func(metric, by string) string {
		return fmt.Sprintf("%s / on (job, target) group_left () %s", total(metric, t, by), completed)
	}
	return panels(
		unstacked(stacked(head{"Mean time per request by phase", "What an average request spends its latency on; the phases add up to the mean latency, drawn as a line. Openings of connections are spread over all requests. The phase wait is the door's fault or too few connections, lateness the probe's. The stack may stand a little above the line: connections that are opened ahead, for no request, count too.", seconds},
			q("{{phase}}", perRequest("steadyprobe_phase_seconds", "job, target, phase")),
			q("lateness", perRequest("steadyprobe_lateness_seconds", byTarget)),
			q("mean latency", mean("steadyprobe_latency_seconds", t, byTarget))), "C").
			Span(half).Height(10),
		latencies(head{title: "Phases, p99", description: "The 99th percentile of each phase, among the requests or openings that had it. Resolve, connect and tls happen once for each opening, wait only to requests that waited, processing (until the first byte) and transfer once for each request."},
			q("{{phase}}", quantile("0.99", "steadyprobe_phase_seconds", t, "job, target, phase"))).
			Span(half).Height(10),
	)
}

func doorFailures() []cog.Builder[dashboard.Panel] {
	const t = oneTarget
	return panels(
		bars(head{"Failures by stage and reason", "Where on its way a request failed and why.", perSecond},
			q("{{failure_stage}}/{{reason}}", rate("steadyprobe_request_failures_total", t, "job, target, failure_stage, reason")+" > 0")),
		stacked(head{"Answers by status", "Answers per second by status code and protocol, expected or not.", perSecond},
			q("{{code}} {{protocol}}", rate("steadyprobe_responses_total", t, "job, target, code, protocol"))),
		latencies(head{title: "How long failures take", description: "Latency and service time of requests that fail. At the timeout: the door is silent. Far below it: the door refuses."},
			q("latency p50", quantile("0.5", "steadyprobe_latency_seconds", with(t, `outcome="failure"`), byTarget)),
			q("latency p99", quantile("0.99", "steadyprobe_latency_seconds", with(t, `outcome="failure"`), byTarget)),
			q("service time p50", quantile("0.5", "steadyprobe_service_time_seconds", with(t, `outcome="failure"`), byTarget))),
	)
}

func doorConnections() []cog.Builder[dashboard.Panel] {
	const t = oneTarget
	busy := fmt.Sprintf("%s * (%s) / %s",
		rate("steadyprobe_requests_total", t, byTarget),
		mean("steadyprobe_service_time_seconds", t, byTarget),
		sum("steadyprobe_connections_limit", t, byTarget))
	return panels(
		dashed(graph(head{"Connections", "Open connections, requests in flight and in the backlog; dashed, the most connections that are allowed. With all connections busy and a backlog, requests wait for the door, or for a higher limit.", count},
			q("open", sum("steadyprobe_connections", t, byTarget)),
			q("limit", sum("steadyprobe_connections_limit", t, byTarget)),
			q("in flight", sum("steadyprobe_requests_in_flight", t, byTarget)),
			q("backlog", sum("steadyprobe_requests_backlog", t, byTarget))), "B"),
		graph(head{"Connections needed", "Rate times mean service time, as a share of the allowed connections (Little's law). Above 80 % requests begin to wait because the target has too few connections, not because the door is slow.", share},
			q("busy", busy)),
		bars(head{"Opened and closed", "Connections opened and, by reason, closed per second. Closed by peer or announced is the door's doing; max_age, max_requests, address_removed and per_request are your configuration's.", events},
			q("opened", rate("steadyprobe_connections_opened_total", t, byTarget)),
			q("closed: {{reason}}", rate("steadyprobe_connections_closed_total", t, "job, target, reason")+" > 0")),
		bars(head{"Openings that failed", "Failed openings of connections that no request waited for, by stage and reason. They cost no request.", events},
			q("{{failure_stage}}/{{reason}}", rate("steadyprobe_connection_failures_total", t, "job, target, failure_stage, reason")+" > 0")),
		graph(head{"Bytes", "Bytes per second sent to and received from the door, above TCP.", byteRate},
			q("sent", rate("steadyprobe_sent_bytes_total", t, byTarget)),
			q("received", rate("steadyprobe_received_bytes_total", t, byTarget))),
		graph(head{"Share of requests that waited", "Of the completed requests, the share that found no connection when it was due. It says how many were hit, the phase wait above how long.", share},
			q("waited", number("steadyprobe_phase_seconds", with(t, `phase="wait"`), byTarget)+" / "+rate("steadyprobe_requests_total", t, byTarget))),
	)
}

func doorAddresses() []cog.Builder[dashboard.Panel] {
	const t = oneTarget
	const byAddress = "job, target, address"
	return panels(
		graph(head{"Addresses", "Addresses that the door's name leads to now. At 0 no request can be sent.", count},
			q("addresses", highest("steadyprobe_target_addresses", t, byTarget))),
		bars(head{"Changes of addresses", "Addresses gained and lost per second. A balancer that scales changes them now and then; many changes are a name that flaps.", events},
			q("{{direction}}", rate("steadyprobe_target_address_changes_total", t, "job, target, direction")+" > 0")),
		graph(head{"Lookups", "Lookups of the door's name per second, and those that failed.", events},
			q("lookups", rate("steadyprobe_lookups_total", t, byTarget)),
			q("failed: {{reason}}", rate("steadyprobe_lookup_failures_total", t, "job, target, reason")+" > 0")),
		stacked(head{"Requests by address", "Requests per second to each address. Only where the target counts addresses.", perSecond},
			q("{{address}}", rate("steadyprobe_address_requests_total", t, byAddress))),
		graph(head{"Share of failures by address", "Of the requests to each address, the share that fails. One line above the others is one bad machine. Only where the target counts addresses.", share},
			q("{{address}}", rate("steadyprobe_address_failures_total", t, byAddress)+" / "+rate("steadyprobe_address_requests_total", t, byAddress))),
		latencies(head{title: "Latency by address, p99", description: "The 99th percentile of latency at each address. One line above the others is one slow machine. Only where the target counts addresses."},
			q("{{address}}", quantile("0.99", "steadyprobe_address_latency_seconds", t, byAddress))),
		stacked(head{"Answers by backend", "Answers per second by the backend that gave them. Uneven shares are uneven balancing. Only where the target reads the backend from the answer.", perSecond},
			q("{{backend}}", rate("steadyprobe_backend_responses_total", t, "job, target, backend"))).
			Span(whole),
	)
}
