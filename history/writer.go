package history

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"github.com/steadyprobe/steadyprobe/probe"
	"github.com/steadyprobe/steadyprobe/probe/record"
)

// writer turns spans into lines of logs. It is used by one goroutine.
type writer struct {
	folder    *folder
	clock     probe.Clock
	logger    *slog.Logger
	histogram *hdrhistogram.Histogram
	buffer    bytes.Buffer
}

func newWriter(f *folder, clock probe.Clock, logger *slog.Logger) *writer {
	return &writer{
		folder:    f,
		clock:     clock,
		logger:    logger,
		histogram: hdrhistogram.New(1, int64(time.Hour), 3),
	}
}

// write appends spans of a target, oldest first, each to the file of the day on
// which it begins. It returns the end of the last one that is written.
func (w *writer) write(name string, spans []record.Span) (until probe.Instant, err error) {
	now := time.Now()
	if err := w.folder.open(); err != nil {
		return 0, err
	}
	w.folder.expire(now)
	wall := w.wall(now)
	for len(spans) > 0 {
		day, n := midnight(wall(spans[0].From)), 1
		for n < len(spans) && midnight(wall(spans[n].From)).Equal(day) {
			n++
		}
		if err := w.writeDay(name, day, spans[:n], wall); err != nil {
			return until, err
		}
		until = spans[n-1].Until
		spans = spans[n:]
	}
	return until, nil
}

// wall returns what tells the time of an instant. It follows steps of the wall
// clock, but not the noise between two readings, so that intervals that follow
// each other do so in the file.
func (w *writer) wall(now time.Time) func(probe.Instant) time.Time {
	const noise = 10 * time.Millisecond
	stepped := now.Round(0).Sub(w.clock.Time(w.clock.Now()).Round(0)).Round(noise)
	return func(i probe.Instant) time.Time { return w.clock.Time(i).Round(0).Add(stepped) }
}

// writeDay appends spans of one day.
func (w *writer) writeDay(name string, day time.Time, spans []record.Span, wall func(probe.Instant) time.Time) error {
	spans = slices.DeleteFunc(slices.Clone(spans), untold)
	if len(spans) == 0 {
		return nil
	}
	dir := folderName(name)
	file := filepath.Join(dir, fileName(day))
	if err := os.MkdirAll(filepath.Join(w.folder.path, dir), 0o755); err != nil {
		return fmt.Errorf("making the folder of target %q: %w", name, err)
	}
	w.buffer.Reset()
	size, err := w.recover(file, day)
	if err != nil {
		return err
	}
	if size == 0 {
		writeHead(&w.buffer, name, day)
	}
	lines := hdrhistogram.NewHistogramLogWriter(&w.buffer)
	lines.SetBaseTime(day.UnixMilli())
	for i := range spans {
		if err := w.line(lines, &spans[i], wall); err != nil {
			return fmt.Errorf("encoding the past of target %q: %w", name, err)
		}
	}
	if err := w.folder.room(int64(w.buffer.Len()), day); err != nil {
		return err
	}
	return w.append(file, size)
}

// writeHead writes what is in front of the intervals. Their times count from the
// beginning of the day, so that any process can append to them.
func writeHead(b *bytes.Buffer, name string, day time.Time) {
	h := hdrhistogram.NewHistogramLogWriter(b)
	// Writing to memory cannot fail.
	_ = h.OutputComment(title[1:] + strconv.Quote(name) + " in nanoseconds, from intended time: successes, timeouts, expired]")
	_ = h.OutputLogFormatVersion()
	_ = h.OutputBaseTime(day.UnixMilli())
	_ = h.OutputStartTime(day.UnixMilli())
	_ = h.OutputLegend()
}

// untold reports whether a span has no line: nothing was completed within it, or
// it is of a closed loop, where nothing has a latency, whatever succeeds.
func untold(s record.Span) bool {
	return s.Completed == 0 || len(s.Cells) == 0 && s.Failed < s.Completed
}

// line writes a span. Failures are a comment in front of it, as not all of them
// have a latency that is one.
func (w *writer) line(lines *hdrhistogram.HistogramLogWriter, s *record.Span, wall func(probe.Instant) time.Time) error {
	if s.Failed > 0 {
		if err := lines.OutputComment(fmt.Sprintf("[Failed: %d of %d]", s.Failed, s.Completed)); err != nil {
			return err
		}
	}
	w.histogram.Reset()
	for _, c := range s.Cells {
		if err := w.histogram.RecordValues(int64(c.Highest), int64(c.Count)); err != nil {
			return err
		}
	}
	w.histogram.SetStartTimeMs(wall(s.From).UnixMilli())
	w.histogram.SetEndTimeMs(wall(s.Until).UnixMilli())
	return lines.OutputIntervalHistogram(w.histogram)
}

// append adds the buffer to a file of a size. Whatever fails leaves the file as
// it was, or as one to be looked at again.
func (w *writer) append(file string, size int64) error {
	if w.buffer.Len() == 0 {
		return nil
	}
	path := filepath.Join(w.folder.path, file)
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o644)
	if err != nil {
		return fmt.Errorf("opening a log: %w", err)
	}
	w.folder.sound[file] = false
	n, err := f.Write(w.buffer.Bytes())
	if err != nil {
		if truncated := f.Truncate(size); truncated == nil {
			n = 0
		}
	}
	// Some systems report a full disk only now.
	err = errors.Join(err, f.Close())
	w.folder.resized(file, size+int64(n))
	if err != nil {
		return fmt.Errorf("writing a log: %w", err)
	}
	w.folder.sound[file] = true
	return nil
}

// recover returns the size of a file, 0 where there is none. What this process
// has not written itself, or not wholly, is looked at first: what a process that
// was killed has left behind the last whole line is cut off.
func (w *writer) recover(file string, day time.Time) (size int64, err error) {
	path := filepath.Join(w.folder.path, file)
	info, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		w.folder.resized(file, 0)
		return 0, nil
	}
	if err != nil {
		return 0, fmt.Errorf("looking at a log: %w", err)
	}
	if w.folder.sound[file] && info.Size() == w.folder.files[file] {
		return info.Size(), nil
	}
	size, err = repair(path, info.Size(), day)
	if errors.Is(err, errNoLog) {
		return 0, w.setAside(file, err)
	}
	if err != nil {
		return 0, err
	}
	if cut := info.Size() - size; cut > 0 {
		w.logger.Warn("A line of the history was not whole and is cut off", "file", path, "bytes", cut)
	}
	w.folder.resized(file, size)
	w.folder.sound[file] = true
	return size, nil
}

// setAside gives a file that is no log another name, so that there can be one.
func (w *writer) setAside(file string, why error) error {
	path := filepath.Join(w.folder.path, file)
	aside := path + ".damaged"
	if err := os.Rename(path, aside); err != nil {
		return fmt.Errorf("%w; moving it away: %w", why, err)
	}
	w.logger.Warn("A file of the history is damaged, and another one is begun", "file", path, "kept_as", aside, "err", why)
	w.folder.resized(file, 0)
	return nil
}
