package config

import (
	"encoding/hex"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// mostBackends bounds the series of a target's backends.
const mostBackends = 1000

// expect checks what answers must be; those over bare TCP have no status.
func (c *checker) expect(e *Expect, http bool) {
	if len(e.Status) == 0 && http {
		c.fail("expect.status", `is empty, so that no answer is a success; write for example ["2xx"]`)
	}
	for i, status := range e.Status {
		if _, _, ok := statusRange(status); !ok {
			c.fail("expect.status["+strconv.Itoa(i)+"]", "%s is not a final status; write one from 200 to 599, or a class from 2xx to 5xx", quote(status))
		}
	}
	if e.MaxBody < 1 || e.MaxBody > mostSize {
		c.fail("expect.max_body", "%s is out of range; write a size from 1 to 1024GiB", e.MaxBody)
	}
	if e.BodySize != nil && (*e.BodySize < 0 || *e.BodySize > mostSize) {
		c.fail("expect.body_size", "%s is out of range; write a size from 0 to 1024GiB", *e.BodySize)
	}
	if sum := e.BodySHA256; sum != "" && c.good("expect.body_sha256") {
		if _, err := hex.DecodeString(sum); err != nil || len(sum) != 64 {
			c.fail("expect.body_sha256", "is not a SHA-256 sum; write its 64 hexadecimal digits, as sha256sum prints them")
		}
		e.BodySHA256 = strings.ToLower(sum)
	}
	c.patterns(e.Headers)
}

func (c *checker) patterns(headers HeaderPatterns) {
	lower := map[string]bool{}
	for _, name := range slices.Sorted(maps.Keys(headers)) {
		path := join("expect.headers", shown(name))
		switch {
		case !c.good(path):
		case !isToken(name):
			c.fail(path, "is not a valid header name; write letters, digits and hyphens, and the regular expression as its value")
		case lower[strings.ToLower(name)]:
			c.fail(path, "is there twice in different case; remove one")
		case headers[name].IsZero():
			c.fail(path, "has no regular expression; write one, such as .* for a field that only has to be there")
		}
		lower[strings.ToLower(name)] = true
	}
}

func (c *checker) backend(b *Backend) {
	if b.Header != "" && !isToken(b.Header) {
		c.fail("backend.header", "%s is not a valid header name; write letters, digits and hyphens", quote(b.Header))
	}
	if b.Most < 1 || b.Most > mostBackends {
		c.fail("backend.most", "%d is out of range; write how many backends are counted apart, from 1 to %d", b.Most, mostBackends)
	}
	if !b.Body.IsZero() && c.good("backend.body") {
		if groups := b.Body.Regexp().NumSubexp(); groups != 1 {
			c.fail("backend.body", "has %d capture groups, and the backend's name is what one captures; write one pair of ( ), and (?: ) for others", groups)
		}
	}
}

func (c *checker) tcp(t *TCP) {
	if !t.Send.Empty() && t.SendFile != "" {
		c.fail("tcp.send_file", "cannot go with tcp.send; write one of them")
	}
}

// expectTogether checks what answers must be against the rest of the target.
func (c *checker) expectTogether(t *Target) {
	e, b := &t.Expect, &t.Backend
	c.bodyOfHead(t)
	if e.BodySize != nil && *e.BodySize > e.MaxBody && c.good("expect.body_size", "expect.max_body") {
		c.fail(c.first("expect.body_size", "expect.max_body"), "%s as body_size is above %s as max_body, so that no answer is a success; write a larger max_body or a smaller body_size", *e.BodySize, e.MaxBody)
	}
	most, limit := e.MaxBody, "max_body"
	if e.BodySize != nil {
		most, limit = min(most, *e.BodySize), "body_size"
	}
	if Size(len(e.BodyContains)) > most && c.good("expect.body_contains", "expect."+limit) {
		c.fail(c.first("expect.body_contains", "expect."+limit), "the text of body_contains is longer than a body may be (%s as %s), so that no answer is a success; write a shorter text or a larger %s", most, limit, limit)
	}
	if b.Header != "" && !b.Body.IsZero() && c.good("backend.header", "backend.body") {
		c.fail(c.first("backend.body", "backend.header"), "cannot go with %s, as both say who answered; write one of them", otherOf(c.first("backend.body", "backend.header")))
	}
}

// bodyOfHead refuses what looks into the body of an answer that has none.
func (c *checker) bodyOfHead(t *Target) {
	if t.HTTP.Method != "HEAD" || t.URL.IsZero() || !t.URL.HTTP() {
		return
	}
	for _, path := range bodySettings() {
		if !settingAt(t, path).IsZero() && c.good(path) {
			c.fail(path, "looks into a body, and the answer to HEAD has none; write http.method: GET, or remove it")
		}
	}
}

// otherOf returns the other of the two settings that say who answered.
func otherOf(path string) string {
	if path == "backend.body" {
		return "backend.header"
	}
	return "backend.body"
}

// bodySettings returns the paths of the settings that look into the body of an
// answer.
func bodySettings() []string {
	return []string{"expect.body", "expect.body_contains", "expect.body_size", "expect.body_sha256", "backend.body"}
}
