package test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/steadyprobe/steadyprobe/internal/dnsdoor"
	"github.com/steadyprobe/steadyprobe/internal/testbed"
	"github.com/steadyprobe/steadyprobe/internal/testcert"
)

// TestFamilies probes a name with an IPv4 and an IPv6 address, of which both or
// one lead somewhere.
func TestFamilies(t *testing.T) {
	checkLeaks(t)
	door := func(addresses ...string) *testbed.NGINXServer {
		return testbed.NGINX(t, testbed.NGINXOptions{Addresses: addresses, AccessLog: true, Note: "$http_user_agent $server_addr"})
	}
	both, four, six := door("127.0.0.2", "::1"), door("127.0.0.2"), door("::1")
	names := dnsdoor.Listen(t)
	names.Set(moving, "127.0.0.2", "::1")
	rows := []struct {
		name, family string
		door         *testbed.NGINXServer
		want         string // the address that all requests come at; empty: either
		failure      string // that all requests have
	}{
		{"any", "any", both, "", ""},
		{"IPv4 only", "ipv4", both, "127.0.0.2", ""},
		{"IPv6 only", "ipv6", both, "::1", ""},
		{"IPv4 preferred", "prefer_ipv4", both, "127.0.0.2", ""},
		{"IPv6 preferred", "prefer_ipv6", both, "::1", ""},
		{"IPv6 preferred, which leads nowhere", "prefer_ipv6", four, "127.0.0.2", ""},
		{"IPv4 preferred, which leads nowhere", "prefer_ipv4", six, "::1", ""},
		{"any, IPv6 leads nowhere", "any", four, "127.0.0.2", ""},
		{"any, IPv4 leads nowhere", "any", six, "::1", ""},
		{"IPv6 only, which leads nowhere", "ipv6", four, "", "connect/refused"},
		{"IPv4 only, which leads nowhere", "ipv4", six, "", "connect/refused"},
	}
	var targets strings.Builder
	for i, row := range rows {
		fmt.Fprintf(&targets, `
  - name: row-%d
    url: http://%s:%s/
    rate: 40
    connections: 10
    connection: {reuse: false}
    dns: {refresh: 1s, family: %s, server: "%s"}
`, i, moving, portOf(t, row.door.HTTP), row.family, names.Addr())
	}
	results := once(t, time.Second, configured(t, "%s", targets.String())...)
	for i, row := range rows {
		t.Run(row.name, func(t *testing.T) {
			r := &results[i]
			at := map[string]uint64{}
			for _, address := range []string{"127.0.0.2", "::1"} {
				at[address] = row.door.Log().Notes[fmt.Sprintf("steadyprobe/test (+row-%d) %s", i, address)]
			}
			logged := at["127.0.0.2"] + at["::1"]
			switch {
			case row.failure != "":
				if r.FailuresBy[row.failure] != 40 || logged != 0 {
					t.Errorf("failures %v, requests by address %v; want all 40 %s", r.FailuresBy, at, row.failure)
				}
			case r.Failures != 0 || logged != 40:
				t.Errorf("failures %v, requests by address %v; want 40 and no failure: the other family is there", r.FailuresBy, at)
			case row.want != "" && at[row.want] != 40:
				t.Errorf("requests by address %v, want all at %s", at, row.want)
			}
		})
	}
}

// TestConnectTo dials another address than that of the URL's host, by IP address
// and by a name that moves: SNI, Host and verification stay those of the URL.
func TestConnectTo(t *testing.T) {
	checkLeaks(t)
	n := testbed.NGINX(t, testbed.NGINXOptions{
		Addresses: []string{"127.0.0.2"}, AccessLog: true, Note: "$server_addr $ssl_server_name $http_host",
		Certificate: testcert.Options{Names: []string{"shop.example.com"}},
	})
	names := dnsdoor.Listen(t)
	names.Set(moving, "127.0.0.2")
	for _, row := range []struct {
		name, to, at, url string
		failure           string
	}{
		{"an address", "127.0.0.2", "127.0.0.2", "https://shop.example.com/", ""},
		{"a name", moving, "127.0.0.2", "https://shop.example.com/", ""},
		{"an address of a door of another name", "127.0.0.2", "", "https://other.example.com/", "tls/certificate"},
	} {
		t.Run(row.name, func(t *testing.T) {
			before := n.Log()
			r := once(t, time.Second, configured(t, `
  - name: door
    url: %s
    connect_to: %s:%s
    rate: 50
    connections: 5
    connection: {reuse: false}
    dns: {refresh: 1s, server: "%s"}
    tls: {ca_file: %q, resumption: false}
`, row.url, row.to, portOf(t, n.HTTPS), names.Addr(), n.CAFile)...)[0]
			if row.failure != "" {
				if r.FailuresBy[row.failure] != r.Completed || n.Log().Requests != before.Requests {
					t.Errorf("failures %v of %d, want all %s", r.FailuresBy, r.Completed, row.failure)
				}
				return
			}
			note := row.at + " shop.example.com shop.example.com"
			if log := n.Log(); r.Failures != 0 || log.Notes[note]-before.Notes[note] != r.Completed {
				t.Errorf("failures %v of %d; the door logged %v, want all at %q", r.FailuresBy, r.Completed, log.Notes, note)
			}
		})
	}
}

// TestManyAddresses has an answer of 100 addresses, which does not fit into UDP.
func TestManyAddresses(t *testing.T) {
	checkLeaks(t)
	var addresses []string
	for i := range 100 {
		addresses = append(addresses, fmt.Sprintf("127.0.1.%d", i+1))
	}
	n := namedDoor(t, addresses...)
	for _, row := range []struct {
		name      string
		behaviour dnsdoor.Behaviour
		addresses []string
	}{
		{"100 addresses", dnsdoor.Behaviour{}, addresses},
		{"always truncated", dnsdoor.Behaviour{Truncate: true}, addresses[:2]},
		{"in another order each time", dnsdoor.Behaviour{Rotate: true}, addresses[:10]},
	} {
		t.Run(row.name, func(t *testing.T) {
			names := dnsdoor.Listen(t)
			names.Behave(row.behaviour)
			names.Set(moving, row.addresses...)
			before := n.Log().Notes
			d := startDaemon(t, fmt.Sprintf(`targets:
  - name: door
    url: http://%s:%s/
    rate: 400
    connections: 20
    connection: {reuse: false}
    dns: {refresh: 1s, server: "%s", per_address: true}
`, moving, portOf(t, n.HTTP), names.Addr()))
			d.until("traffic", 15*time.Second, func(s scrape) bool { return s.sum("steadyprobe_requests_total") >= 600 })
			if c := names.Counts(); c.TCP == 0 && !row.behaviour.Rotate {
				t.Errorf("questions %+v, want some over TCP", c)
			}
			var log testbed.Log
			first, last := d.around("door", func() { log = n.Log() })
			if f := last.failures("door"); len(f) != 0 {
				t.Errorf("failures %v, want none", f)
			}
			if got := last.sum("steadyprobe_target_addresses"); got != float64(len(row.addresses)) {
				t.Errorf("%v addresses, want %d", got, len(row.addresses))
			}
			earlier := first.labels("steadyprobe_address_requests_total", "door", "address")
			later := last.labels("steadyprobe_address_requests_total", "door", "address")
			if len(later) != len(row.addresses) {
				t.Errorf("%d series, want one for each address", len(later))
			}
			least, most := 1e9, 0.0
			for _, a := range row.addresses {
				within(t, "requests at "+a, earlier[a], float64(log.Notes[a]-before[a]), later[a])
				least, most = min(least, later[a]), max(most, later[a])
			}
			// In turn: those under way make the difference.
			if most-least > 3 {
				t.Errorf("between %v and %v requests at an address, want an even share", least, most)
			}
		})
	}
}

// TestAddressesAboveTheCap has one more address than there may be series.
func TestAddressesAboveTheCap(t *testing.T) {
	checkLeaks(t)
	var addresses []string
	for i := range 101 {
		addresses = append(addresses, fmt.Sprintf("127.0.1.%d", i+1))
	}
	n := namedDoor(t, addresses...)
	names := dnsdoor.Listen(t)
	names.Set(moving, addresses...)
	d := startDaemon(t, fmt.Sprintf(`targets:
  - name: door
    url: http://%s:%s/
    rate: 400
    connections: 20
    connection: {reuse: false}
    dns: {refresh: 1s, server: "%s", per_address: true}
`, moving, portOf(t, n.HTTP), names.Addr()))
	last := d.until("traffic", 15*time.Second, func(s scrape) bool { return s.sum("steadyprobe_requests_total") >= 505 })
	by := last.labels("steadyprobe_address_requests_total", "door", "address")
	if len(by) != 101 || by["other"] == 0 {
		t.Errorf("%d series, %v requests at others; want 100 addresses and some at others", len(by), by["other"])
	}
	sum := 0.0
	for _, n := range by {
		sum += n
	}
	// A sample is recorded just before it is counted.
	if all := last.sum("steadyprobe_requests_total"); sum < all || sum > all+20 {
		t.Errorf("%v requests by address, %v in all", sum, all)
	}
}
