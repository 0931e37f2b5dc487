package app

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/steadyprobe/steadyprobe/internal/faultdoor"
)

// TestDaemonClosedLoop probes one door in a closed loop beside an open one.
func TestDaemonClosedLoop(t *testing.T) {
	door := faultdoor.Listen(t, faultdoor.HTTP(faultdoor.Delay(time.Millisecond, faultdoor.OK())))
	file := configured(t, fmt.Sprintf(`
limits: {allow_closed_loop: true}
targets:
  - {name: closed, url: %[1]q, rate: max, connections: 2}
  - {name: open, url: %[1]q, rate: 50, connections: 2, pacing: economy, arrival: poisson}
`, door.URL("http")+"/"))
	d := start(t, options(file, "127.0.0.1:0"))
	scrape := func() string {
		_, text := get(d.url + "/metrics")
		return text
	}
	eventually(t, "both to be answered", func() bool {
		text := scrape()
		return metric(text, `steadyprobe_requests_total{churn_phase="",target="closed"}`) > 20 &&
			metric(text, `steadyprobe_requests_total{churn_phase="",target="open"}`) > 2
	})
	text := scrape()
	series := func(name string) float64 { return metric(text, fmt.Sprintf("steadyprobe_%s{target=\"closed\"}", name)) }
	done := metric(text, `steadyprobe_requests_total{churn_phase="",target="closed"}`)
	if got := done + series("requests_in_flight"); series("requests_scheduled_total") != got || series("requests_backlog") != 0 {
		t.Errorf("scheduled %v is not completed and in flight %v", series("requests_scheduled_total"), got)
	}
	for _, want := range []string{
		`steadyprobe_target_info{arrival="uniform",loop="closed",pacing="precise",reuse="true",target="closed"`,
		`steadyprobe_target_info{arrival="poisson",loop="open",pacing="economy",reuse="true",target="open"`,
		`steadyprobe_service_time_seconds_count{outcome="success",target="closed"}`,
	} {
		if !strings.Contains(text, want) {
			t.Errorf("there is no series %s", want)
		}
	}
	for _, not := range []string{"steadyprobe_latency_seconds", "steadyprobe_lateness_seconds", "steadyprobe_latency_quantile_seconds"} {
		for line := range strings.Lines(text) {
			if strings.HasPrefix(line, not) && strings.Contains(line, `target="closed"`) {
				t.Errorf("a closed loop has the series %s", line)
			}
		}
	}
	if _, page := get(d.url + "/"); !strings.Contains(page, "max") {
		t.Error("the page does not show the rate of a closed loop")
	}
}

// TestClosedLoopMustBeAllowed refuses one in a configuration that does not.
func TestClosedLoopMustBeAllowed(t *testing.T) {
	file := configured(t, "targets: [{name: a, url: http://127.0.0.1:1/, rate: max}]")
	err := Run(t.Context(), options(file, "127.0.0.1:0"))
	if err == nil || !strings.Contains(err.Error(), "limits.allow_closed_loop") {
		t.Errorf("got %v, want an error that names the limit", err)
	}
}
