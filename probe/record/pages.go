package record

import "math"

const (
	pageBits = 6
	pageSize = 1 << pageBits
	numPages = (numCells + pageSize - 1) / pageSize
)

// pages counts in cells, in pages that exist only where something was counted.
// A page is 256 bytes. Emptied pages are used again, so that a pages which has
// seen its load once allocates no more; it never holds more than numPages, 132
// KB. A cell holds up to 2^32-1: 71 minutes at 1,000,000 requests/s.
type pages struct {
	places [numPages]uint16 // 1 + the place of a page in counts, 0: none
	used   int              // places that are given out
	counts []uint32
}

// add counts n in cell.
func (p *pages) add(cell uint16, n uint32) {
	place := p.places[cell>>pageBits]
	if place == 0 {
		place = p.give(cell)
	}
	p.counts[int(place-1)<<pageBits|int(cell&(pageSize-1))] += n
}

// give makes room for the page of cell and returns its place.
func (p *pages) give(cell uint16) uint16 {
	p.used++
	if need := p.used << pageBits; need > len(p.counts) {
		// An eighth more than is needed: the pages of a slice differ little
		// from those of the slice before.
		grown := make([]uint32, (p.used+p.used/8)<<pageBits)
		copy(grown, p.counts)
		p.counts = grown
	}
	p.places[cell>>pageBits] = uint16(p.used)
	return uint16(p.used)
}

// page returns the counts of a page by its place.
func (p *pages) page(place uint16) *[pageSize]uint32 {
	return (*[pageSize]uint32)(p.counts[int(place-1)<<pageBits:])
}

// empty forgets all counts and keeps the room for them.
func (p *pages) empty() {
	clear(p.places[:])
	clear(p.counts[:p.used<<pageBits])
	p.used = 0
}

// copyFrom makes p a copy of o, in the room that p has.
func (p *pages) copyFrom(o *pages) {
	p.empty()
	if len(p.counts) < o.used<<pageBits {
		p.counts = make([]uint32, len(o.counts))
	}
	copy(p.counts, o.counts[:o.used<<pageBits])
	p.places, p.used = o.places, o.used
}

// addPages adds all that o holds.
func (p *pages) addPages(o *pages) {
	for i, place := range o.places {
		if place == 0 {
			continue
		}
		for j, n := range o.page(place) {
			if n != 0 {
				p.add(uint16(i<<pageBits|j), n)
			}
		}
	}
}

// addClosed adds all that c holds.
func (p *pages) addClosed(c *closed) {
	for i, cell := range c.cells {
		p.add(cell, c.counts[i])
	}
}

// closed is what was counted in a time that is over: populated cells in
// ascending order. It does not change once made, so that it is read without a
// lock.
type closed struct {
	cells  []uint16
	counts []uint32
}

// take empties p and returns what it held.
func (p *pages) take() closed {
	if p.used == 0 {
		return closed{}
	}
	size := 0
	for _, n := range p.counts[:p.used<<pageBits] {
		if n != 0 {
			size++
		}
	}
	c := closed{cells: make([]uint16, 0, size), counts: make([]uint32, 0, size)}
	for i, place := range p.places {
		if place == 0 {
			continue
		}
		for j, n := range p.page(place) {
			if n != 0 {
				c.cells = append(c.cells, uint16(i<<pageBits|j))
				c.counts = append(c.counts, n)
			}
		}
	}
	p.empty()
	return c
}

// quantiles writes the Quantiles of what p holds, in seconds, to out: each the
// highest value of its cell, as an HDR histogram would give it, or NaN where p
// holds fewer than 1/(1-q).
func (p *pages) quantiles(out *[NumQuantiles]float64) {
	total := uint64(0)
	for _, n := range p.counts[:p.used<<pageBits] {
		total += uint64(n)
	}
	var ranks [NumQuantiles]uint64 // 0: too few
	for i, q := range Quantiles {
		out[i] = math.NaN()
		if total >= fewest(q) {
			ranks[i] = rank(q, total)
		}
	}
	next, seen := 0, uint64(0)
	for i, place := range p.places {
		if place == 0 {
			continue
		}
		for j, n := range p.page(place) {
			seen += uint64(n)
			for next < NumQuantiles && ranks[next] <= seen {
				if ranks[next] != 0 {
					out[next] = highestOf(uint16(i<<pageBits | j)).Seconds()
				}
				next++
			}
		}
	}
}

// rank is the number of the value at quantile q of total values in ascending
// order, from 1, by the rule of hdrhistogram-go: q × total, rounded.
func rank(q float64, total uint64) uint64 {
	const percent = 100 // the library's unit; its rounding is part of the rule
	r := q*percent/percent*float64(total) + 0.5
	return uint64(min(max(r, 1), float64(total)))
}

// fewest is the number of values from which a quantile is more than the
// maximum under another name: 1/(1-q), and 1 for the maximum itself.
func fewest(q float64) uint64 {
	if q == 1 {
		return 1
	}
	return uint64(math.Round(1 / (1 - q)))
}
