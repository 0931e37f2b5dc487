package testbed

import (
	"fmt"
	"strconv"
)

// HAProxyBackend is what HAProxy counted of one of its backends.
type HAProxyBackend struct {
	Sessions  uint64 // passed to it: requests, or with TCP connections
	Responses uint64 // of HTTP that came from it, whatever their status
}

// Backends returns what the present worker counted of its backends, in their
// order. A reload begins anew.
func (h *HAProxyServer) Backends() []HAProxyBackend {
	h.t.Helper()
	c, err := h.console()
	if err != nil {
		h.t.Fatal(err)
	}
	all, err := c.backends()
	if err = closing(c, err); err != nil {
		h.t.Fatalf("asking HAProxy for the counters of its backends: %v", err)
	}
	return all
}

func (c *console) backends() ([]HAProxyBackend, error) {
	rows, err := c.stat("servers 4 -1")
	if err != nil {
		return nil, err
	}
	all := make([]HAProxyBackend, len(rows))
	for i, row := range rows {
		all[i].Sessions, err = strconv.ParseUint(row["stot"], 10, 64)
		if err != nil {
			return nil, fmt.Errorf("reading stot of %q: %w", row["svname"], err)
		}
		for _, class := range []string{"hrsp_1xx", "hrsp_2xx", "hrsp_3xx", "hrsp_4xx", "hrsp_5xx", "hrsp_other"} {
			if row[class] == "" {
				continue // there is no HTTP with TCP
			}
			n, err := strconv.ParseUint(row[class], 10, 64)
			if err != nil {
				return nil, fmt.Errorf("reading %s of %q: %w", class, row["svname"], err)
			}
			all[i].Responses += n
		}
	}
	return all, nil
}
