package monitoring

import (
	"strings"
	"testing"
	"time"

	"gopkg.in/yaml.v3"
)

func TestScaleExpr(t *testing.T) {
	sixty := Scale{Factor: 60}
	for _, row := range []struct {
		name, expr string
		scale      Scale
		want       string
	}{
		{"a range", `rate(a_total[5m])`, sixty, `rate(a_total[5000ms])`},                                        // 300 s / 60
		{"a long range", `rate(a_total[3d])`, sixty, `rate(a_total[4320000ms])`},                                // 259,200 s / 60
		{"two units", `rate(a_total[1h30m])`, sixty, `rate(a_total[90000ms])`},                                  // 5,400 s / 60
		{"a subquery", `max_over_time(a[1h:1m])`, sixty, `max_over_time(a[60000ms:1000ms])`},                    //
		{"a subquery with the usual step", `max_over_time(a[1h:])`, sixty, `max_over_time(a[60000ms:])`},        //
		{"the least", `rate(a[1m])`, Scale{Factor: 60, Least: 4 * time.Second}, `rate(a[4000ms])`},              // 1 s would be less
		{"shorter than the least", `rate(a[2s])`, Scale{Factor: 60, Least: 4 * time.Second}, `rate(a[2000ms])`}, // as it was
		{"an offset stays", `a offset 1d`, sixty, `a offset 1d`},
		{"an offset with its own", `a[5m] offset 1d`, Scale{Factor: 60, Offset: 1440}, `a[5000ms] offset 60000ms`}, // a day is a minute
		{"an offset has no least", `a offset 1m`, Scale{Factor: 60, Offset: 60, Least: 4 * time.Second}, `a offset 1000ms`},
		{"an offset back", `a offset -1h`, Scale{Factor: 60, Offset: 60}, `a offset -60000ms`},
		{"a label that says 5m", `a{window="5m", b='1h', c=~` + "`1d`" + `}[5m]`, sixty, `a{window="5m", b='1h', c=~` + "`1d`" + `}[5000ms]`},
		{"a quoted quote", `a{b="\"5m"}[5m]`, sixty, `a{b="\"5m"}[5000ms]`},
		{"a name with a duration", `job:errors:rate5m / a5m_1h > 3600`, sixty, `job:errors:rate5m / a5m_1h > 3600`},
		{"numbers", `a > 14.4 * 0.001 + 1e3 + 0x1d`, sixty, `a > 14.4 * 0.001 + 1e3 + 0x1d`},
		{"a comment", "a # of 5m\n[5m]", sixty, "a # of 5m\n[5000ms]"},
		{"several lines", "a[1h]\n  and\nb[2h]", sixty, "a[60000ms]\n  and\nb[120000ms]"},
	} {
		t.Run(row.name, func(t *testing.T) {
			if got, err := ScaleExpr(row.expr, row.scale); err != nil || got != row.want {
				t.Errorf("%v, got  %s\nwant %s", err, got, row.want)
			}
		})
	}
}

func TestScaleRules(t *testing.T) {
	const text = `
groups:
  - name: g
    interval: 30s
    rules:
      - record: a:rate5m
        expr: rate(a[5m])
        labels: {for: 5m, expr: "b[5m]"}
      - alert: A
        expr: |
          a:rate5m{window="1h"} > 5
            unless a[10m] offset 1w
        for: 15m
        keep_firing_for: 1h
        annotations: {for: 15m, summary: in the last 5m}
`
	const want = `
groups:
  - name: g
    rules:
      - record: a:rate5m
        expr: rate(a[5000ms])
        labels: {for: 5m, expr: "b[5m]"}
      - alert: A
        expr: |
          a:rate5m{window="1h"} > 5
            unless a[10000ms] offset 1w
        for: 15000ms
        keep_firing_for: 60000ms
        annotations: {for: 15m, summary: in the last 5m}
`
	got, err := ScaleRules(text, Scale{Factor: 60})
	if err != nil {
		t.Fatal(err)
	}
	var g, w any
	if err := yaml.Unmarshal([]byte(got), &g); err != nil {
		t.Fatal(err)
	}
	if err := yaml.Unmarshal([]byte(want), &w); err != nil {
		t.Fatal(err)
	}
	again, _ := yaml.Marshal(g)
	wanted, _ := yaml.Marshal(w)
	if string(again) != string(wanted) {
		t.Errorf("got\n%s\nwant\n%s", again, wanted)
	}
	for name, bad := range map[string]string{"no YAML": "a: [", "no duration": "groups: [{rules: [{alert: A, for: soon}]}]"} {
		if out, err := ScaleRules(bad, Scale{Factor: 60}); err == nil || !strings.Contains(err.Error(), "scal") {
			t.Errorf("%s: %q, error %v", name, out, err)
		}
	}
}
