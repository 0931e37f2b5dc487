package wire

import (
	"bytes"
	"strconv"
	"strings"
)

// Header is one header field of the request.
type Header struct{ Name, Value string }

// Request is what every tick of a target sends. All of it must be valid: no
// name or value may hold a line break.
type Request struct {
	Method    string
	Target    string // escaped path and query
	Host      string // of the Host header
	UserAgent string // unless a header says otherwise
	Headers   []Header
	Body      []byte
}

// bytes returns the request as it goes over the wire (RFC 9112). Last says
// that the connection carries no other.
func (r *Request) bytes(last bool) []byte {
	var b bytes.Buffer
	field := func(name, value string) { b.WriteString(name + ": " + value + "\r\n") }
	b.WriteString(r.Method + " " + r.Target + " HTTP/1.1\r\n")
	field("Host", r.Host)
	if !r.has("User-Agent") {
		field("User-Agent", r.UserAgent)
	}
	if !r.has("Accept") {
		field("Accept", "*/*")
	}
	for _, h := range r.Headers {
		field(h.Name, h.Value)
	}
	if len(r.Body) > 0 || r.Method == "POST" || r.Method == "PUT" || r.Method == "PATCH" {
		field("Content-Length", strconv.Itoa(len(r.Body)))
	}
	if last {
		field("Connection", "close")
	}
	b.WriteString("\r\n")
	b.Write(r.Body)
	return b.Bytes()
}

func (r *Request) has(name string) bool {
	for _, h := range r.Headers {
		if strings.EqualFold(h.Name, name) {
			return true
		}
	}
	return false
}

// Statuses is a set of HTTP status codes.
type Statuses [10]uint64

// Add adds the codes from first to last, both included, between 100 and 599.
func (s *Statuses) Add(first, last int) {
	for code := first; code <= last; code++ {
		s[code/64] |= 1 << (code % 64)
	}
}

// Has reports whether the set has the code.
func (s *Statuses) Has(code uint16) bool {
	return int(code) < 64*len(s) && s[code/64]&(1<<(code%64)) != 0
}
