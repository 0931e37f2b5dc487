package record

import (
	"time"

	"github.com/steadyprobe/steadyprobe/probe"
)

// Cell counts the latencies of one cell of an HDR histogram with three
// significant digits.
type Cell struct {
	Highest time.Duration // the greatest that belongs to the cell
	Count   uint64        // never 0
}

// Latencies appends the latencies that the window at index w of [Windows]
// holds, ascending, and returns the extended slice: those of successes,
// timeouts and expired ticks (see [probe.Outcome.Slow]), none of a closed loop.
// The window ends now, and is that of the quantiles of a [Snapshot].
func (r *Recorder) Latencies(w int, cells []Cell) []Cell {
	return r.latenciesAt(r.clock.Now(), w, cells)
}

func (r *Recorder) latenciesAt(now probe.Instant, w int, cells []Cell) []Cell {
	var v view
	r.mu.Lock()
	r.timeline.advance(now, &r.window)
	v.copyFrom(&r.window)
	r.mu.Unlock()
	v.add(w)
	return v.sum.cells(cells)
}

// cells appends what p holds.
func (p *pages) cells(cells []Cell) []Cell {
	for i, place := range p.places {
		if place == 0 {
			continue
		}
		for j, n := range p.page(place) {
			if n != 0 {
				cells = append(cells, Cell{Highest: highestOf(uint16(i<<pageBits | j)), Count: uint64(n)})
			}
		}
	}
	return cells
}
