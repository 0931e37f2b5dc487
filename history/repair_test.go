package history

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/steadyprobe/steadyprobe/probe"
)

// testDay is the first day of a bubble.
func testDay() time.Time { return time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC) }

// oneLog returns a log of three intervals.
func oneLog(t *testing.T) (text []byte) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		clock := probe.NewClock()
		path := t.TempDir()
		h := opened(t, clock, &lines{}, Options{Path: path, Interval: 10 * time.Second})
		l := newLoad(clock)
		h.Add("a", l.recorder)
		l.requests(28, time.Second)
		closeIt(t, h)
		var err error
		if text, err = os.ReadFile(filepath.Join(path, "a", "2000-01-01.hlog")); err != nil {
			t.Fatal(err)
		}
	})
	return text
}

// TestTornLogs cuts a log off behind every byte, as a crash may, and goes on: no
// whole interval is lost, nothing else stays, and what follows can be read.
func TestTornLogs(t *testing.T) {
	text := oneLog(t)
	log := filepath.Join(t.TempDir(), "log")
	whole := intervals(t, written(t, log, text))
	if len(whole) != 3 || !bytes.Contains(text, []byte("#[Failed: ")) {
		t.Fatalf("a log of %d intervals:\n%s", len(whole), text)
	}
	ends := endsOf(text)
	head := bytes.Index(text, []byte(legend)) + bytes.IndexByte(text[bytes.Index(text, []byte(legend)):], '\n') + 1
	for cut := range len(text) + 1 {
		want := 0
		if cut >= head {
			want = head
		}
		for _, end := range ends {
			if end <= cut {
				want = end
			}
		}
		for _, tail := range []string{"", "\x00\x00\x00\x00"} {
			file := written(t, log, append(slices.Clone(text[:cut]), tail...))
			size, err := repair(file, int64(cut+len(tail)), testDay())
			left, readErr := os.ReadFile(file)
			if err != nil || readErr != nil || size != int64(want) || !bytes.Equal(left, text[:want]) {
				t.Fatalf("cut off after %d of %d bytes and with %q behind them: %d left (%v, %v), want %d", cut, len(text), tail, size, err, readErr, want)
			}
		}
	}
}

// endsOf returns where each interval ends.
func endsOf(text []byte) (ends []int) {
	for i, line := 0, []byte(nil); i < len(text); i += len(line) {
		line = text[i : i+bytes.IndexByte(text[i:], '\n')+1]
		if line[0] >= '0' && line[0] <= '9' {
			ends = append(ends, i+len(line))
		}
	}
	return ends
}

// written writes a file, and returns its path.
func written(t *testing.T, file string, text []byte) string {
	t.Helper()
	if err := os.WriteFile(file, text, 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

func TestDamagedLogs(t *testing.T) {
	text := string(oneLog(t))
	last := endsOf([]byte(text))[1] // a comment of the last one goes with it
	long := strings.Repeat("x", mostTail+10)
	for _, row := range []struct {
		name string
		text string
		day  time.Time
		want int // bytes left; -1: it is no log
	}{
		{"as it was", text, testDay(), len(text)},
		{"empty", "", testDay(), 0},
		{"a damaged last interval", text[:last] + "20.000000,10.000000,1.000000,AAAA\n", testDay(), last},
		{"a damaged payload", text[:last] + strings.Replace(text[last:], "HISTFAAAA", "HISTFAAAB", 1), testDay(), last},
		{"words at the end", text + "hello\n", testDay(), len(text)},
		{"many of them", text + strings.Repeat("hello\n", 1000), testDay(), len(text)},
		{"another version's head", strings.Replace(text, "in nanoseconds", "in other words", 1), testDay(), len(text)},
		{"only zeros", strings.Repeat("\x00", 300), testDay(), 0},
		{"zeros for more than a head", strings.Repeat("\x00", mostHead+1), testDay(), -1},
		{"another day's", text, testDay().Add(24 * time.Hour), -1},
		{"another program's", "#[Logged with jHiccup]\n" + text, testDay(), -1},
		{"no log", "hello\n", testDay(), -1},
		{"a head without an end", title + long, testDay(), -1},
		{"an end without an end", text + long, testDay(), -1},
	} {
		t.Run(row.name, func(t *testing.T) {
			file := written(t, filepath.Join(t.TempDir(), "log"), []byte(row.text))
			size, err := repair(file, int64(len(row.text)), row.day)
			left, _ := os.ReadFile(file)
			if row.want < 0 {
				if !errors.Is(err, errNoLog) || len(left) != len(row.text) {
					t.Errorf("error %v, %d of %d bytes left; want that it is no log, and all", err, len(left), len(row.text))
				}
				return
			}
			if err != nil || size != int64(row.want) || len(left) != row.want {
				t.Errorf("error %v, %d bytes, %d of %d left; want %d", err, size, len(left), len(row.text), row.want)
			}
		})
	}
}

// What is no log keeps nobody from writing one: it gets another name. A torn one
// is said to be repaired, and goes on.
func TestFilesInTheWay(t *testing.T) {
	text := oneLog(t)
	synctest.Test(t, func(t *testing.T) {
		path, log := t.TempDir(), &lines{}
		for name, content := range map[string]string{"foreign": "mine\n", "torn": string(text[:len(text)-3])} {
			if err := os.MkdirAll(filepath.Join(path, name), 0o700); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(filepath.Join(path, name, "2000-01-01.hlog"), []byte(content), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		time.Sleep(time.Hour)
		clock := probe.NewClock()
		h := opened(t, clock, log, Options{Path: path})
		l := newLoad(clock)
		h.Add("foreign", l.recorder)
		h.Add("torn", l.recorder)
		l.requests(20, time.Second)
		closeIt(t, h)
		if got, err := os.ReadFile(filepath.Join(path, "foreign", "2000-01-01.hlog.damaged")); string(got) != "mine\n" {
			t.Errorf("the file that was in the way is %q (%v)", got, err)
		}
		// Two of three intervals are whole, and there is one more.
		if n := len(intervals(t, filepath.Join(path, "torn", "2000-01-01.hlog"))); n != 3 {
			t.Errorf("%d intervals in the log that was torn, want 3", n)
		}
		if n := len(intervals(t, filepath.Join(path, "foreign", "2000-01-01.hlog"))); n != 1 {
			t.Errorf("%d intervals beside the file that was in the way, want 1", n)
		}
		if torn, damaged := log.with("was not whole and is cut off"), log.with("is damaged, and another one is begun"); len(torn) != 1 || len(damaged) != 1 {
			t.Errorf("the log says %q", log.with(""))
		}
		if h.Failures() != 0 {
			t.Errorf("%d failures", h.Failures())
		}
	})
}
