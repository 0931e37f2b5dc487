package faultdoor

import (
	"fmt"
	"net"
	"os"
	"syscall"
	"testing"
)

// Full returns an address of 127.0.0.1 at which connecting times out, because
// what listens there has as many connections waiting as it may and accepts
// none (Linux drops the SYN). It is there until the test ends.
func Full(tb testing.TB) string {
	tb.Helper()
	fd, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC, 0)
	if err != nil {
		tb.Fatalf("opening a full door: %v", os.NewSyscallError("socket", err))
	}
	tb.Cleanup(func() { _ = syscall.Close(fd) })
	if err := syscall.Bind(fd, &syscall.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}); err != nil {
		tb.Fatalf("opening a full door: %v", os.NewSyscallError("bind", err))
	}
	if err := syscall.Listen(fd, 0); err != nil {
		tb.Fatalf("opening a full door: %v", os.NewSyscallError("listen", err))
	}
	name, err := syscall.Getsockname(fd)
	if err != nil {
		tb.Fatalf("opening a full door: %v", os.NewSyscallError("getsockname", err))
	}
	address := fmt.Sprintf("127.0.0.1:%d", name.(*syscall.SockaddrInet4).Port)
	first, err := net.Dial("tcp", address) // a backlog of 0 holds one
	if err != nil {
		tb.Fatalf("filling a door: %v", err)
	}
	tb.Cleanup(func() { _ = first.Close() })
	return address
}
