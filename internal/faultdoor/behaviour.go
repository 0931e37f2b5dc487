package faultdoor

import (
	"fmt"
	"io"
	"net/http"
	"time"
)

// CloseAtOnce accepts and closes.
func CloseAtOnce() Behaviour { return func(*Conn) {} }

// ResetAtOnce accepts and resets. On a real socket the peer may see that before
// it has noticed that it is connected.
func ResetAtOnce() Behaviour { return func(c *Conn) { _ = c.Reset() } }

// Silent reads everything and never says a word, not even of a handshake,
// until the peer closes.
func Silent() Behaviour { return func(c *Conn) { _ = c.Wait() } }

// NeverReads accepts and reads nothing, so that the peer's window closes,
// until the door is closed. A request is stuck only when it is larger than the
// buffers on both sides: some megabytes on a real socket.
func NeverReads() Behaviour {
	return func(c *Conn) {
		if b, ok := c.raw.(interface{ SetReadBuffer(int) error }); ok {
			_ = b.SetReadBuffer(1)
		}
		<-c.door.done
	}
}

// Babble sends those bytes before it was asked for anything, then nothing,
// until the peer closes.
func Babble(data string) Behaviour {
	return func(c *Conn) {
		_, _ = io.WriteString(c, data)
		_ = c.Wait()
	}
}

// CloseAfter answers n requests with h, and closes without an announcement
// after a pause in which it reads nothing.
func CloseAfter(n int, pause time.Duration, h Handler) Behaviour {
	return HTTPThen(n, h, func(c *Conn) { _ = c.Sleep(pause) })
}

// ResetAfter answers n requests with h, and resets after a pause in which it
// reads nothing.
func ResetAfter(n int, pause time.Duration, h Handler) Behaviour {
	return HTTPThen(n, h, func(c *Conn) {
		_ = c.Sleep(pause)
		_ = c.Reset()
	})
}

// HalfClose answers n requests with h, then shuts its sending side down and
// reads on until the peer closes.
func HalfClose(n int, h Handler) Behaviour {
	return HTTPThen(n, h, func(c *Conn) { _ = c.Linger() })
}

// Unasked answers n requests with h and sends, after a pause, an answer that
// nobody asked for, as doors do with 408 when a connection was idle for long.
// It reads on until the peer closes.
func Unasked(n int, pause time.Duration, code int, h Handler) Behaviour {
	answer := fmt.Sprintf("HTTP/1.1 %d %s\r\nConnection: close\r\nContent-Length: 0\r\n\r\n", code, http.StatusText(code))
	return HTTPThen(n, h, func(c *Conn) {
		if c.Sleep(pause) == nil {
			_, _ = io.WriteString(c, answer)
			_ = c.Wait()
		}
	})
}

// IdleTimeout answers requests with h and closes a connection on which no
// request begins for d.
func IdleTimeout(d time.Duration, h Handler) Behaviour {
	return func(c *Conn) {
		for {
			_ = c.SetReadDeadline(time.Now().Add(d))
			if _, err := c.in.Peek(1); err != nil {
				return
			}
			_ = c.SetReadDeadline(time.Time{})
			r, err := c.ReadRequest(true)
			if err != nil || h(c, r) != nil {
				return
			}
		}
	}
}
