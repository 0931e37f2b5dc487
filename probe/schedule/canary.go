package schedule

import (
	"encoding/binary"
	"fmt"
	"io"
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
// local socket pair to a goroutine that reads as connections do, through the
// runtime's poller; what has passed since the due time when it has read it is
// the lateness of the pacer and of the reader together.
//
// It is a [Taker] for the schedule that [Canary.Schedule] returns. Sending
// never waits. When the reader starves for so long that the socket buffer is
// full (see localPair), the due time that did not fit is kept and sent first
// as soon as there is room; due times in between are left out, so that the
// longest self latency is always observed.
type Canary struct {
	clock   Clock
	observe func(time.Duration)
	reader  net.Conn
	sender  sender
	once    sync.Once
	ended   chan struct{}

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

// NewCanary returns a canary that gives what it measures to observe, from a
// goroutine of its own. It fails where no socket pair is to be had. It must be
// closed.
func NewCanary(clock Clock, observe func(time.Duration)) (*Canary, error) {
	reader, sender, err := localPair()
	if err != nil {
		return nil, fmt.Errorf("opening a socket pair for self latency: %w", err)
	}
	c := &Canary{clock: clock, observe: observe, reader: reader, sender: sender, ended: make(chan struct{})}
	go c.read()
	return c, nil
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
		// Neither end has anything left to say that an error could lose.
		_ = c.reader.Close()
		_ = c.sender.Close()
	})
	<-c.ended
}

// flush sends what is left of the message and reports whether nothing is.
func (c *Canary) flush() bool {
	if c.unsent > 0 {
		c.unsent -= c.sender.send(c.message[messageSize-c.unsent:])
	}
	return c.unsent == 0
}

func (c *Canary) read() {
	defer close(c.ended)
	var message [messageSize]byte
	for {
		if _, err := io.ReadFull(c.reader, message[:]); err != nil {
			return
		}
		due := probe.Instant(binary.LittleEndian.Uint64(message[:]))
		c.observe(c.clock.Now().Sub(due))
	}
}
