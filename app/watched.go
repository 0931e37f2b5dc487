package app

import (
	"context"
	"os"
	"time"

	"github.com/steadyprobe/steadyprobe/config"
)

// looksEvery is how often files are looked at that may change, at most.
const looksEvery = time.Second

// watched are files that are read again when they have changed. Those that
// cannot be used change nothing. It is not for concurrent use.
type watched struct {
	paths  []string
	seen   []os.FileInfo // nil for one that is not there
	broken bool          // what was last seen could not be used
}

// refresh has the files read, if they have changed or could not be used before,
// and reports whether that was of use. It returns the error of reading them once
// for as long as it goes on. Look looks at a file, and returns nil for one that
// is not there: reading it will tell what is wrong. What is no regular file, such
// as a pipe, can be read once, and never is again.
func (w *watched) refresh(look func(path string) os.FileInfo, read func() error) (fresh bool, err error) {
	now := make([]os.FileInfo, len(w.paths))
	for i, path := range w.paths {
		now[i] = look(path)
		if now[i] != nil && !now[i].Mode().IsRegular() {
			return false, nil
		}
	}
	if !w.broken && sameFiles(w.seen, now) {
		return false, nil
	}
	w.seen = now
	before := w.broken
	if err = read(); err == nil {
		w.broken = false
		return true, nil
	}
	w.broken = true
	if before {
		err = nil // told
	}
	return false, err
}

func lookAt(path string) os.FileInfo {
	info, err := os.Stat(path)
	if err != nil {
		return nil
	}
	return info
}

// sameFiles reports whether two looks have seen the same files.
func sameFiles(a, b []os.FileInfo) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		switch {
		case a[i] == nil || b[i] == nil:
			if a[i] != b[i] {
				return false
			}
		case !os.SameFile(a[i], b[i]) || a[i].Size() != b[i].Size() || !a[i].ModTime().Equal(b[i].ModTime()):
			return false
		}
	}
	return true
}

// reread has requests say what the files of headers, credentials and bodies
// hold by now. Connections stay.
func (d *daemon) reread(ctx context.Context) {
	before := d.state.Load()
	seen := map[string]os.FileInfo{} // many targets may have the same file
	look := func(path string) os.FileInfo {
		info, known := seen[path]
		if !known {
			info = lookAt(path)
			seen[path] = info
		}
		return info
	}
	p := &plan{before: before, churns: &churnPlan{all: d.churns.list()}}
	var failed error
	failures := 0
	probed := make([]*probed, len(before.probed))
	for i, one := range before.probed {
		probed[i] = one
		if len(one.files.paths) == 0 {
			continue
		}
		var c config.Target
		fresh, err := one.files.refresh(look, func() (err error) {
			c, err = one.config.ReloadTraffic()
			return err
		})
		switch {
		case err != nil:
			failures++
			failed = err
		case fresh && !c.Equal(&one.config):
			r, err := d.engine.revise(one, c, d.options.Version)
			if err != nil {
				failures++
				failed = err
				continue
			}
			r.number, r.after.files = uint64(i), one.files
			probed[i], p.revised = r.after, append(p.revised, r)
		}
	}
	if failures > 0 {
		d.options.Logger.Warn("Files of what targets send have changed and cannot be used; what they held before is sent", "targets", failures, "err", failed)
	}
	if len(p.revised) == 0 {
		return
	}
	p.after = newState(before.config, probed)
	p.after.found = before.found
	if err := d.show(p); err != nil {
		d.options.Logger.Error("Files of what targets send were read again, to no avail", "err", err)
		return
	}
	d.apply(ctx, p)
	d.options.Logger.Info("Files of what targets send were read again", "targets", len(p.revised), "first", p.revised[0].after.config.Name)
}
