package peer

import (
	"encoding/json"
	"os/exec"
	"path/filepath"
	"strconv"
)

// vegeta starts as many workers as it takes to keep its rate; capped it has no
// more than there are connections, which is the same work as that of the
// others, but then its clock starts when a worker is free. Its report is made
// by another call of the program, whose cost is not counted.
func vegeta(name string, capped bool) Tool {
	return Tool{
		Name: name, Program: "vegeta", Version: []string{"-version"},
		Call: func(w Work) (Call, error) {
			if !capped && w.Rate == 0 || capped && w.NewConnections {
				return Call{}, ErrUnfit
			}
			results := filepath.Join(w.Scratch, "results.bin")
			connections := strconv.Itoa(w.Connections)
			args := []string{
				"attack", "-rate=" + strconv.Itoa(w.Rate), "-duration=" + w.Duration.String(), "-connections=" + connections,
				"-insecure", "-keepalive=" + strconv.FormatBool(!w.NewConnections), "-output=" + results,
			}
			if capped {
				args = append(args, "-workers="+connections, "-max-workers="+connections)
			}
			return Call{Args: args, Stdin: "GET " + w.URL + "\n", Read: func(program string, _ []byte) (Report, error) {
				summary, err := exec.Command(program, "report", "-type=json", results).Output()
				if err != nil {
					return Report{}, reading("vegeta", err)
				}
				table, err := exec.Command(program, "report", "-type=hdrplot", results).Output()
				if err != nil {
					return Report{}, reading("vegeta", err)
				}
				return readVegeta(summary, table)
			}}, nil
		},
	}
}

// readVegeta takes p99.9 from the table, where it is to the table's steps, and
// all else from the summary.
func readVegeta(summary, table []byte) (Report, error) {
	var s struct {
		Requests  uint64
		Latencies struct { // nanoseconds
			P50 float64 `json:"50th"`
			P95 float64 `json:"95th"`
			P99 float64 `json:"99th"`
			Max float64
		}
		Codes map[string]uint64 `json:"status_codes"`
	}
	if err := json.Unmarshal(summary, &s); err != nil {
		return Report{}, reading("vegeta", err)
	}
	q, err := hdrTable(string(table))
	if err != nil {
		return Report{}, reading("vegeta", err)
	}
	for name, ns := range map[Quantile]float64{P50: s.Latencies.P50, P95: s.Latencies.P95, P99: s.Latencies.P99, Max: s.Latencies.Max} {
		q[name] = ns / 1e9
	}
	return Report{Requests: s.Requests, Failures: s.Requests - s.Codes["200"], Latency: q}, nil
}
