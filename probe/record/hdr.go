package record

import (
	"math/bits"
	"time"
)

// The cells are those of an HDR histogram (hdrhistogram.org) with three
// significant digits, in nanoseconds up to an hour: 2,048 cells of one
// nanosecond, then 1,024 for every doubling.
const (
	cellBits = 10
	highest  = time.Hour
	// An hour is less than 2^42 ns = 2^11 << 31: 31 doublings after the 2,048.
	numCells = 2<<cellBits + 31<<cellBits
)

// cellOf returns the cell of v nanoseconds, which must be at most highest.
func cellOf(v uint64) uint16 {
	shift := doublings(v)
	return uint16(shift<<cellBits + v>>shift)
}

// doublings is how often the width of v's cell is twice that of the first.
func doublings(v uint64) uint64 {
	return uint64(bits.Len64(v|(2<<cellBits-1)) - (cellBits + 1))
}

// highestOf returns the highest value, in nanoseconds, that belongs to cell.
func highestOf(cell uint16) time.Duration {
	c := uint64(cell)
	if c < 2<<cellBits {
		return time.Duration(c)
	}
	shift := c>>cellBits - 1
	return time.Duration((c-shift<<cellBits+1)<<shift - 1)
}
