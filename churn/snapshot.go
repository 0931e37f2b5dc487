package churn

import (
	"time"

	"github.com/steadyprobe/steadyprobe/probe"
	"github.com/steadyprobe/steadyprobe/probe/record"
)

// State is what a churn does.
type State uint8

// The states.
const (
	Stopped State = iota // it has not begun, has ended, or somebody else changed the count
	Running              // it scales
	DryRun               // it says what it would scale
	Standby              // another instance scales
	Paused               // it has not yet been able to begin, or has gone back to the baseline

	// NumStates is the number of states.
	NumStates = int(iota)
)

// String returns the state label.
func (s State) String() string {
	return [NumStates]string{"stopped", "running", "dry_run", "standby", "paused"}[s]
}

// Direction is where a step leads.
type Direction uint8

// The directions.
const (
	Up   Direction = iota // to more replicas
	Down                  // to fewer

	// NumDirections is the number of directions.
	NumDirections = int(iota)
)

// String returns the direction label.
func (d Direction) String() string { return [NumDirections]string{"up", "down"}[d] }

// PhaseChange is the begin of a churn phase.
type PhaseChange struct {
	Phase probe.ChurnPhase
	From  time.Time
}

// Snapshot is a copy of what a [Cycle] knows, all of it of one instant.
type Snapshot struct {
	Name  string
	State State
	// Reason is why the state is what it is, or which error is met at present
	// while it goes on; NoReason where all is well. Detail says it in words.
	Reason Reason
	Detail string

	Phase    probe.ChurnPhase // NoChurn before the first Run
	Since    time.Time        // when the phase began
	Baseline int              // replicas before the first change; 0 before it has begun

	// Floor and Ceiling are the limits that were in force when the plan was last
	// checked; 0 before it has begun.
	Floor, Ceiling int

	Observation           // the latest one
	LastBeat    time.Time // when it was made; zero: never

	// Leader says that this instance is the one that may change the workload:
	// while Run runs without an Election, or this instance is elected.
	Leader     bool
	LeaderName string // of the elected instance; empty: none is known, or there is no Election

	// NextStep is when the next step is due, zero where none is. A step that has
	// not settled by then is waited for. Next is that step.
	NextStep time.Time
	Next     Step
	// PausedUntil is when a pause ends by itself at the earliest, zero where it
	// does not or nobody knows. PausedByHand says that Pause or Restore has asked
	// for it, and only Resume ends it.
	PausedUntil  time.Time
	PausedByHand bool

	Steps  [NumDirections]uint64 // of the plan whose scale call was accepted, kills included; in a dry run there are none
	Kills  uint64                // steps of Steps[Down] that stopped backends
	Cycles uint64                // times that the plan was gone through to its end
	// Errors counts by reason: each time that a churn was paused or stopped for
	// it, and each time that a call began to fail for it, not every attempt.
	// Errors[NoReason] is 0.
	Errors [NumReasons]uint64
	// Convergence is, for the steps that have settled, the time from the scale
	// call to the observation with which everything began to match for good.
	Convergence [NumDirections]record.Distribution
	// FirstResponse is, for the steps to more replicas of which it is known, the
	// time from the scale call to the end of the first answer of a new backend;
	// LastResponse, for the steps to fewer, to the end of the last answer of one
	// that was removed.
	FirstResponse, LastResponse record.Distribution
	// Failover is, for the kills of which it is known, the time from the call to
	// the end of the last request that failed, 0 where none did.
	Failover record.Distribution
	// RestorePending says that the baseline is to be restored, and that it is
	// not yet, or not known to be.
	RestorePending bool
	// History is the phases of the last hour, oldest first, of which the first
	// may have begun earlier and the last is the present one. It holds at most
	// 2,048.
	History []PhaseChange
}
