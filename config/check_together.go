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

// override removes what a target inherits from the defaults and has replaced
// by another way of saying it.
func (c *checker) override(t *Target) {
	replaced := func(path string, others ...string) bool {
		if !c.inherited(path) {
			return false
		}
		for _, other := range others {
			if c.written(other) {
				return true
			}
		}
		return false
	}
	h := &t.HTTP
	if replaced("http.body", "http.body_file") {
		h.Body = Secret{}
	}
	if replaced("http.body_file", "http.body") {
		h.BodyFile = ""
	}
	if replaced("tls.ca", "tls.ca_file") {
		t.TLS.CA = ""
	}
	if replaced("tls.ca_file", "tls.ca") {
		t.TLS.CAFile = ""
	}
	if replaced("tcp.send", "tcp.send_file") {
		t.TCP.Send = Secret{}
	}
	if replaced("tcp.send_file", "tcp.send") {
		t.TCP.SendFile = ""
	}
	if b := h.BasicAuth; b != nil {
		if replaced("http.basic_auth.username", "http.basic_auth.username_file") {
			b.Username = Secret{}
		}
		if replaced("http.basic_auth.username_file", "http.basic_auth.username") {
			b.UsernameFile = ""
		}
		if replaced("http.basic_auth.password", "http.basic_auth.password_file") {
			b.Password = Secret{}
		}
		if replaced("http.basic_auth.password_file", "http.basic_auth.password") {
			b.PasswordFile = ""
		}
	}
	if a := h.Authorization; a != nil {
		if replaced("http.authorization.credentials", "http.authorization.credentials_file") {
			a.Credentials = Secret{}
		}
		if replaced("http.authorization.credentials_file", "http.authorization.credentials") {
			a.CredentialsFile = ""
		}
	}
	c.overrideAuthorization(t)
	c.overrideSchedule(t)
	c.overrideExpect(t)
	c.overrideBare(t)
	if c.inherited("connection.proxy_source") && c.written("connection.proxy_protocol") && t.Connection.ProxyProtocol == "none" {
		t.Connection.ProxySource = ""
	}
}

// overrideSchedule removes what the defaults say of schedules from a target
// that asks for a closed loop itself.
func (c *checker) overrideSchedule(t *Target) {
	if !t.Rate.Max() || !c.written("rate") {
		return
	}
	silent := builtInTarget()
	for path, remove := range map[string]func(){
		"objective.latency": func() { t.Objective.Latency = silent.Objective.Latency },
		"objective.ratio":   func() { t.Objective.Ratio = silent.Objective.Ratio },
		"backlog":           func() { t.Backlog = silent.Backlog },
		"catch_up":          func() { t.CatchUp = silent.CatchUp },
		"pacing":            func() { t.Pacing = silent.Pacing },
		"arrival":           func() { t.Arrival = silent.Arrival },
	} {
		if c.inherited(path) {
			remove()
			delete(c.marks.at, path)
		}
	}
}

func (c *checker) overrideAuthorization(t *Target) {
	name, _ := authorizationHeader(t.HTTP.Headers)
	header := headerPath(name)
	_, _, user := t.URL.User()
	if !user && !c.written("http.basic_auth") && !c.written("http.authorization") && !c.written(header) {
		return
	}
	if c.inherited("http.basic_auth") {
		t.HTTP.BasicAuth = nil
	}
	if c.inherited("http.authorization") {
		t.HTTP.Authorization = nil
	}
	if c.inherited(header) {
		delete(t.HTTP.Headers, name)
	}
}
