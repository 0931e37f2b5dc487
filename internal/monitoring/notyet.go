package monitoring

import "github.com/steadyprobe/steadyprobe/exporter"

// NotYetExposed returns the metrics that the design has and the exporter does
// not expose yet, so that rules and panels may name them already. One that is
// exposed is to be taken out of here: the contract test fails when it is not.
func NotYetExposed() []exporter.Metric {
	return []exporter.Metric{
		{Name: "steadyprobe_discovered_targets", Type: exporter.Gauge, Scope: exporter.PerProcess, Labels: []string{"source"}},
		{Name: "steadyprobe_discovery_failures_total", Type: exporter.Counter, Scope: exporter.PerProcess, Labels: []string{"source"}},
		{Name: "steadyprobe_discovery_refused_targets", Type: exporter.Gauge, Scope: exporter.PerProcess, Labels: []string{"reason", "source"}},
		{Name: "steadyprobe_history_write_failures_total", Type: exporter.Counter, Scope: exporter.PerProcess},
		{Name: "steadyprobe_shard_info", Type: exporter.Gauge, Scope: exporter.PerProcess, Labels: []string{"index", "shards"}},
	}
}
