package peer

import (
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"time"
)

// text reads figures from a tool's printed report, and keeps the first error.
type text struct {
	printed string
	err     error
}

// find returns the first group of an expression's only match. Where it does not
// match there is an error if it must.
func (t *text) find(expression string, must bool) (string, bool) {
	m := regexp.MustCompile("(?m)" + expression).FindStringSubmatch(t.printed)
	if m == nil {
		if must {
			t.fail(fmt.Errorf("finding %q: it is not there", expression))
		}
		return "", false
	}
	return m[1], true
}

func (t *text) fail(err error) { t.err = errors.Join(t.err, err) }

// count returns a number that must be there.
func (t *text) count(expression string) uint64 { return t.number(expression, true) }

// countIfAny returns a number, 0 where the tool is silent about it.
func (t *text) countIfAny(expression string) uint64 { return t.number(expression, false) }

func (t *text) number(expression string, must bool) uint64 {
	s, ok := t.find(expression, must)
	if !ok {
		return 0
	}
	n, err := strconv.ParseUint(s, 10, 64)
	if err != nil {
		t.fail(err)
	}
	return n
}

// duration puts a duration such as "3.67ms" or "1.20m" into q, in seconds.
func (t *text) duration(q Quantiles, name Quantile, expression string) {
	s, ok := t.find(expression, true)
	if !ok {
		return
	}
	d, err := time.ParseDuration(s)
	if err != nil {
		t.fail(err)
		return
	}
	q[name] = d.Seconds()
}
