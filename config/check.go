package config

import (
	"maps"
	"math/big"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/prometheus/common/model"
)

// Bounds beyond which a value is a typing error.
const (
	mostName        = 128 // characters of the name of a target or a churn
	mostConnections = 1_000_000
	mostCatchUp     = 1_000_000
	mostDuration    = 24 * time.Hour
	mostAge         = 365 * 24 * time.Hour
	leastRefresh    = time.Second
)

// required checks the settings that have no default.
func (c *checker) required(t *Target) {
	if c.good("name") {
		c.name(t.Name, "shop-ingress", "a User-Agent header cannot carry")
	}
	if t.URL.IsZero() && c.good("url") {
		c.fail("url", "is missing; write url: http://HOST/PATH")
	}
	if t.Rate.IsZero() && c.good("rate") {
		c.fail("rate", "is missing; write rate: and requests per second, such as 10")
	}
}

// name checks a name. The example is one to write instead, odd says of
// characters why they are refused.
func (c *checker) name(name, example, odd string) {
	switch {
	case name == "":
		c.fail("name", "is missing or empty; write name: and a short name such as %s", example)
	case name == "." || name == "..":
		c.fail("name", "is a folder to programs that read URLs; write a short name such as %s", example)
	case len(name) > mostName:
		c.fail("name", "is longer than %d characters; write a shorter one", mostName)
	case strings.ContainsFunc(name, func(r rune) bool { return r <= ' ' || r > '~' || strings.ContainsRune(`()\"`, r) }):
		c.fail("name", `has characters that %s; write ASCII letters, digits and signs, without spaces, ( ) \ and "`, odd)
	}
}

// common refuses in the defaults what each target must say itself.
func (c *checker) common(t *Target) {
	for _, path := range []string{"name", "url"} {
		if c.written(path) {
			c.fail(path, "cannot have a default; write it in each target")
		}
	}
	t.Name, t.URL = "", URL{}
}

// fields checks each setting for itself.
func (c *checker) fields(t *Target) {
	if t.Connections < 1 || t.Connections > mostConnections {
		c.fail("connections", "%d is out of range; write how many may be open at once, from 1 to %d", t.Connections, mostConnections)
	}
	c.labels(t.Labels)
	if t.URL.HTTP() {
		c.http(&t.HTTP)
	}
	if t.ConnectTo != "" {
		c.failed("connect_to", checkHostPort(t.ConnectTo))
	}
	c.dns(&t.DNS)
	c.connection(&t.Connection)
	c.tls(&t.TLS)
	c.between("timeouts.connect", t.Timeouts.Connect, 0, mostDuration)
	c.between("timeouts.tls", t.Timeouts.TLS, 0, mostDuration)
	c.between("timeouts.response", t.Timeouts.Response, 0, mostDuration)
	c.between("timeout", t.Timeout, time.Millisecond, mostDuration)
	c.expect(&t.Expect, t.URL.HTTP())
	c.backend(&t.Backend)
	c.tcp(&t.TCP)
	c.objective(&t.Objective)
	c.between("backlog", t.Backlog, time.Millisecond, mostDuration)
	if !(t.CatchUp == 0 || t.CatchUp >= 1 && t.CatchUp <= mostCatchUp) {
		c.fail("catch_up", "%v is out of range; write 0 for no limit, or a factor of the rate from 1 to %d", t.CatchUp, mostCatchUp)
	}
	c.oneOf("pacing", t.Pacing, "precise", "economy")
	c.oneOf("arrival", t.Arrival, "uniform", "poisson")
	c.oneOf("sharding", t.Sharding, "rate", "targets")
}

// oneOf refuses a value that is none of two or more words.
func (c *checker) oneOf(path, value string, words ...string) {
	if last := len(words) - 1; !slices.Contains(words, value) {
		c.fail(path, "%s is neither %s nor %s; write one of them", quote(value), strings.Join(words[:last], ", "), words[last])
	}
}

func (c *checker) between(path string, d, least, most time.Duration) {
	if d < least || d > most {
		c.fail(path, "%s is out of range; write a duration from %s to %s", durationText(d), durationText(least), durationText(most))
	}
}

// statusRange returns the status codes that an entry of expect.status stands
// for. Informational ones (1xx) never end a request.
func statusRange(s string) (low, high int, ok bool) {
	if len(s) != 3 || s[0] < '2' || s[0] > '5' {
		return 0, 0, false
	}
	if s[1:] == "xx" {
		low = int(s[0]-'0') * 100
		return low, low + 99, true
	}
	if !digits(s) {
		return 0, 0, false
	}
	code, _ := strconv.Atoi(s)
	return code, code, true
}

func (c *checker) objective(o *Objective) {
	c.between("objective.latency", o.Latency, 0, 2*mostDuration)
	_, written := c.marks.at["objective.ratio"]
	if !c.good("objective.ratio") || o.Ratio == 0 && !written {
		return
	}
	if !(o.Ratio > 0 && o.Ratio < 1) {
		c.fail("objective.ratio", "%v is not between 0 and 1; write for example 0.999 for 99.9 %%", o.Ratio)
	}
}

func (c *checker) labels(labels map[string]string) {
	for _, name := range slices.Sorted(maps.Keys(labels)) { // a line may hold several
		path, value := join("labels", shown(name)), labels[name]
		switch {
		case !model.LegacyValidation.IsValidLabelName(name):
			c.fail(path, "is not a valid label name; write letters, digits and _, not beginning with a digit")
		case strings.HasPrefix(name, "__"):
			c.fail(path, "begins with __, which Prometheus keeps for itself; write another name")
		case slices.Contains(keptLabels(), name):
			c.fail(path, "is a label that steadyprobe or Prometheus sets; write another name")
		case !utf8.ValidString(value):
			c.fail(path, "has a value that is not valid UTF-8; write it in UTF-8")
		}
	}
}

// keptLabels are the labels of the metrics and those that Prometheus adds.
func keptLabels() []string {
	return []string{
		"target", "churn", "churn_phase", "failure_stage", "reason", "code", "protocol", "url", "loop", "pacing",
		"arrival", "reuse", "outcome", "phase", "q", "window", "tls_version", "cipher", "key_exchange", "resumed",
		"direction", "address", "backend", "state", "source", "index", "shards", "resource",
		"job", "instance", "le", "quantile",
	}
}

// uniqueNames refuses names that several targets, or several churns, have.
func uniqueNames(names []string, checkers []*checker) {
	first := map[string]*checker{}
	for i, name := range names {
		if before, twice := first[name]; twice && name != "" {
			checkers[i].fail("name", "%s is also the name of %s in line %d; write another one", quote(name), before.block, before.place("name").line)
			continue
		}
		first[name] = checkers[i]
	}
}

// totals refuses sums above the limits, at the target that is too much.
func (c *checker) totals(config *Config, checkers []*checker) {
	rate, connections := new(big.Rat), 0
	tooFast, tooMany := !c.good("limits.max_total_rate"), !c.good("limits.max_connections")
	for i := range config.Targets {
		rate.Add(rate, config.Targets[i].Rate.Rat())
		connections += config.Targets[i].Connections
		if limit := config.Limits.MaxTotalRate; !tooFast && rate.Cmp(limit.Rat()) > 0 {
			tooFast = true
			checkers[i].fail("rate", "makes the sum of rates %s requests/s, above limits.max_total_rate (%s); write a lower rate or raise limits.max_total_rate", decimalText(rate), limit)
		}
		if limit := config.Limits.MaxConnections; !tooMany && connections > limit {
			tooMany = true
			checkers[i].fail("connections", "makes the sum of connections %d, above limits.max_connections (%d); write fewer or raise limits.max_connections", connections, limit)
		}
	}
}
