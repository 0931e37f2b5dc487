package notefile

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
)

// mostBytes is more than any note has: the states of some thousand servers.
const mostBytes = 4 << 20

// readFile returns what a file holds, up to a little more than mostBytes of it.
// It opens nothing but files: to open a pipe would wait for somebody who writes
// into it.
func readFile(path string) ([]byte, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, errors.New("it is no file")
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }() // it was only read
	return io.ReadAll(io.LimitReader(f, mostBytes+1))
}

// makeFolder makes the folder of a file where there is none.
func makeFolder(path string) error { return os.MkdirAll(filepath.Dir(path), 0o700) }

// replaceFile puts a file with the text at path, where either the file before
// or the whole new one is at any time. Only one at a time may call it for a
// path.
func replaceFile(path string, text []byte) error {
	if err := makeFolder(path); err != nil {
		return err
	}
	draft := path + ".new"
	// What a crash has left there may belong to anybody.
	if err := os.Remove(draft); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := writeFile(draft, text); err != nil {
		return errors.Join(err, os.Remove(draft))
	}
	if err := os.Rename(draft, path); err != nil {
		return errors.Join(err, os.Remove(draft))
	}
	return syncFolder(filepath.Dir(path))
}

// writeFile writes a new file, and returns when the disk has it.
func writeFile(path string, text []byte) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(text)
	if err == nil {
		err = f.Sync()
	}
	return errors.Join(err, f.Close())
}

// removeFile removes a file where there is one, for good.
func removeFile(path string) error {
	if err := os.Remove(path); err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		return err
	}
	return syncFolder(filepath.Dir(path))
}
