// Package probe holds the vocabulary of steadyprobe and the loop that turns a
// schedule of intended send times into outcomes.
//
// One [Prober] serves one target. The pacer gives it ticks (Take), connections
// report what came of them (Link.Done), and everything that a target holds is
// counted in one small [Ledger], so that at every instant
//
//	scheduled = completed + in flight + backlog
//
// The package uses the standard library only and imports no sibling. How a
// request is sent is the business of an [Opener] and its [Conn], what is kept
// of it that of a [Recorder].
package probe
