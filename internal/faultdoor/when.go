package faultdoor

import (
	"sync"
	"time"
)

// Delay waits for d after each request was read, then goes on with h. Each
// connection waits for itself.
func Delay(d time.Duration, h Handler) Handler {
	return func(c *Conn, r *Request) error {
		if err := c.Sleep(d); err != nil {
			return err
		}
		return h(c, r)
	}
}

// Stall lets all requests that are read in [from, to) wait until to, then goes
// on with h, as a door does that is stopped for that time.
func Stall(from, to time.Time, h Handler) Handler {
	return func(c *Conn, r *Request) error {
		if !r.Read.Before(from) && r.Read.Before(to) {
			if err := c.Sleep(time.Until(to)); err != nil {
				return err
			}
		}
		return h(c, r)
	}
}

// Queue is a single worker that serves the requests of all connections, first
// come, first served, each for the same time. A request whose peer has gone is
// served all the same. It may be used concurrently.
type Queue struct {
	service time.Duration

	mu   sync.Mutex
	free time.Time // when the worker has done all that came so far
}

// NewQueue returns an idle worker that spends that time on each request.
func NewQueue(service time.Duration) *Queue { return &Queue{service: service} }

// Handle lets the worker serve each request, then goes on with h, which should
// take no time.
func (q *Queue) Handle(h Handler) Handler {
	return func(c *Conn, r *Request) error {
		if err := c.Sleep(time.Until(q.enter(r.Read))); err != nil {
			return err
		}
		return h(c, r)
	}
}

// enter puts a request into the queue and returns when it will have been
// served.
func (q *Queue) enter(now time.Time) time.Time {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.free.Before(now) {
		q.free = now
	}
	q.free = q.free.Add(q.service)
	return q.free
}

// Nth handles the n-th request of every connection, from 1, with special and
// all others with h.
func Nth(n int, special, h Handler) Handler {
	return choose(func(r *Request) bool { return r.N == n }, special, h)
}

// Beyond handles the first n requests of every connection with h and all later
// ones with special.
func Beyond(n int, special, h Handler) Handler {
	return choose(func(r *Request) bool { return r.N > n }, special, h)
}

// Every handles each n-th request of the door with special and all others with
// h.
func Every(n uint64, special, h Handler) Handler {
	return choose(func(r *Request) bool { return r.Total%n == 0 }, special, h)
}

func choose(is func(*Request) bool, special, h Handler) Handler {
	return func(c *Conn, r *Request) error {
		if is(r) {
			return special(c, r)
		}
		return h(c, r)
	}
}

// InTurn gives the first connection the first behaviour, and so on; the last
// one is also for all that come later.
func InTurn(b ...Behaviour) Behaviour {
	return func(c *Conn) { b[min(c.N, uint64(len(b)))-1](c) }
}
