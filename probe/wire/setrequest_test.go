package wire

import (
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/steadyprobe/steadyprobe/internal/faultdoor"
	"github.com/steadyprobe/steadyprobe/probe"
)

// A request says something else from one tick to the next, on the same
// connection, whether a loop or a goroutine reads it.
func TestSetRequest(t *testing.T) {
	for _, looped := range []bool{false, true} {
		var mu sync.Mutex
		said := ""
		door := faultdoor.Listen(t, faultdoor.HTTP(func(c *faultdoor.Conn, r *faultdoor.Request) error {
			mu.Lock()
			said = r.Header.Get("A")
			mu.Unlock()
			return c.Answer(r, faultdoor.Answer{})
		}))
		clock := probe.NewClock()
		o := Options{Way: Way{Clock: clock, Timeout: 5 * time.Second}, Reuse: true, MaxBody: 1 << 20}
		o.Statuses.Add(200, 299)
		if looped {
			loop, err := NewLoop(clock)
			if err != nil {
				continue // this system has none
			}
			t.Cleanup(loop.Close)
			o.Loop = loop
		}
		o.Resolver = resolverOf(t, clock, door.Addr())
		says := func(value string) Request {
			return Request{Method: "GET", Target: "/", Host: door.Addr(), Headers: []Header{{Name: "A", Value: value}}}
		}
		o.Request = says("first")
		opener := NewOpener(o)
		r := rigFor(t, clock, o.Resolver, opener, probe.Target{Timeout: o.Timeout, Reuse: true})
		for _, value := range []string{"first", "second", ""} {
			if !opener.SetRequest(says(value)) {
				t.Errorf("looped %v: %q was refused", looped, value)
			}
			if s := r.send(); s.Outcome != probe.Success {
				t.Errorf("looped %v: %v", looped, s.Outcome)
			}
			mu.Lock()
			if said != value {
				t.Errorf("looped %v: the door was told %q, want %q", looped, said, value)
			}
			mu.Unlock()
		}
		if n := door.Counts().Accepted; n != 1 {
			t.Errorf("looped %v: %d connections, want one", looped, n)
		}
		long, head := says("long"), says("head")
		long.Method, long.Body = "GET", []byte(strings.Repeat("x", inlineLimit))
		head.Method = "HEAD"
		for _, other := range []Request{long, head} {
			if opener.SetRequest(other) {
				t.Errorf("looped %v: a request that takes another connection was not refused", looped)
			}
		}
		if s := r.send(); s.Outcome != probe.Success || s.Bytes.Sent > 1000 {
			t.Errorf("looped %v: %v, %d bytes sent after what was refused", looped, s.Outcome, s.Bytes.Sent)
		}
	}
}
