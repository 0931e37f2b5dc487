package wire

import (
	"bytes"
	"encoding/base64"
	"net/url"
	"strconv"
)

// Header is one header field of the request.
type Header struct{ Name, Value string }

// Request is what every tick of a target sends.
type Request struct {
	Method    string
	URL       *url.URL // user info becomes basic authorization, unless a header says otherwise
	Host      string   // of the Host header; empty: that of the URL
	UserAgent string   // unless a header says otherwise
	Headers   []Header // names and values must be valid
	Body      []byte
}

// bytes returns the request as it goes over the wire (RFC 9112). Last says
// that the connection carries no other.
func (r *Request) bytes(last bool) []byte {
	var b bytes.Buffer
	target := r.URL.RequestURI()
	host := r.Host
	if host == "" {
		host = r.URL.Host
	}
	b.WriteString(r.Method + " " + target + " HTTP/1.1\r\nHost: " + host + "\r\n")
	given := map[string]bool{}
	for _, h := range r.Headers {
		given[canonical(h.Name)] = true
	}
	if !given["user-agent"] && r.UserAgent != "" {
		b.WriteString("User-Agent: " + r.UserAgent + "\r\n")
	}
	if !given["accept"] {
		b.WriteString("Accept: */*\r\n")
	}
	if u := r.URL.User; u != nil && !given["authorization"] {
		password, _ := u.Password()
		credentials := base64.StdEncoding.EncodeToString([]byte(u.Username() + ":" + password))
		b.WriteString("Authorization: Basic " + credentials + "\r\n")
	}
	for _, h := range r.Headers {
		b.WriteString(h.Name + ": " + h.Value + "\r\n")
	}
	if len(r.Body) > 0 || r.Method == "POST" || r.Method == "PUT" || r.Method == "PATCH" {
		b.WriteString("Content-Length: " + strconv.Itoa(len(r.Body)) + "\r\n")
	}
	if last {
		b.WriteString("Connection: close\r\n")
	}
	b.WriteString("\r\n")
	b.Write(r.Body)
	return b.Bytes()
}

func canonical(name string) string { return string(bytes.ToLower([]byte(name))) }

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
