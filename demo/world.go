package demo

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"sync"
	"time"
)

// Options say whom a [World] tells what it does.
type Options struct {
	// Logger is told what backends and doors do, at debug level, and what goes
	// wrong, as warnings; nothing is logged for a request. Nil: nobody is told.
	Logger *slog.Logger
}

// settings are what tests make shorter than people like to watch.
type settings struct {
	timing timing
	listen func() (net.Listener, error) // on a free port of loopback
}

// timing is how long things take in the demo.
type timing struct {
	start     time.Duration // from the scale call until a new backend is ready
	drain     time.Duration // a stopping backend finishes what it has
	notice    time.Duration // a killed backend stays an endpoint
	service   time.Duration // a request at a warm backend
	cold      time.Duration // a new backend is slower for this long
	coldExtra time.Duration // what its first request takes longer
	learn     time.Duration // until the reloading door hears of a change
	load      time.Duration // its old worker stands still while it loads
	reload    time.Duration // from the old worker's end to the new one's start
}

func defaults() settings {
	return settings{
		timing: timing{
			start:     400 * time.Millisecond,
			drain:     300 * time.Millisecond,
			notice:    500 * time.Millisecond,
			service:   2 * time.Millisecond,
			cold:      time.Second,
			coldExtra: 8 * time.Millisecond,
			learn:     700 * time.Millisecond,
			load:      25 * time.Millisecond,
			reload:    300 * time.Millisecond,
		},
		listen: func() (net.Listener, error) { return net.Listen("tcp", "127.0.0.1:0") },
	}
}

// World is a running demo: its backends, its doors, its certificate. Its
// methods may be called concurrently.
type World struct {
	backends      *Backends
	closers       []func() // last opened first closed
	closing       sync.Once
	configuration []byte
}

// Start starts four backends, which are ready when it returns, the door
// "steady" over HTTP and HTTPS, and the door "reloading" over HTTP, each on a
// free port of 127.0.0.1. It returns an error where there is no port; then
// nothing is left running.
func Start(o Options) (*World, error) { return start(o, defaults()) }

func start(o Options, s settings) (*World, error) {
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	w := &World{}
	if err := w.open(o, s); err != nil {
		w.Close()
		return nil, fmt.Errorf("starting the demo: %w", err)
	}
	return w, nil
}

func (w *World) open(o Options, s settings) error {
	identity, err := newIdentity()
	if err != nil {
		return err
	}
	backends, err := newBackends(s, o.Logger)
	if err != nil {
		return err
	}
	w.backends = backends
	w.closers = append(w.closers, backends.close)

	var doors [3]*entrance
	for i, name := range []string{"steady over http", "steady over https", "reloading"} {
		if doors[i], err = newEntrance(s.listen, o.Logger.With("door", name)); err != nil {
			return fmt.Errorf("opening door %q: %w", name, err)
		}
		w.closers = append(w.closers, doors[i].close)
	}

	steady := newProxy(anotherTry, o.Logger.With("door", "steady"))
	w.closers = append(w.closers, steady.close)
	for _, listener := range []net.Listener{doors[0].listener(), identity.over(doors[1].listener())} {
		w.closers = append(w.closers, serve(listener, steady.handler(backends.endpoints), steady.log).close)
	}

	reloading := newProxy(oneTry, o.Logger.With("door", "reloading"))
	w.closers = append(w.closers, reloading.close)
	ctx, cancel := context.WithCancel(context.Background())
	r := &reloader{entrance: doors[2], proxy: reloading, backends: backends, timing: s.timing}
	done := make(chan struct{})
	go func() {
		defer close(done)
		r.run(ctx)
	}()
	w.closers = append(w.closers, func() { cancel(); <-done })

	w.configuration = configuration(doors[0].address(), doors[1].address(), doors[2].address(), identity.authority)
	return nil
}

// Close stops doors and backends, cutting what is in flight, and returns when
// nothing of the world is left running. Calling it again does nothing but wait
// for the first call.
func (w *World) Close() {
	w.closing.Do(func() {
		for i := len(w.closers) - 1; i >= 0; i-- {
			w.closers[i]()
		}
	})
}

// Backends returns the backends behind the doors, to scale and to observe.
func (w *World) Backends() *Backends { return w.backends }

// Configuration returns the text of a configuration file, in YAML, with the
// addresses of exactly this world and comments for who has never seen one.
func (w *World) Configuration() []byte { return append([]byte(nil), w.configuration...) }

// sleep waits until the time is over, and reports whether it was.
func sleep(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}
