package main

import (
	"errors"
	"fmt"
	"os"
	"slices"

	"github.com/steadyprobe/steadyprobe/internal/testbed"
)

// owner is what the doors of a case belong to, in place of a test. It is used
// by one goroutine.
type owner struct {
	errs     []error
	cleanups []func()
}

var _ testbed.Owner = (*owner)(nil)

// gaveUp is what an owner panics with when something failed for good.
type gaveUp struct{}

// own lends an owner to do, and then ends all that came to belong to it. The
// error is of do, or of anything that failed in between.
func own(do func(*owner) error) (err error) {
	o := &owner{}
	defer func() {
		if failure := recover(); failure != nil && failure != (gaveUp{}) {
			o.end()
			panic(failure)
		}
		o.end()
		err = errors.Join(append(o.errs, err)...)
	}()
	return do(o)
}

// end runs the clean-ups, the last one first.
func (o *owner) end() {
	for _, f := range slices.Backward(o.cleanups) {
		func() {
			defer func() {
				if failure := recover(); failure != nil && failure != (gaveUp{}) {
					panic(failure)
				}
			}()
			f()
		}()
	}
	o.cleanups = nil
}

// Helper does nothing: there are no lines of a test to point at.
func (o *owner) Helper() {}

// Cleanup keeps f for the end.
func (o *owner) Cleanup(f func()) { o.cleanups = append(o.cleanups, f) }

// TempDir makes a folder that is removed at the end.
func (o *owner) TempDir() string {
	dir, err := os.MkdirTemp("", "bench")
	if err != nil {
		o.Fatalf("making a folder: %v", err)
	}
	o.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			o.Errorf("removing a folder: %v", err)
		}
	})
	return dir
}

// Error keeps an error.
func (o *owner) Error(args ...any) { o.errs = append(o.errs, errors.New(fmt.Sprint(args...))) }

// Errorf keeps an error.
func (o *owner) Errorf(format string, args ...any) { o.Error(fmt.Sprintf(format, args...)) }

// Fatal keeps an error and makes own return.
func (o *owner) Fatal(args ...any) { o.Error(args...); panic(gaveUp{}) }

// Fatalf keeps an error and makes own return.
func (o *owner) Fatalf(format string, args ...any) { o.Errorf(format, args...); panic(gaveUp{}) }

// Logf keeps what a server printed beside the error that it explains.
func (o *owner) Logf(format string, args ...any) { o.Errorf(format, args...) }

// Failed reports whether there was an error.
func (o *owner) Failed() bool { return len(o.errs) > 0 }
