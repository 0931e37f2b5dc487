package report

import (
	"cmp"
	"slices"

	"github.com/steadyprobe/steadyprobe/probe"
	"github.com/steadyprobe/steadyprobe/probe/record"
)

// dropped counts the ticks that completed without being begun.
func dropped(l *probe.Ledger) uint64 {
	return l.Failures(probe.ScheduleExpired) + l.Failures(probe.ScheduleShutdown)
}

// answered counts the requests whose answer came to its end, whether it was the
// expected one or not. It is what the counts of status codes count.
func answered(l *probe.Ledger) uint64 {
	return l.Failures(probe.Success) + l.Failures(probe.ResponseStatus) + l.Failures(probe.ResponseBody) + l.Failures(probe.ResponseHeader)
}

func failuresBy(l *probe.Ledger) map[string]uint64 {
	by := map[string]uint64{}
	for o := probe.Success + 1; int(o) < probe.NumOutcomes; o++ {
		if n := l.Failures(o); n > 0 {
			by[o.String()] = n
		}
	}
	return by
}

func openingFailuresBy(l *probe.Ledger) map[string]uint64 {
	by := map[string]uint64{}
	for o, n := range l.OpeningFailures {
		if n > 0 {
			by[probe.Outcome(o).String()] = n
		}
	}
	return by
}

func closedBy(l *probe.Ledger) map[string]uint64 {
	by := map[string]uint64{}
	for r := probe.NotClosed + 1; int(r) < probe.NumCloseReasons; r++ {
		if n := l.Closed[r]; n > 0 {
			by[r.String()] = n
		}
	}
	return by
}

func handshakes(counts []record.HandshakeCount) TLS {
	t := TLS{Kinds: []HandshakeKind{}}
	for _, c := range counts {
		if c.Count == 0 {
			continue
		}
		t.Handshakes += c.Count
		if c.Resumed {
			t.Resumed += c.Count
		}
		t.Kinds = append(t.Kinds, HandshakeKind{
			Version:     c.TLSVersion(),
			Cipher:      c.CipherName(),
			KeyExchange: c.KeyExchange(),
			Resumed:     c.Resumed,
			Count:       c.Count,
		})
	}
	slices.SortStableFunc(t.Kinds, func(a, b HandshakeKind) int {
		full := cmp.Or(cmp.Compare(a.Version, b.Version), cmp.Compare(a.Cipher, b.Cipher), cmp.Compare(a.KeyExchange, b.KeyExchange))
		if full == 0 && a.Resumed != b.Resumed {
			return map[bool]int{false: -1, true: 1}[a.Resumed]
		}
		return full
	})
	return t
}
