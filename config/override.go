package config

// override removes what a target inherits from the defaults and has replaced
// by another way of saying it, or has no use for.
func (c *checker) override(t *Target) {
	for _, ways := range [][2]string{
		{"http.body", "http.body_file"},
		{"http.basic_auth.username", "http.basic_auth.username_file"},
		{"http.basic_auth.password", "http.basic_auth.password_file"},
		{"http.authorization.credentials", "http.authorization.credentials_file"},
		{"tls.ca", "tls.ca_file"},
		{"tcp.send", "tcp.send_file"},
		{"backend.header", "backend.body"},
	} {
		for i, path := range ways {
			if v := settingAt(t, path); v.IsValid() && c.inherited(path) && c.written(ways[1-i]) {
				v.SetZero()
			}
		}
	}
	if c.inherited("connection.proxy_source") && c.written("connection.proxy_protocol") && t.Connection.ProxyProtocol == "none" {
		t.Connection.ProxySource = ""
	}
	c.overrideAuthorization(t)
	c.overrideSchedule(t)
	c.overrideBodies(t)
	c.overrideBare(t)
}

// overrideSchedule removes what the defaults say of schedules from a target
// that asks for a closed loop itself.
func (c *checker) overrideSchedule(t *Target) {
	if !t.Rate.Max() || !c.written("rate") {
		return
	}
	silent := builtInTarget()
	for _, path := range []string{"objective.latency", "objective.ratio", "backlog", "catch_up", "pacing", "arrival"} {
		if c.inherited(path) {
			settingAt(t, path).Set(settingAt(&silent, path))
			delete(c.marks.at, path)
		}
	}
}

// overrideBodies removes what the defaults say of the bodies of answers from a
// target that asks for none itself.
func (c *checker) overrideBodies(t *Target) {
	if t.HTTP.Method != "HEAD" || !c.written("http.method") {
		return
	}
	for _, path := range bodySettings() {
		if c.inherited(path) {
			settingAt(t, path).SetZero()
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
