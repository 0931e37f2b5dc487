package demo

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/steadyprobe/steadyprobe/churn"
)

// mostReplicas is how many backends there can be, and how many there are at
// the start.
const mostReplicas = 4

var errEnded = errors.New("the demo has ended")

// wrong says what cannot be done, and why in the words of package churn.
func wrong(doing string, reason churn.Reason, err error) error {
	return fmt.Errorf("%s the demo's backends: %w", doing, &churn.Error{Reason: reason, Err: err})
}

// Backends are the replicas behind the doors of a [World], a churn.Workload and
// a churn.Killer. They behave as those of a cluster do: a replica that is scaled
// away leaves the endpoints at once, gets a moment to finish what it has, and is
// then stopped, listener and connections; one that is killed resets what it has
// at once, and stays an endpoint until that is noticed; one that is scaled up is
// a new server with a new address, which takes a moment to become ready and is
// slow at first. All methods may be called concurrently.
type Backends struct {
	settings settings
	logger   *slog.Logger
	alive    context.Context // done when the world ends
	end      context.CancelFunc
	running  sync.WaitGroup
	routes   atomic.Pointer[[]string]

	mu      sync.Mutex
	wanted  []*replica // oldest first
	fallen  []*replica // killed, and not yet noticed
	names   []string   // of all that live, stopping ones too
	changed chan struct{}
}

// replica is one life of a backend.
type replica struct {
	name    string
	alive   context.Context // done when it is to end at once
	kill    context.CancelFunc
	wanted  context.Context // done when it is to go
	dismiss context.CancelFunc
	address string // empty until it is ready; guarded by Backends.mu
}

// newBackends starts all backends, warm and ready.
func newBackends(s settings, logger *slog.Logger) (*Backends, error) {
	b := &Backends{settings: s, logger: logger, changed: make(chan struct{})}
	b.alive, b.end = context.WithCancel(context.Background())
	b.routes.Store(new([]string))
	for range mostReplicas {
		listener, err := s.listen()
		if err != nil {
			b.close()
			return nil, fmt.Errorf("starting a backend: %w", noPort(err))
		}
		b.mu.Lock()
		r := b.add()
		b.mu.Unlock()
		b.running.Go(func() {
			defer b.forget(r)
			b.serve(r, listener, time.Now().Add(-s.timing.cold))
		})
		b.ready(r, listener.Addr().String())
	}
	return b, nil
}

// Scale says how many replicas there are to be, from 0 to 4, and returns
// without waiting for them. Those that were ready last go first. A call while
// an earlier one is being followed replaces it. It returns an error where the
// number is out of range ([churn.Refused]), where ctx is done, or where the world
// is closed ([churn.NotFound]); then nothing changes.
func (b *Backends) Scale(ctx context.Context, replicas int) error {
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("scaling the demo's backends: %w", err)
	}
	if replicas < 0 || replicas > mostReplicas {
		return wrong("scaling", churn.Refused, fmt.Errorf("there cannot be %d replicas, ask for 0 to %d", replicas, mostReplicas))
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.alive.Err() != nil {
		return wrong("scaling", churn.NotFound, errEnded)
	}
	for len(b.wanted) < replicas {
		r := b.add()
		b.running.Go(func() {
			defer b.forget(r)
			b.live(r)
		})
	}
	if len(b.wanted) > replicas {
		for _, r := range b.wanted[replicas:] {
			r.dismiss()
		}
		clear(b.wanted[replicas:])
		b.wanted = b.wanted[:replicas]
		b.publish()
	}
	return nil
}

// Kill stops the n replicas that were ready last, without drain: their
// connections are reset, and connecting to them is refused. For a moment the
// doors still route to them. It returns errors as Scale does.
func (b *Backends) Kill(ctx context.Context, n int) error {
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("killing the demo's backends: %w", err)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.alive.Err() != nil {
		return wrong("killing", churn.NotFound, errEnded)
	}
	rest := len(b.wanted) - n
	if n < 0 || rest < 0 {
		return wrong("killing", churn.Refused, fmt.Errorf("there are %d replicas, and %d were asked for", len(b.wanted), n))
	}
	for _, r := range b.wanted[rest:] {
		r.kill()
		if r.address != "" {
			b.fallen = append(b.fallen, r)
			b.running.Go(func() { b.notice(r) })
		}
	}
	clear(b.wanted[rest:])
	b.wanted = b.wanted[:rest]
	return nil
}

// notice takes a killed replica out of the endpoints, after a while.
func (b *Backends) notice(r *replica) {
	if !sleep(b.alive, b.settings.timing.notice) {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.fallen = slices.DeleteFunc(b.fallen, func(f *replica) bool { return f == r })
	b.publish()
}

// Observe returns how many replicas there are to be, how many of those are
// ready, and how many the doors may route to, all of one instant. A stopping
// replica is no longer among them, although it still finishes what it has; a
// killed one is ready until that is noticed. It returns an error where ctx is done or where the world is closed
// ([churn.NotFound]).
func (b *Backends) Observe(ctx context.Context) (churn.Observation, error) {
	if err := ctx.Err(); err != nil {
		return churn.Observation{}, fmt.Errorf("observing the demo's backends: %w", err)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.alive.Err() != nil {
		return churn.Observation{}, wrong("observing", churn.NotFound, errEnded)
	}
	endpoints := len(*b.routes.Load())
	return churn.Observation{Desired: len(b.wanted), Ready: endpoints, Endpoints: endpoints}, nil
}

// endpoints returns the addresses that may be routed to. The caller must not
// change them.
func (b *Backends) endpoints() []string { return *b.routes.Load() }

// watch returns the endpoints and a channel that is closed when they change.
func (b *Backends) watch() ([]string, <-chan struct{}) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.endpoints(), b.changed
}

// close ends all backends at once and returns when they are gone.
func (b *Backends) close() {
	b.mu.Lock()
	b.end()
	b.mu.Unlock() // nobody begins a new one from here on
	b.running.Wait()
}

// add returns a new replica that is wanted. The caller holds the mutex.
func (b *Backends) add() *replica {
	r := &replica{}
	r.alive, r.kill = context.WithCancel(b.alive)
	r.wanted, r.dismiss = context.WithCancel(r.alive)
	for i := 1; r.name == "" || slices.Contains(b.names, r.name); i++ {
		r.name = "backend-" + strconv.Itoa(i)
	}
	b.names = append(b.names, r.name)
	b.wanted = append(b.wanted, r)
	return r
}

// forget makes the name of a replica that is gone free for another one.
func (b *Backends) forget(r *replica) {
	r.kill()
	b.mu.Lock()
	defer b.mu.Unlock()
	b.names = slices.DeleteFunc(b.names, func(name string) bool { return name == r.name })
}

// ready adds a replica that answers to the endpoints, unless it is to go.
func (b *Backends) ready(r *replica, address string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	r.address = address
	if slices.Contains(b.wanted, r) {
		b.publish()
	}
}

// publish makes the ready replicas that are wanted the endpoints, and those of
// which nobody knows that they were killed, and tells who watches. The caller
// holds the mutex.
func (b *Backends) publish() {
	routes := make([]string, 0, len(b.wanted)+len(b.fallen))
	for _, r := range slices.Concat(b.wanted, b.fallen) {
		if r.address != "" {
			routes = append(routes, r.address)
		}
	}
	if slices.Equal(routes, b.endpoints()) {
		return // those that went had not been ready
	}
	b.routes.Store(&routes)
	close(b.changed)
	b.changed = make(chan struct{})
}

// live is the life of a replica from the scale call on.
func (b *Backends) live(r *replica) {
	b.logger.Debug("a backend starts", "backend", r.name)
	for {
		if !sleep(r.wanted, b.settings.timing.start) {
			return
		}
		listener, err := b.settings.listen()
		if err != nil {
			b.logger.Warn("a backend cannot start; trying again", "backend", r.name, "error", noPort(err))
			continue
		}
		b.serve(r, listener, time.Now())
		return
	}
}

// serve answers requests until the replica is to go and has had its time.
func (b *Backends) serve(r *replica, listener net.Listener, born time.Time) {
	s := serve(listener, newBackend(r.name, born, b.settings.timing), slog.NewLogLogger(b.logger.Handler(), slog.LevelDebug))
	defer s.close()
	b.ready(r, listener.Addr().String())
	b.logger.Debug("a backend is ready", "backend", r.name)
	<-r.wanted.Done()
	b.logger.Debug("a backend stops", "backend", r.name)
	if !sleep(r.alive, b.settings.timing.drain) && b.alive.Err() == nil {
		b.logger.Debug("a backend was killed", "backend", r.name)
		s.reset()
	}
}
