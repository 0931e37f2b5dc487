package report

import (
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	"github.com/steadyprobe/steadyprobe/probe"
)

// Progress is the state of a run at one moment.
type Progress struct {
	Elapsed time.Duration // since the first tick
	Total   time.Duration // of the measured window

	// Waiting says that the window is over and that the run ends when the
	// requests that are left have an outcome.
	Waiting bool

	// Ledger is the account since the first tick, of all targets together.
	Ledger probe.Ledger
	// P50 and P99 are latency quantiles of the last seconds; 0: unknown.
	P50, P99 time.Duration
}

// Open returns how many requests have no outcome.
func (p *Progress) Open() uint64 { return p.Ledger.InFlight + p.Ledger.Backlog }

// Live writes the progress of a run to one line of a terminal, over and over.
// Whether the writer is a terminal is for the caller to decide. Its methods may
// be called concurrently.
type Live struct {
	w       io.Writer
	columns int

	mu     sync.Mutex
	width  int // of the line that is on the terminal
	before Progress
	err    error
}

const defaultColumns = 80

// NewLive returns a Live for a terminal of the given width, 80 columns when it
// is not positive. Nothing is written before the first update.
func NewLive(w io.Writer, columns int) *Live {
	if columns <= 0 {
		columns = defaultColumns
	}
	return &Live{w: w, columns: columns}
}

// Update shows the progress. The rate in it is that of the requests completed
// since the update before.
func (l *Live) Update(p Progress) {
	l.mu.Lock()
	defer l.mu.Unlock()
	line := l.line(&p)
	l.before = p
	l.show(line)
}

// Show replaces the line by another, of ASCII only, so that its length is its
// width. One that is too long is cut one column short of the terminal, because
// a full one would wrap.
func (l *Live) Show(line string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.show(line)
}

func (l *Live) show(line string) {
	if len(line) >= l.columns {
		line = line[:l.columns-1]
	}
	l.write("\r" + line + strings.Repeat(" ", max(0, l.width-len(line))))
	l.width = len(line)
}

func (l *Live) line(p *Progress) string {
	rate := 0.0
	if span := p.Elapsed - l.before.Elapsed; span > 0 && p.Ledger.Done() >= l.before.Ledger.Done() {
		rate = float64(p.Ledger.Done()-l.before.Ledger.Done()) / span.Seconds()
	}
	if p.Waiting {
		return fmt.Sprintf("%.0fs/%.0fs waiting for %s: fail %d flight %d backlog %d", p.Elapsed.Seconds(), p.Total.Seconds(),
			count(p.Open(), "request"), p.Ledger.Failed(), p.Ledger.InFlight, p.Ledger.Backlog)
	}
	return fmt.Sprintf("%.0fs/%.0fs %.1f/s p50 %s p99 %s fail %d flight %d backlog %d",
		p.Elapsed.Seconds(), p.Total.Seconds(), rate, known(p.P50), known(p.P99),
		p.Ledger.Failed(), p.Ledger.InFlight, p.Ledger.Backlog)
}

func known(d time.Duration) string {
	if d <= 0 {
		return "-"
	}
	return formatSeconds(d.Seconds())
}

// Write writes what is no part of the line, such as a log, in its place. The
// next update shows the line again, below. It returns what the writer returns.
func (l *Live) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.width > 0 {
		l.write("\r" + strings.Repeat(" ", l.width) + "\r")
		l.width = 0
	}
	return l.w.Write(p)
}

// Close ends the line, if there is one, and returns the first error of the
// writer. It may be called again.
func (l *Live) Close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.width > 0 {
		l.write("\n")
		l.width = 0
	}
	return l.err
}

func (l *Live) write(s string) {
	if l.err != nil {
		return
	}
	if _, err := io.WriteString(l.w, s); err != nil {
		l.err = fmt.Errorf("writing the progress line: %w", err)
	}
}
