package test

import (
	"fmt"
	"testing"
	"time"

	"github.com/steadyprobe/steadyprobe/internal/dnsdoor"
	"github.com/steadyprobe/steadyprobe/internal/testbed"
)

// namedDoor is an nginx at several addresses of loopback, which logs at which
// of them a request came.
func namedDoor(t testing.TB, addresses ...string) *testbed.NGINXServer {
	t.Helper()
	return testbed.NGINX(t, testbed.NGINXOptions{Addresses: addresses, AccessLog: true, Note: "$server_addr"})
}

const moving = "moving.test"

// TestNameThatMoves changes the addresses of a door's name while 500 requests a
// second go through it.
func TestNameThatMoves(t *testing.T) {
	checkLeaks(t)
	n := namedDoor(t, "127.0.0.2", "127.0.0.3")
	names := dnsdoor.Listen(t)
	names.Set(moving, "127.0.0.2", "127.0.0.3")
	d := startDaemon(t, fmt.Sprintf(`targets:
  - name: door
    url: http://%s:%s/
    rate: 500
    connections: 20
    connection: {warm: true}
    dns: {refresh: 1s, server: "%s", per_address: true}
`, moving, portOf(t, n.HTTP), names.Addr()))
	end := d.watch(50*time.Millisecond, "door")
	d.until("traffic", 10*time.Second, func(s scrape) bool { return s.sum("steadyprobe_requests_total") >= 500 })
	before := n.Log().Notes
	if before["127.0.0.1"] != 0 || before["127.0.0.2"] == 0 || before["127.0.0.3"] == 0 {
		t.Errorf("requests by address: %v, want some at 127.0.0.2 and 127.0.0.3 alone", before)
	}

	names.Set(moving, "127.0.0.1", "127.0.0.3")
	changed := time.Now()
	d.until("the new address to be used", 5*time.Second, func(s scrape) bool {
		return s.labels("steadyprobe_address_requests_total", "door", "address")["127.0.0.1"] > 0
	})
	// A refresh is at most 1 s, an answer takes no time, and connections are
	// replaced at once; the rest is for a busy machine.
	if took := time.Since(changed); took > 2500*time.Millisecond {
		t.Errorf("the new address was used %v after the change, want within one refresh of 1 s", took)
	}
	drained := d.until("the old address to be drained", 5*time.Second, func(s scrape) bool {
		return s.sum("steadyprobe_connections_closed_total", "reason", "address_removed") == 10 // half of 20
	})
	stale := n.Log().Notes["127.0.0.2"]
	for series := range drained.labels("steadyprobe_address_requests_total", "door", "address") {
		if series == "127.0.0.2" {
			t.Error("the series of the address that has gone is still there")
		}
	}
	at := drained.sum("steadyprobe_requests_total")
	d.until("some more traffic", 10*time.Second, func(s scrape) bool { return s.sum("steadyprobe_requests_total") >= at+250 })

	var log testbed.Log
	first, last := d.around("door", func() { log = n.Log() })
	within(t, "requests", first.sum("steadyprobe_requests_total"), float64(log.Requests), last.sum("steadyprobe_requests_total"))
	within(t, "requests at the new address",
		first.labels("steadyprobe_address_requests_total", "door", "address")["127.0.0.1"], float64(log.Notes["127.0.0.1"]),
		last.labels("steadyprobe_address_requests_total", "door", "address")["127.0.0.1"])
	within(t, "requests at the address that stayed",
		first.labels("steadyprobe_address_requests_total", "door", "address")["127.0.0.3"], float64(log.Notes["127.0.0.3"]),
		last.labels("steadyprobe_address_requests_total", "door", "address")["127.0.0.3"])
	if now := log.Notes["127.0.0.2"]; now != stale {
		t.Errorf("%d requests went to the address that has gone after it was drained", now-stale)
	}
	if _, scrapes := end(); scrapes < 5 {
		t.Errorf("%d scrapes, want at least 5", scrapes)
	}
	if f := last.failures("door"); len(f) != 0 || log.Codes[200] != log.Requests {
		t.Errorf("failures %v, answers %v; want none but 200", f, log.Codes)
	}
	opened := last.sum("steadyprobe_connections_opened_total")
	if opened != 30 || float64(log.Connections) > opened { // 20, and 10 that were replaced
		t.Errorf("%v connections opened, %d logged; want 30", opened, log.Connections)
	}
	for direction, want := range map[string]float64{"added": 3, "removed": 1} { // two at the start, one later
		if got := last.sum("steadyprobe_target_address_changes_total", "direction", direction); got != want {
			t.Errorf("%v addresses %s, want %v", got, direction, want)
		}
	}
}

// turningOver returns a door with one address, who knows its name, and a daemon
// whose requests go through it on connections that are replaced all the time, so
// that an address is always needed.
func turningOver(t *testing.T) (*testbed.NGINXServer, *dnsdoor.Server, *daemon) {
	t.Helper()
	n := namedDoor(t, "127.0.0.2")
	names := dnsdoor.Listen(t)
	names.Set(moving, "127.0.0.2")
	d := startDaemon(t, fmt.Sprintf(`targets:
  - name: door
    url: http://%s:%s/
    rate: 500
    connections: 20
    connection: {max_age: 500ms}
    dns: {refresh: 1s, server: "%s"}
`, moving, portOf(t, n.HTTP), names.Addr()))
	d.until("traffic", 10*time.Second, func(s scrape) bool { return s.sum("steadyprobe_requests_total") >= 100 })
	return n, names, d
}

// TestNameThatCannotBeLookedUp lets lookups fail in every way while requests go
// through: the last good addresses stay.
func TestNameThatCannotBeLookedUp(t *testing.T) {
	checkLeaks(t)
	n, names, d := turningOver(t)
	for _, row := range []struct {
		name   string
		change func()
		reason string
	}{
		{"a server that fails", func() { names.Behave(dnsdoor.Behaviour{Error: dnsdoor.ServerFailure}) }, "error"},
		{"a server that refuses", func() { names.Behave(dnsdoor.Behaviour{Error: dnsdoor.Refused}) }, "error"},
		{"a name that is gone", func() { names.Behave(dnsdoor.Behaviour{}); names.Remove(moving) }, "not_found"},
		{"a name without addresses", func() { names.Set(moving) }, "not_found"},
	} {
		before, err := d.scrape()
		if err != nil {
			t.Fatal(err)
		}
		row.change()
		after := d.until(row.name+" to be noticed", 10*time.Second, func(s scrape) bool {
			return s.sum("steadyprobe_lookup_failures_total", "reason", row.reason) > before.sum("steadyprobe_lookup_failures_total", "reason", row.reason)
		})
		if got := after.sum("steadyprobe_target_addresses"); got != 1 {
			t.Errorf("%s: %v addresses are left, want the last good one", row.name, got)
		}
	}
	// Connections are replaced all the time, so that the address was needed.
	last := d.until("connections to be replaced", 5*time.Second, func(s scrape) bool {
		return s.sum("steadyprobe_connections_closed_total", "reason", "max_age") >= 40
	})
	if f := last.failures("door"); len(f) != 0 {
		t.Errorf("failures %v, want none: the last good address stands", f)
	}
	if log := n.Log(); log.Codes[200] != log.Requests {
		t.Errorf("answers %v, want none but 200", log.Codes)
	}
}

// TestNameServerThatFallsSilent is what a name server does that is overloaded:
// no request waits for it while an address is known.
func TestNameServerThatFallsSilent(t *testing.T) {
	checkLeaks(t)
	_, names, d := turningOver(t)
	names.Behave(dnsdoor.Behaviour{Silent: true})
	asked := names.Counts()
	testbed.WaitFor(t, "a question without an answer", 5*time.Second, func() bool { return names.Counts().A > asked.A })
	at, err := d.scrape()
	if err != nil {
		t.Fatal(err)
	}
	last := d.until("a second of traffic", 10*time.Second, func(s scrape) bool {
		return s.sum("steadyprobe_requests_total") >= at.sum("steadyprobe_requests_total")+500
	})
	if f := last.failures("door"); len(f) != 0 {
		t.Errorf("failures %v, want none", f)
	}
	if got := last.sum("steadyprobe_connections_closed_total", "reason", "max_age"); got < 20 {
		t.Errorf("%v connections were replaced meanwhile, want at least 20", got)
	}
}

// TestNameThatThereIsNot probes names that cannot be looked up from the start,
// until they can.
func TestNameThatThereIsNot(t *testing.T) {
	checkLeaks(t)
	n := namedDoor(t, "127.0.0.2")
	for _, row := range []struct {
		name    string
		family  string
		before  func(*dnsdoor.Server)
		failure string
	}{
		{"does not exist", "any", func(*dnsdoor.Server) {}, "resolve/not_found"},
		{"has no address", "any", func(s *dnsdoor.Server) { s.Set(moving) }, "resolve/not_found"},
		{"has only the other family", "ipv4", func(s *dnsdoor.Server) { s.Set(moving, "::1") }, "resolve/not_found"},
		{"server fails", "any", func(s *dnsdoor.Server) { s.Behave(dnsdoor.Behaviour{Error: dnsdoor.ServerFailure}) }, "resolve/error"},
		{"server is silent", "any", func(s *dnsdoor.Server) { s.Behave(dnsdoor.Behaviour{Silent: true}) }, "resolve/timeout"},
	} {
		t.Run(row.name, func(t *testing.T) {
			names := dnsdoor.Listen(t)
			row.before(names)
			d := startDaemon(t, fmt.Sprintf(`targets:
  - name: door
    url: http://%s:%s/
    rate: 50
    connections: 10
    timeout: 500ms
    backlog: 500ms
    dns: {refresh: 1s, family: %s, server: "%s"}
`, moving, portOf(t, n.HTTP), row.family, names.Addr()))
			failed := d.until("failures", 10*time.Second, func(s scrape) bool { return s.failures("door")[row.failure] >= 10 })
			stage, reason := row.failure[:len("resolve")], row.failure[len("resolve/"):]
			if got := failed.sum("steadyprobe_lookup_failures_total", "reason", reason); got == 0 || stage != "resolve" {
				t.Errorf("%s failures, and %v lookups that failed so", row.failure, got)
			}
			if got := failed.sum("steadyprobe_requests_total") - failed.sum("steadyprobe_request_failures_total"); got != 0 {
				t.Errorf("%v requests were answered, want none", got)
			}
			if addresses := failed.sum("steadyprobe_target_addresses"); addresses != 0 {
				t.Errorf("%v addresses are known, want none", addresses)
			}

			names.Behave(dnsdoor.Behaviour{})
			names.Set(moving, "127.0.0.2")
			found := d.until("the name to be found", 10*time.Second, func(s scrape) bool {
				return s.sum("steadyprobe_responses_total", "code", "200") >= 10
			})
			count := func(s scrape) float64 { return s.sum("steadyprobe_request_failures_total") }
			later := d.until("more traffic", 10*time.Second, func(s scrape) bool {
				return s.sum("steadyprobe_responses_total") >= found.sum("steadyprobe_responses_total")+20
			})
			if count(later) != count(found) {
				t.Errorf("requests fail after the name was found: %v, then %v", found.failures("door"), later.failures("door"))
			}
		})
	}
}

// TestDeadAddress has one dead address beside one that lives: it is visible as
// that address.
func TestDeadAddress(t *testing.T) {
	checkLeaks(t)
	n := namedDoor(t, "127.0.0.2")
	names := dnsdoor.Listen(t)
	names.Set(moving, "127.0.0.2", "127.0.0.9") // where nobody listens
	d := startDaemon(t, fmt.Sprintf(`targets:
  - name: all
    url: http://%[1]s:%[2]s/
    rate: 100
    connections: 10
    connection: {reuse: false}
    dns: {refresh: 1s, server: "%[3]s", per_address: true}
  - name: first
    url: http://%[1]s:%[2]s/
    rate: 100
    connections: 10
    connection: {reuse: false}
    dns: {refresh: 1s, spread: first, server: "%[3]s", per_address: true}
`, moving, portOf(t, n.HTTP), names.Addr()))
	d.until("traffic", 10*time.Second, func(s scrape) bool { return s.sum("steadyprobe_requests_total", "target", "all") >= 150 })
	var log testbed.Log
	before, after := d.around("all", func() { log = n.Log() })
	dead := after.labels("steadyprobe_address_failures_total", "all", "address")
	requests := after.labels("steadyprobe_address_requests_total", "all", "address")
	if dead["127.0.0.2"] != 0 || dead["127.0.0.9"] == 0 || dead["127.0.0.9"] != requests["127.0.0.9"] {
		t.Errorf("failures %v of requests %v by address, want all of 127.0.0.9 and none of 127.0.0.2", dead, requests)
	}
	if f := after.failures("all"); f["connect/refused"] != uint64(dead["127.0.0.9"]) || len(f) != 1 {
		t.Errorf("failures %v, of them %v at the dead address; want connect/refused alone", f, dead["127.0.0.9"])
	}
	// In turn: as many each, but for those that are under way.
	if uneven := requests["127.0.0.2"] - requests["127.0.0.9"]; uneven < -10 || uneven > 10 {
		t.Errorf("requests by address %v, want as many each", requests)
	}
	if got := after.labels("steadyprobe_address_latency_seconds", "all", "address"); got["127.0.0.9"] != requests["127.0.0.9"] {
		t.Errorf("latencies by address %v, want one for each of %v", got, requests)
	}
	// The other target keeps to one address, whichever comes first.
	kept := after.labels("steadyprobe_address_requests_total", "first", "address")
	if kept["127.0.0.2"] != 0 && kept["127.0.0.9"] != 0 {
		t.Errorf("requests by address %v with spread: first, want one address alone", kept)
	}
	ok := func(s scrape) float64 {
		return s.sum("steadyprobe_requests_total") - s.sum("steadyprobe_request_failures_total")
	}
	within(t, "requests at 127.0.0.2", ok(before), float64(log.Notes["127.0.0.2"]), ok(after)+10)
}

// TestDoorThatCameBackElsewhere has a long refresh: a failed connect is what
// has the name looked up.
func TestDoorThatCameBackElsewhere(t *testing.T) {
	checkLeaks(t)
	n := namedDoor(t, "127.0.0.2")
	names := dnsdoor.Listen(t)
	names.Set(moving, "127.0.0.9") // where nobody listens
	d := startDaemon(t, fmt.Sprintf(`targets:
  - name: door
    url: http://%s:%s/
    rate: 100
    connections: 10
    dns: {refresh: 10m, server: "%s"}
`, moving, portOf(t, n.HTTP), names.Addr()))
	d.until("failures", 10*time.Second, func(s scrape) bool { return s.failures("door")["connect/refused"] >= 10 })
	names.Set(moving, "127.0.0.2")
	changed := time.Now()
	found := d.until("the door to be found", 10*time.Second, func(s scrape) bool {
		return s.sum("steadyprobe_responses_total", "code", "200") >= 10
	})
	if took := time.Since(changed); took > 3*time.Second { // at most one lookup a second
		t.Errorf("the door was found %v after the name had changed, want about 1 s", took)
	}
	if asked := names.Counts(); float64(asked.A) < found.sum("steadyprobe_lookups_total") || asked.A > 10 {
		t.Errorf("%v lookups, %d questions; want as many, and no question for each request", found.sum("steadyprobe_lookups_total"), asked.A)
	}
}

// TestNewAddressIsSharedByMaxAge adds an address without removing one. Busy
// connections would stay where they are for ever.
func TestNewAddressIsSharedByMaxAge(t *testing.T) {
	checkLeaks(t)
	n := namedDoor(t, "127.0.0.2", "127.0.0.3")
	names := dnsdoor.Listen(t)
	names.Set(moving, "127.0.0.2")
	d := startDaemon(t, fmt.Sprintf(`targets:
  - name: door
    url: http://%s:%s/
    rate: 500
    connections: 20
    connection: {warm: true, max_age: 500ms}
    dns: {refresh: 1s, server: "%s", per_address: true}
`, moving, portOf(t, n.HTTP), names.Addr()))
	d.until("traffic", 10*time.Second, func(s scrape) bool { return s.sum("steadyprobe_requests_total") >= 250 })
	names.Set(moving, "127.0.0.2", "127.0.0.3")
	var shared scrape
	last := 0.0
	shared = d.until("the new address to have its share", 10*time.Second, func(s scrape) bool {
		now := s.labels("steadyprobe_address_requests_total", "door", "address")["127.0.0.3"]
		last = now
		return now >= 300
	})
	if f := shared.failures("door"); len(f) != 0 {
		t.Errorf("failures %v, want none", f)
	}
	if got := shared.sum("steadyprobe_connections_closed_total", "reason", "address_removed"); got != 0 {
		t.Errorf("%v connections closed because their address was removed, and none was", got)
	}
	if logged := n.Log().Notes["127.0.0.3"]; float64(logged) < last {
		t.Errorf("the door logged %d requests at the new address, the probe counted %v", logged, last)
	}
}
