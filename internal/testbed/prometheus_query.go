package testbed

import (
	"encoding/json"
	"fmt"
	"net/url"
	"strconv"
	"time"

	"github.com/prometheus/common/model"
)

// Answer is what Prometheus says to an expression.
type Answer struct {
	Value    model.Value // a vector, matrix, scalar or string; nil where Err says why
	Warnings []string
	Infos    []string
	Err      error // that the expression cannot be parsed, or evaluated
}

// Remarks returns the warnings and the infos.
func (a Answer) Remarks() []string {
	return append(a.Warnings[:len(a.Warnings):len(a.Warnings)], a.Infos...)
}

// Instant evaluates an expression at an instant.
func (p *PrometheusServer) Instant(expr string, at time.Time) Answer {
	p.t.Helper()
	return p.evaluate("query", expr, url.Values{"time": {instant(at)}})
}

// Range evaluates an expression from one instant to another, as a graph does.
// A vector and a scalar become a matrix by that.
func (p *PrometheusServer) Range(expr string, from, to time.Time, step time.Duration) Answer {
	p.t.Helper()
	return p.evaluate("query_range", expr, url.Values{
		"start": {instant(from)}, "end": {instant(to)},
		"step": {strconv.FormatFloat(step.Seconds(), 'f', 3, 64)},
	})
}

// instant returns an instant as Prometheus reads it.
func instant(at time.Time) string {
	return strconv.FormatFloat(float64(at.UnixMilli())/1000, 'f', 3, 64)
}

func (p *PrometheusServer) evaluate(how, expr string, with url.Values) (a Answer) {
	p.t.Helper()
	with.Set("query", expr)
	var data struct {
		Type   model.ValueType `json:"resultType"`
		Result json.RawMessage `json:"result"`
	}
	e := p.API(how+"?"+with.Encode(), &data)
	a.Warnings, a.Infos = e.Warnings, e.Infos
	if e.Error != "" {
		a.Err = fmt.Errorf("evaluating %q: %s: %s", expr, e.ErrorType, e.Error)
		return a
	}
	var err error
	switch data.Type {
	case model.ValVector:
		var v model.Vector
		err = json.Unmarshal(data.Result, &v)
		a.Value = v
	case model.ValMatrix:
		var v model.Matrix
		err = json.Unmarshal(data.Result, &v)
		a.Value = v
	case model.ValScalar:
		v := new(model.Scalar)
		err = json.Unmarshal(data.Result, v)
		a.Value = v
	default:
		v := new(model.String)
		err = json.Unmarshal(data.Result, v)
		a.Value = v
	}
	if err != nil {
		p.t.Fatalf("reading the answer to %q: %v: %s", expr, err, data.Result)
	}
	return a
}

// Envelope is what every answer of the API is wrapped in, without its data.
type Envelope struct {
	Error     string   `json:"error"` // empty where there is an answer
	ErrorType string   `json:"errorType"`
	Warnings  []string `json:"warnings"`
	Infos     []string `json:"infos"`
}

// API asks for a path below /api/v1/ and decodes the data of the answer. An
// answer that is no answer of the API fails the test.
func (p *PrometheusServer) API(path string, data any) Envelope {
	p.t.Helper()
	_, text, err := fetch(p.client, "http://"+p.Address+"/api/v1/"+path)
	if err != nil {
		p.t.Fatalf("asking Prometheus for %q: %v", path, err)
	}
	var e struct {
		Data any `json:"data"`
		Envelope
	}
	e.Data = data
	if err := json.Unmarshal([]byte(text), &e); err != nil {
		p.t.Fatalf("reading the answer to %q: %v: %s", path, err, text)
	}
	return e.Envelope
}

// Query evaluates an expression now and returns its instant vector, with what
// Prometheus warned of or remarked on. An expression that has none fails the
// test.
func (p *PrometheusServer) Query(expr string) (model.Vector, []string) {
	p.t.Helper()
	a := p.Instant(expr, time.Now())
	if a.Err != nil {
		p.t.Fatal(a.Err)
	}
	v, ok := a.Value.(model.Vector)
	if !ok {
		p.t.Fatalf("evaluating %q: the result is a %s, not a vector", expr, a.Value.Type())
	}
	return v, a.Remarks()
}

// WaitForQuery evaluates an expression until it returns something, and returns
// that.
func (p *PrometheusServer) WaitForQuery(expr string, limit time.Duration) model.Vector {
	p.t.Helper()
	var result model.Vector
	WaitFor(p.t, fmt.Sprintf("a result of %q", expr), limit, func() bool {
		result, _ = p.Query(expr)
		return len(result) > 0
	})
	return result
}
