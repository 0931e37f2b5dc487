package discovery

import (
	"cmp"
	"context"
	"errors"
	"net"

	promconfig "github.com/prometheus/common/config"
)

// mostAnswer bounds what is read of one answer to a source over HTTP, in bytes
// on the wire. Prometheus reads it whole, whatever comes.
const mostAnswer = 64 << 20

var errTooLarge = errors.New("the answer is too large")

// clientOptions let a source over HTTP answer with so much and no more: each
// answer has a connection of its own, which knows how much was read.
func clientOptions(o *Options) []promconfig.HTTPClientOption {
	var dialer net.Dialer
	dial := func(ctx context.Context, network, address string) (net.Conn, error) {
		c, err := dialer.DialContext(ctx, network, address)
		if err != nil {
			return nil, err
		}
		return &limitedConn{Conn: c, left: cmp.Or(o.mostAnswer, mostAnswer)}, nil
	}
	return []promconfig.HTTPClientOption{
		promconfig.WithDialContextFunc(dial),
		promconfig.WithKeepAlivesDisabled(),
		promconfig.WithHTTP2Disabled(),
		promconfig.WithUserAgent(o.Agent),
	}
}

// limitedConn is a connection of which only so much is read. It is read by one
// goroutine at a time.
type limitedConn struct {
	net.Conn
	left int
}

// Read fails when too much was read.
func (c *limitedConn) Read(b []byte) (int, error) {
	if c.left <= 0 {
		return 0, errTooLarge
	}
	n, err := c.Conn.Read(b[:min(len(b), c.left)])
	c.left -= n
	return n, err
}
