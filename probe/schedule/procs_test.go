package schedule

import (
	"bytes"
	"log/slog"
	"runtime"
	"strings"
	"testing"
)

func TestProcsFor(t *testing.T) {
	for _, tt := range []struct {
		name                string
		procs, pacers, want int
	}{
		{"one CPU or GOMAXPROCS=1", 1, 1, 3},
		{"two", 2, 1, 3},
		{"many", 36, 2, 38},
		{"no pacer", 1, 0, 2},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := procsFor(tt.procs, tt.pacers); got != tt.want {
				t.Errorf("procsFor(%d, %d) = %d, want %d", tt.procs, tt.pacers, got, tt.want)
			}
		})
	}
}

func TestReserveProcs(t *testing.T) {
	former := runtime.GOMAXPROCS(1)
	defer runtime.GOMAXPROCS(former)
	var log bytes.Buffer
	restore := ReserveProcs(1, slog.New(slog.NewTextHandler(&log, nil)))
	if got := runtime.GOMAXPROCS(0); got != 3 {
		t.Errorf("GOMAXPROCS %d, want 3", got)
	}
	if want := "gomaxprocs=3 former=1\n"; !strings.Contains(log.String(), want) {
		t.Errorf("logged %q, want %q in it", &log, want)
	}
	restore()
	if got := runtime.GOMAXPROCS(0); got != 1 {
		t.Errorf("GOMAXPROCS %d after restore, want 1", got)
	}
}

// Each adds one to what it finds: 2 (the least) + 1 = 3, then 3 + 1 = 4.
func TestReserveProcsOfSeveralDaemons(t *testing.T) {
	former := runtime.GOMAXPROCS(2)
	defer runtime.GOMAXPROCS(former)
	logger := slog.New(slog.DiscardHandler)
	first, second := ReserveProcs(1, logger), ReserveProcs(1, logger)
	if got := runtime.GOMAXPROCS(0); got != 4 {
		t.Errorf("GOMAXPROCS %d for two daemons, want 4", got)
	}
	first()
	if got := runtime.GOMAXPROCS(0); got != 3 {
		t.Errorf("GOMAXPROCS %d for the one that is left, want 3", got)
	}
	second()
	if got := runtime.GOMAXPROCS(0); got != 2 {
		t.Errorf("GOMAXPROCS %d after both, want 2", got)
	}
}
