package history

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"regexp"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
)

// mostTail is how much of the end of a file is looked at: several of the longest
// lines that there can be.
const mostTail = 1 << 20

// mostHead is more than any head has.
const mostHead = 8 << 10

// errNoLog says that a file is not what its name says.
var errNoLog = errors.New("it is no log")

// How a log begins, and the last line of its head.
const (
	title  = "#[steadyprobe latency of target "
	legend = `"StartTimestamp"`
)

// repair cuts off what is behind the last whole line of a log, and returns its
// size then. A log of nothing but a part of its head becomes empty. It fails with
// errNoLog for what is no log of that day, and changes nothing of that.
func repair(path string, size int64, day time.Time) (int64, error) {
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return 0, fmt.Errorf("opening a log: %w", err)
	}
	defer func() { _ = f.Close() }()
	kept, err := whole(f, size, day)
	if err != nil {
		return 0, fmt.Errorf("reading a log: %w", err)
	}
	if kept < size {
		if err := f.Truncate(kept); err != nil {
			return 0, fmt.Errorf("cutting off the end of a log: %w", err)
		}
	}
	return kept, nil
}

// whole returns how much of a log is whole lines.
func whole(f io.ReaderAt, size int64, day time.Time) (int64, error) {
	first := make([]byte, min(size, mostHead))
	if _, err := f.ReadAt(first, 0); err != nil && !errors.Is(err, io.EOF) {
		return 0, err
	}
	head, err := headOf(first, size, day)
	if err != nil || head == 0 {
		return 0, err
	}
	from := max(head, size-mostTail)
	tail := make([]byte, size-from)
	if _, err := f.ReadAt(tail, from); err != nil && !errors.Is(err, io.EOF) {
		return 0, err
	}
	for len(tail) > 0 {
		end := bytes.LastIndexByte(tail, '\n') + 1
		begin := bytes.LastIndexByte(tail[:max(end-1, 0)], '\n') + 1
		if end > 0 && (begin > 0 || from == head) && isInterval(tail[begin:end-1]) {
			return from + int64(end), nil
		}
		if begin == 0 && from > head {
			return 0, fmt.Errorf("%w at its end", errNoLog)
		}
		tail = tail[:begin]
	}
	return from, nil
}

// headOf returns the length of a log's head, 0 where there is only a part of
// one. What another version of this program has written is as good, if its
// times count from the same day.
func headOf(first []byte, size int64, day time.Time) (int64, error) {
	// Where the system went down, and not only the process, there may be zeros
	// that were to be written.
	first = bytes.TrimRight(first, "\x00")
	at := bytes.Index(first, []byte("\n"+legend))
	switch {
	case !bytes.HasPrefix(first, []byte(title)) && !bytes.HasPrefix([]byte(title), first):
		return 0, fmt.Errorf("%w of steadyprobe", errNoLog)
	case at < 0 && size > mostHead:
		return 0, fmt.Errorf("%w at its beginning", errNoLog)
	case at < 0:
		return 0, nil
	case !bytes.Contains(first[:at], fmt.Appendf(nil, "\n#[BaseTime: %d ", day.Unix())):
		return 0, fmt.Errorf("%w whose times count from the beginning of its day", errNoLog)
	}
	end := bytes.IndexByte(first[at+1:], '\n')
	if end < 0 {
		return 0, nil
	}
	return int64(at + 1 + end + 1), nil
}

// interval matches the line of an interval as [hdrhistogram.HistogramLogWriter]
// writes it.
var interval = regexp.MustCompile(`^[0-9.]+,[0-9.]+,[0-9.]+,([A-Za-z0-9+/=]+)$`)

// isInterval reports whether a line is a whole interval. A comment is none: it
// belongs to the interval behind it.
func isInterval(line []byte) bool {
	m := interval.FindSubmatch(line)
	if m == nil {
		return false
	}
	_, err := hdrhistogram.Decode(m[1])
	return err == nil
}
