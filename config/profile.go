package config

import (
	"fmt"
	"hash/fnv"
	"reflect"
	"strconv"
	"time"

	"gopkg.in/yaml.v3"
)

// Profile holds the traffic settings that discovered targets share: a target
// without URL, whose name is that of the profile.
type Profile Target

// profiles decodes and checks the profiles, each on top of the defaults, and
// returns the checker of each.
func (p *parser) profiles(c *checker, list *yaml.Node, base *Target, common *checker, config *Config) []*checker {
	switch {
	case list.Kind == 0 || isNull(list):
		return nil
	case list.Kind != yaml.SequenceNode:
		c.fail("profiles", "is %s where a list belongs; write each profile as - name: NAME with its settings below, or remove it", described(list))
		return nil
	}
	checkers := make([]*checker, len(list.Content))
	names := make([]string, len(list.Content))
	config.Profiles = make([]Profile, len(list.Content))
	for i, item := range list.Content {
		if p.report.nodes >= p.report.most {
			c.marks.bad["profiles"] = true // reported
			return nil
		}
		t := base.clone()
		checkers[i] = p.profile(common, item, i, &t)
		config.Profiles[i], names[i] = Profile(t), t.Name
	}
	uniqueNames(names, checkers)
	return checkers
}

func (p *parser) profile(common *checker, item *yaml.Node, i int, t *Target) *checker {
	c := &checker{report: p.report, marks: common.marks.clone(), block: "profiles[" + strconv.Itoa(i) + "]"}
	d := decoder{report: p.report, marks: c.marks, block: c.block}
	if !d.spend(len(common.marks.at), item.Line, "") {
		c.marks.bad[""] = true
		return c
	}
	d.decode(item, item.Line, "", reflect.ValueOf(t).Elem())
	if isNull(follow(item)) {
		d.fail(item.Line, "", "has no value; write name and rate, or remove the line")
	}
	if c.marks.bad[""] {
		return c
	}
	if c.written("url") {
		c.fail("url", "is what is discovered; remove it")
		t.URL = URL{}
	}
	c.override(t)
	if c.good("name") {
		c.name(t.Name, "gentle", "a name cannot have")
	}
	switch {
	case t.Rate.IsZero() && c.good("rate"):
		c.fail("rate", "is missing; write rate: and requests per second of each target, such as 1")
	case t.Rate.Max():
		c.fail("rate", "max is a closed loop, which sends as many requests as the door answers, and whose door that is others decide; write requests per second")
	}
	c.fields(t)
	c.together(t)
	p.files.fill(c, t)
	c.warnings(t)
	return c
}

// secretive reports whether targets of the profile show anything secret to
// their door.
func (p *Profile) secretive() bool {
	h := &p.HTTP
	return h.BasicAuth != nil || h.Authorization != nil || len(h.Headers) > 0 || !h.Body.Empty() || h.BodyFile != "" ||
		!p.TCP.Send.Empty() || p.TCP.SendFile != "" || p.TLS.CertFile != ""
}

// Discovered is what discovery knows of one target. What is zero is as the
// profile has it.
type Discovered struct {
	Source      *Discovery
	Name        string // of the target
	URL         URL
	Labels      map[string]string // added to those of the profile
	Rate        Rate
	Connections int
	Timeout     time.Duration
	Host        string // of the Host header
	ServerName  string
	ConnectTo   string
}

// TargetName returns the name of a target of the source that has none of its
// own: the same one whatever else is discovered.
func (d *Discovery) TargetName(u URL) string {
	name := d.Name + "/" + nameFor(u)
	if len(name) <= mostName {
		return name
	}
	hash := fnv.New64a()
	_, _ = hash.Write([]byte(u.Public()))
	end := fmt.Sprintf("~%016x", hash.Sum64())
	return name[:mostName-len(end)] + end
}

// Target returns a target of the profile, checked as if it had been written.
// The error is an [*Errors] with all that is wrong, without file and line. It
// may be called concurrently.
func (p *Profile) Target(d Discovered) (Target, error) {
	base := Target(*p)
	t := base.clone()
	t.Name, t.URL, t.source, t.allow = d.Name, d.URL, d.Source.Name, &d.Source.Allow
	for name, value := range d.Labels {
		t.Labels[name] = value
	}
	if !d.Rate.IsZero() {
		t.Rate = d.Rate
	}
	if d.Connections != 0 {
		t.Connections = d.Connections
	}
	if d.Timeout != 0 {
		t.Timeout = d.Timeout
	}
	for _, s := range []struct {
		setting *string
		value   string
	}{{&t.HTTP.Host, d.Host}, {&t.TLS.ServerName, d.ServerName}, {&t.ConnectTo, d.ConnectTo}} {
		if s.value != "" {
			*s.setting = s.value
		}
	}
	r := &report{}
	c := &checker{report: r, marks: newMarks()}
	c.overrideBare(&t)
	c.required(&t)
	c.fields(&t)
	c.together(&t)
	return t, r.err()
}

// Source returns the name of the source that has discovered the target, empty
// for one of the file.
func (t *Target) Source() string { return t.source }

// Reach returns what says which addresses may be connected to; nil: all.
func (t *Target) Reach() *Allow { return t.allow }
