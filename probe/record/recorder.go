package record

import (
	"sync"
	"time"

	"github.com/steadyprobe/steadyprobe/probe"
)

// Options are what a [Recorder] is made of.
type Options struct {
	Clock  probe.Clock // the one that the samples' instants are of
	Bounds *Bounds     // nil: DefaultBounds
	// Addresses is of how many addresses figures are kept, the others being one;
	// 0: of none.
	Addresses int
	// Backends is the table that the samples' backends are of; nil: they have
	// none.
	Backends *probe.Backends
}

// Recorder keeps what came of the ticks of one target. It is a
// [probe.Recorder]; all its methods may be called concurrently.
//
// One mutex guards it all, held for a few additions, and every 10 s for the
// closing of a slice. It allocates where a duration falls into an octave or a
// page that it has not seen, and when a slice is closed: for the slice, and for
// the sum that it goes into; 11 times in its first hour for the timeline. What
// it holds is bounded, whatever the door does for however long: at 1 request/s
// about 60 KB, at 1,000 about half a megabyte, after an hour.
type Recorder struct {
	clock  probe.Clock
	bounds *Bounds

	mu           sync.Mutex
	timeline     timeline
	latency      [2][probe.NumChurnPhases]Histogram
	slowFailures [probe.NumChurnPhases]Histogram // of latency's failures those that are in the windows
	serviceTime  [2]Histogram
	phases       [probe.NumPhases]Histogram
	lateness     Histogram
	handshake    [2]Histogram
	clamped      uint64
	handshakes   handshakes
	responses    responses
	addresses    addresses
	backends     backends
	lastFailure  probe.Instant // that was not the probe's own; 0: there was none
	chains       chains
	window       window
}

// New returns an empty Recorder. It takes a few kilobytes.
func New(o Options) *Recorder {
	b := o.Bounds
	if b == nil {
		b = DefaultBounds()
	}
	r := &Recorder{clock: o.Clock, bounds: b}
	r.addresses.most, r.backends.table = o.Addresses, o.Backends
	for i := range 2 {
		for j := range r.latency[i] {
			r.latency[i][j].bounds = b.Latency
		}
		r.serviceTime[i].bounds = b.ServiceTime
		r.handshake[i].bounds = b.Handshake
	}
	for i := range r.slowFailures {
		r.slowFailures[i].bounds = b.Latency
	}
	for i := range r.phases {
		r.phases[i].bounds = b.Phase
	}
	r.lateness.bounds = b.Lateness
	return r
}

// Backends returns the table that the samples' backends are of, nil where they
// have none.
func (r *Recorder) Backends() *probe.Backends {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.backends.table
}

// Reconfigure keeps figures of so many addresses and backends from now on, 0
// for none. Of addresses that are no longer asked for all are forgotten; counts
// of backends stay, as answers that are on their way may still name one.
func (r *Recorder) Reconfigure(addresses, backends int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.addresses.most = addresses; addresses == 0 {
		r.addresses.all, r.addresses.other = nil, nil
	}
	switch {
	case backends == 0:
	case r.backends.table == nil:
		r.backends.table = probe.NewBackends(backends)
	default:
		r.backends.table.Resize(backends)
	}
}

// Bounds returns the classic boundaries that Snapshot's distributions have.
func (r *Recorder) Bounds() *Bounds { return r.bounds }

// observations are the durations of one sample, located before the lock is
// taken.
type observations struct {
	list [4 + probe.NumPhases]observation
	n    int
}

type observation struct {
	to *Histogram
	at point
}

func (o *observations) add(to *Histogram, d time.Duration) {
	o.list[o.n] = observation{to: to, at: to.bounds.locate(d)}
	o.n++
}

func (o *observations) count() {
	for i := range o.list[:o.n] {
		o.list[i].to.add(o.list[i].at)
	}
}

// Record takes a completed tick. All of them are in the histograms of latency
// and lateness; those that were begun in that of service time; successes,
// timeouts and expired ticks (see [probe.Outcome.Slow]) in the windows. A tick
// belongs to the second and the slice of its end, or to the open ones if those
// are over. The intended times of a closed loop are no schedule's, so that its
// ticks are in service time, phases and the counts of the timeline alone.
func (r *Recorder) Record(s *probe.Sample) {
	var o observations
	result := Succeeded
	if s.Outcome != probe.Success {
		result = Failed
	}
	latency := s.Latency()
	if !s.Closed {
		o.add(&r.latency[result][s.Churn], latency)
		o.add(&r.lateness, s.Lateness())
		if s.Taken != 0 {
			o.add(&r.phases[probe.PhaseWait], s.Wait())
		}
	}
	if s.Begun != 0 {
		o.add(&r.serviceTime[result], s.ServiceTime())
	}
	r.opening(&o, s)
	if s.Sent != 0 {
		o.add(&r.phases[probe.PhaseProcessing], s.Processing())
	}
	if s.FirstByte != 0 {
		o.add(&r.phases[probe.PhaseTransfer], s.Transfer())
	}
	slow := s.Outcome.Slow() && !s.Closed
	clamped := min(max(latency, 0), highest)
	cell := cellOf(uint64(clamped))

	r.mu.Lock()
	o.count()
	r.handshaken(s)
	if s.Code != 0 || s.Protocol.Bare() {
		r.responses.count(s.Code, s.Protocol)
	}
	if s.Backend != nil && r.backends.table != nil {
		r.backends.count(s.Backend, s.End)
	}
	if r.addresses.most > 0 && s.Address.IsValid() {
		r.addressed(s, result, &o.list[0])
	}
	if s.End >= r.timeline.until {
		r.advance(s)
	}
	open := &r.timeline.open
	open.completed++
	open.failed += uint32(result)
	if result == Failed && !s.Outcome.Own() {
		r.lastFailure = max(r.lastFailure, s.End)
	}
	if slow {
		r.window.open.add(cell, 1)
		open.max = max(open.max, cell)
		if result == Failed {
			r.slowFailures[s.Churn].add(o.list[0].at)
		}
		if latency > highest {
			r.clamped++
		}
	}
	r.mu.Unlock()
}

// addressed counts a tick by its address. It is called with mu held; first is
// the observation of its latency, but in a closed loop.
func (r *Recorder) addressed(s *probe.Sample, result int, first *observation) {
	to := r.addresses.of(s.Address, r.bounds.Latency)
	to.requests++
	to.failures += uint64(result)
	if !s.Closed {
		to.latency.add(first.at)
	}
}

// advance closes what is over at the end of s. It is called with mu held.
func (r *Recorder) advance(s *probe.Sample) {
	r.timeline.advance(s.End, &r.window)
	if r.timeline.until == 0 {
		r.timeline.begin(s.Intended)
	}
}

// RecordOpening takes an opening that belonged to no tick: its phases and its
// handshake.
func (r *Recorder) RecordOpening(s *probe.Sample) {
	var o observations
	r.opening(&o, s)
	r.mu.Lock()
	o.count()
	r.handshaken(s)
	r.mu.Unlock()
}

// opening adds what the opening of a connection took.
func (r *Recorder) opening(o *observations, s *probe.Sample) {
	if s.Did == 0 && s.Handshake.Version == 0 {
		return
	}
	if s.Did.Has(probe.PhaseResolve) {
		o.add(&r.phases[probe.PhaseResolve], s.Resolve)
	}
	if s.Did.Has(probe.PhaseConnect) {
		o.add(&r.phases[probe.PhaseConnect], s.Connect)
	}
	if s.Did.Has(probe.PhaseTLS) {
		o.add(&r.phases[probe.PhaseTLS], s.TLS)
	}
	if s.Handshake.Version != 0 {
		kind := Full
		if s.Handshake.Resumed {
			kind = Resumed
		}
		o.add(&r.handshake[kind], s.TLS)
	}
}

// handshaken counts a completed handshake, and notes a certificate that was
// seen. It is called with mu held.
func (r *Recorder) handshaken(s *probe.Sample) {
	if s.Handshake.Version != 0 {
		r.handshakes.count(&s.Handshake)
	}
	if s.Handshake.NotAfter != 0 {
		r.chains.saw(s.Address, &s.Handshake, s.End)
	}
}

// Snapshot copies all that r keeps to s, whose room is used again: one Snapshot
// can serve many recorders in turn, but not at once. Populated buckets and the
// open slice are copied under the lock; quantiles are taken outside, from
// slices that do not change. The windows end now.
func (r *Recorder) Snapshot(s *Snapshot) { r.snapshot(r.clock.Now(), s) }

func (r *Recorder) snapshot(now probe.Instant, s *Snapshot) {
	if s.view == nil {
		s.view = new(view)
	}
	r.mu.Lock()
	for i := range 2 {
		for j := range r.latency[i] {
			r.latency[i][j].Snapshot(&s.Latency[i][j])
		}
		r.serviceTime[i].Snapshot(&s.ServiceTime[i])
		r.handshake[i].Snapshot(&s.HandshakeTime[i])
	}
	for i := range r.slowFailures {
		r.slowFailures[i].Snapshot(&s.SlowFailures[i])
	}
	for i := range r.phases {
		r.phases[i].Snapshot(&s.Phases[i])
	}
	r.lateness.Snapshot(&s.Lateness)
	s.Handshakes = append(s.Handshakes[:0], r.handshakes...)
	s.Responses = append(s.Responses[:0], r.responses...)
	s.Addresses = r.addresses.snapshot(s.Addresses)
	s.AddressRoom = r.addresses.most - len(r.addresses.all)
	s.Backends = r.backends.snapshot(now, s.Backends)
	s.Certificate = r.chains.certificate()
	s.Clamped = r.clamped
	r.timeline.advance(now, &r.window)
	s.view.copyFrom(&r.window)
	r.mu.Unlock()
	s.view.quantiles(&s.Windows)
	s.view.past = past{} // s may outlive r
}
