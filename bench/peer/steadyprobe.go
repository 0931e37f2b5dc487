package peer

import (
	"encoding/json"
	"fmt"
	"strconv"
)

// steadyprobe is this project's own one-shot run, in one of its variants.
func steadyprobe(name, path string, flags ...string) Tool {
	return Tool{
		Name: name, Program: path, Version: []string{"--version"},
		Call: func(w Work) (Call, error) {
			if len(flags) > 0 && (w.Rate == 0 || w.NewConnections) {
				return Call{}, ErrUnfit // the variants are ways to keep a rate
			}
			rate := "max"
			if w.Rate != 0 {
				rate = strconv.Itoa(w.Rate)
			}
			args := append([]string{
				"run", "--rate=" + rate, "--connections=" + strconv.Itoa(w.Connections), "--duration=" + w.Duration.String(),
				"--insecure", "--format=json", "--log.level=error",
			}, flags...)
			if w.NewConnections {
				args = append(args, "--no-reuse")
			}
			return Call{Args: append(args, w.URL), Read: readSteadyprobe}, nil
		},
	}
}

// distribution is one of the distributions of a report, in seconds. Without a
// value in it, it says 0 or nothing.
type distribution struct {
	Count uint64
	P50   *float64 `json:"p50"`
	P95   *float64 `json:"p95"`
	P99   *float64 `json:"p99"`
	P999  *float64 `json:"p99_9"`
	Max   *float64 `json:"max"`
}

func (d distribution) quantiles() Quantiles {
	if d.Count == 0 {
		return nil
	}
	q := Quantiles{}
	for name, value := range map[Quantile]*float64{P50: d.P50, P95: d.P95, P99: d.P99, P999: d.P999, Max: d.Max} {
		if value != nil {
			q[name] = *value
		}
	}
	return q
}

// readSteadyprobe takes the service time where there is no latency: in a closed
// loop.
func readSteadyprobe(_ string, stdout []byte) (Report, error) {
	var s struct {
		Results []struct {
			Completed, Failures uint64
			Latency, Lateness   distribution
			ServiceTime         distribution `json:"service_time"`
		}
	}
	if err := json.Unmarshal(stdout, &s); err != nil {
		return Report{}, reading("steadyprobe", err)
	}
	if len(s.Results) != 1 {
		return Report{}, reading("steadyprobe", fmt.Errorf("it has %d results, want 1", len(s.Results)))
	}
	n := s.Results[0]
	r := Report{Requests: n.Completed, Failures: n.Failures, Latency: n.Latency.quantiles(), Lateness: n.Lateness.quantiles()}
	if r.Latency == nil {
		r.Latency = n.ServiceTime.quantiles()
	}
	return r, nil
}
