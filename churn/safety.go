package churn

import (
	"context"
	"time"
)

// Note is what a [Cycle] writes down before it changes anything, so that
// whoever comes after it can put everything back.
type Note struct {
	// Held says that there is a baseline to put back. The five fields below mean
	// nothing without it.
	Held     bool
	Baseline int // replicas before the first change
	Set      int // replicas that we asked for last, or are about to ask for
	// Before is the replicas that we had asked for before that. As long as the
	// call for Set is under way, the workload may have either.
	Before   int
	Original string // what a [Keeper] said of the workload; empty where the count is all there is
	// Deadline is the wall-clock time after which any instance may put the
	// baseline back, because who wrote the note must have vanished.
	Deadline time.Time

	Paused bool // somebody asked for a pause, which outlives the process
}

// Notebook keeps the note of one churn where it outlives the process. A
// [Cycle] calls its methods from one goroutine, each with a deadline. Their
// errors should be, or wrap, an [*Error].
type Notebook interface {
	// Load returns the note, zero where there is none.
	Load(ctx context.Context) (Note, error)
	// Save replaces the note, and returns when it is safe. It must fail with
	// [Conflict] where this instance is not, or no longer, the elected one. An error of
	// [Unreachable] or [Other] leaves open whether the note was replaced.
	Save(ctx context.Context, n Note) error
}

// Election decides which of several instances churns.
type Election interface {
	// Campaign stands for election until ctx ends, again after each loss. It
	// calls lead when this instance is elected, with a context that ends as soon
	// as it can no longer be sure to be the only one, and waits for lead to
	// return before it gives up what it holds. It returns nil when ctx has ended.
	Campaign(ctx context.Context, lead func(context.Context)) error
	// Leader returns the identity of the elected instance, empty while none is
	// known. It may be called concurrently and does not block.
	Leader() string
}

// Keeper is a [Workload] whose original state is more than a count: weights or
// states of single servers.
type Keeper interface {
	// Keep returns the state of the workload in a form that Restore understands.
	Keep(ctx context.Context) (original string, err error)
	// Restore puts back what Keep returned, of this process or of an earlier
	// one. It returns when the request was accepted, as Scale does, and leaves
	// alone what somebody else has changed since, so that Desired may be another
	// count than the baseline when all that was ours is put back.
	Restore(ctx context.Context, original string) error
}

// Gradual is a [Workload] whose calls may be done in part: one that fails or is
// cut may have left any count between the old one and the new one, and may
// still go on. Such a count is taken for ours. A Keeper is always taken for one.
type Gradual interface{ Gradual() }

// Killer is a [Workload] whose backends can be stopped without drain.
type Killer interface {
	// Kill stops n backends at once, so that Desired is n lower afterwards.
	// Otherwise it is as Scale.
	Kill(ctx context.Context, n int) error
}

// Floorer is a [Workload] that knows a count below which it must not be scaled,
// whatever the configuration says.
type Floorer interface {
	// Floor returns that count, 0 where there is none. It is asked before the
	// first step, and before every step to fewer replicas.
	Floor(ctx context.Context, baseline int) (int, error)
}

// Traffic is what the targets that are tied to a churn have done since the
// process started, all of them together. Failures that are the probe's own
// (schedule/shutdown, connect/local_resource) are in neither count.
type Traffic struct {
	Completed uint64
	Failed    uint64
}

// Announcement is one thing that a [Cycle] did, for those who look at the
// workload and not at the probe.
type Announcement struct {
	Reason  string // one of the constants Announce…
	Warning bool
	Message string // one sentence
}
