package testbed

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/common/model"
)

const notifyingConfiguration = `
route: {receiver: desk, group_by: [alertname], group_wait: 0s, group_interval: 1s, repeat_interval: 1h}
receivers:
- name: desk
  webhook_configs: [{url: %q, send_resolved: true}]
inhibit_rules:
- {source_matchers: ['alertname="Cause"'], target_matchers: ['alertname="Effect"'], equal: [door]}
`

// TestAlertReachesTheWebhook lets a Prometheus fire alerts that are true until
// it no longer sees the door.
func TestAlertReachesTheWebhook(t *testing.T) {
	hook := NewWebhook(t)
	a := Alertmanager(t, fmt.Sprintf(notifyingConfiguration, hook.URL))
	door := NGINX(t, NGINXOptions{})
	p := Prometheus(t, PrometheusOptions{
		Global: "evaluation_interval: 1s",
		// What answers there is no metric: up is 0 with the door and without.
		ScrapeConfigs: ScrapeJob("door", door.HTTP),
		Rules: fmt.Sprintf(`groups:
- name: g
  rules:
  - {alert: Cause, expr: "vector(1)", labels: {door: a}}
  - {alert: Effect, expr: "vector(1)", labels: {door: a}}
  - {alert: Effect, expr: "vector(1)", labels: {door: b}, annotations: {summary: "value {{ $value }}"}}
  - {alert: Brief, expr: "vector(time()) < %d"}
`, time.Now().Add(10*time.Second).Unix()),
		Alertmanager: a.Address,
	})
	told := func(status, name, door string) func() bool {
		return func() bool {
			return slices.ContainsFunc(hook.Notices(), func(n Notice) bool {
				return n.Status == status && n.Name() == name && n.Labels["door"] == door
			})
		}
	}
	WaitFor(t, "the cause", time.Minute, told("firing", "Cause", "a"))
	WaitFor(t, "the effect of another door", time.Minute, told("firing", "Effect", "b"))
	WaitFor(t, "the brief one", time.Minute, told("firing", "Brief", ""))
	WaitFor(t, "the inhibited effect", time.Minute, func() bool {
		return slices.ContainsFunc(a.Alerts(), func(h HeldAlert) bool {
			return h.Name() == "Effect" && h.Labels["door"] == "a" && h.Status.State == "suppressed" && len(h.Status.InhibitedBy) == 1
		})
	})
	WaitFor(t, "the end of the brief one", 2*time.Minute, told("resolved", "Brief", ""))
	if told("firing", "Effect", "a")() {
		t.Errorf("an inhibited alert reached the receiver: %+v", hook.Notices())
	}
	for _, n := range hook.Notices() {
		if n.Name() == "Effect" && (n.Receiver != "desk" || n.Annotations["summary"] != "value 1" || n.Received.IsZero()) {
			t.Errorf("notice %+v, want receiver desk and the annotation", n)
		}
	}
	if got := p.Range("vector(1)", time.Now().Add(-10*time.Second), time.Now(), time.Second); got.Err != nil || len(got.Value.(model.Matrix)) != 1 {
		t.Errorf("range of a vector: %+v", got)
	}
}

func TestInstant(t *testing.T) {
	p := Prometheus(t, PrometheusOptions{Flags: []string{"--enable-feature=promql-experimental-functions"}})
	for _, row := range []struct {
		expr, want string
		remarks    int
		err        string
	}{
		{expr: "1 + 1", want: "scalar: 2 @"},
		{expr: "vector(3)", want: "{} => 3 @"},
		{expr: "none", want: ""},
		{expr: "vector(1)[3s:1s]", want: "{} =>\n1 @"},
		{expr: `"text"`, want: "text"},
		{expr: "rate(up[1m])", want: ""},
		{expr: "histogram_quantile(2, vector(1))", want: "", remarks: 2},
		{expr: "sum(", err: "parse error"},
	} {
		t.Run(row.expr, func(t *testing.T) {
			got := p.Instant(row.expr, time.Now())
			switch {
			case row.err != "":
				if got.Err == nil || !strings.Contains(got.Err.Error(), row.err) {
					t.Errorf("error %v, want %q", got.Err, row.err)
				}
			case got.Err != nil:
				t.Error(got.Err)
			case !strings.HasPrefix(got.Value.String(), row.want):
				t.Errorf("got %q, want %q", got.Value, row.want)
			case len(got.Remarks()) != row.remarks:
				t.Errorf("remarks %v, want %d", got.Remarks(), row.remarks)
			}
		})
	}
}

// silent is an owner whose errors are counted and not reported.
type silent struct {
	*testing.T
	cleanups []func()
	errors   int
}

func (s *silent) Cleanup(f func())      { s.cleanups = append(s.cleanups, f) }
func (s *silent) Errorf(string, ...any) { s.errors++ }

func (s *silent) end() {
	for _, f := range slices.Backward(s.cleanups) {
		f()
	}
}

func TestWebhookRefusesOthers(t *testing.T) {
	s := &silent{T: t}
	hook := NewWebhook(s)
	for _, body := range []string{"{", `{"version": "3"}`} {
		client := questions()
		resp, err := client.Post(hook.URL, "application/json", strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		if err := resp.Body.Close(); err != nil || resp.StatusCode != http.StatusBadRequest {
			t.Errorf("%q: status %d, %v; want 400", body, resp.StatusCode, err)
		}
	}
	if s.end(); s.errors != 2 || len(hook.Notices()) != 0 {
		t.Errorf("%d errors and notices %v, want 2 and none", s.errors, hook.Notices())
	}
}

func TestAmtoolComplains(t *testing.T) {
	dir := t.TempDir()
	s := &server{t: t, dir: dir}
	good := s.write("good.yml", "route: {receiver: a}\nreceivers: [{name: a}]\n")
	bad := s.write("bad.yml", "route: {receiver: b}\nreceivers: [{name: a}]\n")
	if out, err := Amtool(t, "check-config", good); err != nil {
		t.Errorf("good: %v: %s", err, out)
	}
	if out, err := Amtool(t, "check-config", bad); err == nil {
		t.Errorf("bad: no complaint: %s", out)
	}
}
