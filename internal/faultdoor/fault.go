package faultdoor

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"time"
)

// Raw writes those bytes as the answer, then goes on with then.
func Raw(answer string, then Handler) Handler {
	return func(c *Conn, r *Request) error {
		if _, err := io.WriteString(c, answer); err != nil {
			return err
		}
		return then(c, r)
	}
}

// EOF closes the connection in an orderly way.
func EOF() Handler { return func(*Conn, *Request) error { return ErrEnd } }

// Reset resets the connection.
func Reset() Handler { return func(c *Conn, _ *Request) error { return c.Reset() } }

// Hang answers nothing more, and reads on, until the peer closes.
func Hang() Handler { return func(c *Conn, _ *Request) error { return c.Wait() } }

const (
	halfHeader  = "HTTP/1.1 200 OK\r\nContent-Ty"
	emptyHeader = "HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n"
)

// EOFBeforeAnswer closes where the answer would begin.
func EOFBeforeAnswer() Handler { return EOF() }

// EOFInHeader closes inside the header.
func EOFInHeader() Handler { return Raw(halfHeader, EOF()) }

// ResetBeforeHeader resets where the answer would begin.
func ResetBeforeHeader() Handler { return Reset() }

// ResetInHeader resets inside the header.
func ResetInHeader() Handler { return Raw(halfHeader, Reset()) }

// ResetAfterHeader resets between header and body.
func ResetAfterHeader() Handler { return Raw(emptyHeader, Reset()) }

// Truncated says that the body has size bytes, sends so many of them, and
// closes. With all of a body but a wrong, too long length it is the same.
func Truncated(size, sent int) Handler {
	return Raw(fmt.Sprintf("HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s", size, fill(sent)), EOF())
}

// TruncatedChunked closes behind the first chunk, of so many bytes, of a body
// that never says that it ends.
func TruncatedChunked(sent int) Handler {
	return Raw(fmt.Sprintf("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n%x\r\n%s\r\n", sent, fill(sent)), EOF())
}

// SlowBody sends a header, then size bytes of body in pieces with a pause
// before each.
func SlowBody(size, piece int, pause time.Duration) Handler {
	return func(c *Conn, _ *Request) error {
		if _, err := fmt.Fprintf(c, "HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n", size); err != nil {
			return err
		}
		for left := size; left > 0; left -= piece {
			if err := c.Sleep(pause); err != nil {
				return err
			}
			if _, err := c.Write(fill(min(piece, left))); err != nil {
				return err
			}
		}
		c.door.answers.Add(1)
		return nil
	}
}

// EndlessChunked sends chunks of that size, with a pause before each, until
// the peer closes.
func EndlessChunked(size int, pause time.Duration) Handler {
	return endless("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", fmt.Sprintf("%x\r\n%s\r\n", size, fill(size)), pause)
}

// EndlessHeader sends one header line after the other, with a pause before
// each, until the peer closes.
func EndlessHeader(pause time.Duration) Handler {
	return endless("HTTP/1.1 200 OK\r\n", fmt.Sprintf("X-Fill: %s\r\n", fill(100)), pause)
}

func endless(head, piece string, pause time.Duration) Handler {
	return Raw(head, func(c *Conn, _ *Request) error {
		for {
			if err := c.Sleep(pause); err != nil {
				return err
			}
			if _, err := io.WriteString(c, piece); err != nil {
				return err
			}
		}
	})
}

// HugeHeader answers 200 with a header of at least n bytes.
func HugeHeader(n int) Handler {
	line := fmt.Sprintf("X-Fill: %s", fill(1000))
	var lines []string
	for size := 0; size < n; size += len(line) + 2 {
		lines = append(lines, line)
	}
	return Reply(Answer{Header: lines})
}

// Garbage answers what is not HTTP, and then nothing.
func Garbage() Handler { return Raw("\x00\x01garbage\xff", Hang()) }

// Early answers with that status, 413 for instance, without having read the
// body, announces that it closes, and lets the peer read that: for HTTPEarly.
func Early(code int) Handler {
	return func(c *Conn, r *Request) error {
		_ = c.Answer(r, Answer{Code: code, Close: true})
		return c.Linger()
	}
}

// EarlyReset answers with that status without having read the body, and resets
// as a system does for a door that closes with something unread: for HTTPEarly.
func EarlyReset(code int) Handler {
	return func(c *Conn, r *Request) error {
		_ = c.Answer(r, Answer{Code: code, Close: true})
		return c.Reset()
	}
}

// TwoAnswers answers each request twice in one piece.
func TwoAnswers() Handler {
	a := Answer{Code: http.StatusOK, Proto: "HTTP/1.1", Body: []byte("ok\n")}
	return func(c *Conn, r *Request) error {
		if _, err := c.Write(bytes.Repeat(a.encode(r.Method), 2)); err != nil {
			return err
		}
		c.door.answers.Add(1)
		return nil
	}
}
