package testbed

import (
	"fmt"
	"net/url"
)

// Expression is a node of a parsed expression, as the API parse_query of
// Prometheus has it. Which fields a node has depends on its type.
type Expression struct {
	Type string // aggregation, binaryExpr, call, matrixSelector, vectorSelector, subquery, parenExpr, …

	// Of a selector.
	Name     string
	Matchers []Matcher

	// Of what has operands.
	Expr, LHS, RHS, Param *Expression
	Args                  []*Expression

	// Of an aggregation.
	Op       string
	Grouping []string
	Without  bool

	// Of a binary expression; nil between numbers.
	Matching *Matching

	// Of a call.
	Func struct{ Name string }

	// Of a stringLiteral.
	Val string
}

// Matcher is a label matcher.
type Matcher struct {
	Name, Value string
	Type        string // =, !=, =~ or !~
}

// Matching says how a binary operator matches its sides.
type Matching struct {
	Card    string // one-to-one, many-to-one, one-to-many or many-to-many
	Labels  []string
	On      bool
	Include []string
}

// Parse returns the parsed form of an expression, or why there is none.
func (p *PrometheusServer) Parse(expr string) (*Expression, error) {
	p.t.Helper()
	e := new(Expression)
	if answer := p.API("parse_query?"+url.Values{"query": {expr}}.Encode(), e); answer.Error != "" {
		return nil, fmt.Errorf("parsing %q: %s", expr, answer.Error)
	}
	return e, nil
}

// Operands returns the expressions that an expression stands on.
func (e *Expression) Operands() []*Expression {
	var all []*Expression
	for _, o := range append([]*Expression{e.Param, e.Expr, e.LHS, e.RHS}, e.Args...) {
		if o != nil {
			all = append(all, o)
		}
	}
	return all
}

// Selectors returns all selectors of an expression.
func (e *Expression) Selectors() []*Expression {
	var all []*Expression
	if e.Type == "vectorSelector" || e.Type == "matrixSelector" {
		all = append(all, e)
	}
	for _, o := range e.Operands() {
		all = append(all, o.Selectors()...)
	}
	return all
}
