package test

import (
	"fmt"
	"testing"
	"time"

	"github.com/steadyprobe/steadyprobe/internal/dnsdoor"
	"github.com/steadyprobe/steadyprobe/internal/testbed"
)

// TestRemovedAddressIsDrained removes an address while slow answers come from
// it: they come to their end, and the connections are closed then.
func TestRemovedAddressIsDrained(t *testing.T) {
	checkLeaks(t)
	n := testbed.NGINX(t, testbed.NGINXOptions{
		Addresses: []string{"127.0.0.2", "127.0.0.3"}, AccessLog: true, Note: "$server_addr",
		// 1 KB takes more than a second.
		Locations: fmt.Sprintf("\t\tlocation = /slow { limit_rate 500; return 200 %q; }\n", testbed.Body()),
	})
	names := dnsdoor.Listen(t)
	names.Set(moving, "127.0.0.2")
	d := startDaemon(t, fmt.Sprintf(`targets:
  - name: door
    url: http://%s:%s/slow
    rate: 20
    connections: 60
    dns: {refresh: 1s, server: "%s", per_address: true}
    expect: {body_size: 1024}
`, moving, portOf(t, n.HTTP), names.Addr()))
	d.until("answers", 15*time.Second, func(s scrape) bool { return s.sum("steadyprobe_responses_total") >= 10 })
	names.Set(moving, "127.0.0.3")
	moved := d.until("the new address", 10*time.Second, func(s scrape) bool {
		return s.sum("steadyprobe_target_address_changes_total", "direction", "removed") == 1
	})
	if busy := moved.sum("steadyprobe_requests_in_flight"); busy < 10 {
		t.Errorf("%v requests were under way when the address went, want at least 10", busy)
	}
	due, open := moved.sum("steadyprobe_requests_scheduled_total"), moved.sum("steadyprobe_connections_opened_total")
	last := d.until("what was under way to be answered", 20*time.Second, func(s scrape) bool {
		return s.sum("steadyprobe_requests_total") >= due+20
	})
	if f := last.failures("door"); len(f) != 0 {
		t.Errorf("failures %v, want none", f)
	}
	if closed := last.sum("steadyprobe_connections_closed_total", "reason", "address_removed"); closed < 10 || closed > open {
		t.Errorf("%v connections closed because their address has gone, want those of %v that went there", closed, open)
	}
	if closed, all := last.sum("steadyprobe_connections_closed_total", "reason", "address_removed"), last.sum("steadyprobe_connections_closed_total"); closed != all {
		t.Errorf("%v connections closed, %v of them because their address has gone; want all", all, closed)
	}
	d.stop()
	log := n.Log()
	if log.Codes[200] != log.Requests || log.Notes["127.0.0.2"] == 0 || log.Notes["127.0.0.3"] == 0 {
		t.Errorf("the door logged %v by address, answers %v; want 200 alone, at both", log.Notes, log.Codes)
	}
}

// TestFirstAddressThatGoes keeps to one address of several, until it goes.
func TestFirstAddressThatGoes(t *testing.T) {
	checkLeaks(t)
	n := namedDoor(t, "127.0.0.2", "127.0.0.3")
	names := dnsdoor.Listen(t)
	names.Behave(dnsdoor.Behaviour{Rotate: true})
	names.Set(moving, "127.0.0.2", "127.0.0.3")
	d := startDaemon(t, fmt.Sprintf(`targets:
  - name: door
    url: http://%s:%s/
    rate: 200
    connections: 10
    connection: {max_age: 300ms}
    dns: {refresh: 1s, spread: first, server: "%s"}
`, moving, portOf(t, n.HTTP), names.Addr()))
	// Several lookups, in which another address is the first one.
	testbed.WaitFor(t, "several lookups", 15*time.Second, func() bool { return names.Counts().A >= 3 })
	before := n.Log().Notes
	if len(before) != 1 {
		t.Fatalf("requests by address %v, want one address alone", before)
	}
	kept, other := "127.0.0.2", "127.0.0.3"
	if before[other] > 0 {
		kept, other = other, kept
	}
	names.Set(moving, other)
	testbed.WaitFor(t, "the other address", 10*time.Second, func() bool { return n.Log().Notes[other] >= 100 })
	at := n.Log().Notes
	testbed.WaitFor(t, "more requests", 10*time.Second, func() bool { return n.Log().Notes[other] >= at[other]+100 })
	if got := n.Log().Notes[kept]; got != at[kept] {
		t.Errorf("%d requests went to the address that has gone", got-at[kept])
	}
	s, err := d.scrape()
	if err != nil {
		t.Fatal(err)
	}
	if f := s.failures("door"); len(f) != 0 {
		t.Errorf("failures %v, want none", f)
	}
}
