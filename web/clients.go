package web

import (
	"crypto/tls"
	"net"
	"net/http"
	"sync"
	"time"
)

// MaxClients is how many connections a server has open at once. A broken
// scraper that opens ever more of them must not take the files that requests to
// doors need.
const MaxClients = 64

// clients are the connections of a server. Where there are too many, the one
// that has been idle for longest is closed, and the newest one where none is
// idle: those that do not send or read have deadlines.
type clients struct {
	most int

	mu   sync.Mutex
	open map[net.Conn]time.Time // since when it is idle; zero: it is not
}

func newClients(most int) *clients {
	return &clients{most: most, open: map[net.Conn]time.Time{}}
}

// changed is the ConnState of a server.
func (c *clients) changed(conn net.Conn, state http.ConnState) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch state {
	case http.StateNew:
		c.open[conn] = time.Time{}
		if len(c.open) > c.most {
			victim := c.longestIdle(conn)
			delete(c.open, victim)
			// A TLS connection would wait to say goodbye.
			if secure, ok := victim.(*tls.Conn); ok {
				victim = secure.NetConn()
			}
			_ = victim.Close()
		}
	case http.StateActive:
		c.busy(conn, time.Time{})
	case http.StateIdle:
		c.busy(conn, time.Now())
	case http.StateClosed, http.StateHijacked:
		delete(c.open, conn)
	}
}

// busy notes since when a connection is idle, unless it was closed.
func (c *clients) busy(conn net.Conn, idle time.Time) {
	if _, there := c.open[conn]; there {
		c.open[conn] = idle
	}
}

// longestIdle returns the connection that has been idle for longest, or the
// other one where none is.
func (c *clients) longestIdle(other net.Conn) net.Conn {
	victim, since := other, time.Time{}
	for conn, idle := range c.open {
		if !idle.IsZero() && (since.IsZero() || idle.Before(since)) {
			victim, since = conn, idle
		}
	}
	return victim
}
