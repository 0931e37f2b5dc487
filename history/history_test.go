package history

import (
	"path/filepath"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"github.com/steadyprobe/steadyprobe/probe"
)

// TestHistory lets a target run from before midnight until after, for 25
// intervals, and reads what was written: every latency and every failure is there once, in the
// file of its day, in intervals that follow each other.
func TestHistory(t *testing.T) {
	for _, interval := range Intervals() {
		t.Run(interval.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				time.Sleep(24*time.Hour - 12*interval + 17*time.Second) // the bubble begins at midnight
				start := time.Now()
				clock := probe.NewClock()
				path, log := t.TempDir(), &lines{}
				h := opened(t, clock, log, Options{Path: path, Interval: interval})
				l := newLoad(clock)
				h.Add("shop", l.recorder)
				l.requests(500, interval/20)
				end := time.Now()
				closeIt(t, h)

				files := logs(t, path)
				if want := []string{"shop/2000-01-01.hlog", "shop/2000-01-02.hlog"}; !slices.Equal(files, want) {
					t.Fatalf("files %v, want %v", files, want)
				}
				all := intervals(t, filepath.Join(path, files[0]))
				first := len(all)
				all = append(all, intervals(t, filepath.Join(path, files[1]))...)
				if got := sum(all); got.TotalCount() != l.felt.TotalCount() || !got.Equals(l.felt) {
					t.Errorf("the history has %d latencies, p99 %d; want %d, p99 %d", got.TotalCount(), got.ValueAtQuantile(99), l.felt.TotalCount(), l.felt.ValueAtQuantile(99))
				}
				failed := failuresIn(t, filepath.Join(path, files[0])) + failuresIn(t, filepath.Join(path, files[1]))
				if failed != l.failed {
					t.Errorf("the history tells of %d failures, want %d", failed, l.failed)
				}
				at := start.UnixMilli()
				for i, one := range all {
					if one.StartTimeMs() != at {
						t.Fatalf("interval %d begins at %v, want %v", i, time.UnixMilli(one.StartTimeMs()).UTC(), time.UnixMilli(at).UTC())
					}
					at = one.EndTimeMs()
					if day := time.UnixMilli(one.StartTimeMs()).UTC().Day(); (day == 1) != (i < first) {
						t.Errorf("interval %d begins on day %d, and is in the file of the other", i, day)
					}
				}
				if at != end.UnixMilli() {
					t.Errorf("the last interval ends at %v, want %v", time.UnixMilli(at).UTC(), end.UTC())
				}
				if whole := all[1].EndTimeMs() - all[1].StartTimeMs(); whole != interval.Milliseconds() {
					t.Errorf("an interval of %d ms, want %v", whole, interval)
				}
				if h.Failures() != 0 || len(log.with("")) != 0 {
					t.Errorf("%d failures, the log says %q", h.Failures(), log.with(""))
				}
			})
		})
	}
}

// TestRestart stops and starts on the same day, and adds and removes targets
// meanwhile: the same file goes on, and has all of both.
func TestRestart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		path, log := t.TempDir(), &lines{}
		var felt []*load
		for range 3 {
			clock := probe.NewClock() // a process has a clock of its own
			h := opened(t, clock, log, Options{Path: path})
			stays, goes := newLoad(clock), newLoad(clock)
			h.Add("stays", stays.recorder)
			h.Add("goes", goes.recorder)
			for range 100 {
				time.Sleep(time.Second)
				stays.request()
				goes.request()
			}
			h.Remove(goes.recorder)
			h.Remove(newLoad(clock).recorder)
			stays.requests(50, time.Second)
			closeIt(t, h)
			closeIt(t, h)
			felt = append(felt, stays, goes)
			time.Sleep(time.Hour)
		}
		for i, name := range []string{"stays", "goes"} {
			all := intervals(t, filepath.Join(path, name, "2000-01-01.hlog"))
			want := felt[i].felt
			want.Merge(felt[i+2].felt)
			want.Merge(felt[i+4].felt)
			if got := sum(all); !got.Equals(want) {
				t.Errorf("%s: %d latencies, want %d", name, got.TotalCount(), want.TotalCount())
			}
			// The second process began 1 h 2 min 30 s after the first.
			if !slices.ContainsFunc(all, func(h *hdrhistogram.Histogram) bool {
				return time.UnixMilli(h.StartTimeMs()).UTC().Equal(time.Date(2000, 1, 1, 1, 2, 30, 0, time.UTC))
			}) {
				t.Errorf("%s: no interval begins with the second process", name)
			}
		}
		if text := log.with(""); len(text) != 0 {
			t.Errorf("the log says %q", text)
		}
	})
}

// A target that is slower than the interval has no lines of nothing, and one
// that fails fast has counts without latencies. A closed loop has no history.
func TestQuietTargets(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		clock := probe.NewClock()
		path := t.TempDir()
		h := opened(t, clock, &lines{}, Options{Path: path, Interval: 10 * time.Second})
		slow, dead, idle, loop := newLoad(clock), newLoad(clock), newLoad(clock), newLoad(clock)
		h.Add("slow", slow.recorder)
		h.Add("dead", dead.recorder)
		h.Add("idle", idle.recorder)
		h.Add("loop", loop.recorder)
		for range 10 {
			time.Sleep(45 * time.Second)
			slow.request()
			dead.recorder.Record(&probe.Sample{End: clock.Now(), Outcome: probe.ConnectRefused})
			for _, o := range []probe.Outcome{probe.Success, probe.ReadReset} {
				loop.recorder.Record(&probe.Sample{Tick: probe.Tick{Closed: true}, End: clock.Now(), Outcome: o})
			}
		}
		closeIt(t, h)
		if got := len(intervals(t, filepath.Join(path, "slow", "2000-01-01.hlog"))); got != 10 {
			t.Errorf("%d intervals of 10 requests", got)
		}
		file := filepath.Join(path, "dead", "2000-01-01.hlog")
		if all := intervals(t, file); len(all) != 10 || sum(all).TotalCount() != 0 || failuresIn(t, file) != 10 {
			t.Errorf("%d intervals with %d latencies and %d failures, want 10, 0, 10", len(all), sum(all).TotalCount(), failuresIn(t, file))
		}
		if got := logs(t, path); len(got) != 2 {
			t.Errorf("files %v, want none of the idle target and the closed loop", got)
		}
	})
}

// The wall clock is set back by an hour while a target runs: what follows is
// written by the new time. In a bubble nobody can set it, so that the process
// has a clock that began with another one.
func TestWallClockSteps(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		clock := probe.NewClock()
		w := newWriter(newFolder(t.TempDir(), 0, 0), clock, nil)
		time.Sleep(time.Hour)
		now := time.Now()
		for _, row := range []struct {
			name string
			now  time.Time
			want time.Duration // of the present instant after now
		}{
			{"as it was", now, 0},
			{"set back", now.Add(-30 * time.Minute), 0},
			{"set forward", now.Add(48 * time.Hour), 0},
			// The difference is not followed.
			{"noise", now.Add(4 * time.Millisecond), -4 * time.Millisecond},
		} {
			if got := w.wall(row.now)(clock.Now()); got.Sub(row.now.Round(0)) != row.want {
				t.Errorf("%s: now is %v, want %v and %v", row.name, got, row.now.Round(0), row.want)
			}
		}
	})
}

func TestIntervalsThatAreNone(t *testing.T) {
	_, err := Open(Options{Path: t.TempDir(), Interval: 30 * time.Second, Clock: probe.NewClock()})
	if err == nil {
		t.Error("an interval of 30s was taken")
	}
}
