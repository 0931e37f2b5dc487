//go:build unix

package wire

import (
	"errors"
	"syscall"
)

const rawWrites = true

// writeOnce writes what the kernel takes at once: none of it is no error.
func writeOnce(fd uintptr, p []byte) (int, error) {
	for {
		n, err := syscall.Write(int(fd), p)
		switch {
		case err == nil:
			return n, nil
		case errors.Is(err, syscall.EINTR):
		case errors.Is(err, syscall.EAGAIN):
			return 0, nil
		default:
			return 0, err
		}
	}
}
