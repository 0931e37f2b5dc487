// Package history keeps the past of targets on disk: for each target and day
// (UTC) a HdrHistogram log of its latencies, in intervals.
//
// One goroutine asks recorders for what is over and appends it. No request waits
// for that: who records does not know of it, and what a recorder remembers
// outlasts a disk that is slow or full for five intervals.
package history

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/steadyprobe/steadyprobe/probe"
	"github.com/steadyprobe/steadyprobe/probe/record"
)

// Source is what a target's past is asked of: a [record.Recorder]. The value
// must be comparable.
type Source interface {
	Spans(length int, from probe.Instant) []record.Span
	OpenSpan(length int, from probe.Instant) record.Span
}

// Options are what a [History] is made of.
type Options struct {
	Path     string        // of its folder, which is made where it is not there
	Interval time.Duration // one of record.SpanLengths
	// MaxAge is how long ago the day of a file may have ended, and MaxSize how
	// many bytes all files may have. 0 is no limit.
	MaxAge  time.Duration
	MaxSize int64
	Clock   probe.Clock // the one that the sources' instants are of
	Logger  *slog.Logger
}

// Intervals returns the intervals that a history may have.
func Intervals() []time.Duration { return slices.Clone(record.SpanLengths[:]) }

// History writes the past of targets. Its methods may be called concurrently,
// and do not wait for the disk, but for Close.
type History struct {
	options  Options
	length   int // index of the interval
	folder   *folder
	failures atomic.Uint64
	stop     func()
	stopped  chan struct{}
	ended    chan struct{}

	mu      sync.Mutex
	changes []change

	// Owned by the goroutine.
	writer  *writer
	writing []*writing
	added   int
	failing map[*writing]bool
	since   time.Time // of the first failure since all was well; zero: all is well
	lost    int       // intervals of targets that were forgotten before they were written
	turn    int
}

// change is one call of Add or Remove that the goroutine has not seen yet.
type change struct {
	name    string
	source  Source
	from    probe.Instant
	removed bool
}

// writing is one target.
type writing struct {
	name   string
	source Source
	from   probe.Instant // what ended before is written
	slot   int           // the turn at which it is written
}

// Open returns a History without targets, that writes to the folder. It fails
// where the interval is none. A folder that cannot be written to, or that another
// process writes to, is a failure like any later one: it is reported and counted,
// and tried again.
func Open(o Options) (*History, error) {
	h := &History{
		options: o,
		length:  slices.Index(record.SpanLengths[:], o.Interval),
		folder:  newFolder(o.Path, o.MaxAge, o.MaxSize),
		stopped: make(chan struct{}),
		ended:   make(chan struct{}),
		failing: map[*writing]bool{},
	}
	if h.length < 0 {
		return nil, fmt.Errorf("opening the history in %q: an interval of %v is not kept; choose one of %v", o.Path, o.Interval, Intervals())
	}
	h.stop = sync.OnceFunc(func() { close(h.stopped) })
	h.writer = newWriter(h.folder, o.Clock, o.Logger)
	if err := h.folder.open(); err != nil {
		h.failed(nil, err)
	}
	go h.run()
	return h, nil
}

// Add writes the past of a target from now on.
func (h *History) Add(name string, s Source) {
	h.change(change{name: name, source: s, from: h.options.Clock.Now()})
}

// Remove writes what is left of a target's past, and no more of it. It is to be
// called when nothing is recorded any more. By then another target may have been
// added under the same name. It does nothing for one that was not added.
func (h *History) Remove(s Source) { h.change(change{source: s, removed: true}) }

func (h *History) change(c change) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.changes = append(h.changes, c)
}

// Failures returns how often something could not be written.
func (h *History) Failures() uint64 { return h.failures.Load() }

// Close writes what is left of every target's past and gives the folder up. It
// returns when that is done, or an error when ctx is done before: a disk may
// hang. Nothing may be recorded any more.
func (h *History) Close(ctx context.Context) error {
	h.stop()
	select {
	case <-h.ended:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("closing the history in %q: the disk does not answer: %w", h.options.Path, ctx.Err())
	}
}

// run writes each target once in an interval, a part of them every second, so
// that the work is spread out.
func (h *History) run() {
	defer close(h.ended)
	defer h.folder.close()
	second := time.NewTicker(time.Second)
	defer second.Stop()
	for {
		select {
		case <-h.stopped:
			h.apply()
			for _, w := range h.writing {
				h.finish(w)
			}
			return
		case <-second.C:
			h.apply()
			h.write()
		}
	}
}

// turns is in how many turns all targets are written.
func (h *History) turns() int { return int(h.options.Interval / time.Second) }

// apply makes the changes that were asked for.
func (h *History) apply() {
	h.mu.Lock()
	changes := h.changes
	h.changes = nil
	h.mu.Unlock()
	for _, c := range changes {
		if !c.removed {
			h.writing = append(h.writing, &writing{name: c.name, source: c.source, from: c.from, slot: h.added % h.turns()})
			h.added++
			continue
		}
		h.writing = slices.DeleteFunc(h.writing, func(w *writing) bool {
			if w.source == c.source {
				h.finish(w)
			}
			return w.source == c.source
		})
	}
}

// write writes the targets whose turn it is.
func (h *History) write() {
	h.turn = (h.turn + 1) % h.turns()
	if h.turn == 0 && h.lost > 0 && h.since.IsZero() {
		h.options.Logger.Warn("The history has a gap: this process stood still for too long", "path", h.options.Path, "intervals_lost", h.lost)
		h.lost = 0
	}
	for _, w := range h.writing {
		if w.slot == h.turn {
			h.writeOne(w, w.source.Spans(h.length, w.from))
		}
	}
}

// finish writes all of a target, the open span included.
func (h *History) finish(w *writing) {
	spans := w.source.Spans(h.length, w.from)
	from := w.from
	if n := len(spans); n > 0 {
		from = spans[n-1].Until
	}
	h.writeOne(w, append(spans, w.source.OpenSpan(h.length, from)))
	delete(h.failing, w)
}

// writeOne writes spans that follow what was written of a target. What fails is
// tried again with the next ones.
func (h *History) writeOne(w *writing, spans []record.Span) {
	if len(spans) == 0 {
		return
	}
	if spans[0].From > w.from {
		h.lost += int((spans[0].From.Sub(w.from) + h.options.Interval - 1) / h.options.Interval)
		w.from = spans[0].From
	}
	until, err := h.writer.write(w.name, spans)
	w.from = max(w.from, until)
	if err != nil {
		h.failed(w, err)
		return
	}
	if delete(h.failing, w); len(h.failing) == 0 && !h.since.IsZero() {
		h.options.Logger.Info("The history is written again", "path", h.options.Path, "after", time.Since(h.since).Round(time.Second), "intervals_lost", h.lost)
		h.since, h.lost = time.Time{}, 0
	}
}

// failed counts a failure, and reports the first one of a time without success.
// Of no target is one of the folder.
func (h *History) failed(w *writing, err error) {
	h.failures.Add(1)
	if h.since.IsZero() {
		h.since = time.Now()
		h.options.Logger.Error("The history cannot be written, requests go on", "path", h.options.Path, "err", err)
	}
	if w != nil {
		h.failing[w] = true
	}
}
