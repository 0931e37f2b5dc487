//go:build unix

package notefile

import (
	"errors"
	"os"
)

// syncFolder returns when the disk has the names of a folder's files.
func syncFolder(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}
