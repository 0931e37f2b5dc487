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
		grown := make([]uint32, min(p.used+p.used/8, numPages)<<pageBits)
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

// pair is what was counted in one cell. A count above the most of a uint16 is
// as many pairs as it takes.
type pair struct{ cell, count uint16 }

// closed is what was counted in a time that is over, in ascending order of
// cells. It does not change once made, so that it is read without a lock.
type closed []pair

// addClosed adds all that c holds.
func (p *pages) addClosed(c closed) {
	for len(c) > 0 {
		number := c[0].cell >> pageBits
		place := p.places[number]
		if place == 0 {
			place = p.give(c[0].cell)
		}
		page := p.page(place)
		for len(c) > 0 && c[0].cell>>pageBits == number {
			page[c[0].cell&(pageSize-1)] += uint32(c[0].count)
			c = c[1:]
		}
	}
}

// take empties p and returns what it held. Which cells are populated cannot be
// predicted, so that it has no branch on it: a pair is written for each cell,
// and only counts if the cell does.
func (p *pages) take() closed {
	size := 0
	for _, n := range p.counts[:p.used<<pageBits] {
		size += int((uint64(n) + math.MaxUint16 - 1) / math.MaxUint16)
	}
	if size == 0 {
		return nil
	}
	c, next := make(closed, size+1), 0
	for i, place := range p.places {
		if place == 0 {
			continue
		}
		for j, n := range p.page(place) {
			cell := uint16(i<<pageBits | j)
			for ; n > math.MaxUint16; n -= math.MaxUint16 {
				c[next] = pair{cell: cell, count: math.MaxUint16}
				next++
			}
			c[next] = pair{cell: cell, count: uint16(n)}
			next += int((n + math.MaxUint16) >> 16) // 1, or 0 for 0
		}
	}
	p.empty()
	return c[:size]
}

// quantiles returns the cells of the median and of the 99th percentile, 0 where
// c holds too few: what pages.quantiles would find. The percentile is looked
// for from above, where it is near.
func (c closed) quantiles() (p50, p99 uint16) {
	total := uint64(0)
	for i := range c {
		total += uint64(c[i].count)
	}
	if total >= fewest(0.5) {
		rank := rank(0.5, total)
		i, seen := 0, uint64(c[0].count)
		for ; seen < rank; seen += uint64(c[i].count) {
			i++
		}
		p50 = c[i].cell
	}
	if total >= fewest(0.99) {
		rank := rank(0.99, total)
		i := len(c) - 1
		below := total - uint64(c[i].count)
		for ; below >= rank; below -= uint64(c[i].count) {
			i--
		}
		p99 = c[i].cell
	}
	return p50, p99
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
