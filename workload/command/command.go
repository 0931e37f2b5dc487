// Package command scales anything that programs can scale and count: target
// groups of a cloud, docker compose, systemd units.
//
// A program is run without a shell, with the environment of this process and
// nothing on its standard input, in a process group of its own, which is killed
// as a whole when the time for the call is over. No two run at once. What its
// end says:
//
//	status 0                   it was done
//	status 75 (EX_TEMPFAIL)    unreachable: it may have been done or not
//	status 77 (EX_NOPERM)      forbidden: nothing was changed
//	another one, or a signal   error: it may have been done or not
//	the time was over          unreachable
//	there is no such program   not_found
//	it must not be run         forbidden
//
// The statuses are those of sysexits(3).
package command

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/steadyprobe/steadyprobe/churn"
)

// DefaultInterval is [Options.Interval] where it is not said.
const DefaultInterval = time.Second

// What stands in arguments for numbers. All that an argument holds of them are
// replaced.
const (
	Replicas = "{replicas}" // in Scale: the replicas to have
	Count    = "{kill}"     // in Kill: how many to stop
)

// Options says which programs a [Workload] runs. Each is a program and its
// arguments. A name without a slash is looked for in the PATH. Arguments may
// hold what nobody should see: errors say the program alone.
type Options struct {
	Scale []string // sets the number of replicas; at least one argument has Replicas
	Read  []string // prints what there is, see [Workload.Observe]
	Kill  []string // stops replicas without drain; at least one argument has Count; empty: none can be killed
	// Interval is the least time between two runs of Read, unless Scale or Kill
	// ran in between; 0: DefaultInterval.
	Interval time.Duration
	Folder   string // that programs run in; empty: that of this process
}

// validate names everything that is wrong.
func (o *Options) validate() error {
	var all []error
	for _, p := range []struct {
		name, placeholder string
		argv              []string
		required          bool
	}{
		{"scale", Replicas, o.Scale, true},
		{"read", "", o.Read, true},
		{"kill", Count, o.Kill, false},
	} {
		has := func(argument string) bool { return strings.Contains(argument, p.placeholder) }
		switch {
		case len(p.argv) == 0 && !p.required:
		case len(p.argv) == 0 || p.argv[0] == "":
			all = append(all, fmt.Errorf("%s: want a program", p.name))
		case p.placeholder != "" && !slices.ContainsFunc(p.argv[1:], has):
			all = append(all, fmt.Errorf("%s: want %s in an argument", p.name, p.placeholder))
		}
	}
	if o.Interval < 0 {
		all = append(all, fmt.Errorf("interval %v: want more than 0s, or 0s for %v", o.Interval, DefaultInterval))
	}
	return errors.Join(all...)
}

// Workload is what the programs scale: a churn.Workload, a churn.Killer and a
// churn.Gradual. Its methods may be called concurrently, and wait for each other.
type Workload struct {
	o Options
	// turn is held by who runs a program, and guards all that follows.
	turn chan struct{}

	read   time.Time // when Read was run last; zero: it is due
	last   churn.Observation
	err    error // of the last run of Read
	moving *move // the latest change, until it is seen to be over
}

// move is a change of a count on its way, which programs that return before it
// is done leave behind.
type move struct {
	before    int // desired when it was made
	to        int
	low, high int  // the counts that may be seen on the way
	accepted  bool // the program said that it was done
}

// New returns a Workload. It runs nothing, and does not ask whether the programs
// exist. Its error names everything that is wrong with the options.
func New(o Options) (*Workload, error) {
	if err := o.validate(); err != nil {
		return nil, fmt.Errorf("checking the programs of a workload: %w", err)
	}
	if o.Interval == 0 {
		o.Interval = DefaultInterval
	}
	w := &Workload{o: o, turn: make(chan struct{}, 1)}
	return w, nil
}

// Gradual says that a program may have been killed together with this process
// when it had done a part: a count on the way is ours.
func (w *Workload) Gradual() {}

// take waits until no program runs.
func (w *Workload) take(ctx context.Context) error {
	select {
	case w.turn <- struct{}{}:
		return nil
	case <-ctx.Done():
		return wrong(churn.Unreachable, fmt.Errorf("waiting for another program to end: %w", ctx.Err()))
	}
}

func (w *Workload) release() { <-w.turn }

// Scale runs the program that sets the number of replicas. Its errors say what
// the package's documentation says.
func (w *Workload) Scale(ctx context.Context, replicas int) error {
	if err := w.take(ctx); err != nil {
		return err
	}
	defer w.release()
	if replicas < 0 {
		return wrong(churn.Refused, fmt.Errorf("scaling to %d replicas: want 0 or more", replicas))
	}
	return w.change(ctx, replicas, filled(w.o.Scale, Replicas, replicas))
}

// Kill runs the program that stops n replicas. It is refused where there is
// none, or where fewer replicas than n are there.
func (w *Workload) Kill(ctx context.Context, n int) error {
	if err := w.take(ctx); err != nil {
		return err
	}
	defer w.release()
	if len(w.o.Kill) == 0 {
		return wrong(churn.Refused, errors.New("killing replicas: there is no program that does"))
	}
	if w.read.IsZero() {
		if err := w.look(ctx); err != nil {
			return err
		}
	}
	if n < 0 || n > w.last.Desired {
		return wrong(churn.Refused, fmt.Errorf("killing %d of %d replicas: want 0 to %[2]d", n, w.last.Desired))
	}
	return w.change(ctx, w.last.Desired-n, filled(w.o.Kill, Count, n))
}

// change runs a program after which there are to be so many replicas.
func (w *Workload) change(ctx context.Context, replicas int, argv []string) error {
	w.read = time.Time{}
	m := &move{before: w.last.Desired, to: replicas}
	m.low = min(m.before, replicas, w.last.Ready)
	m.high = max(m.before, replicas, w.last.Ready)
	if _, err := w.run(ctx, argv); err != nil {
		if mayBeDone(err) {
			w.moving = m
		}
		return err
	}
	m.accepted = true
	w.moving = m
	return nil
}

// filled returns argv with the number in the place of the placeholder.
func filled(argv []string, placeholder string, number int) []string {
	all := slices.Clone(argv)
	for i := range all[1:] {
		all[1+i] = strings.ReplaceAll(all[1+i], placeholder, strconv.Itoa(number))
	}
	return all
}

// wrong gives an error its reason.
func wrong(reason churn.Reason, err error) error { return &churn.Error{Reason: reason, Err: err} }

// mayBeDone reports whether a program that failed may have changed something.
func mayBeDone(err error) bool {
	var e *churn.Error
	return errors.As(err, &e) && (e.Reason == churn.Unreachable || e.Reason == churn.Other)
}
