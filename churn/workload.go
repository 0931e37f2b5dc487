package churn

import (
	"context"
	"errors"
)

// Observation is what there is of a workload at one instant.
type Observation struct {
	Desired   int // replicas that it is asked to have
	Ready     int // replicas that are ready
	Endpoints int // ready endpoints that a door may send requests to
}

// matches reports whether the workload is all it was asked to be.
func (o Observation) matches(replicas int) bool {
	return o.Desired == replicas && o.Ready == replicas && o.Endpoints == replicas
}

// Workload is the backend whose replicas are scaled. A [Cycle] calls its
// methods from one goroutine, one at a time, each with a deadline, and they
// must return when the context ends. Their errors should be, or wrap, an
// [*Error] that says the reason.
type Workload interface {
	// Scale asks for the replicas and returns when the request was accepted, not
	// when they are there. Where it can, it refuses with [Conflict] when the
	// count is no longer that of the latest Observe. An error of [Unreachable] or
	// [Other] leaves open whether the request took effect; any other one says
	// that it did not.
	Scale(ctx context.Context, replicas int) error
	// Observe returns what is there now. A Scale that was accepted before it is
	// called shows in Desired, or it would look like somebody else's change.
	//
	// [Refused] says that the workload may not be churned, although it can be
	// seen: the observation beside it is valid, and Scale to the baseline still
	// works. Beside any other error the observation means nothing.
	Observe(ctx context.Context) (Observation, error)
}

// Reason is why a churn met an error, from a closed list.
type Reason uint8

// The reasons.
const (
	NoReason       Reason = iota // there was no error
	ExternalChange               // somebody else changed the count
	Conflict                     // the count had changed before ours arrived
	Forbidden                    // we may not do that
	Unreachable                  // no answer, or none in time
	NotFound                     // there is no such workload
	Stuck                        // a step did not converge in time
	Aborted                      // the churn was ended because of what it did to the traffic
	Refused                      // the workload, or a rule of safety, does not allow it
	Other                        // anything else

	// NumReasons is the number of reasons, NoReason included.
	NumReasons = int(iota)
)

// String returns the reason label, empty for NoReason.
func (r Reason) String() string {
	return [NumReasons]string{
		"", "external_change", "conflict", "forbidden", "unreachable", "not_found", "stuck", "aborted", "refused", "error",
	}[r]
}

// unclear reports whether a call that failed with r may have taken effect.
func (r Reason) unclear() bool { return r == Unreachable || r == Other }

// Error is an error of a [Workload] with its reason.
type Error struct {
	Reason Reason
	Err    error // what happened, not nil
}

// Error returns the reason and what happened.
func (e *Error) Error() string { return e.Reason.String() + ": " + e.Err.Error() }

// Unwrap returns what happened.
func (e *Error) Unwrap() error { return e.Err }

// reasonOf returns the reason of an error. One that does not say is Other, but
// for a deadline that has passed: there was no answer in time.
func reasonOf(err error) Reason {
	var e *Error
	switch {
	case err == nil:
		return NoReason
	case errors.As(err, &e) && e.Reason > NoReason && int(e.Reason) < NumReasons:
		return e.Reason
	case errors.Is(err, context.DeadlineExceeded):
		return Unreachable
	default:
		return Other
	}
}
