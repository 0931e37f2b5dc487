package saturation

import (
	"math"
	"runtime/debug"
	"runtime/metrics"
)

// readGoMemory returns the reader of GOMEMLIMIT. Used is what the collector
// cannot give back: live objects of the last cycle, and all that is not heap.
// Garbage does not count, because the heap is meant to grow up to the limit.
func readGoMemory() func() Usage {
	samples := []metrics.Sample{
		{Name: "/gc/heap/live:bytes"},
		{Name: "/memory/classes/total:bytes"},
		{Name: "/memory/classes/heap/objects:bytes"},
		{Name: "/memory/classes/heap/unused:bytes"},
		{Name: "/memory/classes/heap/free:bytes"},
		{Name: "/memory/classes/heap/released:bytes"},
	}
	return func() Usage {
		limit := debug.SetMemoryLimit(-1) // reads it
		if limit <= 0 || limit == math.MaxInt64 {
			return Usage{}
		}
		metrics.Read(samples)
		value := func(i int) uint64 {
			if samples[i].Value.Kind() != metrics.KindUint64 {
				return 0
			}
			return samples[i].Value.Uint64()
		}
		heap := value(2) + value(3) + value(4) + value(5)
		return Usage{Used: value(0) + value(1) - min(heap, value(1)), Limit: uint64(limit)}
	}
}
