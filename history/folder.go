package history

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/gofrs/flock"
)

// errInUse says that another process has the folder.
var errInUse = errors.New("another process writes there; give each a folder of its own")

// errFull says that there is no room below the limit.
var errFull = errors.New("the files of this day alone have the size that is allowed; allow more with --storage.retention.size, or a longer --storage.interval")

// folder is where the files are, one folder below it for each target. It is
// used by one goroutine.
type folder struct {
	path    string
	maxAge  time.Duration
	maxSize int64

	lock  *flock.Flock     // nil: not opened
	files map[string]int64 // sizes by path below the folder
	size  int64            // of all
	sound map[string]bool  // files that this process has found or left in order today
	day   time.Time        // today
}

func newFolder(path string, maxAge time.Duration, maxSize int64) *folder {
	return &folder{path: path, maxAge: maxAge, maxSize: maxSize, sound: map[string]bool{}}
}

// open makes the folder, locks it and looks at what there is, unless that is
// done.
func (f *folder) open() error {
	if f.lock != nil {
		return nil
	}
	if err := os.MkdirAll(f.path, 0o755); err != nil {
		return fmt.Errorf("making the folder: %w", err)
	}
	lock := flock.New(filepath.Join(f.path, "lock"), flock.SetPermissions(0o644))
	switch locked, err := lock.TryLock(); {
	case err != nil:
		return fmt.Errorf("locking the folder: %w", err)
	case !locked:
		return fmt.Errorf("locking %q: %w", f.path, errInUse)
	}
	if err := f.scan(); err != nil {
		_ = lock.Close()
		return err
	}
	f.lock = lock
	return nil
}

// close gives the folder up.
func (f *folder) close() {
	if f.lock != nil {
		_ = f.lock.Close()
		f.lock = nil
	}
}

// scan looks at all files. What is no log is left alone.
func (f *folder) scan() error {
	f.files, f.size = map[string]int64{}, 0
	targets, err := os.ReadDir(f.path)
	if err != nil {
		return fmt.Errorf("reading the folder: %w", err)
	}
	for _, target := range targets {
		if !target.IsDir() {
			continue
		}
		days, err := os.ReadDir(filepath.Join(f.path, target.Name()))
		if err != nil {
			return fmt.Errorf("reading a target's folder: %w", err)
		}
		for _, day := range days {
			if _, ok := dayOf(day.Name()); !ok || !day.Type().IsRegular() {
				continue
			}
			info, err := day.Info()
			if errors.Is(err, fs.ErrNotExist) {
				continue // removed meanwhile
			}
			if err != nil {
				return fmt.Errorf("reading a target's folder: %w", err)
			}
			f.resized(filepath.Join(target.Name(), day.Name()), info.Size())
		}
	}
	return nil
}

// resized notes the size of a file.
func (f *folder) resized(file string, size int64) {
	f.size += size - f.files[file]
	f.files[file] = size
}

// expire removes, once a day, the files of days that ended too long ago.
func (f *folder) expire(now time.Time) {
	today := midnight(now)
	if f.day.Equal(today) {
		return
	}
	f.day = today
	clear(f.sound)
	for file := range f.files {
		if day, _ := dayOf(filepath.Base(file)); f.maxAge > 0 && now.Sub(day.Add(24*time.Hour)) >= f.maxAge {
			// One that cannot be removed is there tomorrow, too.
			_ = f.remove(file)
		}
	}
}

// room makes room for so many bytes more of a day, by removing the files of the
// oldest days, but none of that day or a later one.
func (f *folder) room(more int64, day time.Time) error {
	if f.maxSize == 0 {
		return nil
	}
	for f.size+more > f.maxSize {
		oldest, its := "", day
		for file := range f.files {
			if of, _ := dayOf(filepath.Base(file)); of.Before(its) {
				oldest, its = file, of
			}
		}
		if oldest == "" {
			return errFull
		}
		if err := f.remove(oldest); err != nil {
			return fmt.Errorf("making room: %w", err)
		}
	}
	return nil
}

// remove removes a file, and its folder where that is empty then.
func (f *folder) remove(file string) error {
	path := filepath.Join(f.path, file)
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	f.size -= f.files[file]
	delete(f.files, file)
	_ = os.Remove(filepath.Dir(path)) // it stays unless it is empty
	return nil
}
