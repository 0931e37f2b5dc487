package report

import (
	"crypto/tls"
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

// versionName returns the closed value of the label tls_version.
func versionName(version uint16) string {
	return strings.ReplaceAll(tls.VersionName(version), " ", "")
}

// cipherName returns the IANA name.
func cipherName(cipher uint16) string { return tls.CipherSuiteName(cipher) }

// groupName returns Go's name of the curve, empty where there was none.
func groupName(group uint16) string {
	if group == 0 {
		return ""
	}
	return tls.CurveID(group).String()
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
