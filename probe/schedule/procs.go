package schedule

import (
	"log/slog"
	"runtime"
)

// ReserveProcs raises GOMAXPROCS for the pacers, also where the environment
// set it, and says so to logger: a pacer that sleeps in the kernel keeps its P
// for a while, and at least two must be left to read answers, or the process
// adds milliseconds to every latency. From then on the Go runtime no longer
// follows changes of the CPU limit. It is to be called before its pacers run;
// the function that it returns takes back what was added, in whatever order
// several daemons of one process end.
func ReserveProcs(pacers int, logger *slog.Logger) (restore func()) {
	former := runtime.GOMAXPROCS(0)
	procs := procsFor(former, pacers)
	runtime.GOMAXPROCS(procs)
	logger.Info("Raising GOMAXPROCS for what sleeps in the kernel", "gomaxprocs", procs, "former", former)
	return func() { runtime.GOMAXPROCS(runtime.GOMAXPROCS(0) - (procs - former)) }
}

func procsFor(procs, pacers int) int { return max(2, procs) + pacers }
