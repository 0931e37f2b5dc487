package main

import (
	"github.com/grafana/grafana-foundation-sdk/go/cog"
	"github.com/grafana/grafana-foundation-sdk/go/dashboard"
)

// byProcess keeps the processes of a job apart.
const byProcess = "job, instance"

// probe shows whether the probe itself is well.
func probe() board {
	return board{
		name:        "probe",
		title:       "probe health",
		description: "Whether the figures of the other dashboards can be trusted: the probe's own lateness, what it adds to each figure, its resources, shards and configuration.",
		variables: []cog.Builder[dashboard.VariableModel]{
			source(),
			many("job", "Job", aboutJob, values("steadyprobe_build_info", "", "job")),
			many("instance", "Instance", "The processes of steadyprobe.", values("steadyprobe_build_info", manyJobs, "instance")),
		},
		annotations: []cog.Builder[dashboard.AnnotationQuery]{untrusted(processes)},
		sections: []section{
			{panels: probeNow()},
			{title: "What the probe adds", panels: probeLateness()},
			{title: "Accounting", panels: probeAccounting()},
			{title: "Resources", panels: probeResources()},
			{title: "Targets, shards and configuration", panels: probeConfiguration()},
		},
	}
}

func probeNow() []cog.Builder[dashboard.Panel] {
	const p = processes
	return panels(
		page("Can the figures be trusted?", "Yes, while nothing below is saturated and *lateness* and *self latency* stay far below the latencies that the other dashboards show. Otherwise the probe adds to every figure: give it CPU (two cores beside the pacing threads), file descriptors or ports, or a lower rate. Failures stay true in any case: a dead door can itself use up ports.").Height(3),
		timeline(head{"Lacking", "Whether the probe lacks a resource. While it does, latencies are partly its own and the latency alerts are held back.", plain},
			states(state{"enough", "green"}, state{"lacking", "red"}),
			q("{{instance}} {{resource}}", "max by (job, instance, resource) "+ever("steadyprobe_saturated", p))),
		timeline(head{"Up", "Whether Prometheus reached the process.", plain},
			states(state{"down", "red"}, state{"up", "green"}),
			q("{{instance}}", highest("up", p, byProcess))),
	)
}

func probeLateness() []cog.Builder[dashboard.Panel] {
	const p = processes
	return panels(
		latencies(head{title: "Self latency", description: "What the probe itself adds to every figure, measured through a local socket 20 times a second. It sees starved readers, which lateness does not."},
			q("{{instance}} p50", quantile("0.5", "steadyprobe_self_latency_seconds", p, byProcess)),
			q("{{instance}} p99", quantile("0.99", "steadyprobe_self_latency_seconds", p, byProcess)),
			q("{{instance}} p99.9", quantile("0.999", "steadyprobe_self_latency_seconds", p, byProcess))),
		latencies(head{title: "Lateness", description: "How late requests were dealt with, over all targets of a process."},
			q("{{instance}} p50", quantile("0.5", "steadyprobe_lateness_seconds", p, byProcess)),
			q("{{instance}} p99", quantile("0.99", "steadyprobe_lateness_seconds", p, byProcess)),
			q("{{instance}} p99.9", quantile("0.999", "steadyprobe_lateness_seconds", p, byProcess))),
		latencies(head{title: "Lateness by target, p99", description: "The 99th percentile of lateness of each target. A single high one probably has economy pacing, which wakes once a millisecond."},
			q("{{instance}} {{target}}", quantile("0.99", "steadyprobe_lateness_seconds", p, "job, instance, target"))),
		density(head{"Distribution of self latency", "How many of the measurements per second came out how high. Finest with native (exponential) histograms; coarse with classic buckets. Choose one job.", seconds},
			buckets("steadyprobe_self_latency_seconds", p, "job")),
		latencies(head{title: "Waiting to run, p99", description: "How long goroutines of the process wait for a processor. Above a millisecond the process has too little CPU."},
			q("{{instance}}", quantile("0.99", "go_sched_latencies_seconds", p, byProcess))).
			Span(half),
		graph(head{"Time spent lacking", "Share of the time in which the probe lacked a resource.", share},
			q("{{instance}} {{resource}}", rate("steadyprobe_saturated_seconds_total", p, "job, instance, resource"))).
			Max(1).Span(half),
		graph(head{"Latencies beyond the record", "Requests per second whose latency was above what can be recorded (an hour) and was recorded as that.", perSecond},
			q("{{instance}} {{target}}", rate("steadyprobe_latency_clamped_total", p, "job, instance, target"))).
			Span(half),
	)
}

func probeAccounting() []cog.Builder[dashboard.Panel] {
	const p = processes
	return panels(
		graph(head{"Requests unaccounted for", "Requests that were due, less those completed, in flight and in the backlog. Always 0: no request is lost.", count},
			q("{{instance}}", sum("steadyprobe_requests_scheduled_total", p, byProcess)+
				" - "+sum("steadyprobe_requests_total", p, byProcess)+
				" - "+sum("steadyprobe_requests_in_flight", p, byProcess)+
				" - "+sum("steadyprobe_requests_backlog", p, byProcess))),
		dashed(graph(head{"Schedule kept", "Requests per second that became due; dashed, the rate that is configured. The two are equal whatever the doors do.", perSecond},
			q("{{instance}}", rate("steadyprobe_requests_scheduled_total", p, byProcess)),
			q("{{instance}} configured", sum("steadyprobe_target_requests_per_second", p, byProcess))), "B"),
		bars(head{"The probe's own failures", "Requests per second that failed because the probe stopped or had no port or file descriptor. No objective counts them.", perSecond},
			q("{{instance}} {{failure_stage}}/{{reason}}",
				rate("steadyprobe_request_failures_total", with(p, ownFailures), "job, instance, failure_stage, reason")+" > 0")),
	)
}

func probeResources() []cog.Builder[dashboard.Panel] {
	const p = processes
	return panels(
		graph(head{"CPU", "Processors that the process uses.", count},
			q("{{instance}}", rate("process_cpu_seconds_total", p, byProcess))),
		graph(head{"Memory", "Resident memory, and what of it is live on Go's heap.", size},
			q("{{instance}} resident", sum("process_resident_memory_bytes", p, byProcess)),
			q("{{instance}} heap", sum("go_memstats_heap_alloc_bytes", p, byProcess))),
		dashed(graph(head{"File descriptors", "Open file descriptors; dashed, the most that the system allows.", count},
			q("{{instance}}", sum("process_open_fds", p, byProcess)),
			q("{{instance}} limit", sum("process_max_fds", p, byProcess))), "B"),
		graph(head{"Connections", "Open connections to all doors together.", count},
			q("{{instance}}", sum("steadyprobe_connections", p, byProcess))),
		graph(head{"Goroutines", "Goroutines of the process. They follow the connections; a line that only climbs is a leak.", count},
			q("{{instance}}", sum("go_goroutines", p, byProcess))),
		graph(head{"Time of a scrape", "How long Prometheus waited for the metrics.", seconds},
			q("{{instance}}", highest("scrape_duration_seconds", p, byProcess))),
	)
}

func probeConfiguration() []cog.Builder[dashboard.Panel] {
	const p = processes
	return panels(
		rows(head{"Processes", "Version and system of each process, how many targets it probes, and whether it accepted its last configuration.", plain},
			column{"Targets", count, "count by (job, instance) (steadyprobe_target_info{" + p + "})"},
			column{"Configuration accepted", plain, highest("steadyprobe_config_last_reload_successful", p, byProcess)},
			column{"Configuration of", moment, "1000 * " + highest("steadyprobe_config_last_reload_success_timestamp_seconds", p, byProcess)},
			column{"Running since", moment, "1000 * " + highest("process_start_time_seconds", p, byProcess)},
		).Span(half).
			OverrideByName("Configuration accepted", []dashboard.DynamicConfigValue{
				{Id: "mappings", Value: states(state{"no", "red"}, state{"yes", "green"})},
			}),
		rows(head{"Versions", "What each process was built from.", plain},
			column{"Processes", count, "count by (job, instance, version, revision, goversion, goos, goarch) (steadyprobe_build_info{" + p + "})"},
		).Span(half),
		rows(head{"Shards", "Which share of the targets each process has. Every index must be there once.", plain},
			column{"Processes", count, "count by (job, instance, index, shards) (steadyprobe_shard_info{" + p + "})"},
		).Span(third),
		graph(head{"Discovered targets", "Targets that each source of discovery found, those of them that are held because it has none any more, and those that were refused, by reason.", count},
			q("{{instance}} {{source}}", sum("steadyprobe_discovered_targets", p, "job, instance, source")),
			q("{{instance}} {{source}} held", sum("steadyprobe_discovery_held_targets", p, "job, instance, source")+" > 0"),
			q("{{instance}} refused: {{reason}}", sum("steadyprobe_discovery_refused_targets", p, "job, instance, reason"))),
		bars(head{"Failures of the probe's services", "Failed rounds of discovery by source, and failed writes of the history, per second.", events},
			q("{{instance}} {{source}}", rate("steadyprobe_discovery_failures_total", p, "job, instance, source")+" > 0"),
			q("{{instance}} history", rate("steadyprobe_history_write_failures_total", p, byProcess)+" > 0")),
	)
}
