package config

import "strings"

// together checks settings against each other.
func (c *checker) together(t *Target) {
	c.bareTogether(t)
	if t.Connection.Warm && !t.Connection.Reuse && c.good("connection.warm") {
		c.fail(c.first("connection.warm", "connection.reuse"), "warm connections cannot go with reuse: false, which opens one per request; write warm: false")
	}
	if most := t.Timeout + t.Backlog; t.Objective.Latency > most && c.good("timeout", "backlog", "objective.latency") {
		c.fail("objective.latency", "%s can never be missed by a success: no latency is above timeout + backlog (%s); write less", durationText(t.Objective.Latency), durationText(most))
	}
	if t.Connection.ProxySource != "" && t.Connection.ProxyProtocol == "none" && c.good("connection.proxy_source", "connection.proxy_protocol") {
		c.fail(c.first("connection.proxy_source", "connection.proxy_protocol"), "is what a PROXY header says, and proxy_protocol is none; write proxy_protocol: v1 or v2, or remove it")
	}
	c.tlsTogether(&t.TLS)
	if (t.TLS.CertFile == "") != (t.TLS.KeyFile == "") && c.good("tls.cert_file", "tls.key_file") {
		c.fail(c.first("tls.cert_file", "tls.key_file"), "a client certificate needs both; write cert_file and key_file")
	}
	c.oneAuthorization(t)
	c.expectTogether(t)
	c.closedLoop(t)
}

// closedLoop refuses what a schedule can keep and a closed loop cannot. Values
// that are those of a target that says nothing are no contradiction.
func (c *checker) closedLoop(t *Target) {
	if !t.Rate.Max() {
		return
	}
	silent := builtInTarget()
	for _, s := range []struct {
		path  string
		meant bool
		why   string
	}{
		{"objective", t.Objective != silent.Objective, "cannot be kept in a closed loop (rate: max), which has no latency and sends less when the door is slow"},
		{"backlog", t.Backlog != silent.Backlog, "limits nothing in a closed loop (rate: max), where no request waits for a connection"},
		{"catch_up", t.CatchUp != silent.CatchUp, "caps nothing in a closed loop (rate: max), which has no backlog"},
		{"pacing", t.Pacing != silent.Pacing, "has nothing to pace in a closed loop (rate: max), where an answer is what makes the next request due"},
		{"arrival", t.Arrival != silent.Arrival, "has nothing to space in a closed loop (rate: max), where an answer is what makes the next request due"},
	} {
		if s.meant && c.good(s.path) {
			c.fail(s.path, "%s; remove it, or write a number of requests per second as rate", s.why)
		}
	}
}

// closedLoops refuses closed loops where they are not allowed.
func (c *checker) closedLoops(config *Config, checkers []*checker) {
	if config.Limits.AllowClosedLoop || !c.good("limits.allow_closed_loop") {
		return
	}
	for i := range config.Targets {
		if config.Targets[i].Rate.Max() && checkers[i].good("rate") {
			checkers[i].fail("rate", "max is a closed loop, which sends as many requests as the door answers; write a number of requests per second, or set limits.allow_closed_loop: true")
		}
	}
}

// first returns the path that this block wrote, a if both or none.
func (c *checker) first(a, b string) string {
	if !c.written(a) && c.written(b) {
		return b
	}
	return a
}

// oneAuthorization refuses a target that says twice who it is.
func (c *checker) oneAuthorization(t *Target) {
	var ways []string
	if _, _, ok := t.URL.User(); ok {
		ways = append(ways, "the user info of url")
	}
	if t.HTTP.BasicAuth != nil {
		ways = append(ways, "http.basic_auth")
	}
	if t.HTTP.Authorization != nil {
		ways = append(ways, "http.authorization")
	}
	if _, there := authorizationHeader(t.HTTP.Headers); there {
		ways = append(ways, "the Authorization header")
	}
	if len(ways) > 1 {
		c.fail("http", "%s cannot go together; write one of them", strings.Join(ways, " and "))
	}
}

func authorizationHeader(h Headers) (name string, there bool) {
	for name := range h {
		if strings.EqualFold(name, "Authorization") {
			return name, true
		}
	}
	return "", false
}
