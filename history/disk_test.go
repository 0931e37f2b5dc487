package history

import (
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/steadyprobe/steadyprobe/probe"
)

// TestDiskThatFails has a file where the folder belongs, from the beginning or
// later, for a while: it is told once, counted each time, and nothing is lost of
// what is remembered; of a longer time a gap stays and is told.
func TestDiskThatFails(t *testing.T) {
	for _, row := range []struct {
		name    string
		begins  time.Duration // after the start
		lasts   time.Duration
		gap     bool
		atStart bool
	}{
		{"from the beginning", 0, 4 * time.Minute, false, true},
		{"later", 150 * time.Second, 4 * time.Minute, false, false},
		{"for too long", 150 * time.Second, time.Hour, true, false},
	} {
		t.Run(row.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				path, log := filepath.Join(t.TempDir(), "history"), &lines{}
				broken := func(is bool) {
					// The folder of the target only, where the other one is locked.
					what := filepath.Join(path, "a")
					if row.atStart {
						what = path
					}
					if err := os.RemoveAll(what); err != nil {
						t.Fatal(err)
					}
					if is {
						if err := os.WriteFile(what, nil, 0o600); err != nil {
							t.Fatal(err)
						}
					}
				}
				if row.atStart {
					broken(true)
				}
				clock := probe.NewClock()
				h := opened(t, clock, log, Options{Path: path})
				l := newLoad(clock)
				h.Add("a", l.recorder)
				for start, was := time.Now(), row.atStart; time.Since(start) < row.begins+row.lasts+10*time.Minute; l.requests(1, time.Second) {
					since := time.Since(start)
					if is := since >= row.begins && since < row.begins+row.lasts; is != was {
						broken(is)
						if is {
							l.felt.Reset() // what was written is removed
							l.completed = 0
						}
						was = is
					}
				}
				closeIt(t, h)
				failures := h.Failures()
				if most := uint64(row.lasts/time.Minute) + 1; failures < most-2 || failures > most {
					t.Errorf("%d failures in %v", failures, row.lasts)
				}
				failed, again := log.with("The history cannot be written, requests go on"), log.with("The history is written again")
				if len(failed) != 1 || len(again) != 1 || len(log.with("")) != 2 {
					t.Errorf("the log says %q", log.with(""))
				}
				got := sum(intervals(t, filepath.Join(path, "a", "2000-01-01.hlog")))
				lost := l.felt.TotalCount() - got.TotalCount()
				// Five of the sixty minutes are remembered.
				if told := len(log.with("intervals_lost=0")) == 0; told != row.gap {
					t.Errorf("the log says %q", again)
				}
				switch {
				case !row.gap && lost > 60: // of the minute in which the file was removed a part was written before
					t.Errorf("%d of %d latencies are lost", lost, l.felt.TotalCount())
				case row.gap && lost < 3000*8/10:
					t.Errorf("%d latencies of an hour are lost", lost)
				}
			})
		})
	}
}
