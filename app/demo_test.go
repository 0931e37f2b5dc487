package app

import (
	"context"
	"encoding/json"
	"math"
	"net"
	"net/http"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/steadyprobe/steadyprobe/churn"
	"github.com/steadyprobe/steadyprobe/config"
	"github.com/steadyprobe/steadyprobe/exporter"
	"github.com/steadyprobe/steadyprobe/web"
)

// TestDemo runs the demo until its backends have been scaled down, and looks
// where it says that one should.
func TestDemo(t *testing.T) {
	var said strings.Builder
	lines := make(chan string, 1)
	o := DemoOptions{Options: options("", "127.0.0.1:0"), Out: &said, Live: func(line string) {
		select {
		case lines <- line:
		default:
		}
	}}
	listening := make(chan string, 1)
	o.Listening = func(main []net.Addr, _ net.Addr) { listening <- "http://" + main[0].String() }
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	ended := make(chan error, 1)
	go func() { ended <- Demo(ctx, o) }()
	var url string
	select {
	case url = <-listening:
	case err := <-ended:
		t.Fatalf("the demo did not start: %v", err)
	}
	eventually(t, "a step down", func() bool {
		_, page := get(url + "/metrics")
		return metric(page, `steadyprobe_churn_steps_total{churn="demo-backend",direction="down"}`) >= 1 &&
			metric(page, `steadyprobe_churn_phase{churn="demo-backend",phase="settled"}`) == 1
	})
	for _, path := range []string{"/", "/config", "/api/v1/status", "/api/v1/targets", "/api/v1/churns"} {
		if status, body := get(url + path); status != http.StatusOK || path != "/api/v1/status" && !strings.Contains(body, "demo-backend") {
			t.Errorf("%s answered %d without the churn", path, status)
		}
	}
	targets := map[string]web.Target{}
	for _, one := range apiTargets(t, url) {
		targets[one.Name] = one
		if one.Scheduled != one.Completed+one.InFlight+one.Backlog {
			t.Errorf("%s: scheduled %d, completed %d, in flight %d, backlog %d", one.Name, one.Scheduled, one.Completed, one.InFlight, one.Backlog)
		}
	}
	for _, name := range []string{"steady-http", "steady-https"} {
		if one := targets[name]; one.Failed != 0 || one.Condition.State != up {
			t.Errorf("%s is %s with %d failures %v", name, one.Condition.State, one.Failed, one.Failures)
		}
	}
	reloading := targets["reloading-http"]
	for _, p := range reloading.Phases {
		if (p.Phase == "scaling_down") != (p.Failed > 0) {
			t.Errorf("reloading-http has %d failures while %s", p.Failed, p.Phase)
		}
	}
	eventually(t, "reloading-http to be degraded", func() bool {
		for _, one := range apiTargets(t, url) {
			if one.Name == "reloading-http" {
				return one.Condition.State == degraded
			}
		}
		return false
	})
	if line := <-lines; !strings.Contains(line, "steady-http p99 ") {
		t.Errorf("the live line is %q", line)
	}
	cancel()
	if err := <-ended; err != nil {
		t.Errorf("the demo ended with %v", err)
	}
	for _, want := range []string{
		regexp.QuoteMeta("page           " + url + "/\n"),
		regexp.QuoteMeta("curl -s " + url + "/metrics"),
		`targets: \["` + strings.TrimPrefix(url, "http://") + `"\]`,
		`(?s)\n  reloading-http:\n.* % of its requests\s+failed\s+while\s+scaling\s+down,`,
		`(?m)^  steady-http +settled +\d+ +0 `,
		`(?m)^ +scaling_down +\d+ +[1-9]\d* .* mostly [a-z]+/[a-z]+$`,
	} {
		if !regexp.MustCompile(want).MatchString(said.String()) {
			t.Errorf("the demo did not say %s:\n%s", want, &said)
		}
	}
}

func TestSchemeOf(t *testing.T) {
	for _, row := range []struct{ name, text, want string }{
		{"no file", "", "http"},
		{"TLS", "tls_server_config: {cert_file: a.crt, key_file: a.key, min_version: TLS13}\n", "https"},
		{"passwords only", "basic_auth_users: {one: secret}\n", "http"},
		{"not YAML", "]\n", "http"},
	} {
		file := ""
		if row.text != "" {
			file = configured(t, row.text)
		}
		if got := schemeOf(file); got != row.want {
			t.Errorf("%s: %s, want %s", row.name, got, row.want)
		}
		var said strings.Builder
		tellWhere(&said, row.want, "127.0.0.1:1", &config.Config{})
		if !strings.Contains(said.String(), " "+row.want+"://127.0.0.1:1/\n") || strings.Contains(said.String(), "scheme: https\n") != (row.want == "https") {
			t.Errorf("%s: the demo said\n%s", row.name, &said)
		}
	}
}

func TestLiveLine(t *testing.T) {
	target := func(name string, p99 float64, failed uint64) web.Target {
		return web.Target{Name: name, Failed: failed, Latency: []web.Window{{Window: "1m", Quantiles: web.Quantiles{{Q: 0.99, Seconds: web.Number(p99)}}}}}
	}
	churns := []web.Churn{{Ready: 2, Phase: "scaling_up"}}
	targets := []web.Target{target("a", 0.005, 0), target("b", 0.0125, 0), target("bad", math.NaN(), 45)}
	const want = "10s backends 2 scaling_up | bad p99 - fail 45 | a p99 5.00ms fail 0 | b p99 12.50ms fail 0"
	if got := liveLine(10*time.Second, churns, targets); got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func apiTargets(t *testing.T, url string) []web.Target {
	t.Helper()
	status, body := get(url + "/api/v1/targets")
	var answer struct{ Data []web.Target }
	if err := json.Unmarshal([]byte(body), &answer); err != nil || status != http.StatusOK {
		t.Fatalf("the API answered %d: %v", status, err)
	}
	return answer.Data
}

func TestEmbeddedBackendsAreOfTheDemoOnly(t *testing.T) {
	text := "targets:\n" + targetOf("one", "http://127.0.0.1:1/", "rate: 1, churn: a") +
		"churns: [{name: a, embedded: {}, steps: [{replicas: 1, hold: 1s}]}]\n"
	err := Run(t.Context(), options(configured(t, text), "127.0.0.1:0"))
	const want = `building churn "a": embedded backends exist only in steadyprobe demo; remove the churn, and churn: a from its targets`
	if err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
}

// The exporter and churn name the same reasons in the same order.
func TestChurnReasonsAgree(t *testing.T) {
	if churn.NumReasons != exporter.NumChurnErrors+1 {
		t.Fatalf("churn has %d reasons, the exporter %d", churn.NumReasons-1, exporter.NumChurnErrors)
	}
	for i := range exporter.NumChurnErrors {
		if a, b := churn.Reason(i+1).String(), exporter.ChurnError(i).String(); a != b {
			t.Errorf("reason %d is %s to churn and %s to the exporter", i, a, b)
		}
	}
}

func TestWriteWrapped(t *testing.T) {
	var out strings.Builder
	writeWrapped(&out, "  ", strings.Repeat("word ", 16)+"müßig, "+strings.Repeat("x", 90)+" end")
	// Two and 16 times four with 15 spaces are 81 columns, so the 16th word
	// goes to the next line.
	want := "  " + strings.Repeat("word ", 14) + "word\n  word müßig,\n  " + strings.Repeat("x", 90) + "\n  end\n"
	if got := out.String(); got != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
}
