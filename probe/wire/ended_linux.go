package wire

import "golang.org/x/sys/unix"

// whatCame says, without reading it, what the peer has done on a connection on
// which nothing was asked: whether it has ended the connection, and whether it
// has sent bytes (poll(2), POLLRDHUP; an end alone is readable too).
func whatCame(fd uintptr) (ended, bytes bool) {
	fds := [1]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN | unix.POLLRDHUP}}
	if n, err := unix.Poll(fds[:], 0); err != nil || n == 0 {
		return false, false
	}
	ended = fds[0].Revents&^unix.POLLIN != 0
	if fds[0].Revents&unix.POLLIN == 0 {
		return ended, false
	}
	var one [1]byte
	n, _, err := unix.Recvfrom(int(fd), one[:], unix.MSG_PEEK|unix.MSG_DONTWAIT)
	return ended, err == nil && n > 0
}
