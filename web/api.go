package web

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
)

const pathAPI = "api/v1/"

// maxAnswers is how many questions to the API are answered at once.
const maxAnswers = 8

// maxNamed is how many targets or churns an error names at most.
const maxNamed = 10

// api answers below /api/v1/, in the envelope of Prometheus's HTTP API
// (prometheus.io/docs/prometheus/latest/querying/api/#format-overview).
type api struct{ options *Options }

// route is one question that the API answers.
type route struct {
	path   string // a pattern of [http.ServeMux], relative
	answer func(*http.Request) (any, error)
	acts   bool // it changes something, and answers POST only
}

func (a *api) routes() []route {
	routes := []route{
		{path: pathAPI + "status", answer: a.status},
		{path: pathAPI + "targets", answer: a.targets},
		{path: pathAPI + "targets/{name}", answer: a.target},
		{path: pathAPI + "targets/{name}/distribution", answer: a.distribution},
		{path: pathAPI + "targets/{name}/timeline", answer: a.timeline},
		{path: pathAPI + "churns", answer: a.churns},
		{path: pathAPI + "discovery", answer: a.discovery},
	}
	for _, do := range Controls() {
		routes = append(routes, route{path: pathAPI + "churns/{name}/" + string(do), answer: a.control(do), acts: true})
	}
	return routes
}

// register adds the API to mux, with JSON for whatever goes wrong below it.
func (a *api) register(mux *http.ServeMux) {
	inner := http.NewServeMux()
	routes := a.routes()
	for _, r := range routes {
		inner.Handle("/"+r.path, a.serve(&r))
	}
	inner.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		paths := make([]string, len(routes))
		for i := range routes {
			paths[i] = "/" + routes[i].path
		}
		a.fail(w, notFound("there is no %q; there are %s", r.URL.Path, strings.Join(paths, ", ")))
	})
	busy := func(w http.ResponseWriter, _ *http.Request) {
		a.fail(w, &apiError{http.StatusServiceUnavailable, "unavailable", "too many questions at once; ask again in a second"})
	}
	mux.Handle("/"+pathAPI, limited(maxAnswers, busy, stalling(inner)))
}

// apiError is what went wrong, as the asker is told.
type apiError struct {
	status  int
	kind    string // the errorType of the envelope
	message string
}

func (e *apiError) Error() string { return e.message }

func badData(format string, v ...any) *apiError {
	return &apiError{http.StatusBadRequest, "bad_data", fmt.Sprintf(format, v...)}
}

func notFound(format string, v ...any) *apiError {
	return &apiError{http.StatusNotFound, "not_found", fmt.Sprintf(format, v...)}
}

// plainText is an answer that is no JSON.
type plainText []byte

func (a *api) serve(to *route) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch read := r.Method == http.MethodGet || r.Method == http.MethodHead; {
		case to.acts && r.Method != http.MethodPost:
			w.Header().Set("Allow", "POST")
			a.fail(w, &apiError{http.StatusMethodNotAllowed, "method_not_allowed", "this changes something; use POST"})
			return
		case !to.acts && !read:
			w.Header().Set("Allow", "GET, HEAD")
			a.fail(w, &apiError{http.StatusMethodNotAllowed, "method_not_allowed", "this is read only; use GET or HEAD"})
			return
		}
		data, err := to.answer(r)
		if err != nil {
			a.fail(w, err)
			return
		}
		if text, plain := data.(plainText); plain {
			writeText(w, http.StatusOK, text)
			return
		}
		a.write(w, http.StatusOK, envelope{Status: "success", Data: data})
	})
}

// envelope is around every answer in JSON.
type envelope struct {
	Status    string `json:"status"` // success or error
	Data      any    `json:"data,omitempty"`
	ErrorType string `json:"errorType,omitempty"`
	Error     string `json:"error,omitempty"`
}

func (a *api) fail(w http.ResponseWriter, err error) {
	told, ok := errors.AsType[*apiError](err)
	if !ok {
		a.options.Logger.Error("Answering a question to the API failed", "err", err)
		told = &apiError{http.StatusInternalServerError, "internal", "the question cannot be answered; see the log"}
	}
	a.write(w, told.status, envelope{Status: "error", ErrorType: told.kind, Error: told.message})
}

// write marshals first: half an answer would look like a broken one.
func (a *api) write(w http.ResponseWriter, status int, e envelope) {
	var text bytes.Buffer
	if err := json.NewEncoder(&text).Encode(e); err != nil {
		a.fail(w, fmt.Errorf("marshalling an answer: %w", err))
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write(text.Bytes())
}

func (a *api) status(*http.Request) (any, error) {
	s := a.options.Status()
	s.Trust.Reasons = list(s.Trust.Reasons)
	s.Trust.SelfLatency = list(s.Trust.SelfLatency)
	return s, nil
}

func (a *api) targets(*http.Request) (any, error) {
	targets := a.options.Targets()
	whole := make([]Target, len(targets))
	for i := range targets {
		whole[i] = targets[i].whole()
	}
	return whole, nil
}

func (a *api) target(r *http.Request) (any, error) {
	name := r.PathValue("name")
	if t, ok := a.options.Target(name); ok {
		return t.whole(), nil
	}
	return nil, a.noTarget(name)
}

func (a *api) churns(*http.Request) (any, error) {
	churns := a.options.Churns()
	whole := make([]Churn, len(churns))
	for i := range churns {
		whole[i] = churns[i].whole()
	}
	return whole, nil
}

// whole returns c with nothing that JSON would show as null, but for instants
// and the next step.
func (c Churn) whole() Churn {
	c.Targets, c.History = list(c.Targets), list(c.History)
	if c.Errors == nil {
		c.Errors = map[string]uint64{}
	}
	return c
}

// windows are the windows that latencies are kept for, the first is the
// default.
func windows() choices[time.Duration] {
	return choices[time.Duration]{{"5m", 5 * time.Minute}, {"1m", time.Minute}, {"1h", time.Hour}}
}

// spans are the spans of a timeline, the first is the default.
func spans() choices[time.Duration] {
	return choices[time.Duration]{{"1s", time.Second}, {"10s", 10 * time.Second}}
}

// writers are the formats of a distribution, the first is the default.
func writers() choices[func(*Distribution, []Cell) (any, error)] {
	return choices[func(*Distribution, []Cell) (any, error)]{{"json", writeJSON}, {"hgrm", writeHGRM}}
}

func (a *api) distribution(r *http.Request) (any, error) {
	query, err := parse(r)
	if err != nil {
		return nil, err
	}
	window, err := windows().of(query, "window")
	if err != nil {
		return nil, err
	}
	write, err := writers().of(query, "format")
	if err != nil {
		return nil, err
	}
	name := r.PathValue("name")
	cells, found := a.options.Distribution(name, window.value)
	if !found {
		return nil, a.noTarget(name)
	}
	return write.value(&Distribution{Target: name, Window: window.name}, cells)
}

func (a *api) timeline(r *http.Request) (any, error) {
	query, err := parse(r)
	if err != nil {
		return nil, err
	}
	span, err := spans().of(query, "span")
	if err != nil {
		return nil, err
	}
	name := r.PathValue("name")
	t, found := a.options.Timeline(name, span.value)
	if !found {
		return nil, a.noTarget(name)
	}
	t.Moments = list(t.Moments)
	return t, nil
}

// noTarget says which targets there are.
func (a *api) noTarget(name string) error {
	targets := a.options.Targets()
	names := make([]string, len(targets))
	for i := range targets {
		names[i] = targets[i].Name
	}
	return noneNamed("target", name, names)
}

// noneNamed says which of a kind there are, the first ones of many.
func noneNamed(kind, name string, names []string) error {
	if len(names) == 0 {
		return notFound("there is no %s %q; there are no %[1]ss", kind, name)
	}
	quoted := make([]string, min(len(names), maxNamed))
	for i := range quoted {
		quoted[i] = strconv.Quote(names[i])
	}
	those := strings.Join(quoted, ", ")
	if more := len(names) - maxNamed; more > 0 {
		those += fmt.Sprintf(" and %d more, see /%s%ss", more, pathAPI, kind)
	}
	return notFound("there is no %s %q; there are %s", kind, name, those)
}

func parse(r *http.Request) (url.Values, error) {
	query, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		return nil, badData("parsing the query %q: %v", r.URL.RawQuery, err)
	}
	return query, nil
}

// choice is one value of a parameter.
type choice[T any] struct {
	name  string
	value T
}

// choices are the values that a parameter may have, the first is the default.
type choices[T any] []choice[T]

func (c choices[T]) of(query url.Values, parameter string) (choice[T], error) {
	given, name := query[parameter], ""
	if len(given) == 0 {
		return c[0], nil
	}
	name = given[0]
	names := make([]string, len(c))
	for i := range c {
		if c[i].name == name {
			return c[i], nil
		}
		names[i] = c[i].name
	}
	return choice[T]{}, badData("there is no %s %q; there are %s", parameter, name, strings.Join(names, ", "))
}

// list returns a list that JSON shows as [] where it is empty.
func list[S ~[]E, E any](s S) S {
	if s == nil {
		return S{}
	}
	return s
}

// whole returns t with nothing that JSON would show as null, but for numbers.
func (t Target) whole() Target {
	t.Failures, t.Latency, t.Phases = list(t.Failures), list(t.Latency), list(t.Phases)
	t.ServiceTime, t.Lateness = list(t.ServiceTime), list(t.Lateness)
	t.Backends = list(t.Backends)
	t.Addresses = slices.Clone(list(t.Addresses))
	for i := range t.Addresses {
		t.Addresses[i].Latency = list(t.Addresses[i].Latency)
	}
	if t.Labels == nil {
		t.Labels = map[string]string{}
	}
	if t.Responses == nil {
		t.Responses = map[string]uint64{}
	}
	if t.Connections.Closed == nil {
		t.Connections.Closed = map[string]uint64{}
	}
	return t
}
