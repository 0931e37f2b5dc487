package peer

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// k6 has a virtual user per connection. What no user is free for it drops, which
// counts as a failure here.
func k6() Tool {
	return Tool{Name: "k6", Program: "k6", Version: []string{"version"}, Call: callK6}
}

const k6Script = `import http from 'k6/http';
export const options = {
  insecureSkipTLSVerify: true,
  noConnectionReuse: %t,
  summaryTrendStats: ['p(50)', 'p(95)', 'p(99)', 'p(99.9)', 'max'],
  scenarios: { door: { %s, duration: '%ds' } },
};
export default function () { http.get(__ENV.DOOR); }
`

func callK6(w Work) (Call, error) {
	loop := fmt.Sprintf("executor: 'constant-vus', vus: %d", w.Connections)
	if w.Rate != 0 {
		loop = fmt.Sprintf("executor: 'constant-arrival-rate', rate: %d, preAllocatedVUs: %d, maxVUs: %[2]d", w.Rate, w.Connections)
	}
	script, summary := filepath.Join(w.Scratch, "script.js"), filepath.Join(w.Scratch, "summary.json")
	if err := os.WriteFile(script, fmt.Appendf(nil, k6Script, w.NewConnections, loop, w.seconds()), 0o600); err != nil {
		return Call{}, fmt.Errorf("writing the script of k6: %w", err)
	}
	return Call{
		Args: []string{"run", "--quiet", "--no-usage-report", "--summary-export", summary, "-e", "DOOR=" + w.URL, script},
		Read: func(string, []byte) (Report, error) {
			text, err := os.ReadFile(summary)
			if err != nil {
				return Report{}, reading("k6", err)
			}
			return readK6(text)
		},
	}, nil
}

func readK6(summary []byte) (Report, error) {
	var s struct {
		Metrics struct {
			Requests struct{ Count uint64 }  `json:"http_reqs"`
			Dropped  struct{ Count uint64 }  `json:"dropped_iterations"`
			Failed   struct{ Passes uint64 } `json:"http_req_failed"` // those of which "failed" is true
			Duration map[string]float64      `json:"http_req_duration"`
		}
	}
	if err := json.Unmarshal(summary, &s); err != nil {
		return Report{}, reading("k6", err)
	}
	m := s.Metrics
	r := Report{Requests: m.Requests.Count, Failures: m.Failed.Passes + m.Dropped.Count, Latency: Quantiles{}}
	for name := range shares() {
		key := string(name)
		if percent, ok := strings.CutPrefix(key, "p"); ok {
			key = "p(" + percent + ")"
		}
		if ms, ok := m.Duration[key]; ok {
			r.Latency[name] = ms / 1000
		}
	}
	return r, nil
}
