package main

import (
	"fmt"

	"github.com/grafana/grafana-foundation-sdk/go/cog"
	"github.com/grafana/grafana-foundation-sdk/go/dashboard"
	"github.com/grafana/grafana-foundation-sdk/go/timeseries"
)

// comparison lays two or more doors over each other.
func comparison() board {
	return board{
		name:        "comparison",
		title:       "comparison of doors",
		description: "Two or more doors side by side: latency by percentile, and how much slower or faster each is than a reference.",
		variables: []cog.Builder[dashboard.VariableModel]{
			source(), anyJobs(), anyTargets(manyJobs),
			one("reference", "Reference", "The door that the others are held against, for example the old one.",
				values("steadyprobe_target_info", manyJobs, "target")),
			choice("q", "Percentile", "The percentile that differences and ratios are taken of, as a fraction.",
				"0.99", "0.5", "0.9", "0.999", "0.9999", "1"),
			window(), labelFilter(),
		},
		annotations: []cog.Builder[dashboard.AnnotationQuery]{
			untrusted(manyJobs), churning(manyJobs), readdressed(manyTargets),
		},
		sections: []section{
			{panels: panels(page("How to compare", `Choose two or more doors above, and the **reference** that the others are held against. Doors are only comparable when they are probed alike: same rate, connections, TLS and request, and the same backend. Every latency counts from the instant at which a request was due, so a door that stalls cannot hide it.

A *difference* is what a user waits longer; a *ratio* says how much slower a door is. Look at both, and at failures first: a door that refuses fast has fine percentiles. Differences of a few percent between doors that take turns on one machine are noise; `+"`steadyprobe compare`"+` says which are not.`).Height(5))},
			{title: "Latency by percentile", panels: compareTable()},
			{title: "Percentiles over time", panels: compareTime()},
			{title: "Against the reference", panels: compareReference()},
			{title: "Beside latency", panels: compareRest()},
		},
	}
}

func compareTable() []cog.Builder[dashboard.Panel] {
	const t = manyTargets
	now := func(quantile string) string {
		return highest("steadyprobe_latency_quantile_seconds", with(t, fmt.Sprintf(`q="%s", window="$window"`, quantile)), byTarget)
	}
	return panels(
		percentiles(head{"Latency by percentile", "Exact percentiles of latency over the chosen window up to now, on a logarithmic axis; q=1 is the longest. Doors whose bars part only at the right differ in their rare slow requests.", seconds},
			highest("steadyprobe_latency_quantile_seconds", with(t, `window="$window"`), "q, target")),
		rows(head{"Percentiles", "The same as figures, with the share of requests that failed and the share of the configured rate that was kept.", seconds},
			column{"p50", seconds, now("0.5")},
			column{"p90", seconds, now("0.9")},
			column{"p99", seconds, now("0.99")},
			column{"p99.9", seconds, now("0.999")},
			column{"p99.99", seconds, now("0.9999")},
			column{"Max", seconds, now("1")},
			column{"Failed", share, failedShare(t, byTarget)},
			column{"Rate kept", share, rateKept(t)},
		).Span(half).Height(10),
	)
}

func compareTime() []cog.Builder[dashboard.Panel] {
	percentile := func(title, quantile string) *timeseries.PanelBuilder {
		return latencies(head{title: title, description: "Exact, over the chosen window, the highest value within each step; a line for each door."},
			q(perTarget, peak(quantile, manyTargets, byTarget))).
			OverrideByFieldType("number", doorLinks())
	}
	return panels(
		percentile("p50", "0.5"), percentile("p90", "0.9"), percentile("p99", "0.99"),
		percentile("p99.9", "0.999"), percentile("p99.99", "0.9999"), percentile("Maximum", "1"),
	)
}

func compareReference() []cog.Builder[dashboard.Panel] {
	here := peak("$q", manyTargets, byTarget)
	// The reference may be in another job than the door that is held against it.
	reference := "on () group_left () " + fmt.Sprintf("max(%s)", peak("$q", `job=~"$job", target="$reference"`, byTarget))
	return panels(
		graph(head{"Difference to the reference", "How much longer (above 0) or shorter the chosen percentile is than that of the reference.", seconds},
			q(perTarget, here+" - "+reference)).
			Span(half),
		graph(head{"Ratio to the reference", "How many times the reference's value the chosen percentile is. 1 is equal, 2 twice as long.", times},
			q(perTarget, here+" / "+reference)).
			Span(half).ScaleDistribution(logarithmic()),
	)
}

func compareRest() []cog.Builder[dashboard.Panel] {
	const t = manyTargets
	return panels(
		graph(head{"Share of requests that failed", "Failed requests among those completed. Compare this before latency.", share},
			q(perTarget, failedShare(t, byTarget))),
		latencies(head{title: "Service time, p99", description: "The 99th percentile from the connection to the last byte, of successful requests: without the time spent waiting for a connection."},
			q(perTarget, quantile("0.99", "steadyprobe_service_time_seconds", with(t, `outcome="success"`), byTarget))),
		graph(head{"Mean latency", "The mean over all requests. It hides what the percentiles show; for comparison with other studies.", seconds},
			q(perTarget, mean("steadyprobe_latency_seconds", t, byTarget))),
		latencies(head{title: "Connect, p99", description: "The 99th percentile of the time that a TCP connection took to open."},
			q(perTarget, quantile("0.99", "steadyprobe_phase_seconds", with(t, `phase="connect"`), byTarget))),
		latencies(head{title: "TLS handshake, p99", description: "The 99th percentile of the time that a TLS handshake took, full and resumed together."},
			q(perTarget, quantile("0.99", "steadyprobe_tls_handshake_seconds", t, byTarget))),
		graph(head{"Burn over 1 hour", "How many times faster than allowed the error budget is used up. Only targets with an objective are shown.", times},
			q(perTarget, burn(t, "1h"))),
	)
}
