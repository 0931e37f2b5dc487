package schedule

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"sync"
	"time"

	"github.com/steadyprobe/steadyprobe/probe"
)

// canaryRate is how often a canary measures, a second.
const canaryRate = 20

// messageSize is that of the due time in nanoseconds, little endian.
const messageSize = 8

// Canary measures self latency: what the process itself adds to every latency
// that it reports. 20 times a second the pacer sends the due time through a
// local socket pair to a reader that reads as connections do: a goroutine
// through the runtime's poller, or who else reads connections; what has passed
// since the due time when it has read it is the lateness of the pacer and of
// the reader together.
//
// It is a [Taker] for the schedule that [Canary.Schedule] returns. Sending
// never waits. When the reader starves for so long that the socket buffer is
// full (see localPair), the due time that did not fit is kept and sent first
// as soon as there is room; due times in between are left out, so that the
// longest self latency is always observed.
type Canary struct {
	clock   Clock
	observe func(time.Duration)
	sender  sender
	stop    func() // ends the reader and waits for it
	once    sync.Once

	// Of the reader.
	due  [messageSize]byte
	have int // bytes of due

	// Of the pacer.
	message [messageSize]byte
	unsent  int // bytes at the end of message
}

// sender is the end of a socket pair that a pacer writes to.
type sender interface {
	// send writes what fits at once and returns how much that was.
	send(b []byte) (n int)
	Close() error
}

// Reader gives what comes over a connection to take, one call after the other,
// until stop is called, which closes the connection and returns when take has
// returned for the last time. It reports false where it cannot.
type Reader func(conn net.Conn, take func([]byte)) (stop func(), ok bool)

// NewCanary returns a canary that gives what it measures to observe, from its
// reader; nil stands for a goroutine. It fails where no socket pair is to be
// had. It must be closed.
func NewCanary(clock Clock, reader Reader, observe func(time.Duration)) (*Canary, error) {
	conn, sender, err := localPair()
	if err != nil {
		return nil, fmt.Errorf("opening a socket pair for self latency: %w", err)
	}
	c := &Canary{clock: clock, observe: observe, sender: sender}
	if reader == nil {
		reader = goroutine
	}
	stop, ok := reader(conn, c.take)
	if !ok {
		_ = conn.Close()
		_ = sender.Close()
		return nil, errors.New("reading a socket pair for self latency: the reader cannot")
	}
	c.stop = stop
	return c, nil
}

// goroutine is the Reader that reads in a goroutine of its own.
func goroutine(conn net.Conn, take func([]byte)) (stop func(), ok bool) {
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		buffer := make([]byte, 64*messageSize)
		for {
			n, err := conn.Read(buffer)
			take(buffer[:n])
			if err != nil {
				return
			}
		}
	}()
	return func() {
		_ = conn.Close()
		<-ended
	}, true
}

// take puts due times together and observes how long ago they were.
func (c *Canary) take(p []byte) {
	now := c.clock.Now()
	for len(p) > 0 {
		n := copy(c.due[c.have:], p)
		c.have += n
		p = p[n:]
		if c.have == messageSize {
			c.have = 0
			c.observe(now.Sub(probe.Instant(binary.LittleEndian.Uint64(c.due[:]))))
		}
	}
}

// Schedule returns the schedule of a canary, 20 ticks a second from origin.
func (c *Canary) Schedule(origin probe.Instant) Schedule {
	return Schedule{Origin: origin, Rate: Rate{num: canaryRate, den: 1}}
}

// Take sends the due time. It is for the pacer only.
func (c *Canary) Take(intended probe.Instant) (wake probe.Instant) {
	if c.flush() {
		binary.LittleEndian.PutUint64(c.message[:], uint64(intended))
		c.unsent = messageSize
		c.flush()
	}
	return 0
}

// Drain does nothing: a canary has no backlog.
func (c *Canary) Drain() (wake probe.Instant) { return 0 }

// Close ends the reader and waits for it. Due times that it has not read are
// lost. The canary must have been removed from its pacer. Close may be called
// again.
func (c *Canary) Close() {
	c.once.Do(func() {
		c.stop()
		_ = c.sender.Close()
	})
}

// flush sends what is left of the message and reports whether nothing is.
func (c *Canary) flush() bool {
	if c.unsent > 0 {
		c.unsent -= c.sender.send(c.message[messageSize-c.unsent:])
	}
	return c.unsent == 0
}
