package peer

import (
	"encoding/json"
	"strconv"
)

// bombardier reports no p99.9.
func bombardier() Tool {
	return Tool{
		Name: "bombardier", Program: "bombardier", Version: []string{"--version"},
		Call: func(w Work) (Call, error) {
			args := []string{"-c", strconv.Itoa(w.Connections), "-d", w.Duration.String(), "-t", "5s", "-k", "-l", "-o", "json", "-p", "r"}
			if w.Rate != 0 {
				args = append(args, "-r", strconv.Itoa(w.Rate))
			}
			if w.NewConnections {
				args = append(args, "-H", "Connection: close")
			}
			return Call{Args: append(args, w.URL), Read: readBombardier}, nil
		},
	}
}

func readBombardier(_ string, stdout []byte) (Report, error) {
	var s struct {
		Result struct {
			Req1xx, Req2xx, Req3xx, Req4xx, Req5xx, Others uint64
			Latency                                        struct { // microseconds
				Max         float64
				Percentiles map[string]float64
			}
		}
	}
	if err := json.Unmarshal(stdout, &s); err != nil {
		return Report{}, reading("bombardier", err)
	}
	n := s.Result
	r := Report{
		Requests: n.Req1xx + n.Req2xx + n.Req3xx + n.Req4xx + n.Req5xx,
		Failures: n.Req4xx + n.Req5xx + n.Others,
		Latency:  Quantiles{Max: n.Latency.Max / 1e6},
	}
	for name, percent := range map[Quantile]string{P50: "50", P95: "95", P99: "99"} {
		if us, ok := n.Latency.Percentiles[percent]; ok {
			r.Latency[name] = us / 1e6
		}
	}
	return r, nil
}
