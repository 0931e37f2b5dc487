package testbed

import (
	"slices"
	"strings"
	"testing"
)

func TestParse(t *testing.T) {
	p := Prometheus(t, PrometheusOptions{})
	e, err := p.Parse(`topk(scalar(n), sum by (a, b) (rate(x_total{c=~"d|e"}[5m]))) / on (a) group_left (f) label_replace(y, "g", "$1", "a", "(.*)")`)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, s := range e.Selectors() {
		names = append(names, s.Name)
	}
	if got := strings.Join(names, " "); got != "n x_total y" {
		t.Errorf("selectors of %q, want those of n, x_total and y", got)
	}
	if m := e.Matching; e.Type != "binaryExpr" || m == nil || !m.On || m.Card != "many-to-one" || m.Labels[0] != "a" || m.Include[0] != "f" {
		t.Errorf("%+v, matching %+v", e, m)
	}
	sum := e.LHS.Expr
	if sum.Type != "aggregation" || sum.Op != "sum" || sum.Without || !slices.Equal(sum.Grouping, []string{"a", "b"}) {
		t.Errorf("the sum is %+v", sum)
	}
	if x := sum.Selectors()[0]; x.Matchers[0] != (Matcher{Name: "c", Type: "=~", Value: "d|e"}) {
		t.Errorf("the matchers are %+v", x.Matchers)
	}
	if f := e.RHS; f.Func.Name != "label_replace" || f.Args[1].Val != "g" {
		t.Errorf("the call is %+v", f)
	}
	if _, err := p.Parse("sum("); err == nil || !strings.Contains(err.Error(), "parse error") {
		t.Errorf("error %v, want a parse error", err)
	}
}
