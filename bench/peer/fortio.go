package peer

import (
	"encoding/json"
	"fmt"
	"strconv"
)

// fortio spreads its rate over a goroutine per connection, which tries to catch
// up where it is behind.
func fortio() Tool {
	return Tool{
		Name: "fortio", Program: "fortio", Version: []string{"version"},
		Call: func(w Work) (Call, error) {
			return Call{Args: []string{
				"load", "-qps", strconv.Itoa(w.Rate), "-c", strconv.Itoa(w.Connections), "-t", w.Duration.String(),
				"-r", "0.00001", // seconds: the default histogram is good to a millisecond
				"-p", "50,95,99,99.9", "-loglevel", "error", "-quiet", "-k",
				"-keepalive=" + strconv.FormatBool(!w.NewConnections), "-json", "-", w.URL,
			}, Read: readFortio}, nil
		},
	}
}

func readFortio(_ string, stdout []byte) (Report, error) {
	var s struct {
		Durations struct {
			Count       uint64
			Max         float64
			Percentiles []struct{ Percentile, Value float64 }
		} `json:"DurationHistogram"`
		Errors struct{ Count uint64 } `json:"ErrorsDurationHistogram"`
	}
	if err := json.Unmarshal(stdout, &s); err != nil {
		return Report{}, reading("fortio", err)
	}
	r := Report{Requests: s.Durations.Count, Failures: s.Errors.Count, Latency: Quantiles{Max: s.Durations.Max}}
	for _, p := range s.Durations.Percentiles {
		r.Latency[Quantile(fmt.Sprintf("p%v", p.Percentile))] = p.Value
	}
	return r, nil
}
