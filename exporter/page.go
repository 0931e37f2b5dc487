package exporter

import (
	"fmt"
	"net/netip"

	dto "github.com/prometheus/client_model/go"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/steadyprobe/steadyprobe/probe/record"
)

// page is the memory of one scrape. Its metrics are filled in the order in
// which they are written and reused by the next scrape, so that a scrape
// allocates only for series that are new.
type page struct {
	layout   *layout
	families [numFamilies]pool
	snapshot record.Snapshot
	untried  record.AddressCount
	self     record.Distribution
	churn    ChurnState
	out      []*dto.MetricFamily
	errs     [numFamilies]error

	// Labels of what the doors and the process showed so far: a few values, but
	// no closed list.
	codes      map[uint16]*dto.LabelPair
	handshakes map[record.HandshakeCount][]*dto.LabelPair // its Count is 0
	resources  map[string]*dto.LabelPair
	sources    map[string]*dto.LabelPair
	refusals   map[string]*dto.LabelPair
	addresses  map[netip.Addr]*dto.LabelPair
	backends   map[string]*dto.LabelPair
}

// mostRemembered bounds how many labels of one kind are kept from scrape to
// scrape: addresses and backends come and go.
const mostRemembered = 10_000

// pool is the metrics of one family, of which the first used ones are written.
type pool struct {
	family  dto.MetricFamily
	metrics []*dto.Metric
	used    int
}

func newPage(l *layout) *page {
	p := &page{
		layout:     l,
		codes:      map[uint16]*dto.LabelPair{},
		handshakes: map[record.HandshakeCount][]*dto.LabelPair{},
		resources:  map[string]*dto.LabelPair{},
		sources:    map[string]*dto.LabelPair{},
		refusals:   map[string]*dto.LabelPair{},
		addresses:  map[netip.Addr]*dto.LabelPair{},
		backends:   map[string]*dto.LabelPair{},
	}
	types := map[Type]dto.MetricType{
		Counter: dto.MetricType_COUNTER, Gauge: dto.MetricType_GAUGE, Histogram: dto.MetricType_HISTOGRAM,
	}
	for i := range catalogue {
		m, f := &catalogue[i], &p.families[i].family
		f.Name, f.Help, f.Type = &m.Name, &m.Help, types[m.Type].Enum()
	}
	return p
}

func (p *page) reset() {
	for i := range p.families {
		p.families[i].used = 0
	}
	clear(p.errs[:])
	if len(p.addresses) > mostRemembered {
		clear(p.addresses)
	}
	if len(p.backends) > mostRemembered {
		clear(p.backends)
	}
}

// finish returns the families that have series, sorted by name.
func (p *page) finish() ([]*dto.MetricFamily, error) {
	p.out = p.out[:0]
	var failed error
	for _, f := range p.layout.order {
		pool := &p.families[f]
		if pool.used > 0 {
			pool.family.Metric = pool.metrics[:pool.used]
			p.out = append(p.out, &pool.family)
		}
		if failed == nil {
			failed = p.errs[f]
		}
	}
	return p.out, failed
}

// remembered returns what the map holds for the key, which it makes if need be.
func remembered[K comparable, V any](m map[K]V, key K, make func(K) V) V {
	v, ok := m[key]
	if !ok {
		v = make(key)
		m[key] = v
	}
	return v
}

// writer writes the series of one target, or of the process.
type writer struct {
	page    *page
	base    []*dto.LabelPair // of every series, sorted by name
	created *timestamppb.Timestamp
}

// next returns the next metric of a family with its labels set. The extra
// labels must be sorted by name; none of them is in the base.
func (w *writer) next(f family, extra []*dto.LabelPair) *dto.Metric {
	pool := &w.page.families[f]
	if pool.used == len(pool.metrics) {
		pool.metrics = append(pool.metrics, w.page.newMetric(f, len(w.base)+len(extra)))
	}
	m := pool.metrics[pool.used]
	pool.used++
	all, base := m.Label[:0], w.base
	for _, e := range extra {
		for len(base) > 0 && *base[0].Name < *e.Name {
			all = append(all, base[0])
			base = base[1:]
		}
		all = append(all, e)
	}
	m.Label = append(all, base...)
	return m
}

func (w *writer) counter(f family, value float64, extra ...*dto.LabelPair) {
	c := w.next(f, extra).Counter
	*c.Value = value
	c.CreatedTimestamp = w.created
}

func (w *writer) count(f family, value uint64, extra ...*dto.LabelPair) {
	w.counter(f, float64(value), extra...)
}

func (w *writer) gauge(f family, value float64, extra ...*dto.LabelPair) {
	*w.next(f, extra).Gauge.Value = value
}

// histogram writes d, which is of no use afterwards.
func (w *writer) histogram(f family, d *record.Distribution, extra ...*dto.LabelPair) {
	h := w.next(f, extra).Histogram
	h.CreatedTimestamp = w.created
	*h.SampleCount = d.Count
	*h.SampleSum = d.Sum
	p := w.page
	if p.layout.histograms.Classic && !fillClassic(h, d) && p.errs[f] == nil {
		p.errs[f] = fmt.Errorf("exposing %q: counted in %d classic buckets, but %d are configured",
			catalogue[f].Name, len(d.Classic), len(h.Bucket)+1)
	}
	if p.layout.histograms.Native {
		p.layout.fillNative(h, d)
	}
}

// newMetric returns a metric of the family with all that it will ever need but
// its native buckets, in as few pieces as possible.
func (p *page) newMetric(f family, numLabels int) *dto.Metric {
	switch catalogue[f].Type {
	case Counter:
		cell := new(struct {
			metric  dto.Metric
			counter dto.Counter
			value   float64
		})
		cell.metric.Counter, cell.counter.Value = &cell.counter, &cell.value
		cell.metric.Label = make([]*dto.LabelPair, 0, numLabels)
		return &cell.metric
	case Gauge:
		cell := new(struct {
			metric dto.Metric
			gauge  dto.Gauge
			value  float64
		})
		cell.metric.Gauge, cell.gauge.Value = &cell.gauge, &cell.value
		cell.metric.Label = make([]*dto.LabelPair, 0, numLabels)
		return &cell.metric
	}
	cell := new(struct {
		metric    dto.Metric
		histogram dto.Histogram
		count     uint64
		sum       float64
		zero      uint64
		schema    int32
	})
	h := &cell.histogram
	cell.metric.Histogram, h.SampleCount, h.SampleSum = h, &cell.count, &cell.sum
	cell.metric.Label = make([]*dto.LabelPair, 0, numLabels)
	if p.layout.histograms.Native {
		h.ZeroThreshold, h.ZeroCount, h.Schema = p.layout.threshold, &cell.zero, &cell.schema
	}
	if p.layout.histograms.Classic {
		h.Bucket = newClassic(p.layout.bounds[f])
	}
	return &cell.metric
}
