package main

import (
	"fmt"
	"strings"

	"github.com/grafana/grafana-foundation-sdk/go/cog"
	"github.com/grafana/grafana-foundation-sdk/go/cog/variants"
	"github.com/grafana/grafana-foundation-sdk/go/prometheus"
)

// The selections of series that the variables of a dashboard stand for. Where
// a variable takes one value it is compared literally: Grafana quotes a value
// for a regular expression only where several may be chosen.
const (
	manyTargets = `job=~"$job", target=~"$target"`
	oneTarget   = `job="$job", target="$target"`
	manyJobs    = `job=~"$job"`
	processes   = `job=~"$job", instance=~"$instance"`
	oneChurn    = `job="$job", churn="$churn"`
	churnDoors  = `job="$job", target=~"$target"`
)

// step is the range that rates and peaks are taken over. Grafana makes it at
// least four scrapes and at least one step of the graph, so that nothing
// between two points of the graph is left out.
const step = "$__rate_interval"

// ownFailures are the reasons for which the probe itself is to blame
// (schedule/shutdown and connect/local_resource): no objective counts them.
const ownFailures = `reason=~"shutdown|local_resource"`

// with adds label matchers to a selection.
func with(selection string, matchers ...string) string {
	return strings.Join(append([]string{selection}, matchers...), ", ")
}

// rate is the rate per second of a counter, summed by the labels.
func rate(metric, selection, by string) string {
	return fmt.Sprintf("sum by (%s) (rate(%s{%s}[%s]))", by, metric, selection, step)
}

// sum is a gauge summed by the labels: over the processes that probe together.
func sum(metric, selection, by string) string {
	return fmt.Sprintf("sum by (%s) (%s{%s})", by, metric, selection)
}

// highest is the highest value of a gauge by the labels.
func highest(metric, selection, by string) string {
	return fmt.Sprintf("max by (%s) (%s{%s})", by, metric, selection)
}

// ever is a gauge's highest value since the last point of the graph, so that
// what lasts shorter than a step is seen; where no scrape fell into the step
// it is the present value.
func ever(metric, selection string) string {
	return fmt.Sprintf("(max_over_time(%[1]s{%[2]s}[$__interval]) or %[1]s{%[2]s})", metric, selection)
}

// The functions below read a histogram in either kind. Of a series that is
// stored as native histogram they take that one, else the classic buckets, so
// that one dashboard serves both and Prometheus never mixes the two kinds in
// one quantile. The label job stays in by always: histograms of one name with
// exponential and with custom buckets cannot be added together.

// buckets is the rate of a histogram's buckets, summed by the labels.
func buckets(metric, selection, by string) string {
	return fmt.Sprintf("%s or on (%s) %s",
		rate(metric, selection, by), by, rate(metric+"_bucket", selection, by+", le"))
}

// quantile is a quantile of a histogram by the labels, in the histogram's unit.
func quantile(q, metric, selection, by string) string {
	return fmt.Sprintf("histogram_quantile(%s, %s)", q, buckets(metric, selection, by))
}

// mean is the mean of a histogram's observations by the labels.
func mean(metric, selection, by string) string {
	native := rate(metric, selection, by)
	return fmt.Sprintf("histogram_sum(%[1]s) / histogram_count(%[1]s) or %[2]s / %[3]s",
		native, rate(metric+"_sum", selection, by), rate(metric+"_count", selection, by))
}

// total is what a histogram's observations add up to per second by the labels.
func total(metric, selection, by string) string {
	return fmt.Sprintf("(histogram_sum(%s) or %s)", rate(metric, selection, by), rate(metric+"_sum", selection, by))
}

// number is how many observations a histogram gets per second by the labels.
func number(metric, selection, by string) string {
	return fmt.Sprintf("(histogram_count(%s) or %s)", rate(metric, selection, by), rate(metric+"_count", selection, by))
}

// The quantiles of latency that the probe computes itself, exactly, over a
// sliding window; they need no histogram.

// peak is the highest value that a quantile of latency had within each step,
// over the window that the reader chose.
func peak(q, selection, by string) string {
	return fmt.Sprintf(`max by (%s) (max_over_time(steadyprobe_latency_quantile_seconds{%s, q="%s", window="$window"}[%s]))`,
		by, selection, q, step)
}

// latest is the present value of a quantile of latency over 5 minutes.
func latest(q, selection, by string) string {
	return highest("steadyprobe_latency_quantile_seconds", with(selection, fmt.Sprintf(`q="%s", window="5m"`, q)), by)
}

// failedShare is the share of completed requests that failed.
func failedShare(selection, by string) string {
	return rate("steadyprobe_request_failures_total", selection, by) +
		" / " + rate("steadyprobe_requests_total", selection, by)
}

// rateKept is the share of the configured rate that was begun and completed:
// what expired in the backlog never reached the door.
func rateKept(selection string) string {
	const by = "job, target"
	return fmt.Sprintf("(%s - %s) / %s",
		rate("steadyprobe_requests_total", selection, by),
		rate("steadyprobe_request_failures_total", with(selection, `failure_stage="schedule"`), by),
		sum("steadyprobe_target_requests_per_second", selection, by))
}

// calm are the requests that objectives are about, as in the alerts: all of a
// target without a churn, and those that were due while the churn was settled.
const calm = `churn_phase=~"|settled"`

// withinObjective is the share of requests that succeeded within the latency
// objective in the range; the probe's own failures are not counted. Counters
// that begin in the range may differ a little, never to more than all.
func withinObjective(selection, over, by string) string {
	increase := func(metric, selection string) string {
		return fmt.Sprintf("sum by (%s) (increase(%s{%s}[%s]))", by, metric, selection, over)
	}
	return fmt.Sprintf("clamp_max(%s / (%s - %s), 1)",
		increase("steadyprobe_requests_within_objective_total", selection),
		increase("steadyprobe_requests_total", selection),
		increase("steadyprobe_request_failures_total", with(selection, ownFailures)))
}

// burn is how many times faster than allowed the error budget is used up.
func burn(selection, over string) string {
	return fmt.Sprintf("(1 - %s) / (1 - %s)",
		withinObjective(with(selection, calm), over, "job, target"),
		highest("steadyprobe_objective_ratio", selection, "job, target"))
}

// query is one query of a panel.
type query struct {
	expr   string
	legend string
}

// q is a query whose series are named by a legend, in which {{label}} stands
// for the value of a label.
func q(legend, expr string) query { return query{expr: expr, legend: legend} }

// refs names the queries of one panel, in their order.
const refs = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"

// ranges are queries for graphs.
func ranges(queries []query) []cog.Builder[variants.Dataquery] {
	return dataqueries(queries, func(b *prometheus.DataqueryBuilder) { b.Range().Format(prometheus.PromQueryFormatTimeSeries) })
}

// instants are queries for the end of the time range, for tables and figures.
func instants(queries []query, format prometheus.PromQueryFormat) []cog.Builder[variants.Dataquery] {
	return dataqueries(queries, func(b *prometheus.DataqueryBuilder) { b.Instant().Format(format) })
}

func dataqueries(queries []query, set func(*prometheus.DataqueryBuilder)) []cog.Builder[variants.Dataquery] {
	all := make([]cog.Builder[variants.Dataquery], len(queries))
	for i, query := range queries {
		b := prometheus.NewDataqueryBuilder().
			RefId(refs[i : i+1]).
			Datasource(datasource()).
			EditorMode(prometheus.QueryEditorModeCode).
			Expr(query.expr).
			LegendFormat(query.legend)
		set(b)
		all[i] = b
	}
	return all
}
