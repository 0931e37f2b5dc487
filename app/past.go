package app

import (
	"time"

	"github.com/steadyprobe/steadyprobe/probe"
)

// What a past remembers of a target's ledger.
const (
	pastSeconds  = 60 // for the condition, every second
	pastSpans    = 30 // for recent failures, in spans
	spanOfPast   = 10 // seconds
	recentSpan   = 10 * time.Second
	recentEnough = 10 // completed requests that tell how a target fares now
)

// past holds what a target's ledger was, every second for a minute, and its
// failures every 10 s for 5 minutes. The zero past has seen nothing.
type past struct {
	marks    [pastSeconds + 1]mark
	failures [pastSpans + 1]failures
	seen     int // ledgers so far
}

// mark is a ledger in short.
type mark struct {
	at              probe.Instant
	completed, open uint64 // open: due without an outcome
	failed          uint64
}

// failures are those outcomes that happened. A target that does not fail has
// none.
type failures []failureCount

type failureCount struct {
	outcome probe.Outcome
	count   uint64
}

func failuresOf(l *probe.Ledger) (f failures) {
	for i := range probe.NumOutcomes {
		if o := probe.Outcome(i); o != probe.Success {
			if n := l.Failures(o); n > 0 {
				f = append(f, failureCount{o, n})
			}
		}
	}
	return f
}

func (f failures) of(o probe.Outcome) uint64 {
	for _, one := range f {
		if one.outcome == o {
			return one.count
		}
	}
	return 0
}

// observe takes the ledger of now. It is to be called once a second.
func (p *past) observe(now probe.Instant, l *probe.Ledger) {
	done := l.Done()
	p.marks[p.seen%len(p.marks)] = mark{at: now, completed: done, failed: l.Failed(), open: l.Scheduled - done}
	if p.seen%spanOfPast == 0 {
		p.failures[p.seen/spanOfPast%len(p.failures)] = failuresOf(l)
	}
	p.seen++
}

// ago returns the mark of so many seconds before the last one, the oldest that
// there is where the past is shorter.
func (p *past) ago(seconds int) mark {
	back := min(seconds, p.seen-1, pastSeconds)
	return p.marks[(p.seen-1-back)%len(p.marks)]
}

// last returns the mark of the present.
func (p *past) last() mark { return p.ago(0) }

// recent returns the failures since so many spans of 10 s, at least, and of one
// span more at most.
func (p *past) recent(now failures, spans int) (recent failures) {
	newest := (p.seen - 1) / spanOfPast
	var before failures // nothing, where the past is shorter
	if from := newest - spans; p.seen > 0 && from >= 0 {
		before = p.failures[from%len(p.failures)]
	}
	for _, one := range now {
		if n := one.count - before.of(one.outcome); n > 0 {
			recent = append(recent, failureCount{one.outcome, n})
		}
	}
	return recent
}

// top returns the most frequent failure, a success where there is none.
func (f failures) top() (top probe.Outcome) {
	var most uint64
	for _, one := range f {
		if one.count > most {
			top, most = one.outcome, one.count
		}
	}
	return top
}

// rateKept returns how many requests a second were completed in the last
// minute; false: less than 10 s are known.
func (p *past) rateKept() (perSecond float64, ok bool) {
	if p.seen == 0 {
		return 0, false
	}
	first, last := p.ago(pastSeconds), p.last()
	took := last.at.Sub(first.at)
	if took < recentSpan {
		return 0, false
	}
	return float64(last.completed-first.completed) / took.Seconds(), true
}

// The states of a condition.
const (
	starting = "starting"
	up       = "up"
	degraded = "degraded"
	down     = "down"
)

// state tells how a target fares by its past, and is what it was before where
// nothing tells. An answer may take until the timeout.
func (p *past) state(before string, timeout time.Duration) string {
	last, minute := p.last(), p.ago(pastSeconds)
	lately := p.ago(int(recentSpan / time.Second))
	patience := min(max(recentSpan, timeout), pastSeconds*time.Second)
	waiting := p.ago(int((patience + time.Second - 1) / time.Second))
	switch {
	case last.completed == waiting.completed && waiting.open > 0 && last.at.Sub(waiting.at) >= patience:
		return down // a request waits for its outcome since then
	case last.completed == 0:
		return starting
	}
	if last.completed-lately.completed < recentEnough {
		lately = minute
	}
	completed, failed := last.completed-lately.completed, last.failed-lately.failed
	switch {
	case completed > 0 && 2*failed >= completed:
		return down
	case last.failed > minute.failed:
		return degraded
	case last.completed > minute.completed:
		return up
	case before == "":
		return starting
	}
	return before
}
