package probe

// Ledger is the account of one target at one instant. For every ledger
//
//	Scheduled = Done() + InFlight + Backlog
//
// and the failures are the sum of their outcomes, because nothing is counted
// twice.
type Ledger struct {
	Scheduled uint64 // ticks due so far
	InFlight  uint64 // ticks begun and not completed
	Backlog   uint64 // ticks due that wait for a connection

	Completed       [NumChurnPhases][NumOutcomes]uint64
	WithinObjective [NumChurnPhases]uint64 // successes within the latency objective

	Bytes           Bytes
	Connections     int    // open, those that close after their last request included
	Opened          uint64 // connections opened so far
	Closed          [NumCloseReasons]uint64
	OpeningFailures [NumOutcomes]uint64 // openings that no tick was bound to
}

// Done returns how many ticks are completed, whatever their outcome.
func (l *Ledger) Done() uint64 {
	var n uint64
	for c := range l.Completed {
		for _, k := range l.Completed[c] {
			n += k
		}
	}
	return n
}

// Failures returns how many ticks failed with o, over all churn phases.
func (l *Ledger) Failures(o Outcome) uint64 {
	var n uint64
	for c := range l.Completed {
		n += l.Completed[c][o]
	}
	return n
}

// Failed returns how many ticks failed.
func (l *Ledger) Failed() uint64 { return l.Done() - l.Failures(Success) }

// complete counts one finished tick.
func (l *Ledger) complete(s *Sample, t *Target) {
	l.Completed[s.Churn][s.Outcome]++
	if s.Outcome == Success && t.Objective > 0 && s.Latency() <= t.Objective {
		l.WithinObjective[s.Churn]++
	}
	l.Bytes.Add(s.Bytes)
}
