package wire

import "golang.org/x/sys/unix"

// peerEnded reports whether the peer has closed or reset the connection, read
// or not (poll(2), POLLRDHUP).
func peerEnded(fd uintptr) bool {
	fds := [1]unix.PollFd{{Fd: int32(fd), Events: unix.POLLRDHUP}}
	n, err := unix.Poll(fds[:], 0)
	return err == nil && n > 0
}
