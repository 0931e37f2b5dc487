package app

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"os"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"

	"github.com/steadyprobe/steadyprobe/config"
	"github.com/steadyprobe/steadyprobe/probe"
	"github.com/steadyprobe/steadyprobe/probe/record"
	"github.com/steadyprobe/steadyprobe/probe/schedule"
	"github.com/steadyprobe/steadyprobe/report"
)

// OnceOptions say what [Once] runs.
type OnceOptions struct {
	Targets  []config.Target       // valid, at least one; they run at the same time
	Duration time.Duration         // of the measured window, positive
	WarmUp   time.Duration         // of traffic before it that is not reported
	Progress func(report.Progress) // called once a second until the run ends; nil: not at all
	Logger   *slog.Logger
	Version  string // of the program, for the User-Agent
}

func (o *OnceOptions) validate() error {
	switch {
	case len(o.Targets) == 0:
		return errors.New("there is no URL to probe")
	case o.Duration <= 0:
		return fmt.Errorf("duration %v must be positive", o.Duration)
	case o.WarmUp < 0:
		return fmt.Errorf("warm-up %v must not be negative", o.WarmUp)
	case o.Logger == nil:
		return errors.New("there is no logger")
	}
	return nil
}

// once is one target of a run with an end.
type once struct {
	*target
	recorder gate
	due      uint64       // ticks of all windows so far
	before   probe.Ledger // when the measured window began
	atEnd    probe.Ledger // when it ended
}

// gate lets ticks through once it is open; openings always.
type gate struct {
	*record.Dense
	open atomic.Bool
}

// Record takes a completed tick.
func (g *gate) Record(s *probe.Sample) {
	switch {
	case g.open.Load():
		g.Dense.Record(s)
	case s.Did != 0:
		g.RecordOpening(s)
	}
}

// Once sends constant-rate traffic through the targets for a while and reports
// what came of it. When ctx is done the run ends early, and what was measured
// until then is reported. An error means that it could not run, not that a
// door failed.
func Once(ctx context.Context, o OnceOptions) ([]report.Result, error) {
	if err := o.validate(); err != nil {
		return nil, fmt.Errorf("starting the run: %w", err)
	}
	if err := checkFiles(Shard{}, o.Targets, false); err != nil {
		return nil, err
	}
	defer sparseGC()()
	e, err := newEngine(o.Logger, record.DefaultBounds())
	if err != nil {
		return nil, err
	}
	defer e.close()
	runs := make([]*once, len(o.Targets))
	for i, c := range o.Targets {
		r := &once{recorder: gate{Dense: record.NewDense(e.recording(&c, nil))}}
		if r.target, err = e.newTarget(c, o.Version, &r.recorder, r.recorder.Recorder); err != nil {
			return nil, err
		}
		runs[i] = r
	}
	var all, paced []*record.Recorder
	for _, r := range runs {
		all = append(all, r.recorder.Recorder)
		if r.paced() {
			paced = append(paced, r.recorder.Recorder)
		}
	}
	e.trust.watchOver(all, paced)
	targets := targetsOf(runs)
	defer drain(aborted(), targets)
	defer e.pacing.remove(targets)
	warmUp(ctx, targets)
	if o.WarmUp > 0 {
		e.traffic(ctx, runs, o.WarmUp, nil)
	}
	for _, r := range runs {
		r.before = r.prober.Ledger()
		r.recorder.open.Store(true)
	}
	e.self.take()
	before := e.trust.watch.Snapshot()
	took := e.traffic(ctx, runs, o.Duration, o.Progress)
	interrupted := ctx.Err() != nil
	var saturated []string
	for i, r := range e.trust.watch.Snapshot() {
		if r.Seconds > before[i].Seconds || r.Saturated {
			saturated = append(saturated, r.Name)
		}
	}
	self := e.self.take()
	results := make([]report.Result, len(runs))
	for i, r := range runs {
		in := r.input(took)
		in.SelfLatency, in.Saturated = self, saturated
		in.Interrupted = interrupted
		results[i] = report.New(in)
	}
	report.Distinguish(results)
	return results, nil
}

// sparseGC lets the heap of a run grow to five times what it holds, which is a
// few megabytes, before garbage is collected: a tenth more TLS handshakes a
// second. Who has set GOGC knows better.
func sparseGC() (restore func()) {
	if os.Getenv("GOGC") != "" {
		return func() {}
	}
	before := debug.SetGCPercent(400)
	return func() { debug.SetGCPercent(before) }
}

// aborted returns a context that is done.
func aborted() context.Context {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	return ctx
}

// warmUp opens the connections of all warm targets.
func warmUp(ctx context.Context, targets []*target) {
	var warming sync.WaitGroup
	for _, t := range targets {
		t.resolver.Start()
		warming.Go(func() { t.prober.WarmUp(ctx) })
	}
	warming.Wait()
}

// traffic sends the ticks of a window of the given length to all runs, waits
// until each has an outcome, and returns how long the window was: shorter, when
// ctx was done before its end.
func (e *engine) traffic(ctx context.Context, runs []*once, length time.Duration, progress func(report.Progress)) time.Duration {
	origin := e.clock.Now()
	if !runs[0].closed() { // all of a run have the same rate
		origin = origin.Add(schedule.Lead)
	}
	end := origin.Add(length)
	for i, r := range runs {
		start := origin
		if i > 0 && !r.closed() {
			start = start.Add(schedule.Spread(uint64(i), r.rate))
		}
		last := start.Add(length)
		end = max(end, last)
		l := r.prober.Ledger()
		r.due = l.Scheduled + e.pacing.add(r.target, start, last)
	}
	second := time.NewTicker(time.Second)
	defer second.Stop()
	tell := func(waited time.Duration) {
		if progress != nil {
			p := e.progress(runs, origin, length)
			p.Waiting = waited >= longWait && p.Open() > 0
			progress(p)
		}
	}
	over := time.NewTimer(end.Sub(e.clock.Now()))
	defer over.Stop()
	took := length
	for running := true; running; {
		select {
		case <-second.C:
			tell(0)
		case <-over.C:
			running = false
		case <-ctx.Done():
			e.pacing.pause(targetsOf(runs))
			took = min(length, max(0, e.clock.Now().Sub(origin)))
			running = false
		}
	}
	for _, r := range runs {
		r.atEnd = r.prober.Ledger()
		if r.closed() {
			e.pacing.pause([]*target{r.target})
			l := r.prober.Ledger()
			r.due = l.Scheduled
		}
	}
	e.settle(ctx, runs, second.C, tell)
	return took
}

// targetsOf returns the targets of runs.
func targetsOf(runs []*once) []*target {
	targets := make([]*target, len(runs))
	for i, r := range runs {
		targets[i] = r.target
	}
	return targets
}

// longWait is a wait for the last requests that somebody notices.
const longWait = time.Second / 2

// settle waits until every tick was given and has an outcome. Each has one
// within its target's backlog and timeout; the rest is the probe's lateness.
// Every second it tells how long it has waited.
func (e *engine) settle(ctx context.Context, runs []*once, second <-chan time.Time, tell func(waited time.Duration)) {
	var backlog, timeout time.Duration
	for _, r := range runs {
		backlog = max(backlog, r.config.Backlog)
		timeout = max(timeout, r.config.Timeout)
	}
	began := e.clock.Now()
	limit := began.Add(backlog + timeout + time.Second)
	check := time.NewTicker(5 * time.Millisecond)
	defer check.Stop()
	for !settled(runs) && e.clock.Now() < limit {
		select {
		case <-check.C:
		case <-second:
			tell(e.clock.Now().Sub(began))
		case <-ctx.Done():
			e.abandon(runs, timeout, second, func() { tell(e.clock.Now().Sub(began)) })
			return
		}
	}
}

// abandon gives what is in flight its time, and the backlog none.
func (e *engine) abandon(runs []*once, timeout time.Duration, second <-chan time.Time, tell func()) {
	last, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	targets := targetsOf(runs)
	e.pacing.pause(targets)
	drained := make(chan struct{})
	go func() {
		defer close(drained)
		drain(last, targets)
	}()
	for {
		select {
		case <-drained:
			return
		case <-second:
			tell()
		}
	}
}

// settled reports whether all ticks that are due have an outcome.
func settled(runs []*once) bool {
	for _, r := range runs {
		l := r.prober.Ledger()
		if l.Done() < r.due {
			return false
		}
	}
	return true
}

// progress returns how far the runs are, all together.
func (e *engine) progress(runs []*once, origin probe.Instant, length time.Duration) report.Progress {
	p := report.Progress{Elapsed: e.clock.Now().Sub(origin), Total: length}
	var s record.Snapshot
	for _, r := range runs {
		l := report.Difference(r.before, r.prober.Ledger())
		p.Ledger.Scheduled += l.Scheduled
		p.Ledger.InFlight += l.InFlight
		p.Ledger.Backlog += l.Backlog
		for c := range l.Completed {
			for o, n := range l.Completed[c] {
				p.Ledger.Completed[c][o] += n
			}
		}
		r.recorder.Snapshot(&s)
		p.P50 = max(p.P50, seconds(s.Windows[0][0]))
		p.P99 = max(p.P99, seconds(s.Windows[0][2]))
	}
	return p
}

// seconds returns a duration, 0 where s is not a number.
func seconds(s float64) time.Duration {
	if math.IsNaN(s) {
		return 0
	}
	return time.Duration(s * float64(time.Second))
}

// input returns what the report is made of. Connections count from the start,
// because those that warming up opened belong to the run.
func (r *once) input(took time.Duration) report.Input {
	end := r.prober.Ledger()
	in := report.Input{
		Target:      r.config.Name,
		URL:         r.config.URL.Public(),
		Rate:        r.config.Rate.Float(),
		RateText:    r.config.Rate.String(),
		Connections: r.config.Connections,
		Closed:      r.closed(),
		Economy:     r.config.Pacing == "economy",
		Poisson:     r.config.Arrival == "poisson",
		Duration:    took,
		Ledger:      report.Difference(r.before, end),
		AtEnd:       report.Difference(r.before, r.atEnd),
		Latency:     r.recorder.Latency(),
		ServiceTime: r.recorder.ServiceTime(),
		Lateness:    r.recorder.Lateness(),
	}
	in.Ledger.Opened, in.Ledger.Closed, in.Ledger.OpeningFailures = end.Opened, end.Closed, end.OpeningFailures
	var s record.Snapshot
	r.recorder.Snapshot(&s)
	in.Responses, in.Handshakes, in.Clamped = s.Responses, s.Handshakes, s.Clamped
	return in
}
