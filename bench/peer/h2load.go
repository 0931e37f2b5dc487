package peer

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
)

// h2load prints no quantiles. At a rate it is told to write a log of its
// requests, which has them; in a closed loop the log would be the work.
func h2load() Tool {
	return Tool{Name: "h2load", Program: "h2load", Version: []string{"--version"}, Call: callH2load}
}

func callH2load(w Work) (Call, error) {
	args := []string{"--h1", fmt.Sprintf("-t%d", w.threads()), fmt.Sprintf("-c%d", w.Connections)}
	switch {
	case w.NewConnections && w.Rate != 0, w.Rate%w.Connections != 0:
		return Call{}, ErrUnfit
	case w.NewConnections:
		// It does not end after a time when the door closes each connection
		// (seen in 1.52), so it gets a number of requests that it never reaches.
		return Call{Endless: true, Args: append(args, "-n", "100000000", "-H", "Connection: close", w.URL)}, nil
	}
	log := filepath.Join(w.Scratch, "requests.log")
	args = append(args, "-D", strconv.Itoa(w.seconds()))
	if w.Rate != 0 {
		args = append(args, fmt.Sprintf("--rps=%d", w.Rate/w.Connections), "--log-file="+log)
	} else {
		log = ""
	}
	return Call{Args: append(args, w.URL), Read: func(_ string, stdout []byte) (Report, error) {
		r, err := readH2load(stdout)
		if err != nil || log == "" {
			return r, err
		}
		lines, err := os.ReadFile(log)
		if err == nil {
			r.Latency, err = h2loadLog(lines)
		}
		if err != nil {
			return Report{}, reading("h2load", err)
		}
		return r, nil
	}}, nil
}

func readH2load(stdout []byte) (Report, error) {
	t := text{printed: string(stdout)}
	r := Report{
		Requests: t.count(`^requests: .* (\d+) done,`),
		Failures: t.count(`^requests: .* (\d+) failed,`),
		Latency:  Quantiles{},
	}
	t.duration(r.Latency, Max, `^time for request: +\S+ +(\S+)`)
	if t.err != nil {
		return Report{}, reading("h2load", t.err)
	}
	return r, nil
}

// h2loadLog returns the quantiles of a log whose lines are "start status
// duration", the latter in microseconds.
func h2loadLog(log []byte) (Quantiles, error) {
	var latencies []float64
	for line := range bytes.Lines(log) {
		fields := bytes.Fields(line)
		if len(fields) != 3 {
			return nil, fmt.Errorf("reading the log line %q: it has %d fields, want 3", line, len(fields))
		}
		us, err := strconv.ParseUint(string(fields[2]), 10, 64)
		if err != nil {
			return nil, fmt.Errorf("reading the log line %q: %w", line, err)
		}
		latencies = append(latencies, float64(us)/1e6)
	}
	slices.Sort(latencies)
	return exact(latencies), nil
}
