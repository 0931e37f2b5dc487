package testbed

import (
	"fmt"
	"math/rand/v2"
	"net"
	"strconv"
	"time"
)

// Ports are taken from below the range that the kernel gives to clients
// (32768 up by default on Linux): a client that connects to a stopped door may
// otherwise get the door's port as its own, and then talks to itself.
const (
	firstPort = 20000
	lastPort  = 32000
)

// freePort returns a TCP port that nothing listens on, neither at 127.0.0.1 nor
// at the other addresses.
func freePort(t Owner, others ...string) int {
	t.Helper()
	for range 1000 {
		port := firstPort + rand.IntN(lastPort-firstPort)
		if freeAt(port, append(others, "127.0.0.1")) {
			return port
		}
	}
	t.Fatalf("finding a free port between %d and %d: all that were tried are in use", firstPort, lastPort)
	return 0
}

// freeAt reports whether nothing listens on a port at any of the addresses.
func freeAt(port int, addresses []string) bool {
	for _, address := range addresses {
		l, err := net.Listen("tcp", net.JoinHostPort(address, strconv.Itoa(port)))
		if err != nil || l.Close() != nil {
			return false
		}
	}
	return true
}

// freeAddress returns "127.0.0.1:port" with a port that is free there and at
// the other addresses.
func freeAddress(t Owner, others ...string) string {
	t.Helper()
	return fmt.Sprintf("127.0.0.1:%d", freePort(t, others...))
}

// FreeAddress returns "127.0.0.1:port", where nothing listens: connecting to it
// is refused until somebody does.
func FreeAddress(t Owner) string { t.Helper(); return freeAddress(t) }

// portAt returns the port of an address at another IP address.
func portAt(address, ip string) string {
	_, port, _ := net.SplitHostPort(address)
	return net.JoinHostPort(ip, port)
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
