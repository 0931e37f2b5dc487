// Package churn scales a backend workload along a plan, says in which churn
// phase it is at every instant, and puts back what there was before.
//
// A [Cycle] observes its [Workload] again and again and acts on what it sees,
// from one goroutine. Three parts of it know nothing of each other.
//
// The machine says the phase. It is driven by the calls that are about to be
// made and by observations, and so by what another instance or anybody else
// does as well:
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
// The Cycle brings both together, in one of six modes. Without an [Election] it
// begins with taking, without a [Notebook] with beginning.
//
//	in           when                                                     to
//	standby      it is elected                                            taking
//	taking       the note holds no baseline                               beginning
//	             it holds one                                             restoring
//	beginning    nothing is against it: the baseline is taken             cycling
//	cycling      a pause; all cycles are done; the end of Run; a panic    restoring
//	             somebody else changes the count                          resting
//	restoring    the baseline is seen, and the note released:
//	               after a pause that ends by itself or by Resume         beginning
//	               after all else                                         resting
//	             somebody else changes the count                          resting
//	resting      Resume, or a Pause that takes its place                  beginning
//	any of them  the lead is lost                                         standby
//
// In the mode of beginning it waits until nothing is against it: a pause that
// somebody asked for, the hours, a cooldown, requests that fail, limits, the
// workload itself. Each of these ends a cycling too, but for the limits, which
// are looked at before. What ends by itself leads from restoring back to
// beginning; a step that was stuck, or refused by a call, does so after the
// cooldown where there is one.
//
// # What is ours
//
// What the Cycle is told by an error it never takes for the truth. After a call
// that failed the desired count is read before anything else is done: it may be
// the one before (the call is made again, each time after twice the time), the
// one that was asked for (the call was done although it failed), or neither. A
// count that is not ours is somebody else's: the cycle stops and leaves it
// alone, and does not restore. The baseline is read once, before the first
// change, and kept until it was observed to be back.
//
// A call whose outcome is open may also take effect later. As long as one may,
// its count is ours, and the baseline must have been there for 2 s before it is
// believed to be back. Nor does a new leader take a baseline in its first 2 s:
// a provider may have kept what it saw of its predecessor's last step.
//
// Where looking is forbidden, the baseline is restored unseen, but only where
// what was seen last was ours.
//
// A change that somebody makes to exactly the count that is ours, or that an
// unanswered call asked for, cannot be told from our own.
//
// # What outlives a process
//
// Before each call that changes anything the note is read, and saved with the
// baseline, the count that is about to be asked for and the one before it. From
// that whoever comes next can tell what was ours at whatever instant the process
// died, and put it back:
//
//	what is observed             what the next one does
//	the baseline                 waits a little, for a call that may be on its way, and releases the note
//	Set or Before of the note    restores the baseline, then releases it
//	anything else                leaves it alone, counts it, and releases the note
//
// A restore keeps Set and Before as they are: until the baseline is seen, either
// may be there. A note that holds another baseline than ours is never
// overwritten, but taken over. Who has lost the lead writes nothing more: each
// call that changes or saves something is checked against the lease, and cut
// when that ends; only when none is under way the lead is given up.
//
// The Cycle does not look at the deadline of a note. It is for those who find a
// note of which nobody is in charge.
package churn
