package test

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/steadyprobe/steadyprobe/exporter"
	"github.com/steadyprobe/steadyprobe/internal/testbed"
)

// labels is the set of labels that the series of an expression may have. nil is
// that of an expression without labels, or of one that is wrong.
type labels map[string]bool

func (l labels) has(name string) bool { return l[name] }

func (l labels) names() []string { return slices.Sorted(maps.Keys(l)) }

// with returns the set with further labels.
func (l labels) with(names ...string) labels {
	more := labels{}
	maps.Copy(more, l)
	for _, n := range names {
		more[n] = true
	}
	return more
}

// without returns the set without some labels.
func (l labels) without(names ...string) labels {
	less := l.with()
	for _, n := range names {
		delete(less, n)
	}
	return less
}

// closed are the labels whose values are a closed list that is exposed from the
// start, or that every daemon has.
var closed = []string{"failure_stage", "reason", "outcome", "phase", "churn_phase", "direction", "resource", "state", "window", "q", "loop"}

// labelReader derives the labels of expressions, and collects what they name that
// there is not.
type labelReader struct {
	*contract
	wrong []string
}

func (r *labelReader) complain(format string, args ...any) {
	r.wrong = append(r.wrong, fmt.Sprintf(format, args...))
}

// labels returns the labels of an expression's result.
func (r *labelReader) labels(e *testbed.Expression) labels {
	switch e.Type {
	case "vectorSelector", "matrixSelector":
		return r.selector(e)
	case "aggregation":
		return r.aggregation(e)
	case "binaryExpr":
		return r.binary(e)
	case "call":
		return r.call(e)
	}
	var all labels
	for _, o := range e.Operands() {
		all = r.labels(o)
	}
	return all
}

// selector looks up a metric, and checks the labels and values that it is
// selected by.
func (r *labelReader) selector(e *testbed.Expression) labels {
	if e.Name == "" {
		r.complain("a selector without a name")
		return nil
	}
	var of labels
	m, suffix, exposed := r.family(e.Name)
	base, bucket := strings.CutSuffix(e.Name, "_bucket")
	switch others, ok := r.foreign[strings.TrimSuffix(base, "_count")]; {
	case exposed:
		of = labels{}.with(m.Labels...).with("job", "instance")
		switch m.Scope {
		case exporter.PerTarget:
			of = of.with("target").with(userLabels...)
		case exporter.PerChurn:
			of = of.with("churn")
		}
		if suffix == "_bucket" {
			of = of.with("le")
		}
	case r.recorded[e.Name] != nil:
		of = r.recorded[e.Name]
	case ok:
		of = labels{}.with(others...).with("job", "instance")
		if bucket {
			of = of.with("le")
		}
	default:
		r.complain("%s is no metric that is exposed or recorded", e.Name)
		return nil
	}
	for _, by := range e.Matchers {
		if by.Name == "__name__" {
			continue
		}
		if !of.has(by.Name) {
			r.complain("%s has no label %s but %v", e.Name, by.Name, of.names())
		} else if exposed {
			r.value(m.Name, by)
		}
	}
	return of
}

var plainWords = regexp.MustCompile(`^\w+(\|\w+)*$`)

// value checks what the label of a closed list is compared with.
func (r *labelReader) value(family string, by testbed.Matcher) {
	known := r.values[family][by.Name]
	if !slices.Contains(closed, by.Name) || len(known) == 0 || strings.Contains(by.Value, "$") || by.Value == "" {
		return
	}
	wanted := []string{by.Value}
	if strings.HasSuffix(by.Type, "~") {
		if !plainWords.MatchString(by.Value) {
			return
		}
		wanted = strings.Split(by.Value, "|")
	}
	for _, w := range wanted {
		if !known[w] {
			r.complain("the label %s of %s is never %q but one of %v", by.Name, family, w, slices.Sorted(maps.Keys(known)))
		}
	}
}

func (r *labelReader) aggregation(e *testbed.Expression) labels {
	if e.Param != nil {
		r.labels(e.Param)
	}
	of := r.labels(e.Expr)
	if e.Without {
		r.among(of, e.Grouping, "aggregating without")
		of = of.without(e.Grouping...)
	} else {
		r.among(of, e.Grouping, "aggregating by")
	}
	switch e.Op {
	case "topk", "bottomk", "limitk", "limit_ratio":
		return of // the series stay what they are
	case "count_values":
		return labels{}.with(e.Grouping...).with(e.Param.Val)
	}
	if e.Without {
		return of
	}
	return labels{}.with(e.Grouping...)
}

// among checks that a set has all labels that are named.
func (r *labelReader) among(of labels, names []string, doing string) {
	for _, n := range names {
		if !of.has(n) && n != "__name__" {
			r.complain("%s the label %s, where there are only %v", doing, n, of.names())
		}
	}
}

func (r *labelReader) binary(e *testbed.Expression) labels {
	left, right := r.labels(e.LHS), r.labels(e.RHS)
	m := e.Matching
	if m == nil { // one side is a number
		return left.with(right.names()...)
	}
	if m.On {
		r.among(left, m.Labels, "matching the left side on")
		r.among(right, m.Labels, "matching the right side on")
	}
	switch {
	case e.Op == "and" || e.Op == "unless":
		return left
	case e.Op == "or":
		return left.with(right.names()...)
	case m.Card == "many-to-one":
		r.among(right, m.Include, "taking from the right side")
		return left.with(m.Include...)
	case m.Card == "one-to-many":
		r.among(left, m.Include, "taking from the left side")
		return right.with(m.Include...)
	case m.On:
		return labels{}.with(m.Labels...)
	}
	return left.without(m.Labels...)
}

func (r *labelReader) call(e *testbed.Expression) labels {
	var all labels
	for _, a := range e.Args {
		all = all.with(r.labels(a).names()...)
	}
	switch e.Func.Name {
	case "label_replace", "label_join":
		return all.with(e.Args[1].Val)
	case "histogram_quantile", "histogram_fraction":
		return all.without("le")
	case "vector", "scalar", "time":
		return labels{}
	case "absent", "absent_over_time":
		of := labels{}
		for _, s := range e.Selectors() {
			for _, by := range s.Matchers {
				if by.Type == "=" && by.Name != "__name__" {
					of[by.Name] = true
				}
			}
		}
		return of
	}
	return all
}
