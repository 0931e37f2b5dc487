// Package exporter holds the catalogue of metrics, which is the public
// interface, and turns ledgers and snapshots into it at every scrape. Nothing
// is counted here: sums are derived from what a target's [probe.Ledger] and
// [record.Snapshot] hold.
//
// An [Exporter] is a gatherer, not a collector. The labels of a target's
// series are the union of all user labels, which changes on reload, so their
// descriptions cannot be fixed at registration as a collector's must be; an
// unchecked collector would still pass every metric through a channel, a copy
// and a hash table, which at 1,000 targets is most of what a scrape costs.
// Instead the package writes whole families into memory that scrapes reuse,
// and its tests hold the result against client_golang's own checks.
package exporter

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/collectors/version"
	dto "github.com/prometheus/client_model/go"

	"github.com/steadyprobe/steadyprobe/probe/record"
)

// program is the prefix of every metric name.
const program = "steadyprobe"

// Exporter exposes the targets and the churns that it was last given, and the
// process. All its methods may be called concurrently.
type Exporter struct {
	options  Options
	layout   *layout
	registry *prometheus.Registry
	shard    []*dto.LabelPair
	targets  atomic.Pointer[targetSet]
	churns   atomic.Pointer[[]exposedChurn]
}

var _ prometheus.TransactionalGatherer = (*Exporter)(nil)

// New returns an Exporter without targets and churns. It fails where the options cannot
// work.
func New(options Options) (*Exporter, error) {
	if err := options.Histograms.validate(); err != nil {
		return nil, fmt.Errorf("setting up histograms: %w", err)
	}
	e := &Exporter{
		options:  options,
		layout:   newLayout(options.Histograms),
		registry: prometheus.NewRegistry(),
		shard: []*dto.LabelPair{
			pair("index", strconv.Itoa(options.Shard.Index)), pair("shards", strconv.Itoa(max(1, options.Shard.Count))),
		},
	}
	usual := []prometheus.Collector{
		version.NewCollector(program),
		collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}),
		collectors.NewGoCollector(collectors.WithGoCollectorRuntimeMetrics(
			collectors.GoRuntimeMetricsRule{Matcher: regexp.MustCompile(`^/sched/latencies:seconds$`)},
		)),
	}
	for _, c := range usual {
		if err := e.Register(c); err != nil {
			return nil, err
		}
	}
	return e, errors.Join(e.SetTargets(nil), e.SetChurns(nil))
}

// Register adds a collector of families that are not in the catalogue of this
// package, and whose labels are fixed.
func (e *Exporter) Register(c prometheus.Collector) error {
	if err := e.registry.Register(c); err != nil {
		return fmt.Errorf("registering a collector: %w", err)
	}
	return nil
}

// SetTargets replaces all targets: the next scrape shows these. It fails, and
// changes nothing, where two have the same name, where a function is missing
// or where a user label is not valid or is one that the catalogue uses.
//
// A scrape that is under way may still ask the targets of before for a moment.
func (e *Exporter) SetTargets(targets []Target) error {
	set, err := newTargetSet(targets, e.layout)
	if err != nil {
		return err
	}
	e.targets.Store(set)
	return nil
}

// SetChurns replaces all churns: the next scrape shows these. It fails, and
// changes nothing, where two have the same name, where one is not valid UTF-8
// or where a function is missing.
//
// A scrape that is under way may still ask the churns of before for a moment.
func (e *Exporter) SetChurns(churns []Churn) error {
	exposed, err := exposeChurns(churns)
	if err != nil {
		return err
	}
	e.churns.Store(&exposed)
	return nil
}

// Expose replaces targets and churns together, and how histograms are exposed.
// It fails, and changes nothing, where [New], [Exporter.SetTargets] or
// [Exporter.SetChurns] would, and where the classic boundaries are others than
// before, as what was counted cannot be told apart anew.
func (e *Exporter) Expose(h Histograms, targets []Target, churns []Churn) error {
	if err := h.validate(); err != nil {
		return fmt.Errorf("setting up histograms: %w", err)
	}
	if h.Bounds != e.options.Histograms.Bounds {
		return errors.New("setting up histograms: the classic boundaries cannot change while there are counts")
	}
	set, err := newTargetSet(targets, newLayout(h))
	if err != nil {
		return err
	}
	exposed, err := exposeChurns(churns)
	if err != nil {
		return err
	}
	e.churns.Store(&exposed)
	e.targets.Store(set)
	return nil
}

// Gather returns all families, sorted by name. They are valid until done is
// called, which must happen exactly once, because the next scrape reuses them.
// With an error the families that could be gathered are returned nevertheless.
func (e *Exporter) Gather() (families []*dto.MetricFamily, done func(), err error) {
	set := e.targets.Load()
	p := set.pages.Get().(*page)
	p.reset()
	e.writeProcess(p)
	for i := range set.targets {
		p.writeTarget(&set.targets[i])
	}
	churns := *e.churns.Load()
	for i := range churns {
		p.writeChurn(&churns[i])
	}
	own, ownErr := p.finish()
	others, err := e.registry.Gather()
	return merge(own, others), func() { set.pages.Put(p) }, errors.Join(ownErr, err)
}

func (e *Exporter) writeProcess(p *page) {
	w := writer{page: p, created: timestamp(e.options.Start)}
	w.gauge(shardInfo, 1, e.shard...)
	if e.options.SelfLatency != nil {
		e.options.SelfLatency(&p.self)
		w.histogram(selfLatency, &p.self)
	}
	if e.options.Saturation != nil {
		for _, s := range e.options.Saturation() {
			resource := remembered(p.resources, s.Resource, resourceLabel)
			w.gauge(saturated, truth(s.Saturated), resource)
			w.counter(saturatedSeconds, s.Seconds, resource)
		}
	}
	if e.options.HistoryFailures != nil {
		w.count(historyFailures, e.options.HistoryFailures())
	}
	if e.options.Discovery != nil {
		for _, s := range e.options.Discovery() {
			w.source(&s)
		}
	}
	if e.options.Reload != nil {
		r := e.options.Reload()
		w.gauge(reloadSuccessful, truth(r.Successful))
		w.gauge(reloadTimestamp, unixSeconds(r.Success))
	}
}

// merge joins two lists of families that are sorted by name.
func merge(a, b []*dto.MetricFamily) []*dto.MetricFamily {
	all := slices.Concat(a, b)
	slices.SortStableFunc(all, func(x, y *dto.MetricFamily) int { return cmp.Compare(x.GetName(), y.GetName()) })
	return all
}

// unixSeconds returns t as seconds since the Unix epoch, 0 where it is not
// known. Milliseconds are exact in a float64, nanoseconds are not.
func unixSeconds(t time.Time) float64 {
	if t.IsZero() {
		return 0
	}
	return float64(t.UnixMilli()) / 1000
}

func truth(b bool) float64 {
	if b {
		return 1
	}
	return 0
}

// layout is what all scrapes share and none changes.
type layout struct {
	histograms Histograms
	order      []family // by name
	labels     labels
	bounds     [numFamilies][]float64 // of the classic buckets
	zeroIndex  int32                  // native buckets up to this belong to the zero bucket
	threshold  *float64               // the zero bucket's width
}

func newLayout(h Histograms) *layout {
	l := &layout{histograms: h, labels: newLabels()}
	for f := range numFamilies {
		l.order = append(l.order, family(f))
		if catalogue[f].Type == Histogram {
			l.bounds[f] = h.bounds(family(f)).Seconds()
		}
	}
	slices.SortFunc(l.order, func(a, b family) int { return byName(catalogue[a], catalogue[b]) })
	fraction, exponent := math.Frexp(h.ZeroThreshold)
	if fraction == 0.5 { // a power of two already
		exponent--
	}
	threshold := math.Ldexp(1, exponent)
	l.threshold = &threshold
	l.zeroIndex = int32(exponent) << record.NativeSchema
	return l
}
