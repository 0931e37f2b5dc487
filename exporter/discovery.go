package exporter

import dto "github.com/prometheus/client_model/go"

// Source is one source of discovered targets as its series show it.
type Source struct {
	Name     string
	Targets  int // admitted, those that are held included
	Held     int // that the source does not have any more
	Refused  []RefusedTargets
	Failures uint64
}

// RefusedTargets says how many targets of a source are not probed for one
// reason. Those of all reasons are listed, so that a series does not begin with
// a refusal.
type RefusedTargets struct {
	Reason  string
	Targets int
}

func sourceLabel(name string) *dto.LabelPair { return pair("source", name) }

func refusalLabel(reason string) *dto.LabelPair { return pair("reason", reason) }

// source writes all series of one source.
func (w *writer) source(s *Source) {
	source := remembered(w.page.sources, s.Name, sourceLabel)
	w.gauge(discoveredTargets, float64(s.Targets), source)
	w.gauge(heldTargets, float64(s.Held), source)
	for _, r := range s.Refused {
		w.gauge(refusedTargets, float64(r.Targets), remembered(w.page.refusals, r.Reason, refusalLabel), source)
	}
	w.count(discoveryFailures, s.Failures, source)
}
