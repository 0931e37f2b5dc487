//go:build !linux

package wire

import (
	"errors"
	"net"

	"github.com/steadyprobe/steadyprobe/probe"
)

// Loop reads many connections in one goroutine, on Linux only.
type Loop struct{}

// looped is a connection that a Loop reads.
type looped struct{ net.Conn }

// NewLoop returns an error that is [errors.ErrUnsupported].
func NewLoop(probe.Clock) (*Loop, error) { return nil, errors.ErrUnsupported }

// Close does nothing.
func (*Loop) Close() {}

// Watch returns false.
func (*Loop) Watch(net.Conn, func([]byte)) (stop func(), ok bool) { return nil, false }

func (*Loop) adopt(net.Conn) (*looped, bool) { return nil, false }
func (*Loop) add(*http1)                     {}
func (*Loop) wake(*http1)                    {}
func (*looped) came() (ended, bytes bool)    { return false, false }
func (*looped) pending() bool                { return false }
func (*looped) cut()                         {}
