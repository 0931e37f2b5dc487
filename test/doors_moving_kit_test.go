package test

import (
	"fmt"
	"net"
	"testing"
	"time"

	"github.com/steadyprobe/steadyprobe/config"
	"github.com/steadyprobe/steadyprobe/internal/testbed"
)

// configured returns the targets of a configuration that says nothing else.
func configured(t testing.TB, format string, arguments ...any) []config.Target {
	t.Helper()
	c, _, err := config.Parse([]byte("targets:\n"+fmt.Sprintf(format, arguments...)), "test.yml")
	if err != nil {
		t.Fatal(err)
	}
	return c.Targets
}

// portOf returns the port of an address.
func portOf(t testing.TB, address string) string {
	t.Helper()
	_, port, err := net.SplitHostPort(address)
	if err != nil {
		t.Fatal(err)
	}
	return port
}

// until scrapes the daemon until what it says is as wanted, and returns that
// scrape. The test fails when it is not within the limit.
func (d *daemon) until(what string, limit time.Duration, wanted func(scrape) bool) scrape {
	d.t.Helper()
	var last scrape
	testbed.WaitFor(d.t, what, limit, func() bool {
		now, err := d.scrape()
		if err != nil {
			d.t.Fatal(err)
		}
		last = now
		return wanted(now)
	})
	return last
}

// around returns what a target's counter was before and after door was asked
// for its own: the door's is between the two, as long as they count the same.
// What was in flight is counted by the door and not yet by the probe, so the
// second scrape waits until that is complete.
func (d *daemon) around(target string, door func()) (before, after scrape) {
	d.t.Helper()
	before, err := d.scrape()
	if err != nil {
		d.t.Fatal(err)
	}
	door()
	asked, err := d.scrape()
	if err != nil {
		d.t.Fatal(err)
	}
	due := asked.sum("steadyprobe_requests_scheduled_total", "target", target)
	return before, d.until("requests in flight to be answered", 10*time.Second, func(s scrape) bool {
		return s.sum("steadyprobe_requests_total", "target", target) >= due
	})
}

// within fails the test where what the door counted is not between what the
// probe had counted before and after.
func within(t testing.TB, what string, before, door, after float64) {
	t.Helper()
	if door < before || door > after {
		t.Errorf("%s: the door counted %v, the probe %v before and %v after", what, door, before, after)
	}
}

// labels returns the values that a label of a target's family has.
func (s scrape) labels(family, target, name string) map[string]float64 {
	values := map[string]float64{}
	for _, m := range s[family].GetMetric() {
		if label(m, "target") == target {
			values[label(m, name)] += m.GetCounter().GetValue() + m.GetGauge().GetValue() + float64(m.GetHistogram().GetSampleCount())
		}
	}
	return values
}
