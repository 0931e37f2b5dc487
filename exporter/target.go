package exporter

import (
	"net/netip"
	"slices"

	"github.com/steadyprobe/steadyprobe/probe"
	"github.com/steadyprobe/steadyprobe/probe/record"
)

// writeTarget writes all series of one target. The ledger is read first: a
// sample is recorded before it is counted as completed, so the histograms may
// be ahead of the counters by the requests in flight, and are never behind.
func (p *page) writeTarget(t *target) {
	ledger := t.Ledger()
	t.Snapshot(&p.snapshot)
	w := writer{page: p, base: t.pairs, created: t.created}
	w.settings(t)
	w.requests(t, &ledger)
	w.connections(t, &ledger)
	w.times(t, &p.snapshot)
	w.answers(&p.snapshot)
	w.handshakes(t, &p.snapshot)
	w.backends(&p.snapshot)
	if t.Resolver != nil {
		r := t.Resolver()
		w.addresses(t, r)
		w.byAddress(t, &p.snapshot, r.Present)
	}
}

func (w *writer) settings(t *target) {
	w.gauge(targetInfo, 1, t.info...)
	w.gauge(connectionsLimit, float64(t.Connections))
	if t.closed() {
		return
	}
	w.gauge(requestsPerSecond, t.Rate)
	if t.Objective > 0 {
		w.gauge(objectiveLatency, t.Objective.Seconds())
	}
	if t.ObjectiveRatio > 0 {
		w.gauge(objectiveRatio, t.ObjectiveRatio)
	}
}

// requests writes what is derived from the ledger's requests. A series exists
// where the target can meet it, and wherever something was counted: a target
// whose settings changed keeps what it has counted under the old ones.
func (w *writer) requests(t *target, l *probe.Ledger) {
	labels := &w.page.layout.labels
	w.count(requestsScheduled, l.Scheduled)
	w.gauge(inFlight, float64(l.InFlight))
	w.gauge(backlog, float64(l.Backlog))
	w.count(sentBytes, l.Bytes.Sent)
	w.count(receivedBytes, l.Bytes.Received)
	for i := range l.Completed {
		c := probe.ChurnPhase(i)
		var completed uint64
		for _, n := range l.Completed[c] {
			completed += n
		}
		if completed == 0 && !t.hasChurn(c) {
			continue
		}
		w.count(requests, completed, labels.churn[c])
		if t.Objective > 0 && !t.closed() {
			w.count(withinObjective, l.WithinObjective[c], labels.churn[c])
		}
		for j, n := range l.Completed[c] {
			o := probe.Outcome(j)
			if o != probe.Success && (n > 0 || t.hasChurn(c) && t.meets(o)) {
				w.count(requestFailures, n, labels.churn[c], labels.stage[o], labels.reason[o])
			}
		}
	}
}

func (w *writer) connections(t *target, l *probe.Ledger) {
	labels := &w.page.layout.labels
	w.gauge(connections, float64(l.Connections))
	w.count(connectionsOpened, l.Opened)
	for i, n := range l.Closed {
		if probe.CloseReason(i) != probe.NotClosed {
			w.count(connectionsClosed, n, labels.closeReason[i])
		}
	}
	for i, n := range l.OpeningFailures {
		if o := probe.Outcome(i); n > 0 || opens(o) && t.meets(o) {
			w.count(connectionFailures, n, labels.stage[o], labels.reason[o])
		}
	}
}

func (w *writer) times(t *target, s *record.Snapshot) {
	labels := &w.page.layout.labels
	for outcome := range s.Latency {
		for i := range s.Latency[outcome] {
			c := probe.ChurnPhase(i)
			if d := &s.Latency[outcome][c]; d.Count > 0 || t.hasChurn(c) && !t.closed() {
				w.histogram(latency, d, labels.churn[c], labels.outcome[outcome])
			}
		}
		w.histogram(serviceTime, &s.ServiceTime[outcome], labels.outcome[outcome])
	}
	for i := range s.Phases {
		if d := &s.Phases[i]; d.Count > 0 || t.passes(probe.Phase(i)) {
			w.histogram(phaseTime, d, labels.phase[i])
		}
	}
	if s.Lateness.Count > 0 || !t.closed() {
		w.histogram(lateness, &s.Lateness)
	}
	if s.Clamped > 0 || !t.closed() {
		w.count(latencyClamped, s.Clamped)
	}
	if t.closed() {
		return
	}
	for i := range s.Windows {
		for j, q := range s.Windows[i] {
			w.gauge(latencyQuantile, q, labels.quantile[j], labels.window[i])
		}
	}
}

func (w *writer) answers(s *record.Snapshot) {
	for _, r := range s.Responses {
		protocol := w.page.layout.labels.protocol[r.Protocol]
		code := w.page.layout.labels.noCode
		if !r.Protocol.Bare() {
			code = remembered(w.page.codes, r.Code, codeLabel)
		}
		w.count(responses, r.Count, code, protocol)
	}
}

func (w *writer) handshakes(t *target, s *record.Snapshot) {
	labels := &w.page.layout.labels
	for _, h := range s.Handshakes {
		count := h.Count
		h.Count = 0
		w.count(handshakes, count, remembered(w.page.handshakes, h, handshakeLabels)...)
	}
	for i := range s.HandshakeTime {
		if d := &s.HandshakeTime[i]; d.Count > 0 || t.TLS {
			w.histogram(handshakeTime, d, labels.resumed[i])
		}
	}
	if c := &s.Certificate; c.Seen {
		w.gauge(certNotAfter, float64(c.NotAfter))
		w.gauge(certNotBefore, float64(c.NotBefore))
		w.gauge(certVerified, truth(c.Verified))
		w.gauge(ocspStapled, truth(c.Stapled))
	}
}

func (w *writer) addresses(t *target, r ResolverStats) {
	labels := &w.page.layout.labels
	w.gauge(targetAddresses, float64(r.Addresses))
	if !t.Named && r.Lookups == 0 {
		return
	}
	w.count(lookups, r.Lookups)
	w.count(lookupFailures, r.NotFound, labels.lookupNotFound)
	w.count(lookupFailures, r.TimedOut, labels.lookupTimeout)
	w.count(lookupFailures, r.Failed, labels.lookupError)
	w.count(addressChanges, r.Added, labels.added)
	w.count(addressChanges, r.Removed, labels.removed)
}

// byAddress writes what came of the requests to each address that is present,
// and of those that have no place of their own.
func (w *writer) byAddress(t *target, s *record.Snapshot, present []netip.Addr) {
	if len(present) == 0 {
		return
	}
	room := s.AddressRoom
	for _, a := range present {
		i, found := slices.BinarySearchFunc(s.Addresses, a, func(c record.AddressCount, a netip.Addr) int { return c.Address.Compare(a) })
		switch {
		case found:
			w.atAddress(t, &s.Addresses[i])
		case room > 0:
			// One without requests is there at 0, unless it would be one of the others.
			w.page.untried = record.AddressCount{Address: a}
			w.atAddress(t, &w.page.untried)
			room--
		}
	}
	if len(s.Addresses) > 0 && !s.Addresses[0].Address.IsValid() {
		w.atAddress(t, &s.Addresses[0])
	}
}

func (w *writer) atAddress(t *target, c *record.AddressCount) {
	address := remembered(w.page.addresses, c.Address, addressLabel)
	w.count(addressRequests, c.Requests, address)
	w.count(addressFailures, c.Failures, address)
	if !t.closed() {
		w.histogram(addressLatency, &c.Latency, address)
	}
}

func (w *writer) backends(s *record.Snapshot) {
	for _, b := range s.Backends {
		w.count(backendResponses, b.Answers, remembered(w.page.backends, b.Name, backendLabel))
	}
}
