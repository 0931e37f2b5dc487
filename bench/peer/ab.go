package peer

import (
	"fmt"
	"strconv"
)

// ab is a closed loop on one thread, whose latencies are whole milliseconds. It
// resumes no TLS session.
func ab() Tool {
	return Tool{
		Name: "ab", Program: "ab", Version: []string{"-V"},
		Call: func(w Work) (Call, error) {
			if w.Rate != 0 {
				return Call{}, ErrUnfit
			}
			// -t sets a number of requests that is too low, so -n comes after
			// it; ab takes memory for as many.
			args := []string{"-q", "-t", strconv.Itoa(w.seconds()), "-n", strconv.Itoa(w.seconds() * 150_000), "-c", strconv.Itoa(w.Connections)}
			if !w.NewConnections {
				args = append(args, "-k")
			}
			if w.TLS != "" {
				args = append(args, "-f", "TLS"+w.TLS)
			}
			return Call{Args: append(args, w.URL), Read: readAb}, nil
		},
	}
}

func readAb(_ string, stdout []byte) (Report, error) {
	t := text{printed: string(stdout)}
	r := Report{
		Requests: t.count(`^Complete requests: +(\d+)$`),
		Failures: t.count(`^Failed requests: +(\d+)$`) + t.countIfAny(`^Non-2xx responses: +(\d+)$`),
		Latency:  Quantiles{},
	}
	for name, percent := range map[Quantile]int{P50: 50, P95: 95, P99: 99, Max: 100} {
		r.Latency[name] = float64(t.count(fmt.Sprintf(`^ +%d%% +(\d+)`, percent))) / 1000
	}
	if t.err != nil {
		return Report{}, reading("ab", t.err)
	}
	return r, nil
}
