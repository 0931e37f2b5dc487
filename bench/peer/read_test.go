package peer

import (
	"maps"
	"math"
	"os"
	"path/filepath"
	"testing"
)

func sample(t *testing.T, name string) []byte {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// equal compares in nanoseconds, which no tool goes beyond.
func equal(a, b Quantiles) bool {
	return maps.EqualFunc(a, b, func(x, y float64) bool { return math.Abs(x-y) < 0.5e-9 })
}

// of brings one of the readers into the form that calls have.
func of(read func([]byte) (Report, error)) func(string, []byte) (Report, error) {
	return func(_ string, text []byte) (Report, error) { return read(text) }
}

// The samples are what the tools printed for short runs against an nginx, apart
// from that of oha, which was written after its source.
func TestReaders(t *testing.T) {
	type quantiles = Quantiles
	for _, row := range []struct {
		name, file         string
		read               func(string, []byte) (Report, error)
		requests, failures uint64
		latency            quantiles
	}{
		{"wrk", "wrk.txt", readWrk, 65150, 0, quantiles{P50: 201e-6, P99: 79.40e-3, Max: 142.38e-3}},
		{"wrk, 503 and a stall", "wrk-failures.txt", readWrk, 26918, 4 + 26918, quantiles{P50: 82e-6, P99: 13.83e-3, Max: 37.52e-3}},
		{"wrk2", "wrk2.txt", readWrk2, 2801, 0, quantiles{P50: 1.73e-3, P95: 148.095e-3, P99: 268.29e-3, P999: 306.69e-3, Max: 313.86e-3}},
		{"ab", "ab.txt", readAb, 70945, 0, quantiles{P50: 0, P95: 0, P99: 3e-3, Max: 197e-3}},
		{"ab, 503", "ab-failures.txt", readAb, 1000, 1000, quantiles{P50: 0, P95: 0, P99: 1e-3, Max: 1e-3}},
		{"h2load", "h2load.txt", of(readH2load), 59778, 0, quantiles{Max: 197.43e-3}},
		{"h2load, 503", "h2load-failures.txt", of(readH2load), 100, 100, quantiles{Max: 356e-6}},
		{"fortio", "fortio.json", readFortio, 400, 0, quantiles{P50: 273.611e-6, P95: 8e-3, P99: 24.85567e-3, P999: 27.769072e-3, Max: 28.092783e-3}},
		{"fortio, 503", "fortio-failures.json", readFortio, 88, 88, quantiles{P50: 443.75e-6, P95: 19.333333e-3, P99: 23.133115e-3, P999: 23.928444e-3, Max: 24.016814e-3}},
		{"bombardier", "bombardier.json", readBombardier, 400, 0, quantiles{P50: 2879e-6, P95: 22470e-6, P99: 41936e-6, Max: 52269e-6}},
		{"bombardier, 503", "bombardier-failures.json", readBombardier, 84, 84, quantiles{P50: 271e-6, P95: 33401e-6, P99: 129762e-6, Max: 129875e-6}},
		{"k6", "k6.json", of(readK6), 601, 0, quantiles{P50: 179.255e-6, P95: 264.242e-6, P99: 316.023e-6, P999: 1085.897e-6, Max: 1135.542e-6}},
		{"k6, 503 and too fast", "k6-failures.json", of(readK6), 7868, 7868 + 7136, quantiles{P50: 275.163e-6, P95: 3189.624e-6, P99: 28097.387e-6, P999: 118501.720e-6, Max: 118909.156e-6}},
		{"oha", "oha.json", readOha, 399, 3 + 2, quantiles{P50: 130e-6, P95: 410e-6, P99: 1.1e-3, P999: 23.1e-3, Max: 24.3e-3}}, // the 4 that the end cut off are none
		{"steadyprobe", "steadyprobe.json", readSteadyprobe, 400, 0, quantiles{P50: 476.159e-6, P95: 43.188223e-3, P99: 85.721087e-3, P999: 105.316351e-3, Max: 105.316351e-3}},
	} {
		t.Run(row.name, func(t *testing.T) {
			got, err := row.read("", sample(t, row.file))
			if err != nil {
				t.Fatal(err)
			}
			if got.Requests != row.requests || got.Failures != row.failures || !equal(got.Latency, row.latency) {
				t.Errorf("report = %+v, want %d requests, %d failures, latency %v", got, row.requests, row.failures, row.latency)
			}
			for _, bad := range []string{"", "no report", "[1]"} {
				if got, err := row.read("", []byte(bad)); err == nil {
					t.Errorf("%q was read as %+v, want an error", bad, got)
				}
			}
		})
	}
}

func TestReadVegeta(t *testing.T) {
	got, err := readVegeta(sample(t, "vegeta.json"), sample(t, "vegeta.txt"))
	// p99.9 is the table's first row from 0.999 on, 0.999023.
	want := Quantiles{P50: 3829704e-9, P95: 71389270e-9, P99: 108201916e-9, P999: 124.717661e-3, Max: 124717661e-9}
	if err != nil || got.Requests != 400 || got.Failures != 0 || !equal(got.Latency, want) {
		t.Errorf("report = %+v (%v), want 400 requests, %v", got, err, want)
	}
	if got, err := readVegeta(sample(t, "vegeta.json"), nil); err == nil {
		t.Errorf("without a table it was read as %+v, want an error", got)
	}
	if got, err := readVegeta(nil, sample(t, "vegeta.txt")); err == nil {
		t.Errorf("without a summary it was read as %+v, want an error", got)
	}
}

func TestReadSteadyprobeInAClosedLoop(t *testing.T) {
	const report = `{"results": [{"completed": 9, "failures": 1, "latency": {"count": 0, "p50": 0}, "lateness": {"count": 0, "max": 0}, "service_time": {"count": 9, "p50": 0.5, "max": 2}}]}`
	got, err := readSteadyprobe("", []byte(report))
	if err != nil || got.Requests != 9 || got.Failures != 1 || !equal(got.Latency, Quantiles{P50: 0.5, Max: 2}) || got.Lateness != nil {
		t.Errorf("report = %+v (%v), want the service time and no lateness", got, err)
	}
}

func TestSteadyprobeTellsItsLateness(t *testing.T) {
	got, err := readSteadyprobe("", sample(t, "steadyprobe.json"))
	if err != nil || got.Lateness[P50] != 49.727e-6 || got.Lateness[P99] != 38.535167e-3 {
		t.Errorf("lateness = %v (%v), want p50 49.727 us and p99 38.535167 ms", got.Lateness, err)
	}
}

func TestH2loadLog(t *testing.T) {
	for _, row := range []struct {
		name, log string
		want      Quantiles // nil: an error
	}{
		{"as it was written", string(sample(t, "h2load.log")), Quantiles{P50: 108e-6, P95: 113e-6, P99: 113e-6, P999: 113e-6, Max: 113e-6}},
		{"no request", "", Quantiles{}},
		{"a line cut off", "1796058781163845\t200\t94\n17960587", nil},
		{"no number", "1\t200\tx\n", nil},
	} {
		t.Run(row.name, func(t *testing.T) {
			got, err := h2loadLog([]byte(row.log))
			if (err != nil) != (row.want == nil) || !equal(got, row.want) {
				t.Errorf("quantiles = %v (%v), want %v", got, err, row.want)
			}
		})
	}
}

func TestExactIsTheNearestRank(t *testing.T) {
	hundred := make([]float64, 100)
	for i := range hundred {
		hundred[i] = float64(i + 1)
	}
	for _, row := range []struct {
		name   string
		sorted []float64
		want   Quantiles
	}{
		{"none", nil, nil},
		{"one", []float64{7}, Quantiles{P50: 7, P95: 7, P99: 7, P999: 7, Max: 7}},
		// Ranks 50, 95, 99, ceil(99.9) = 100, 100.
		{"a hundred", hundred, Quantiles{P50: 50, P95: 95, P99: 99, P999: 100, Max: 100}},
	} {
		t.Run(row.name, func(t *testing.T) {
			if got := exact(row.sorted); !equal(got, row.want) {
				t.Errorf("quantiles = %v, want %v", got, row.want)
			}
		})
	}
}

func FuzzReaders(f *testing.F) {
	for _, name := range []string{"wrk.txt", "wrk2.txt", "ab.txt", "h2load.txt", "fortio.json", "bombardier.json", "k6.json", "oha.json", "steadyprobe.json"} {
		text, err := os.ReadFile(filepath.Join("testdata", name))
		if err != nil {
			f.Fatal(err)
		}
		f.Add(text)
	}
	f.Fuzz(func(_ *testing.T, text []byte) {
		for _, read := range []func(string, []byte) (Report, error){
			readWrk, readWrk2, readAb, of(readH2load), readFortio, readBombardier, of(readK6), readOha, readSteadyprobe,
		} {
			_, _ = read("", text) // must not panic
		}
	})
}
