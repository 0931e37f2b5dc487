//go:build !linux

package faultdoor

import "testing"

// Full fails the test: only Linux drops connections to a full queue.
func Full(tb testing.TB) string {
	tb.Helper()
	tb.Fatal("a full queue of connections times out on Linux only")
	return ""
}
