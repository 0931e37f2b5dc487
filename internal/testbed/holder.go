package testbed

import (
	"errors"
	"fmt"
	"os"
	"sync"
)

// Holder is an [Owner] in place of a test, for programs such as bench. Fatal
// and Fatalf are for the goroutine of [Hold] only; the other methods may be
// called from any.
type Holder struct {
	mutex    sync.Mutex
	errs     []error
	cleanups []func()
}

var _ Owner = (*Holder)(nil)

// gaveUp is what a Holder panics with when something failed for good.
type gaveUp struct{}

// Hold lends a Holder to do, and then ends all that came to belong to it. The
// error is of do, or of anything that failed in between.
func Hold(do func(*Holder) error) (err error) {
	o := &Holder{}
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
func (o *Holder) end() {
	for f := o.last(); f != nil; f = o.last() {
		func() {
			defer func() {
				if failure := recover(); failure != nil && failure != (gaveUp{}) {
					panic(failure)
				}
			}()
			f()
		}()
	}
}

// last takes the last of the clean-ups, nil when there is none.
func (o *Holder) last() (f func()) {
	o.mutex.Lock()
	defer o.mutex.Unlock()
	if n := len(o.cleanups); n > 0 {
		f, o.cleanups = o.cleanups[n-1], o.cleanups[:n-1]
	}
	return f
}

// Helper does nothing: there are no lines of a test to point at.
func (o *Holder) Helper() {}

// Cleanup keeps f for the end.
func (o *Holder) Cleanup(f func()) {
	o.mutex.Lock()
	defer o.mutex.Unlock()
	o.cleanups = append(o.cleanups, f)
}

// TempDir makes a folder that is removed at the end.
func (o *Holder) TempDir() string {
	dir, err := os.MkdirTemp("", "steadyprobe")
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
func (o *Holder) Error(args ...any) {
	o.mutex.Lock()
	defer o.mutex.Unlock()
	o.errs = append(o.errs, errors.New(fmt.Sprint(args...)))
}

// Errorf keeps an error.
func (o *Holder) Errorf(format string, args ...any) { o.Error(fmt.Sprintf(format, args...)) }

// Fatal keeps an error and makes Hold return.
func (o *Holder) Fatal(args ...any) { o.Error(args...); panic(gaveUp{}) }

// Fatalf keeps an error and makes Hold return.
func (o *Holder) Fatalf(format string, args ...any) { o.Errorf(format, args...); panic(gaveUp{}) }

// Logf keeps what a server printed beside the error that it explains.
func (o *Holder) Logf(format string, args ...any) { o.Errorf(format, args...) }

// Failed reports whether there was an error.
func (o *Holder) Failed() bool {
	o.mutex.Lock()
	defer o.mutex.Unlock()
	return len(o.errs) > 0
}
