// Package churn scales a backend workload along a plan, says in which churn
// phase it is at every instant, and puts back what there was before.
//
// A [Cycle] observes its [Workload] again and again and acts on what it sees,
// from one goroutine. Three parts of it know nothing of each other.
//
// The machine says the phase. It is driven by the scale calls that are about to
// be made and by observations:
//
//	          scale call to more                scale call to fewer
//	     ┌─────────────────────────── settled ───────────────────────────┐
//	     ▼                              ▲ ▲                              ▼
//	scaling_up ──── matched for settle ─┘ └─ matched for settle ─── scaling_down
//	  ▲     │                                                         │     ▲
//	  │     └──────── scale call to fewer than are wanted ────────────┼──►──┘
//	  └──────────── scale call to more than are wanted ───────────────┘
//
// Desired, ready and endpoints match when all three are what the latest call
// asked for. To lose the match starts the settle time anew: a door reloads and
// drains after the endpoints are right, and that harm belongs to the step. A
// call that is seen not to have been done takes the machine back to where it
// was. A workload that is settled stays so when its replicas fail: only a
// change of the desired count is churn.
//
// The course says which step of the plan comes next, and when the hold of the
// one before is over. The hold counts from the scale call; a step that is under
// way when it is over lasts until it has settled. A step to the count that is
// there already scales nothing and is no scaling phase.
//
// The Cycle brings both together, in one of four modes:
//
//	beginning ── baseline observed ──► cycling ── somebody else's change ──► resting
//	                                    │  ▲                                  ▲
//	          stuck, end of Run, panic  │  │ the Run before could not restore │
//	                                    ▼  │                                  │
//	                                  restoring ── baseline observed ─────────┘
//
// What it is told by an error it never takes for the truth. After a call that
// failed the desired count is read before anything else is done: it may be the
// one before (the call is made again, each time after twice the time), the one
// that was asked for (the call was done although it failed), or neither. A
// count that is not ours is somebody else's: the cycle stops and leaves it
// alone, and does not restore. The baseline is read once, before the first
// change, and kept until it was observed to be back.
//
// A change that somebody makes to exactly the count that is ours, or that an
// unanswered call asked for, cannot be told from our own.
package churn
