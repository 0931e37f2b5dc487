package peer

import (
	"bufio"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// wrk is a closed loop: it has no rate. Its report has whole connections'
// failures and no p95.
func wrk() Tool {
	return Tool{
		Name: "wrk", Program: "wrk", Version: []string{"-v"},
		Call: func(w Work) (Call, error) {
			if w.Rate != 0 {
				return Call{}, ErrUnfit
			}
			return Call{Args: wrkArgs(w, "--latency"), Read: readWrk}, nil
		},
	}
}

// wrk2 has a rate and needs one. It throws away what it measured in its first
// 10 s, so that a short run says nothing.
func wrk2() Tool {
	return Tool{
		Name: "wrk2", Program: "wrk2", Version: []string{"-v"}, Shortest: 30 * time.Second,
		Call: func(w Work) (Call, error) {
			if w.Rate == 0 {
				return Call{}, ErrUnfit
			}
			return Call{Args: wrkArgs(w, "-L", "-R"+strconv.Itoa(w.Rate)), Read: readWrk2}, nil
		},
	}
}

func wrkArgs(w Work, more ...string) []string {
	args := append([]string{
		fmt.Sprintf("-t%d", w.threads()), fmt.Sprintf("-c%d", w.Connections), fmt.Sprintf("-d%ds", w.seconds()),
	}, more...)
	if w.NewConnections {
		args = append(args, "-H", "Connection: close")
	}
	return append(args, w.URL)
}

// wrkCounts reads what both say of requests.
func wrkCounts(t *text) Report {
	r := Report{Requests: t.count(`^ +(\d+) requests in `), Latency: Quantiles{}}
	for _, kind := range []string{"connect", "read", "write", "timeout"} {
		r.Failures += t.countIfAny(`^ +Socket errors:.* ` + kind + ` (\d+)`)
	}
	r.Failures += t.countIfAny(`^ +Non-2xx or 3xx responses: (\d+)`)
	return r
}

func readWrk(_ string, stdout []byte) (Report, error) {
	t := text{printed: string(stdout)}
	r := wrkCounts(&t)
	t.duration(r.Latency, P50, `^ +50%\s+(\S+)$`)
	t.duration(r.Latency, P99, `^ +99%\s+(\S+)$`)
	t.duration(r.Latency, Max, `^ +Latency +\S+ +\S+ +(\S+)`)
	if t.err != nil {
		return Report{}, reading("wrk", t.err)
	}
	return r, nil
}

func readWrk2(_ string, stdout []byte) (Report, error) {
	t := text{printed: string(stdout)}
	r := wrkCounts(&t)
	spectrum, err := hdrTable(string(stdout))
	if err != nil {
		t.fail(err)
	}
	// Its short list has what is compared but p95, and to fewer places.
	r.Latency[P95] = spectrum[P95]
	for name, percent := range map[Quantile]string{P50: "50", P99: "99", P999: "99.9", Max: "100"} {
		t.duration(r.Latency, name, `^ *`+regexp.QuoteMeta(percent)+`\.?0*%\s+(\S+)$`)
	}
	if t.err != nil {
		return Report{}, reading("wrk2", t.err)
	}
	return r, nil
}

// hdrTable reads the table that HdrHistogram prints, "value percentile count
// 1/(1-percentile)" with values in milliseconds: a quantile's value is that of
// the first row that reaches its share.
func hdrTable(printed string) (Quantiles, error) {
	q := Quantiles{}
	lines := bufio.NewScanner(strings.NewReader(printed))
	for lines.Scan() {
		fields := strings.Fields(lines.Text())
		if len(fields) != 4 {
			continue
		}
		value, err := strconv.ParseFloat(fields[0], 64)
		if err != nil {
			continue
		}
		reached, err := strconv.ParseFloat(fields[1], 64)
		if err != nil {
			continue
		}
		for name, share := range shares() {
			if _, known := q[name]; !known && reached >= share {
				q[name] = value / 1000
			}
		}
		q[Max] = value / 1000 // of the last row: not every table ends with 1
	}
	if err := lines.Err(); err != nil {
		return nil, err
	}
	if len(q) < len(shares()) {
		return nil, fmt.Errorf("reading the table of percentiles: it ends at %v", q)
	}
	return q, nil
}
