// Package haproxy scales the servers of a HAProxy backend: those that serve are
// its replicas. It puts servers away and back over the runtime API, versions 2.4
// and later, and touches neither the configuration file nor the servers.
//
// A server serves that is meant to take traffic: neither drained nor in
// maintenance, of a weight above 0, and no backup. The last ones of the backend
// are put away first, and only those are put back that were put away by us and
// that nobody has changed since.
//
// A reload starts a new process, which knows the file and nothing of what was
// done at run time, unless it loads a state file. It is recognised by the
// process id and the time of the start. [Workload.Observe] then says once that
// the churn is refused, so that it is restored, with nothing left to put back,
// and begins anew with what the file says.
package haproxy

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/steadyprobe/steadyprobe/churn"
)

// Poll is a time between two observations that HAProxy does not feel: each is a
// connection to its socket, served by a thread that serves traffic too.
const Poll = 200 * time.Millisecond

const (
	// handover is how long a process that is being replaced is asked again, and
	// again is after which time.
	handover = time.Second
	again    = 20 * time.Millisecond
)

// Options says which servers a [Workload] puts away.
type Options struct {
	Socket  string // absolute path of a stats socket of level admin, or its HOST:PORT
	Backend string
	Mode    Mode // empty: Drain
}

// Workload is the servers of one backend: a churn.Workload, a churn.Keeper and a
// churn.Killer. Its methods may be called concurrently, and wait for each other.
type Workload struct {
	client  client
	backend string
	mode    Mode

	turn     chan struct{} // held by who asks, and guards all that follows
	known    bool          // there was a snapshot
	process  process       // that we know
	seen     int           // servers that are meant to serve, as last returned
	reloaded bool          // it is to be told that HAProxy was
	ours     map[string]away
	original string  // what Keep returned and ours goes with; empty: another process has put servers away
	moving   *moving // changes whose answer did not come
}

// moving is a count that is on its way, or is not.
type moving struct{ from, to int }

// New returns a Workload. It asks nobody. Its error names everything that is
// wrong with the options.
func New(o Options) (*Workload, error) {
	var all []error
	c, err := newClient(o.Socket)
	if err != nil {
		all = append(all, err)
	}
	if !goodName(o.Backend) {
		all = append(all, fmt.Errorf("backend %q: want its name, letters, digits and -_.: alone", o.Backend))
	}
	switch o.Mode {
	case "":
		o.Mode = Drain
	case Drain, Maint, Weight:
	default:
		all = append(all, fmt.Errorf("mode %q: want drain, maint or weight", o.Mode))
	}
	if len(all) > 0 {
		return nil, fmt.Errorf("checking the servers of HAProxy to churn: %w", errors.Join(all...))
	}
	return &Workload{client: c, backend: o.Backend, mode: o.Mode, turn: make(chan struct{}, 1)}, nil
}

// call runs f alone, and says what could not be done.
func (w *Workload) call(ctx context.Context, doing string, f func() error) error {
	select {
	case w.turn <- struct{}{}:
	case <-ctx.Done():
		return w.failed(doing, wrong(churn.Unreachable, ctx.Err()))
	}
	defer func() { <-w.turn }()
	if err := f(); err != nil {
		return w.failed(doing, err)
	}
	return nil
}

func (w *Workload) failed(doing string, err error) error {
	return fmt.Errorf("%s the servers of backend %q: %w", doing, w.backend, err)
}

// Observe returns how many servers are meant to serve (desired) and how many of
// those do as far as HAProxy knows (ready, endpoints): one without a check does.
// A backup counts for nothing. Once where HAProxy was reloaded, and other
// servers serve since, there is an error of [churn.Refused] besides, and desired
// is what it was.
func (w *Workload) Observe(ctx context.Context) (o churn.Observation, err error) {
	err = w.call(ctx, "observing", func() error {
		s, err := w.look(ctx)
		if err != nil {
			return err
		}
		for _, one := range s.servers {
			if one.up() {
				o.Ready++
			}
		}
		o.Endpoints = o.Ready
		if w.reloaded {
			w.reloaded, o.Desired = false, w.seen
			return wrong(churn.Refused, errors.New("HAProxy was reloaded, and its servers are no longer as they were left"))
		}
		o.Desired = w.settle(s)
		w.seen = o.Desired
		return nil
	})
	return o, err
}

// settle returns how many servers are meant to serve, where some commands of
// ours may still be on their way, or have been carried out in part.
func (w *Workload) settle(s snapshot) int {
	n := s.count()
	if m := w.moving; m != nil {
		if n != m.to && n >= min(m.from, m.to) && n <= max(m.from, m.to) {
			return m.from
		}
		w.moving = nil
	}
	return n
}

// Scale puts servers away, or back. It is refused with [churn.Conflict] where
// the count is no longer that of the latest Observe, and with [churn.Refused]
// where fewer servers than that may serve.
func (w *Workload) Scale(ctx context.Context, replicas int) error {
	return w.call(ctx, "scaling", func() error {
		if replicas < 0 {
			return wrong(churn.Refused, fmt.Errorf("scaling to %d: want 0 or more", replicas))
		}
		s, err := w.current(ctx)
		if err != nil {
			return err
		}
		changes, err := choose(s.servers, w.ours, w.mode, replicas)
		if err != nil {
			return err
		}
		return w.apply(ctx, s, changes)
	})
}

// Kill puts the last n servers that serve into maintenance and cuts their
// sessions. Otherwise it is as Scale.
func (w *Workload) Kill(ctx context.Context, n int) error {
	return w.call(ctx, "killing", func() error {
		s, err := w.current(ctx)
		if err != nil {
			return err
		}
		changes, err := chooseKills(s.servers, n)
		if err != nil {
			return err
		}
		return w.apply(ctx, s, changes)
	})
}

// current is look for who wants to change what was observed.
func (w *Workload) current(ctx context.Context) (snapshot, error) {
	known := w.known
	s, err := w.look(ctx)
	if err != nil {
		return s, err
	}
	if w.reloaded {
		return s, wrong(churn.Conflict, errors.New("HAProxy was reloaded in between"))
	}
	if n := w.settle(s); known && n != w.seen {
		return s, wrong(churn.Conflict, fmt.Errorf("%d servers are meant to serve, and %d were", n, w.seen))
	}
	return s, nil
}

// look asks how things are, and finds out what is still ours.
func (w *Workload) look(ctx context.Context) (snapshot, error) {
	s, err := w.ask(ctx)
	if err != nil {
		return s, err
	}
	if w.known && !s.process.same(w.process) {
		w.moving = nil // whom that was told is gone
		lost := false
		for name, a := range w.ours {
			one, there := s.server(name)
			lost = lost || !there || a.left(one) != a
		}
		if lost {
			w.ours = nil
		}
		w.reloaded = w.reloaded || lost || s.count() != w.seen
	}
	for name, a := range w.ours {
		if w.moving != nil {
			break // what is not done may be done yet
		}
		one, there := s.server(name)
		if w.ours[name] = a.left(one); !there || w.ours[name].nothing() {
			delete(w.ours, name)
		}
	}
	if !w.known {
		w.seen = s.count()
	}
	w.known, w.process = true, s.process
	return s, nil
}

// ask asks how things are, again where the one that answers is being replaced.
func (w *Workload) ask(ctx context.Context) (snapshot, error) {
	for begun := time.Now(); ; {
		answers, err := w.client.ask(ctx, questions(w.backend)...)
		if err != nil {
			return snapshot{}, err
		}
		s, err := parse(w.backend, answers, time.Now())
		if err != nil || !s.stopping {
			return s, err
		}
		if time.Since(begun) >= handover {
			return s, wrong(churn.Unreachable, errors.New("HAProxy is stopping"))
		}
		t := time.NewTimer(again)
		select {
		case <-t.C:
		case <-ctx.Done():
			t.Stop()
			return s, wrong(churn.Unreachable, fmt.Errorf("HAProxy is stopping: %w", ctx.Err()))
		}
	}
}

// apply makes changes to what the snapshot shows.
func (w *Workload) apply(ctx context.Context, s snapshot, changes []change) error {
	if len(changes) == 0 {
		return nil
	}
	m := &moving{from: w.settle(s), to: after(s.servers, changes)}
	before, late := w.ours, w.moving
	w.ours, w.moving = taken(before, changes, false), m
	for rest := changes; len(rest) > 0; {
		n, err := w.send(ctx, rest)
		if err != nil {
			if len(rest) == len(changes) && !mayBeDone(err) {
				w.ours, w.moving = before, late
			}
			return err
		}
		rest = rest[n:]
	}
	w.ours, w.moving, w.seen = taken(before, changes, true), nil, m.to
	return nil
}

// send makes as many of the changes as go into a line, and returns how many
// that were.
func (w *Workload) send(ctx context.Context, changes []change) (n int, err error) {
	var commands []string
	length := 0
	for _, c := range changes {
		more := c.commands(w.backend)
		for _, command := range more {
			length += len(command) + len(";")
		}
		if n > 0 && length > mostLine {
			break
		}
		commands = append(commands, more...)
		n++
	}
	answers, err := w.client.ask(ctx, commands...)
	if err != nil {
		return 0, err
	}
	return n, verdict(commands, answers)
}

// verdict returns an error where commands were not carried out: such a command
// alone has something to say. It is definite where none was.
func verdict(commands, answers []string) error {
	refused, forbidden, first := 0, false, -1
	for i, answer := range answers {
		if answer == "" {
			continue
		}
		refused++
		denied := strings.HasPrefix(answer, "Permission denied")
		if first < 0 || denied && !forbidden {
			first = i
		}
		forbidden = forbidden || denied
	}
	if refused == 0 {
		return nil
	}
	reason, remedy := churn.Conflict, "" // servers that are gone
	if forbidden {
		reason, remedy = churn.Forbidden, "; write level admin on its stats socket line"
	}
	if refused < len(answers) {
		reason = churn.Other
	}
	return wrong(reason, fmt.Errorf("%d of %d commands were not carried out: %q was answered with %q%s",
		refused, len(answers), commands[first], shortened(answers[first]), remedy))
}

// mayBeDone reports whether commands that failed may have been carried out.
func mayBeDone(err error) bool {
	var e *churn.Error
	return !errors.As(err, &e) || e.Reason == churn.Unreachable || e.Reason == churn.Other
}
