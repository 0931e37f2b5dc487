// Package notefile keeps the note of a churn in a file, and lets one process of
// a host churn at a time. It is for workloads that have no place of their own
// for that.
//
// A note is one JSON file for each churn, replaced as a whole: what a crash, a
// full disk or a loss of power leaves behind is the note before or the note
// after. It outlives the boot. Who churns holds an exclusive lock on a file
// beside it, which the kernel releases however the process ends.
//
// The folder belongs on a disk of the host that the daemon runs on. File
// operations are not cut short by the end of a context: on a file system that
// hangs they wait as long as it does.
package notefile

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"github.com/gofrs/flock"

	"github.com/steadyprobe/steadyprobe/churn"
)

// Options says where a [Book] is.
type Options struct {
	Folder string // that all notes are in; made when it is first needed, for this user only
	Churn  string // name of the churn
}

// Book is the note of one churn and the election of who writes it: a
// churn.Notebook and a churn.Election. Its methods may be called concurrently.
type Book struct {
	churn string
	base  string // path of its files, without what tells them apart

	writing sync.Mutex // held while the note is written
	mu      sync.Mutex
	lock    *flock.Flock // nil while this instance does not lead
	stands  bool         // Campaign runs
	leader  string
}

// New returns the Book of a churn. It looks at no file. Its error names
// everything that is wrong with the options.
func New(o Options) (*Book, error) {
	var all []error
	if o.Folder == "" {
		all = append(all, errors.New("folder: want one"))
	}
	if o.Churn == "" {
		all = append(all, errors.New("churn: want its name"))
	}
	if len(all) > 0 {
		return nil, fmt.Errorf("checking the note file of churn %q: %w", o.Churn, errors.Join(all...))
	}
	return &Book{churn: o.Churn, base: filepath.Join(o.Folder, fileName(o.Churn))}, nil
}

func (b *Book) path() string       { return b.base + ".json" }
func (b *Book) lockPath() string   { return b.base + ".lock" }
func (b *Book) leaderPath() string { return b.base + ".leader" }

// Load returns the note, zero where there is no file. A file that is not the
// note of this churn is an error, and never taken for none. It may be called
// without being elected.
func (b *Book) Load(ctx context.Context) (churn.Note, error) {
	if err := ctx.Err(); err != nil {
		return churn.Note{}, b.failed("reading", err)
	}
	text, err := readFile(b.path())
	if errors.Is(err, fs.ErrNotExist) {
		return churn.Note{}, nil
	}
	if err == nil {
		var n churn.Note
		if n, err = decode(b.churn, text); err == nil {
			return n, nil
		}
		err = fmt.Errorf("%w; see what the workload has, put it back by hand where need be, then remove the file", err)
	}
	return churn.Note{}, b.failed("reading", err)
}

// Save replaces the note; a zero one removes the file. When it returns, the
// note is on the disk. It fails with [churn.Conflict] while this instance is
// not the elected one, with [churn.Forbidden] where the folder may not be
// written to, and with [churn.Other] where writing fails, for example on a full
// disk: the note before is there still, unless the last step failed, which is
// to make its name safe. Where that says all that is needed, it does not fail:
// a disk that cannot be written to is no reason not to restore.
func (b *Book) Save(ctx context.Context, n churn.Note) error {
	if err := ctx.Err(); err != nil {
		return b.failed("writing", err)
	}
	b.writing.Lock()
	defer b.writing.Unlock()
	if err := b.leads(); err != nil {
		return b.failed("writing", &churn.Error{Reason: churn.Conflict, Err: err})
	}
	if n == (churn.Note{}) {
		if err := removeFile(b.path()); err != nil {
			return b.failed("removing", err)
		}
		return nil
	}
	text, err := encode(b.churn, n, time.Now())
	if err == nil {
		err = replaceFile(b.path(), text)
	}
	if err != nil && !b.covers(n) {
		return b.failed("writing", err)
	}
	return nil
}

// covers reports whether the note that is there already says all that whoever
// comes next needs, once the baseline is put back: what to put back, and from
// which counts.
func (b *Book) covers(n churn.Note) bool {
	text, err := readFile(b.path())
	if err != nil {
		return false
	}
	there, err := decode(b.churn, text)
	same := there.Set == n.Set && there.Before == n.Before // as a restore has it, which may leave either
	return err == nil && there.Held && n.Held && (same || n.Set == n.Baseline) &&
		there.Baseline == n.Baseline && there.Original == n.Original && there.Paused == n.Paused
}

// failed says what could not be done with the note.
func (b *Book) failed(doing string, err error) error {
	return fmt.Errorf("%s the note of churn %q in %q: %w", doing, b.churn, b.path(), classified(err))
}

// classified gives an error the reason it has for a churn.
func classified(err error) error {
	var known *churn.Error
	switch {
	case errors.As(err, &known), errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return err
	case errors.Is(err, fs.ErrPermission), errors.Is(err, syscall.EROFS):
		return &churn.Error{Reason: churn.Forbidden, Err: fmt.Errorf("%w; let the user of the daemon read and write the folder", err)}
	default:
		return &churn.Error{Reason: churn.Other, Err: err}
	}
}

// leads returns an error unless this instance holds the lock that others would
// have to get.
func (b *Book) leads() error {
	b.mu.Lock()
	lock := b.lock
	b.mu.Unlock()
	if lock == nil {
		return errors.New("this instance is not the one that churns")
	}
	return holds(lock)
}

// holds returns an error where the file of a held lock is no longer at its
// path: others would lock another file.
func holds(lock *flock.Flock) error {
	held, err := lock.Stat()
	if err != nil {
		return err
	}
	there, err := os.Stat(lock.Path())
	if err != nil {
		return err
	}
	if !os.SameFile(held, there) {
		return fmt.Errorf("the lock %q was replaced by another file", lock.Path())
	}
	return nil
}
