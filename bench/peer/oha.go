package peer

import (
	"encoding/json"
	"strconv"
)

// oha is told to correct its latencies for coordinated omission where it has a
// rate, as it does not by itself. Its report is read as its source of version
// 1.10 and later writes it.
func oha() Tool {
	return Tool{
		Name: "oha", Program: "oha", Version: []string{"--version"},
		Call: func(w Work) (Call, error) {
			args := []string{"-z", strconv.Itoa(w.seconds()) + "s", "-c", strconv.Itoa(w.Connections), "--no-tui", "--output-format", "json", "--insecure"}
			if w.Rate != 0 {
				args = append(args, "-q", strconv.Itoa(w.Rate), "--latency-correction")
			}
			if w.NewConnections {
				args = append(args, "--disable-keepalive")
			}
			return Call{Args: append(args, w.URL), Read: readOha}, nil
		},
	}
}

// ohaUnfinished is what oha calls the requests that the end of the run cut off.
const ohaUnfinished = "aborted due to deadline"

func readOha(_ string, stdout []byte) (Report, error) {
	var s struct {
		Summary     struct{ Slowest float64 } // seconds
		Percentiles map[Quantile]*float64     `json:"latencyPercentiles"`
		Codes       map[string]uint64         `json:"statusCodeDistribution"`
		Errors      map[string]uint64         `json:"errorDistribution"`
	}
	if err := json.Unmarshal(stdout, &s); err != nil {
		return Report{}, reading("oha", err)
	}
	r := Report{Latency: Quantiles{Max: s.Summary.Slowest}}
	for code, n := range s.Codes {
		r.Requests += n
		if code != "200" {
			r.Failures += n
		}
	}
	for kind, n := range s.Errors {
		if kind != ohaUnfinished {
			r.Failures += n
		}
	}
	for name := range shares() {
		if seconds := s.Percentiles[name]; seconds != nil {
			r.Latency[name] = *seconds
		}
	}
	return r, nil
}
