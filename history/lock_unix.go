//go:build unix

package history

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// lockFile locks a file until it is closed, or the process ends.
func lockFile(f *os.File) error {
	err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
	if errors.Is(err, unix.EWOULDBLOCK) {
		return errInUse
	}
	return err
}
