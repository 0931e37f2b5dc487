package report

import (
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

// printable replaces what could move a terminal's cursor or change its colour.
func printable(s string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' || r >= 0x7f && r < 0xa0 {
			return '?'
		}
		return r
	}, s)
}
