package testbed

import (
	"bytes"
	"fmt"
	"math"
	"strings"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
)

// Scrape is what /metrics of a probe said at one instant, by family.
type Scrape map[string]*dto.MetricFamily

// ParseScrape reads the text of /metrics.
func ParseScrape(text []byte) (Scrape, error) {
	parser := expfmt.NewTextParser(model.LegacyValidation)
	return parser.TextToMetricFamilies(bytes.NewReader(text))
}

// Sum adds up the values of a family's series that have all these labels,
// given as name, value, …; of histograms their counts.
func (s Scrape) Sum(name string, labels ...string) float64 {
	sum := 0.0
	for _, m := range s[name].GetMetric() {
		if !hasLabels(m, labels) {
			continue
		}
		sum += m.GetCounter().GetValue() + m.GetGauge().GetValue() + float64(m.GetHistogram().GetSampleCount())
	}
	return sum
}

func hasLabels(m *dto.Metric, labels []string) bool {
	for i := 0; i < len(labels); i += 2 {
		if Label(m, labels[i]) != labels[i+1] {
			return false
		}
	}
	return true
}

// Label returns the value of a label, empty where there is none.
func Label(m *dto.Metric, name string) string {
	for _, p := range m.GetLabel() {
		if p.GetName() == name {
			return p.GetValue()
		}
	}
	return ""
}

// Failures returns the failures of a target so far by stage and reason.
func (s Scrape) Failures(target string) map[string]uint64 {
	by := map[string]uint64{}
	for _, m := range s["steadyprobe_request_failures_total"].GetMetric() {
		if n := m.GetCounter().GetValue(); n > 0 && Label(m, "target") == target {
			by[Label(m, "failure_stage")+"/"+Label(m, "reason")] += uint64(n)
		}
	}
	return by
}

// CheckAccount holds the account of one target in one scrape against what must
// be true at every instant, and against the account before.
func (s Scrape) CheckAccount(target string, before Scrape) error {
	of := func(name string, labels ...string) float64 { return s.Sum(name, append(labels, "target", target)...) }
	scheduled, completed := of("steadyprobe_requests_scheduled_total"), of("steadyprobe_requests_total")
	inFlight, backlog := of("steadyprobe_requests_in_flight"), of("steadyprobe_requests_backlog")
	if scheduled != completed+inFlight+backlog {
		return fmt.Errorf("%s: %v scheduled, but %v completed, %v in flight and %v in the backlog", target, scheduled, completed, inFlight, backlog)
	}
	failed := of("steadyprobe_request_failures_total")
	succeeded := completed - failed
	if succeeded < 0 {
		return fmt.Errorf("%s: %v failures of %v requests", target, failed, completed)
	}
	// A sample is recorded just before it is counted, and scraped after.
	slack := inFlight + backlog + 1 + 0.5*of("steadyprobe_target_requests_per_second")
	for _, h := range []struct {
		name   string
		got    float64
		counts float64
	}{
		{"latency of successes", of("steadyprobe_latency_seconds", "outcome", "success"), succeeded},
		{"latency of failures", of("steadyprobe_latency_seconds", "outcome", "failure"), failed},
		{"service time of successes", of("steadyprobe_service_time_seconds", "outcome", "success"), succeeded},
		{"lateness", of("steadyprobe_lateness_seconds"), completed},
	} {
		if h.got < h.counts || h.got > h.counts+slack {
			return fmt.Errorf("%s: %v samples in the histogram of %s, %v counted", target, h.got, h.name, h.counts)
		}
	}
	opened, closed := of("steadyprobe_connections_opened_total"), of("steadyprobe_connections_closed_total")
	if open := of("steadyprobe_connections"); open != opened-closed {
		return fmt.Errorf("%s: %v connections opened, %v closed, but %v open", target, opened, closed, open)
	}
	for failure := range s.Failures(target) {
		if strings.HasSuffix(failure, "/error") {
			return fmt.Errorf("%s: failures without a specific reason: %v", target, s.Failures(target))
		}
	}
	return s.checkGrowth(before)
}

// checkGrowth checks that no counter of the program's own has shrunk. Those of
// an address go with it.
func (s Scrape) checkGrowth(before Scrape) error {
	for name, family := range before {
		if family.GetType() != dto.MetricType_COUNTER || !strings.HasPrefix(name, "steadyprobe_") || strings.HasPrefix(name, "steadyprobe_address_") {
			continue
		}
		for _, m := range family.GetMetric() {
			var labels []string
			for _, p := range m.GetLabel() {
				labels = append(labels, p.GetName(), p.GetValue())
			}
			now := s.Sum(name, labels...)
			if target := Label(m, "target"); now == 0 && target != "" && s.Sum("steadyprobe_target_info", "target", target) == 0 {
				continue // it is gone with its target
			}
			if math.IsNaN(now) || now < m.GetCounter().GetValue() {
				return fmt.Errorf("%s%v went from %v to %v", name, labels, m.GetCounter().GetValue(), now)
			}
		}
	}
	return nil
}

// Above returns how many samples of a family of histograms are above one of its
// classic bounds, of the series that have all these labels, given as name, value,
// …. It is NaN where there is no such bound.
func (s Scrape) Above(name string, bound float64, labels ...string) float64 {
	above := 0.0
	for _, m := range s[name].GetMetric() {
		if !hasLabels(m, labels) {
			continue
		}
		below := math.NaN()
		for _, b := range m.GetHistogram().GetBucket() {
			if b.GetUpperBound() == bound {
				below = float64(b.GetCumulativeCount())
			}
		}
		above += float64(m.GetHistogram().GetSampleCount()) - below
	}
	return above
}
