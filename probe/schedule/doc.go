// Package schedule says when requests start, and starts them then.
//
// A [Rate] is an exact fraction, a [Schedule] the series of intended times
// that it makes from one origin, by integer arithmetic that never drifts. A
// [Pacer] is one goroutine that sleeps in the kernel until the next intended
// time of any target and gives the tick to the target's [Taker]. It reads time
// and sleeps through a [Clock]: [Precise] for real traffic, [Portable] for
// virtual time and for systems without a precise one.
//
// A [Canary] measures what the process itself adds to every latency, and
// [ReserveProcs] keeps that little.
package schedule
