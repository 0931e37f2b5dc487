package report

import (
	"errors"
	"math"
	"strings"
	"testing"
)

func TestWritePhases(t *testing.T) {
	var out strings.Builder
	err := WritePhases(&out, []PhaseRow{
		{Target: "steady-http", Phase: "settled", Completed: 12000, P50: 0.0021, P99: 0.0042, P999: 0.0061},
		{Target: "steady-http", Phase: "scaling_up", Completed: 40, P50: 0.0025, P99: math.NaN(), P999: math.NaN()},
		{Target: "reloading\x1b", Phase: "scaling_down", Completed: 2000, Failed: 31, TopFailure: "response/status", P50: 0.0026, P99: 0.512, P999: 1.25},
	})
	if err != nil {
		t.Fatal(err)
	}
	const want = `
  Target       Backend        Requests   Failed        p50        p99      p99.9
  steady-http  settled           12000        0     2.10ms     4.20ms     6.10ms
               scaling_up           40        0     2.50ms          -          -
  reloading?   scaling_down       2000       31     2.60ms   512.00ms      1.25s  mostly response/status
`
	if got := "\n" + out.String(); got != want {
		t.Errorf("wrote%s\nwant%s", got, want)
	}
}

func TestWritePhasesTellsItsError(t *testing.T) {
	if err := WritePhases(&fakeFullDisk{}, []PhaseRow{{Target: "a"}}); !errors.Is(err, errFull) {
		t.Errorf("got %v, want %v", err, errFull)
	}
}
