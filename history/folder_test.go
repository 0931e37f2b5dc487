package history

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/steadyprobe/steadyprobe/probe"
)

func TestOneProcessAtATime(t *testing.T) {
	path := filepath.Join(t.TempDir(), "made", "by", "it")
	clock := probe.NewClock()
	first := opened(t, clock, &lines{}, Options{Path: path})
	said := &lines{}
	second := opened(t, clock, said, Options{Path: path})
	if said := said.with(errInUse.Error()); second.Failures() != 1 || len(said) != 1 || !strings.Contains(said[0], path) {
		t.Errorf("a second one has failed %d times and says %q, want that the folder is in use", second.Failures(), said)
	}
	closeIt(t, first)
	third := opened(t, clock, &lines{}, Options{Path: path})
	if n := third.Failures(); n > 0 {
		t.Errorf("%d failures once the first one is gone", n)
	}
	closeIt(t, third)
	closeIt(t, second)
}

// old makes logs of so many bytes of days that are over, and files that are none.
func old(t *testing.T, path, target string, size int, days ...int) {
	t.Helper()
	if err := os.MkdirAll(filepath.Join(path, target), 0o700); err != nil {
		t.Fatal(err)
	}
	for _, d := range days {
		if err := os.WriteFile(filepath.Join(path, target, fileName(testDay().AddDate(0, 0, -d))), make([]byte, size), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// TestOldFilesGo keeps two days, from 23:00 until after midnight.
func TestOldFilesGo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		time.Sleep(23 * time.Hour)
		path := t.TempDir()
		old(t, path, "gone", 10, 3, 4, 5)
		old(t, path, "stays", 10, 1, 2, 3, 400)
		old(t, path, "notes", 0)
		for _, file := range []string{"notes/1990-01-01.txt", "1990-01-01.hlog", "notes/1990-01-01.hlog.damaged"} {
			if err := os.WriteFile(filepath.Join(path, file), nil, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		foreign := []string{"1990-01-01.hlog", "notes/1990-01-01.hlog.damaged", "notes/1990-01-01.txt"}
		clock := probe.NewClock()
		h := opened(t, clock, &lines{}, Options{Path: path, MaxAge: 48 * time.Hour, Interval: 5 * time.Minute})
		l := newLoad(clock)
		h.Add("a", l.recorder)
		for _, want := range [][]string{
			// The 29th ended 71 hours ago, the 30th 47.
			{"a/2000-01-01.hlog", "stays/1999-12-30.hlog", "stays/1999-12-31.hlog"},
			{"a/2000-01-01.hlog", "a/2000-01-02.hlog", "stays/1999-12-31.hlog"},
		} {
			l.requests(45, time.Minute)
			want = slices.Concat(foreign, want)
			slices.Sort(want)
			if got := logs(t, path); !slices.Equal(got, want) {
				t.Errorf("at %v there are\n%q, want\n%q", time.Now().UTC(), got, want)
			}
		}
		if _, err := os.Stat(filepath.Join(path, "gone")); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("the folder of a target without files is there (%v)", err)
		}
		closeIt(t, h)
	})
}

// TestSizeIsBounded has room for eight old files and a little more: the oldest
// days go first, of whichever target, and none of today.
func TestSizeIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		time.Sleep(23 * time.Hour)
		path, log := t.TempDir(), &lines{}
		old(t, path, "a", 1000, 1, 3, 5, 7)
		old(t, path, "b", 1000, 2, 4, 6, 8)
		clock := probe.NewClock()
		h := opened(t, clock, log, Options{Path: path, MaxSize: 8500, Interval: 10 * time.Second})
		l := newLoad(clock)
		h.Add("c", l.recorder)
		days := func() (all []string) {
			for _, file := range logs(t, path) {
				if !strings.HasPrefix(file, "c/") {
					all = append(all, file[:1]+" "+fmt.Sprint(int(testDay().Sub(must(dayOf(file[2:]))).Hours()/24)))
				}
			}
			slices.SortFunc(all, func(x, y string) int { return strings.Compare(x[2:], y[2:]) })
			return all
		}
		if got := days(); len(got) != 8 {
			t.Fatalf("files of %v at the beginning", got)
		}
		everything := []string{"a 1", "b 2", "a 3", "b 4", "a 5", "b 6", "a 7", "b 8"}
		for h.Failures() == 0 {
			l.requests(10, time.Second)
			size := int64(0)
			for _, file := range logs(t, path) {
				info, err := os.Stat(filepath.Join(path, file))
				if err != nil {
					t.Fatal(err)
				}
				size += info.Size()
			}
			left := days()
			if size > 8500 || !slices.Equal(left, everything[:len(left)]) {
				t.Fatalf("%d bytes, and files of %v", size, left)
			}
			// As few as make room: one more would not fit.
			if len(left) < len(everything) && size+1000+1500 < 8500 {
				t.Fatalf("%d bytes, and files of %v only", size, left)
			}
		}
		// Now there are only those of today, which nothing is worth removing for.
		if left := days(); len(left) != 0 || h.Failures() == 0 {
			t.Errorf("%d failures, and files of %v", h.Failures(), left)
		}
		if full := log.with("--storage.retention.size"); len(full) != 1 {
			t.Errorf("the log says %q", log.with(""))
		}
		// The next day has room again.
		l.requests(120, 30*time.Second)
		if again := log.with("The history is written again"); len(again) != 1 {
			t.Errorf("the log says %q", log.with(""))
		}
		if got := logs(t, path); !slices.Equal(got, []string{"c/2000-01-02.hlog"}) {
			t.Errorf("files %q on the next day", got)
		}
		closeIt(t, h)
	})
}

func must(day time.Time, ok bool) time.Time {
	if !ok {
		panic("no day")
	}
	return day
}
