package config

import (
	"cmp"
	"maps"
	"slices"
	"strings"
)

func (c *checker) http(h *HTTP) {
	c.later("http.version", h.Version, "1.1")
	c.method(h.Method)
	if h.Host != "" {
		c.host(h.Host)
	}
	names := slices.Sorted(maps.Keys(h.Headers))
	lower := map[string]bool{}
	for _, name := range names {
		c.header(name, h.Headers[name])
		if lower[strings.ToLower(name)] {
			c.fail(headerPath(name), "is there twice in different case; remove one, or write a list of values")
		}
		lower[strings.ToLower(name)] = true
	}
	if h.BasicAuth != nil {
		c.basicAuth(h.BasicAuth)
	}
	if h.Authorization != nil {
		c.authorization(h.Authorization)
	}
	if !h.Body.Empty() && h.BodyFile != "" {
		c.fail("http.body_file", "cannot go with http.body; write one of them")
	}
}

func headerPath(name string) string { return join("http.headers", shown(name)) }

func (c *checker) method(method string) {
	upper := strings.ToUpper(method)
	switch {
	case !isToken(method):
		c.fail("http.method", "%s is not a method; write for example GET, HEAD or POST", quote(method))
	case upper == "CONNECT":
		c.fail("http.method", "CONNECT opens a tunnel and cannot be probed; write for example GET")
	case method != upper && slices.Contains([]string{"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE"}, upper):
		c.fail("http.method", "%s is in lower case, and methods are case-sensitive; write %s", quote(method), upper)
	}
}

// isToken reports whether s is a token of RFC 9110, section 5.6.2.
func isToken(s string) bool {
	for i := range len(s) {
		if !alphanumeric(s[i]) && !strings.Contains("!#$%&'*+-.^_`|~", s[i:i+1]) {
			return false
		}
	}
	return s != ""
}

// validValue reports whether s can be the value of a header field (RFC 9110,
// section 5.5): no control character but a tab. A line feed would start a
// header field, or a request, of its own.
func validValue(s string) bool {
	for i := range len(s) {
		if c := s[i]; c < ' ' && c != '\t' || c == 0x7f {
			return false
		}
	}
	return true
}

func (c *checker) host(host string) {
	if strings.Contains(host, ":") && !strings.HasSuffix(host, "]") {
		c.failed("http.host", checkHostPort(host))
		return
	}
	name := host
	if strings.HasPrefix(host, "[") {
		name = strings.Trim(host, "[]")
	}
	c.failed("http.host", checkHost(name))
}

func (c *checker) header(name string, h Header) {
	path := headerPath(name)
	switch strings.ToLower(name) {
	case "host":
		c.fail(path, "cannot be set here; write http.host")
		return
	case "content-length", "transfer-encoding", "trailer":
		c.fail(path, "is set by the probe itself, because it says where the request ends; remove it")
		return
	case "connection", "keep-alive", "proxy-connection", "upgrade":
		c.fail(path, "is set by the probe itself, because it says whether the connection is kept; write connection.reuse")
		return
	}
	if !isToken(name) {
		c.fail(path, "is not a valid header name; write letters, digits and hyphens, and the value as its value")
		return
	}
	if len(h.Values)+len(h.Secrets)+len(h.Files) == 0 && c.good(path) {
		c.fail(path, "has no value; write one, a list of them, or values, secrets or files")
	}
	for _, value := range slices.Concat(h.Values, h.Secrets) {
		c.value(path, value)
	}
}

func (c *checker) value(path string, value Secret) {
	if !validValue(value.Reveal()) {
		c.fail(path, "has a control character such as a line feed, which would end the header field; write one line")
	}
}

func (c *checker) basicAuth(b *BasicAuth) {
	const path = "http.basic_auth"
	if !b.Username.Empty() && b.UsernameFile != "" {
		c.fail(path+".username_file", "cannot go with username; write one of them")
	}
	if !b.Password.Empty() && b.PasswordFile != "" {
		c.fail(path+".password_file", "cannot go with password; write one of them")
	}
	if b.Username.Empty() && b.UsernameFile == "" && c.good(path+".username", path+".username_file") {
		c.fail(path, "has no user name; write username or username_file")
	}
	c.userPart(path+".username", b.Username)
	c.value(path+".password", b.Password)
}

// userPart refuses user names that basic authentication cannot carry
// (RFC 7617, section 2).
func (c *checker) userPart(path string, name Secret) {
	c.value(path, name)
	if strings.Contains(name.Reveal(), ":") {
		c.fail(path, "has a colon, which basic authentication cannot carry; write it without, or use http.authorization")
	}
}

func (c *checker) authorization(a *Authorization) {
	const path = "http.authorization"
	switch {
	case a.Type == "":
	case strings.EqualFold(a.Type, "basic"):
		c.fail(path+".type", "basic authentication has its own setting; write http.basic_auth")
	case !isToken(a.Type):
		c.fail(path+".type", "is not a scheme, which has no spaces; write for example Bearer, and the token as credentials")
	}
	switch {
	case !a.Credentials.Empty() && a.CredentialsFile != "":
		c.fail(path+".credentials_file", "cannot go with credentials; write one of them")
	case a.Credentials.Empty() && a.CredentialsFile == "" && c.good(path+".credentials", path+".credentials_file"):
		c.fail(path, "has no credentials; write credentials or credentials_file")
	}
	scheme, _, spaced := strings.Cut(a.Credentials.Reveal(), " ")
	if spaced && strings.EqualFold(scheme, cmp.Or(a.Type, "Bearer")) {
		c.fail(path+".credentials", "begins with the scheme, which would be sent twice; write the token alone")
	}
	c.value(path+".credentials", a.Credentials)
}
