package app

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/steadyprobe/steadyprobe/config"
	"github.com/steadyprobe/steadyprobe/exporter"
	"github.com/steadyprobe/steadyprobe/web"
)

// errStopping is told who asks for a reload too late.
var errStopping = errors.New("reloading: the process is stopping")

// reloader reloads the configuration when it is asked to, and reads files again
// that have changed: one thing at a time, in one goroutine.
type reloader struct {
	daemon *daemon
	logger *slog.Logger
	stop   context.CancelFunc
	ended  chan struct{}
	asked  chan struct{} // somebody waits for the next turn

	mu      sync.Mutex
	next    *turn // nil: nobody waits
	closed  bool
	success time.Time // when a configuration was last loaded
	failure time.Time // when loading failed, zero after a success
	why     error     // it did

	// Of the goroutine.
	sum   string   // of all files, as they were read last
	files []string // that the configuration names
}

// turn is a reload that is to come, for all who ask for one until it begins.
type turn struct {
	done chan struct{}

	// When done is closed.
	changes string // a sentence
	err     error
}

func newReloader(d *daemon) *reloader {
	return &reloader{
		daemon: d, logger: d.options.Logger, success: d.loaded,
		ended: make(chan struct{}), asked: make(chan struct{}, 1),
		sum: d.config.Sum(), files: d.config.Files(),
	}
}

// start begins to do what it is asked to, and what was asked so far.
func (r *reloader) start() {
	ctx, stop := context.WithCancel(context.Background())
	r.stop = stop
	go r.run(ctx)
}

// close ends it, and what it is doing, soon.
func (r *reloader) close() {
	r.mu.Lock()
	r.closed = true
	r.mu.Unlock()
	r.stop()
	<-r.ended
	r.take(errStopping)
}

func (r *reloader) run(ctx context.Context) {
	defer close(r.ended)
	o := &r.daemon.options
	look := time.NewTicker(looksEvery)
	defer look.Stop()
	var auto <-chan time.Time
	if o.AutoReload > 0 {
		ticker := time.NewTicker(o.AutoReload)
		defer ticker.Stop()
		auto = ticker.C
	}
	for {
		select {
		case <-ctx.Done():
			return
		case <-r.asked:
			if t := r.begin(); t != nil {
				t.changes, t.err = r.reload(ctx, "request")
				close(t.done)
			}
		case _, open := <-o.Reload:
			if !open {
				o.Reload = nil
				continue
			}
			_, _ = r.reload(ctx, "signal") // logged
		case <-auto:
			if sum := r.checksum(); sum != r.sum {
				_, _ = r.reload(ctx, "change") // logged
			}
		case <-look.C:
			r.daemon.reread(ctx)
		case <-r.daemon.discovery.Changed():
			r.daemon.discovered(ctx)
		}
	}
}

// begin takes those who have asked for a reload.
func (r *reloader) begin() *turn {
	r.mu.Lock()
	defer r.mu.Unlock()
	t := r.next
	r.next = nil
	return t
}

// take answers those who have asked and get no reload any more.
func (r *reloader) take(err error) {
	if t := r.begin(); t != nil {
		t.err = err
		close(t.done)
	}
}

// ask reloads the configuration and returns what has changed. Who asks while a
// reload is under way gets one that begins after it, together with all others
// who do.
func (r *reloader) ask(ctx context.Context) (changes string, err error) {
	r.mu.Lock()
	if r.closed {
		r.mu.Unlock()
		return "", errStopping
	}
	if r.next == nil {
		r.next = &turn{done: make(chan struct{})}
		select {
		case r.asked <- struct{}{}:
		default:
		}
	}
	t := r.next
	r.mu.Unlock()
	select {
	case <-t.done:
		return t.changes, t.err
	case <-ctx.Done():
		return "", ctx.Err()
	}
}

// reload reloads, and logs what came of it.
func (r *reloader) reload(ctx context.Context, cause string) (changes string, err error) {
	began := time.Now()
	p, err := r.load(ctx)
	r.mu.Lock()
	if err == nil {
		r.success, r.failure, r.why = time.Now(), time.Time{}, nil
	} else {
		r.failure, r.why = time.Now(), err
	}
	r.mu.Unlock()
	if err != nil {
		for _, problem := range problemsOf(err) {
			r.logger.Error("The configuration was not reloaded, and nothing has changed", "cause", cause, "err", problem)
		}
		return "", err
	}
	kept := len(p.after.probed) - len(p.added) - len(p.revised)
	r.logger.Info("The configuration was reloaded", "cause", cause, "added", len(p.added), "removed", len(p.removed),
		"changed", len(p.revised), "kept", kept, "churns_started", len(p.churns.added), "churns_stopped", len(p.churns.gone), "took", time.Since(began))
	return fmt.Sprintf("Targets: %d added, %d removed, %d changed, %d kept.", len(p.added), len(p.removed), len(p.revised), kept), nil
}

// load loads the file and runs what it says.
func (r *reloader) load(ctx context.Context) (*plan, error) {
	file := r.daemon.options.ConfigFile
	if file == "" {
		return nil, errors.New("reloading: there is no configuration file, as the demo brings its own")
	}
	c, err := load(file, r.logger)
	if problems, ok := errors.AsType[*config.Errors](err); ok {
		r.sum, r.files = problems.Sum, problems.Files
	}
	if err != nil {
		return nil, err
	}
	r.sum, r.files = c.Sum(), c.Files()
	return r.daemon.replace(ctx, c)
}

// checksum returns that of all files as they are now.
func (r *reloader) checksum() string {
	return config.Checksum(r.daemon.options.ConfigFile, r.files)
}

// problemsOf returns each problem of a configuration as an error of its own.
func problemsOf(err error) []error {
	problems, ok := errors.AsType[*config.Errors](err)
	if !ok {
		return []error{err}
	}
	all := make([]error, len(problems.Problems))
	for i, p := range problems.Problems {
		all[i] = loading(p)
	}
	return all
}

// view returns what the page and the API show.
func (r *reloader) view() web.Configuration {
	r.mu.Lock()
	defer r.mu.Unlock()
	c := web.Configuration{Loaded: r.success}
	if r.why != nil {
		c.Failed = &web.FailedReload{At: r.failure, Error: r.why.Error()}
	}
	return c
}

// exported returns what the exporter shows.
func (r *reloader) exported() exporter.Reload {
	r.mu.Lock()
	defer r.mu.Unlock()
	return exporter.Reload{Successful: r.why == nil, Success: r.success}
}
