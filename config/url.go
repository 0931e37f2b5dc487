package config

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"strconv"
	"strings"
)

// URL is the address of a door: http or https with a host, or tcp or tls with a
// host and a port. Its user info and its query are secrets: whatever prints,
// logs or marshals it shows "<secret>" in their place. The zero URL is empty.
type URL struct{ parsed *url.URL }

// maskedUser is user info as a masked URL has it. The net/url package refuses
// its angle brackets, and a masked configuration must parse again.
const maskedUser = "//" + masked + "@"

// ParseURL returns text as a URL. Its errors never quote the text.
func ParseURL(text string) (URL, error) {
	text = strings.Replace(text, maskedUser, "//"+url.PathEscape(masked)+"@", 1)
	scheme, _, found := strings.Cut(text, "://")
	if !found || strings.ContainsAny(scheme, "/?#@") {
		return URL{}, errors.New("has no scheme; write http:// or https:// in front of the host")
	}
	u, err := url.Parse(text)
	if err != nil {
		return URL{}, errors.New("is not a valid URL; write http://HOST:PORT/PATH with special characters percent-encoded")
	}
	if err := checkURL(u); err != nil {
		return URL{}, err
	}
	return URL{parsed: u}, nil
}

func checkURL(u *url.URL) error {
	switch {
	case u.Scheme == "tcp" || u.Scheme == "tls":
		return checkBareURL(u)
	case u.Scheme != "http" && u.Scheme != "https":
		return errors.New("has an unknown scheme; write http:// or https://, or tcp:// or tls:// with a port")
	case u.Hostname() == "":
		return errors.New("has no host; write http://HOST/ with the name or address of the door")
	case u.RawPath != "" && u.EscapedPath() != u.RawPath:
		// Escaping it once more would turn %2F into a slash.
		return errors.New("has a path with characters that cannot be sent; percent-encode them (%20 for a space)")
	case u.Fragment != "" || u.RawFragment != "":
		return errors.New("has a fragment, which is never sent; remove the # and what follows it")
	}
	if err := checkHost(u.Hostname()); err != nil {
		return err
	}
	if port := u.Port(); port != "" {
		if err := checkPort(port); err != nil {
			return err
		}
	}
	for i := range len(u.RawQuery) {
		if c := u.RawQuery[i]; c <= ' ' || c >= 0x7f {
			return errors.New("has a query with characters that cannot be sent; percent-encode them (%20 for a space)")
		}
	}
	if user, _, ok := userInfo(u); ok {
		if strings.Contains(user, ":") {
			return errors.New("has a colon in the user name, which basic authentication cannot carry; use http.authorization")
		}
	}
	return nil
}

// checkBareURL refuses what says more than where to connect to.
func checkBareURL(u *url.URL) error {
	switch {
	case u.Hostname() == "":
		return fmt.Errorf("has no host; write %s://HOST:PORT with the name or address of the door", u.Scheme)
	case u.Port() == "":
		return fmt.Errorf("has no port, and %s has none of its own; write %s://HOST:PORT", u.Scheme, u.Scheme)
	case u.User != nil || u.Path != "" || u.RawQuery != "" || u.ForceQuery || u.Fragment != "" || u.RawFragment != "":
		return fmt.Errorf("has more than a host and a port, which is all that %s can use; write %s://HOST:PORT", u.Scheme, u.Scheme)
	}
	if err := checkHost(u.Hostname()); err != nil {
		return err
	}
	return checkPort(u.Port())
}

// checkHost refuses what is neither an address nor a name in ASCII.
func checkHost(host string) error {
	if strings.Contains(host, ":") {
		if _, err := netip.ParseAddr(host); err != nil {
			return errors.New("has a host that is not a valid IPv6 address; write it as [2001:db8::1]")
		}
		return nil
	}
	for i := range len(host) {
		if c := host[i]; !alphanumeric(c) && c != '-' && c != '.' && c != '_' {
			return errors.New("has a host with characters that no name has; write letters, digits, dots and hyphens (an international name in its xn-- form)")
		}
	}
	if len(host) > 253 {
		return errors.New("has a host that is too long; write a name of at most 253 characters")
	}
	return nil
}

func checkPort(port string) error {
	n, err := strconv.Atoi(port)
	if err != nil || n < 1 || n > 65535 {
		return errors.New("has a port that does not exist; write one from 1 to 65535")
	}
	return nil
}

// checkHostPort refuses what is not HOST:PORT.
func checkHostPort(text string) error {
	host, port, err := net.SplitHostPort(text)
	if err != nil || host == "" || port == "" {
		return errors.New("is not HOST:PORT; write for example 10.0.0.7:443 or [2001:db8::1]:443")
	}
	if err := checkHost(host); err != nil {
		return err
	}
	return checkPort(port)
}

func alphanumeric(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9'
}

// IsZero reports whether there is no URL.
func (u URL) IsZero() bool { return u.parsed == nil }

// Scheme returns http, https, tcp or tls.
func (u URL) Scheme() string { return u.get().Scheme }

// TLS reports whether the door is spoken to over TLS.
func (u URL) TLS() bool { return u.Scheme() == "https" || u.Scheme() == "tls" }

// HTTP reports whether the door is spoken to by HTTP, over TLS or not. It is
// not where a connection alone is probed, with what is sent and expected there.
func (u URL) HTTP() bool { return u.Scheme() != "tcp" && u.Scheme() != "tls" }

// Host returns the host as it was written, with the port where there is one,
// as the Host header has it.
func (u URL) Host() string {
	host := u.get().Host
	if zone := strings.IndexByte(host, '%'); zone >= 0 {
		if end := strings.IndexByte(host, ']'); end > zone {
			host = host[:zone] + host[end:] // RFC 6874: a zone means something to this machine only
		}
	}
	return host
}

// Hostname returns the host without port and brackets.
func (u URL) Hostname() string { return u.get().Hostname() }

// Port returns the port, that of the scheme where none was written.
func (u URL) Port() string {
	switch {
	case u.get().Port() != "":
		return u.get().Port()
	case u.TLS():
		return "443"
	}
	return "80"
}

// Address returns HOST:PORT, fit for dialing.
func (u URL) Address() string { return net.JoinHostPort(u.Hostname(), u.Port()) }

// RequestURI returns the escaped path and the query, as the request line has
// them. The query is secret: the result must not be logged.
func (u URL) RequestURI() string { return u.get().RequestURI() }

// User returns the user info, which is sent as basic authentication, and
// whether there is any.
func (u URL) User() (name string, password Secret, ok bool) {
	name, word, ok := userInfo(u.get())
	return name, NewSecret(word), ok
}

func userInfo(u *url.URL) (name, password string, ok bool) {
	if u.User == nil {
		return "", "", false
	}
	password, _ = u.User.Password()
	return u.User.Username(), password, true
}

// Reveal returns a copy of the whole URL, user info and query included. It must
// not be logged or put into an error.
func (u URL) Reveal() *url.URL {
	revealed := *u.get()
	return &revealed
}

// Public returns the URL without user info and query, which the label of a
// metric may hold.
func (u URL) Public() string {
	if u.IsZero() {
		return ""
	}
	p := url.URL{Scheme: u.parsed.Scheme, Host: u.parsed.Host, Path: u.parsed.Path, RawPath: u.parsed.RawPath}
	return p.String()
}

// Equal reports whether both are the same URL.
func (u URL) Equal(o URL) bool { return u.get().String() == o.get().String() }

// String returns the URL with user info and query masked.
func (u URL) String() string {
	if u.IsZero() {
		return ""
	}
	text := u.Public()
	if u.parsed.User != nil {
		text = strings.Replace(text, "//", maskedUser, 1)
	}
	if u.parsed.RawQuery != "" {
		text += "?" + masked
	}
	return text
}

// GoString returns the same as String.
func (u URL) GoString() string { return u.String() }

// Format writes the same as String, whatever the verb is.
func (u URL) Format(f fmt.State, _ rune) { _, _ = f.Write([]byte(u.String())) }

// MarshalText returns the same as String, for JSON, YAML and structured logs.
func (u URL) MarshalText() ([]byte, error) { return []byte(u.String()), nil }

func (u *URL) parseText(text string) (err error) {
	*u, err = ParseURL(text)
	return err
}

func (u URL) get() *url.URL {
	if u.parsed == nil {
		return new(url.URL)
	}
	return u.parsed
}
