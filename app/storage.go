package app

import (
	"context"
	"path/filepath"
	"time"

	"github.com/steadyprobe/steadyprobe/history"
)

// Storage says where, how and for how long a daemon keeps the past on disk.
type Storage struct {
	Path     string        // of the folder; empty: nothing is kept
	Interval time.Duration // of the history, one of history.Intervals; 0: none is kept
	MaxAge   time.Duration // 0: for ever
	MaxSize  int64         // bytes; 0: no limit
}

// historyLimit bounds how long the end waits for a disk that hangs.
const historyLimit = 10 * time.Second

// openHistory begins to keep the past of targets, where that is asked for.
func (d *daemon) openHistory() (err error) {
	s := &d.options.Storage
	if s.Path == "" || s.Interval == 0 {
		return nil
	}
	d.history, err = history.Open(history.Options{
		Path:     filepath.Join(s.Path, "history"),
		Interval: s.Interval,
		MaxAge:   s.MaxAge,
		MaxSize:  s.MaxSize,
		Clock:    d.engine.clock,
		Logger:   d.options.Logger,
	})
	return err
}

// historyFailures returns what tells how often writing has failed, nil where
// nothing is written.
func (d *daemon) historyFailures() func() uint64 {
	if d.history == nil {
		return nil
	}
	return d.history.Failures
}

// remember keeps the past of a target from now on.
func (d *daemon) remember(p *probed) {
	if d.history != nil {
		d.history.Add(p.config.Name, p.recorder)
	}
}

// forget writes what is left of the past of targets of which nothing more comes.
func (d *daemon) forget(targets []*target) {
	if d.history == nil {
		return
	}
	for _, t := range targets {
		d.history.Remove(t.places.recorder)
	}
}

// closeHistory ends what openHistory began.
func (d *daemon) closeHistory() {
	if d.history == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), historyLimit)
	defer cancel()
	if err := d.history.Close(ctx); err != nil {
		d.options.Logger.Error("The last of the history may not be written", "err", err)
	}
}
