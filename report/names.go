package report

import (
	"fmt"
	"net/url"
	"strings"
)

// maskURL takes user info, query and fragment out of a URL: they may hold
// secrets. What is no URL is returned as it is.
func maskURL(raw string) string {
	if !strings.Contains(raw, "://") {
		return raw
	}
	u, err := url.Parse(raw)
	if err != nil {
		return "(not a valid URL)"
	}
	u.User, u.RawQuery, u.ForceQuery, u.Fragment, u.RawFragment = nil, "", false, "", ""
	return u.String()
}

// Distinguish gives results of the same target name names of their own: the
// second is "NAME #2", and so on, in their order. Results that a script reads by
// name must not hide each other.
func Distinguish(results []Result) {
	taken := map[string]bool{}
	for i := range results {
		r := &results[i]
		for name, n := r.Target, 2; taken[r.Target]; n++ {
			r.Target = fmt.Sprintf("%s #%d", name, n)
		}
		taken[r.Target] = true
	}
}

// printable replaces what could move a terminal's cursor or change its colour.
func printable(s string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' || r >= 0x7f && r < 0xa0 {
			return '?'
		}
		return r
	}, s)
}
