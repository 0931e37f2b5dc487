package wire

import (
	"regexp"
	"unicode"
	"unicode/utf8"

	"github.com/steadyprobe/steadyprobe/probe"
)

// BackendRule says how an answer tells who gave it. The zero value: it does not.
type BackendRule struct {
	Header string          // the first field of that name; empty: none
	Body   *regexp.Regexp  // its first group, where no field told; nil: none
	Names  *probe.Backends // nil: nothing tells
}

// mostBackendName is how many bytes a backend's name may have. A longer one, or
// one that cannot be printed, counts as that of another backend.
const mostBackendName = 100

type backendRule struct {
	header []byte // nil: none
	body   *regexp.Regexp
	known  *probe.Backends
}

func newBackendRule(b BackendRule) backendRule {
	r := backendRule{body: b.Body, known: b.Names}
	if b.Header != "" {
		r.header = []byte(b.Header)
	}
	return r
}

// who returns the backend that gave a complete answer, whatever its status;
// nil: it does not tell.
func (e *evidence) who() *probe.Backend {
	if e.named && len(e.name) > 0 {
		return e.backend.of(e.name)
	}
	if e.backend.body != nil {
		if m := e.turns.find(e.backend.body, e.body); len(m) > 1 && len(m[1]) > 0 {
			return e.backend.of(m[1])
		}
	}
	return nil
}

func (r *backendRule) of(name []byte) *probe.Backend {
	if len(name) > mostBackendName || !printable(name) {
		return r.known.Other()
	}
	return r.known.Named(name)
}

// printable reports whether b is valid UTF-8 without control characters.
func printable(b []byte) bool {
	for len(b) > 0 {
		r, n := utf8.DecodeRune(b)
		if r == utf8.RuneError && n == 1 || !unicode.IsPrint(r) {
			return false
		}
		b = b[n:]
	}
	return true
}
