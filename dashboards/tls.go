package main

import (
	"github.com/grafana/grafana-foundation-sdk/go/cog"
	"github.com/grafana/grafana-foundation-sdk/go/dashboard"
)

const (
	notAfter  = "steadyprobe_tls_certificate_not_after_timestamp_seconds"
	notBefore = "steadyprobe_tls_certificate_not_before_timestamp_seconds"
)

// tls shows handshakes and certificates.
func tls() board {
	return board{
		name:        "tls",
		title:       "TLS",
		description: "What is negotiated with each door, how long handshakes take, whether sessions are resumed, and when certificates run out.",
		variables: []cog.Builder[dashboard.VariableModel]{
			source(), anyJobs(), anyTargets(manyJobs), labelFilter(),
		},
		annotations: []cog.Builder[dashboard.AnnotationQuery]{
			untrusted(manyJobs), churning(manyJobs), readdressed(manyTargets),
		},
		sections: []section{
			{title: "Certificates", panels: tlsCertificates()},
			{title: "Handshakes", panels: tlsHandshakes()},
			{title: "What is negotiated", panels: tlsNegotiated()},
			{title: "Failures", panels: tlsFailures()},
		},
	}
}

// lifetimeLeft is the share of a certificate's lifetime that is left.
func lifetimeLeft() string {
	const t = manyTargets
	return "(" + lowest(notAfter, t) + " - time()) / (" + lowest(notAfter, t) + " - " + highest(notBefore, t, byTarget) + ")"
}

// lowest is the lowest value of a gauge of each target.
func lowest(metric, selection string) string {
	return "min by (" + byTarget + ") (" + metric + "{" + selection + "})"
}

func tlsCertificates() []cog.Builder[dashboard.Panel] {
	const t = manyTargets
	return panels(
		figure(head{"Runs out first", "Time until the first certificate of any chosen door runs out.", seconds}, falling(7*24*3600, 30*24*3600),
			q("", "min("+lowest(notAfter, t)+") - time()")).
			Span(6).Height(8),
		rows(head{"Certificates", "The narrowest validity in each door's chain, over all its addresses, what is left of it, and whether the chain was verified. A door that never completed a handshake is missing.", moment},
			column{"Valid from", moment, "1000 * " + highest(notBefore, t, byTarget)},
			column{"Valid until", moment, "1000 * " + lowest(notAfter, t)},
			column{"Time left", seconds, lowest(notAfter, t) + " - time()"},
			column{"Lifetime left", share, lifetimeLeft()},
			column{"Verified", plain, lowest("steadyprobe_tls_certificate_verified", t)},
			column{"OCSP stapled", plain, lowest("steadyprobe_tls_ocsp_stapled", t)},
		).Span(18).
			OverrideByRegexp("Verified|OCSP stapled", []dashboard.DynamicConfigValue{
				{Id: "mappings", Value: states(state{"no", "orange"}, state{"yes", "green"})},
			}),
		graph(head{"Lifetime left", "Share of the certificate's lifetime that is left. It jumps back to nearly all when the certificate is renewed; below a quarter a renewal has been missed.", share},
			q(perTarget, lifetimeLeft())).
			Max(1).Span(whole),
	)
}

func tlsHandshakes() []cog.Builder[dashboard.Panel] {
	const t = manyTargets
	const byResumed = "job, target, resumed"
	return panels(
		stacked(head{"Handshakes, full and resumed", "Completed handshakes per second. A resumed one skips the expensive part.", events},
			q("{{target}} resumed={{resumed}}", rate("steadyprobe_tls_handshakes_total", t, byResumed))),
		graph(head{"Share resumed", "Resumed among all handshakes. A fall to 0 is a door that lost its session tickets or its cache, often after a reload: every opening costs it the full price.", share},
			q(perTarget, "("+rate("steadyprobe_tls_handshakes_total", with(t, `resumed="true"`), byTarget)+" or 0 * "+rate("steadyprobe_tls_handshakes_total", t, byTarget)+") / "+
				rate("steadyprobe_tls_handshakes_total", t, byTarget))).
			Max(1),
		latencies(head{title: "Time of a handshake", description: "Median and 99th percentile of completed handshakes, full and resumed."},
			q("{{target}} resumed={{resumed}} p50", quantile("0.5", "steadyprobe_tls_handshake_seconds", t, byResumed)),
			q("{{target}} resumed={{resumed}} p99", quantile("0.99", "steadyprobe_tls_handshake_seconds", t, byResumed))),
	)
}

func tlsNegotiated() []cog.Builder[dashboard.Panel] {
	const t = manyTargets
	by := func(title, description, label string) cog.Builder[dashboard.Panel] {
		return stacked(head{title, description, events},
			q("{{target}} {{"+label+"}}", rate("steadyprobe_tls_handshakes_total", t, "job, target, "+label)))
	}
	return panels(
		by("By version", "Handshakes per second by TLS version.", "tls_version"),
		by("By cipher", "Handshakes per second by cipher suite.", "cipher"),
		by("By group", "Handshakes per second by the group of the key exchange; none where there was none, as in a resumption without one.", "key_exchange"),
	)
}

func tlsFailures() []cog.Builder[dashboard.Panel] {
	const t = manyTargets
	return panels(
		bars(head{"Requests that failed at TLS", "Requests per second whose handshake failed, by reason. eof: the door accepts and closes, as a balancer without backends does.", perSecond},
			q("{{target}} {{reason}}", rate("steadyprobe_request_failures_total", with(t, `failure_stage="tls"`), "job, target, reason")+" > 0")).
			Span(half),
		bars(head{"Openings that failed at TLS", "Failed handshakes per second that no request waited for, by reason.", events},
			q("{{target}} {{reason}}", rate("steadyprobe_connection_failures_total", with(t, `failure_stage="tls"`), "job, target, reason")+" > 0")).
			Span(half),
	)
}
