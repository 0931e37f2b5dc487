package app

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/steadyprobe/steadyprobe/probe"
)

// How much is logged of changes.
const (
	flapChanges = 4               // of one target, within flapSpan, make it one that flaps
	flapSpan    = 5 * time.Minute // also how often one that flaps is told of, and after how long of rest it does not
	mostLines   = 20              // that may be written at once, if there were none for a minute
	lineSpan    = 3 * time.Second // for each of these lines to be there again
	summarySpan = 10 * time.Second
	mostNamed   = 5 // targets, and failures, in a line about many
)

// flaps knows how often the state of one target has changed lately. The zero
// flaps has seen no change.
type flaps struct {
	last     [flapChanges]probe.Instant // changes, each at its number modulo the length
	changes  int
	flapping bool
	told     probe.Instant // when it flaps: of that
	before   int           // changes that were told of
}

// budget is how many lines may be written. The zero budget is that of who has
// written none.
type budget struct {
	lines  int
	filled probe.Instant
}

// fill gives a line back for each lineSpan that has passed.
func (b *budget) fill(now probe.Instant) {
	if b.filled == 0 {
		b.lines, b.filled = mostLines, now
	}
	more := now.Sub(b.filled) / lineSpan
	b.lines = min(mostLines, b.lines+int(min(more, mostLines)))
	b.filled = b.filled.Add(more * lineSpan)
}

// firstFailures writes the first failure of each kind to open a connection to
// a target, with all that is known of it, as far as the budget goes. It may be
// used concurrently.
type firstFailures struct {
	logger *slog.Logger
	clock  probe.Clock

	mu      sync.Mutex
	budget  budget
	dropped int // since the last line
}

func (f *firstFailures) tell(target string, o probe.Outcome, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.budget.fill(f.clock.Now())
	if f.budget.lines <= 0 {
		f.dropped++
		return
	}
	f.budget.lines--
	with := []any{"target", target, "failure", o.String(), "err", err}
	if f.dropped > 0 {
		with = append(with, "lines_dropped_before", f.dropped)
		f.dropped = 0
	}
	f.logger.Warn("A connection could not be opened; more of the same are only counted", with...)
}

// kind is what a notice is about.
type kind int

const (
	nothing kind = iota
	changed      // the state is another one
	flapsNow
	flapsStill
	flapsNoMore
)

// look returns what is to be told at an instant, a second or so after it was
// asked before, and of how many changes.
func (f *flaps) look(now probe.Instant, change bool) (k kind, changes int) {
	if change {
		f.last[f.changes%flapChanges] = now
		f.changes++
	}
	newest := f.last[(f.changes+flapChanges-1)%flapChanges]
	switch oldest := f.last[f.changes%flapChanges]; {
	case f.flapping && now.Sub(newest) >= flapSpan:
		f.flapping = false
		k = flapsNoMore
	case f.flapping && change && now.Sub(f.told) >= flapSpan:
		k = flapsStill
	case f.flapping || !change:
		return nothing, 0
	case f.changes >= flapChanges && now.Sub(oldest) < flapSpan:
		f.flapping = true
		k = flapsNow
	default:
		k = changed
	}
	changes = f.changes - f.before
	f.told, f.before = now, f.changes
	return k, changes
}

// notice is what is to be told of one target.
type notice struct {
	kind    kind
	target  string
	was, is string
	lasted  time.Duration // of the state before
	failure string        // the most frequent of the last minute, where it is not up
	changes int           // since it was told of before
}

// notices writes notices to the log: each as a line of its own, or, where there
// are too many, those of the same kind as one. It is not for concurrent use.
type notices struct {
	logger  *slog.Logger
	pending []notice // of which none is written
	budget  budget
	summary probe.Instant // when the last one was written; 0: never
}

// tell writes what came since it was called before, a second or so ago.
func (n *notices) tell(now probe.Instant, came []notice) {
	n.budget.fill(now)
	n.pending = append(n.pending, came...)
	switch {
	case len(n.pending) == 0:
	case len(n.pending) <= n.budget.lines:
		n.write(n.pending)
		n.pending = n.pending[:0]
	case n.summary == 0 || now.Sub(n.summary) >= summarySpan:
		n.summary = now
		n.summarise()
		n.pending = nil // the room for very many is not kept
	}
}

// write writes each of a few as a line of its own.
func (n *notices) write(few []notice) {
	for i := range few {
		n.line(&few[i])
	}
	n.budget.lines -= len(few)
}

// line writes one notice.
func (n *notices) line(o *notice) {
	with := []any{"target", o.target}
	level := slog.LevelInfo
	if o.is != up {
		level = slog.LevelWarn
	}
	text := ""
	switch o.kind {
	case flapsNow:
		text = fmt.Sprintf("Target flaps, its changes are told every %v from now on", flapSpan)
		level = slog.LevelWarn
		with = append(with, "is", o.is, "changes", o.changes)
	case flapsStill:
		text = "Target still flaps"
		level = slog.LevelWarn
		with = append(with, "is", o.is, "changes", o.changes)
	case flapsNoMore:
		text = "Target flaps no more"
		with = append(with, "is", o.is, "changes", o.changes)
	default:
		text = stateText("Target is ", "Target has ", o)
		with = append(with, "was", o.was, "for", o.lasted.Round(time.Second))
	}
	if o.failure != "" {
		with = append(with, "failure", o.failure)
	}
	n.logger.Log(context.Background(), level, text, with...)
}

// stateText says what state a target has come to.
func stateText(is, has string, o *notice) string {
	if o.is == up && o.was != starting {
		return has + "recovered"
	}
	return is + o.is
}

// summarise writes a line for each kind of what is pending, or for each of a few
// targets, where there may be as many. Of a target that has
// changed several times meanwhile it is what came last; one that is again what it
// was is left out.
func (n *notices) summarise() {
	last := map[string]int{} // index by target
	var all []notice
	for _, o := range n.pending {
		i, again := last[o.target]
		if !again {
			last[o.target] = len(all)
			all = append(all, o)
			continue
		}
		o.was = all[i].was
		all[i] = o
	}
	groups := map[string][]notice{}
	for _, o := range all {
		if o.kind == changed && o.was == o.is {
			continue
		}
		groups[groupText(&o)] = append(groups[groupText(&o)], o)
	}
	for _, text := range slices.Sorted(maps.Keys(groups)) {
		if few := groups[text]; len(few) == 1 || len(few) <= min(n.budget.lines, mostNamed) {
			n.write(few)
			continue
		}
		n.group(text, groups[text])
	}
}

// groupText says what many targets have in common.
func groupText(o *notice) string {
	switch o.kind {
	case flapsNow, flapsStill:
		return "Targets flap"
	case flapsNoMore:
		return "Targets flap no more"
	}
	return stateText("Targets are ", "Targets have ", o)
}

// group writes a line about several targets.
func (n *notices) group(text string, all []notice) {
	failures, names, level := map[string]int{}, make([]string, len(all)), slog.LevelInfo
	for i := range all {
		names[i] = all[i].target
		if all[i].is != up {
			level = slog.LevelWarn
		}
		if all[i].failure != "" {
			failures[all[i].failure]++
		}
	}
	slices.Sort(names)
	with := []any{"targets", len(all), "first", strings.Join(names[:min(len(names), mostNamed)], ", ")}
	if len(failures) > 0 {
		with = append(with, "failures", countsText(failures))
	}
	n.logger.Log(context.Background(), level, text, with...)
}

// countsText returns the most frequent of counts with how often each is.
func countsText(counts map[string]int) string {
	keys := slices.Sorted(maps.Keys(counts))
	slices.SortStableFunc(keys, func(a, b string) int { return cmp.Compare(counts[b], counts[a]) })
	parts := make([]string, 0, mostNamed+1)
	for i, key := range keys {
		if i == mostNamed {
			parts = append(parts, fmt.Sprintf("%d others", len(keys)-i))
			break
		}
		parts = append(parts, fmt.Sprintf("%s: %d", key, counts[key]))
	}
	return strings.Join(parts, ", ")
}
