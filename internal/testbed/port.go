package testbed

import (
	"fmt"
	"math/rand/v2"
	"net"
	"time"
)

// Ports are taken from below the range that the kernel gives to clients
// (32768 up by default on Linux): a client that connects to a stopped door may
// otherwise get the door's port as its own, and then talks to itself.
const (
	firstPort = 20000
	lastPort  = 32000
)

// freePort returns a TCP port on loopback that nothing listens on.
func freePort(t Owner) int {
	t.Helper()
	for range 1000 {
		port := firstPort + rand.IntN(lastPort-firstPort)
		l, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", port))
		if err != nil {
			continue
		}
		if err := l.Close(); err != nil {
			t.Fatalf("closing the listener on port %d: %v", port, err)
		}
		return port
	}
	t.Fatalf("finding a free port between %d and %d: all that were tried are in use", firstPort, lastPort)
	return 0
}

// freeAddress returns "127.0.0.1:port" with a free port.
func freeAddress(t Owner) string {
	t.Helper()
	return fmt.Sprintf("127.0.0.1:%d", freePort(t))
}

// WaitFor asks ready again and again until it says true. The test fails with
// what when it has not within limit. It is to be called from the test's own
// goroutine.
func WaitFor(t Owner, what string, limit time.Duration, ready func() bool) {
	t.Helper()
	if err := await(what, limit, ready); err != nil {
		t.Fatal(err)
	}
}

// await is WaitFor for callers on any goroutine.
func await(what string, limit time.Duration, ready func() bool) error {
	for end := time.Now().Add(limit); ; time.Sleep(2 * time.Millisecond) {
		switch {
		case ready():
			return nil
		case time.Now().After(end):
			return fmt.Errorf("waiting for %s: not within %v", what, limit)
		}
	}
}
