package config

import (
	"crypto/tls"
	"maps"
	"strings"
	"time"
)

// builtIn returns the settings of a configuration that says nothing.
func builtIn() Config {
	return Config{
		Limits:  Limits{MaxTotalRate: TotalRate{mustRate("10000")}, MaxConnections: 5000},
		Metrics: Metrics{Classic: true, Native: true, NativeSchema: 3, NativeMaxBuckets: 160},
	}
}

// builtInTarget returns the settings of a target that says nothing. It has no
// name, URL and rate.
func builtInTarget() Target {
	return Target{
		Connections: 10,
		Labels:      map[string]string{},
		HTTP:        HTTP{Version: "1.1", Method: "GET", Headers: Headers{}},
		DNS:         DNS{Refresh: 30 * time.Second, Family: "any", Spread: "all"},
		Connection:  Connection{Reuse: true, MaxAge: 5 * time.Minute, ProxyProtocol: "none"},
		TLS:         TLS{MinVersion: tls.VersionTLS12, Resumption: true},
		Timeout:     5 * time.Second,
		Expect:      Expect{Status: []string{"2xx"}, MaxBody: 1 << 20, Headers: HeaderPatterns{}},
		Backend:     Backend{Most: 100},
		Backlog:     30 * time.Second,
		Pacing:      "precise",
		Arrival:     "uniform",
		Sharding:    "rate",
	}
}

// ForURL returns a target with the built-in defaults and a rate of 1 request
// per second that probes text and has its public part as name. It fails when
// text is not a URL of a door; the error does not quote it. What the caller
// changes is to be checked with [Target.Validate].
func ForURL(text string) (Target, error) {
	u, err := ParseURL(text)
	if err != nil {
		return Target{}, &Errors{Problems: []Problem{{Field: "url", Text: err.Error()}}}
	}
	t := builtInTarget()
	t.URL = u
	t.Rate = mustRate("1")
	t.Name = nameFor(u)
	if !u.HTTP() {
		t.bare()
	}
	return t, nil
}

// nameFor returns the URL without user info and query as a valid name.
func nameFor(u URL) string {
	name := strings.NewReplacer("(", "%28", ")", "%29", `\`, "%5C", `"`, "%22").Replace(u.Public())
	return name[:min(len(name), mostName)]
}

// mustRate is for the literals of the defaults.
func mustRate(text string) Rate {
	r, err := ParseRate(text)
	if err != nil {
		panic("config: built-in rate: " + err.Error())
	}
	return r
}

// clone returns a copy that shares nothing which decoding changes. Lists are
// shared, because decoding replaces them whole.
func (t *Target) clone() Target {
	c := *t
	c.Labels = maps.Clone(t.Labels)
	c.HTTP.Headers = maps.Clone(t.HTTP.Headers)
	c.Expect.Headers = maps.Clone(t.Expect.Headers)
	if t.Expect.BodySize != nil {
		size := *t.Expect.BodySize
		c.Expect.BodySize = &size
	}
	if t.HTTP.BasicAuth != nil {
		auth := *t.HTTP.BasicAuth
		c.HTTP.BasicAuth = &auth
	}
	if t.HTTP.Authorization != nil {
		auth := *t.HTTP.Authorization
		c.HTTP.Authorization = &auth
	}
	return c
}
