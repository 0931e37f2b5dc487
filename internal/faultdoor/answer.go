package faultdoor

import (
	"bytes"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Answer is a well-formed answer. The zero value is an empty 200.
type Answer struct {
	Code       int      // 0: 200
	Proto      string   // empty: HTTP/1.1
	Header     []string // further lines, without their ends
	Body       []byte
	Chunked    int  // body in chunks of at most so many bytes; 0: with a Content-Length
	UntilClose bool // body without a length, delimited by the close
	Close      bool // announces that the connection closes, and closes it
}

// bodiless reports whether no body may follow (RFC 9112 section 6.3).
func (a *Answer) bodiless(method string) bool {
	return method == http.MethodHead || a.Code == 204 || a.Code == 304
}

// encode returns the answer to a request of that method on the wire.
func (a *Answer) encode(method string) []byte {
	b := fmt.Appendf(nil, "%s %d %s\r\n", a.Proto, a.Code, http.StatusText(a.Code))
	for _, line := range a.Header {
		b = fmt.Appendf(b, "%s\r\n", line)
	}
	if a.Close {
		b = append(b, "Connection: close\r\n"...)
	}
	switch {
	case a.UntilClose || a.Code == 204:
	case a.Chunked > 0:
		b = append(b, "Transfer-Encoding: chunked\r\n"...)
	default:
		b = fmt.Appendf(b, "Content-Length: %d\r\n", len(a.Body))
	}
	b = append(b, "\r\n"...)
	switch {
	case a.bodiless(method):
	case a.Chunked > 0:
		for chunk := range slices.Chunk(a.Body, a.Chunked) {
			b = fmt.Appendf(b, "%x\r\n%s\r\n", len(chunk), chunk)
		}
		b = append(b, "0\r\n\r\n"...)
	default:
		b = append(b, a.Body...)
	}
	return b
}

// Answer writes a in one piece. It returns ErrEnd when the connection is to be
// closed, because either side said so or because that ends the body.
func (c *Conn) Answer(r *Request, a Answer) error {
	if a.Code == 0 {
		a.Code = http.StatusOK
	}
	if a.Proto == "" {
		a.Proto = "HTTP/1.1"
	}
	a.Close = a.Close || r.Close
	if _, err := c.Write(a.encode(r.Method)); err != nil {
		return err
	}
	c.door.answers.Add(1)
	if a.Close || a.UntilClose && !a.bodiless(r.Method) {
		return ErrEnd
	}
	return nil
}

// Handler deals with one request. The connection takes another one when it
// returns nil, and is closed when it returns an error, [ErrEnd] for instance.
type Handler func(*Conn, *Request) error

// HTTP answers requests, each when it was wholly read, as a well-behaved door.
func HTTP(h Handler) Behaviour { return HTTPThen(-1, h, nil) }

// HTTPThen answers n requests, then goes on with another behaviour; n below 0
// is without end.
func HTTPThen(n int, h Handler, then Behaviour) Behaviour {
	return func(c *Conn) {
		for n < 0 || c.requests < n {
			r, err := c.ReadRequest(true)
			if err != nil || h(c, r) != nil {
				return
			}
		}
		then(c)
	}
}

// HTTPEarly calls the handler when the header of a request was read, while the
// body is still being sent, and reads the rest of it afterwards.
func HTTPEarly(h Handler) Behaviour {
	return func(c *Conn) {
		for {
			r, err := c.ReadRequest(false)
			if err != nil || h(c, r) != nil || r.Drain() != nil {
				return
			}
		}
	}
}

// Reply gives the same answer to every request.
func Reply(a Answer) Handler {
	return func(c *Conn, r *Request) error { return c.Answer(r, a) }
}

// OK answers 200 with the body "ok\n".
func OK() Handler { return Reply(Answer{Body: []byte("ok\n")}) }

// Status answers with that status and an empty body.
func Status(code int) Handler { return Reply(Answer{Code: code}) }

// Sized answers 200 with a body of n bytes.
func Sized(n int) Handler { return Reply(Answer{Body: fill(n)}) }

// Chunked answers 200 with a body of n bytes in chunks of size bytes.
func Chunked(n, size int) Handler { return Reply(Answer{Body: fill(n), Chunked: size}) }

// HTTP10 answers 200 in HTTP/1.0 and closes, with a length all the same.
func HTTP10() Handler {
	return func(c *Conn, r *Request) error {
		r.Close = false
		_ = c.Answer(r, Answer{Proto: "HTTP/1.0", Body: []byte("ok\n")})
		return ErrEnd
	}
}

// HTTP10KeepAlive answers 200 in HTTP/1.0 and keeps the connection.
func HTTP10KeepAlive() Handler {
	return Reply(Answer{Proto: "HTTP/1.0", Header: []string{"Connection: keep-alive"}, Body: []byte("ok\n")})
}

// UntilClose answers 200 with a body of n bytes that ends with the connection.
func UntilClose(n int) Handler { return Reply(Answer{Body: fill(n), UntilClose: true}) }

// CloseAnnounced answers 200, says that it closes, and closes.
func CloseAnnounced() Handler { return Reply(Answer{Body: []byte("ok\n"), Close: true}) }

// CloseOnlyAnnounced answers 200 and says that it closes, but leaves that to
// the peer.
func CloseOnlyAnnounced() Handler {
	return func(c *Conn, r *Request) error {
		_ = c.Answer(r, Answer{Body: []byte("ok\n"), Close: true})
		return c.Wait()
	}
}

// Interim sends n interim answers of that code, 100 or 103 for instance,
// before h.
func Interim(n, code int, h Handler) Handler {
	line := fmt.Sprintf("HTTP/1.1 %d %s\r\n\r\n", code, http.StatusText(code))
	return func(c *Conn, r *Request) error {
		if _, err := c.Write([]byte(strings.Repeat(line, n))); err != nil {
			return err
		}
		return h(c, r)
	}
}

// ByPath does what the path says: /status/503 answers with that status,
// /bytes/1024 with so many bytes, /chunked/1024 with so many in chunks of 256,
// /delay/20ms after that time, /close announces that it closes. Any other path
// is OK, a malformed one 400.
func ByPath() Handler {
	return func(c *Conn, r *Request) error {
		kind, value, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), "/")
		n, err := strconv.Atoi(value)
		h := OK()
		switch kind {
		case "status":
			h = Status(n)
		case "bytes":
			h = Sized(n)
		case "chunked":
			h = Chunked(n, 256)
		case "delay":
			var d time.Duration
			d, err = time.ParseDuration(value)
			h = Delay(d, OK())
		case "close":
			h, err = CloseAnnounced(), nil
		default:
			err = nil
		}
		if err != nil {
			h = Status(http.StatusBadRequest)
		}
		return h(c, r)
	}
}

// fill returns n bytes of text.
func fill(n int) []byte { return bytes.Repeat([]byte("x"), n) }
