package report

import (
	"errors"
	"io"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/steadyprobe/steadyprobe/probe"
)

func TestUnits(t *testing.T) {
	for _, tt := range []struct{ got, want string }{
		{formatSeconds(0), "0.00us"},
		{formatSeconds(70e-6), "70.00us"},
		{formatSeconds(999.994e-6), "999.99us"},
		{formatSeconds(999.996e-6), "1.00ms"}, // not 1000.00us
		{formatSeconds(0.9999999), "1.00s"},
		{formatSeconds(3600), "3600.00s"},
		{formatSeconds(-0.002), "-2.00ms"},
		{formatBytes(0), "0.00B"},
		{formatBytes(1023), "1023.00B"},
		{formatBytes(1024), "1.00KB"},
		{formatBytes(1<<20 - 1), "1.00MB"}, // 1023.999 KB
		{formatBytes(5 << 50), "5120.00TB"},
		{formatWindow(30), "30s"},
		{formatWindow(1.5), "1.50s"},
		{formatWindow(0), "0s"},
	} {
		if tt.got != tt.want {
			t.Errorf("got %q, want %q", tt.got, tt.want)
		}
	}
}

var errFull = errors.New("no space left")

// fakeFullDisk takes the first bytes only.
type fakeFullDisk struct{ left int }

func (f *fakeFullDisk) Write(p []byte) (int, error) {
	if len(p) > f.left {
		n := f.left
		f.left = 0
		return n, errFull
	}
	f.left -= len(p)
	return len(p), nil
}

// The summary is the target and what the text report ends with.
func TestWriteSummary(t *testing.T) {
	results := []Result{New(sick(t))}
	var text, summary strings.Builder
	if err := WriteText(&text, results, TextOptions{Spectra: true}); err != nil {
		t.Fatal(err)
	}
	if err := WriteSummary(&summary, results); err != nil {
		t.Fatal(err)
	}
	name, end, _ := strings.Cut(summary.String(), "\n")
	if name != results[0].Target || !strings.HasSuffix(text.String(), end) {
		t.Errorf("the summary is not the end of the report:\n%s", &summary)
	}
	for _, part := range []string{"requests answered in", "Failures: ", "Requests/sec:", "NOTE: "} {
		if !strings.Contains(end, part) {
			t.Errorf("the summary says nothing of %q:\n%s", part, end)
		}
	}
}

// Who does not ask for the spectra sees the figures that matter on one screen.
func TestSpectraOnlyWhenAskedFor(t *testing.T) {
	results := []Result{New(sick(t))}
	var short, long strings.Builder
	if err := errors.Join(WriteText(&short, results, TextOptions{}), WriteText(&long, results, TextOptions{Spectra: true})); err != nil {
		t.Fatal(err)
	}
	const spectrum = "Detailed Percentile spectrum"
	if strings.Contains(short.String(), spectrum) || strings.Count(long.String(), spectrum) != 2 {
		t.Errorf("spectra in the short report:\n%s", &short)
	}
	before, rest, _ := strings.Cut(long.String(), "\n  Recorded Latency, from")
	if _, after, _ := strings.Cut(rest, "-----"); short.String() != before+"-----"+after {
		t.Errorf("the short report is not the long one without spectra:\n%s", &short)
	}
}

func TestWriteErrors(t *testing.T) {
	results := []Result{New(healthy(t))}
	if err := WriteText(&fakeFullDisk{left: 100}, results, TextOptions{Spectra: true}); !errors.Is(err, errFull) {
		t.Errorf("WriteText: %v, want %v", err, errFull)
	}
	if err := WriteJSON(&fakeFullDisk{left: 100}, results); !errors.Is(err, errFull) {
		t.Errorf("WriteJSON: %v, want %v", err, errFull)
	}
	if err := WriteSummary(&fakeFullDisk{left: 100}, results); !errors.Is(err, errFull) {
		t.Errorf("WriteSummary: %v, want %v", err, errFull)
	}
	live := NewLive(&fakeFullDisk{left: 100}, 0)
	for range 3 {
		live.Update(Progress{Elapsed: time.Second, Total: time.Minute})
	}
	if err := live.Close(); !errors.Is(err, errFull) {
		t.Errorf("Live: %v, want %v", err, errFull)
	}
}

func TestLive(t *testing.T) {
	var out strings.Builder
	live := NewLive(&out, 78)
	var l probe.Ledger
	l.Completed[probe.NoChurn][probe.Success] = 990
	l.Completed[probe.NoChurn][probe.ReadEOF] = 10
	l.InFlight, l.Backlog = 12, 345
	live.Update(Progress{Elapsed: time.Second, Total: 30 * time.Second, Ledger: l, P50: 90 * time.Microsecond, P99: 1200 * time.Microsecond})
	// 500 more in half a second.
	l.Completed[probe.NoChurn][probe.Success] += 500
	l.InFlight, l.Backlog = 1, 0
	live.Update(Progress{Elapsed: 1500 * time.Millisecond, Total: 30 * time.Second, Ledger: l})
	live.Update(Progress{Elapsed: 1500 * time.Millisecond, Total: 30 * time.Second, Ledger: l})
	l.Backlog = 6
	live.Update(Progress{Elapsed: 31500 * time.Millisecond, Total: 30 * time.Second, Ledger: l, Waiting: true})
	if err := live.Close(); err != nil {
		t.Error(err)
	}
	if err := live.Close(); err != nil {
		t.Error(err)
	}
	// Lines of 68, 54 and 51 characters: the second must hide 14 of the first.
	want := "\r1s/30s 1000.0/s p50 90.00us p99 1.20ms fail 10 flight 12 backlog 345" +
		"\r2s/30s 1000.0/s p50 - p99 - fail 10 flight 1 backlog 0              " +
		"\r2s/30s 0.0/s p50 - p99 - fail 10 flight 1 backlog 0   " +
		"\r32s/30s waiting for 7 requests: fail 10 flight 1 backlog 6" +
		"\n"
	if out.String() != want {
		t.Errorf("got\n%q, want\n%q", out.String(), want)
	}
}

// What is logged meanwhile takes the place of the line and does not end up
// behind it.
func TestLiveGivesWay(t *testing.T) {
	var out strings.Builder
	live := NewLive(&out, 78)
	log := func(text string) {
		if n, err := io.WriteString(live, text); n != len(text) || err != nil {
			t.Errorf("wrote %d bytes of %q, error %v", n, text, err)
		}
	}
	log("before\n")
	live.Show("1s")
	log("first\n")
	log("second\n")
	live.Show("2s")
	_ = live.Close()
	log("after\n")
	if want := "before\n" + "\r1s" + "\r  \rfirst\n" + "second\n" + "\r2s" + "\n" + "after\n"; out.String() != want {
		t.Errorf("got %q, want %q", out.String(), want)
	}
}

func TestLiveConcurrently(t *testing.T) {
	live := NewLive(io.Discard, 0)
	var all sync.WaitGroup
	for range 2 {
		all.Go(func() { live.Update(Progress{Elapsed: time.Second}) })
		all.Go(func() { live.Show("1s") })
		all.Go(func() { _, _ = io.WriteString(live, "log\n") })
		all.Go(func() { _ = live.Close() })
	}
	all.Wait()
}

func TestLiveIsCut(t *testing.T) {
	var out strings.Builder
	live := NewLive(&out, 20)
	live.Update(Progress{Elapsed: time.Second, Total: time.Hour})
	if want := "\r1s/3600s 0.0/s p50 "; out.String() != want {
		t.Errorf("got %q, want %q", out.String(), want)
	}
}

func TestLiveUnused(t *testing.T) {
	var out strings.Builder
	if err := NewLive(&out, 0).Close(); err != nil || out.Len() > 0 {
		t.Errorf("wrote %q, error %v", out.String(), err)
	}
}
