package record

import (
	"math/rand/v2"
	"testing"

	"github.com/HdrHistogram/hdrhistogram-go"
)

// checkCell compares with the library, whose cells are only to be seen from
// outside: two values are equivalent if they share one.
func checkCell(t *testing.T, oracle *hdrhistogram.Histogram, v uint64) {
	t.Helper()
	cell := cellOf(v)
	if int(cell) >= numCells {
		t.Fatalf("%d ns are in cell %d of %d", v, cell, numCells)
	}
	most := int64(highestOf(cell))
	if !oracle.ValuesAreEquivalent(int64(v), most) || oracle.ValuesAreEquivalent(int64(v), most+1) {
		t.Errorf("%d ns: highest equivalent value %d is not the library's", v, most)
	}
	if got := cellOf(uint64(most)); got != cell {
		t.Errorf("the highest value %d of cell %d is in cell %d", most, cell, got)
	}
	if most < int64(highest) {
		if got := cellOf(uint64(most) + 1); got != cell+1 {
			t.Errorf("the cell after %d is %d", cell, got)
		}
	}
}

func TestCells(t *testing.T) {
	oracle := newHDR()
	if got := len(oracle.Export().Counts); got != numCells {
		t.Errorf("the library has %d cells, we have %d", got, numCells)
	}
	for v := range uint64(10_000) {
		checkCell(t, oracle, v)
	}
	for _, n := range edges(nil) {
		if n <= uint64(highest) {
			checkCell(t, oracle, n)
		}
	}
	checkCell(t, oracle, uint64(highest))
	for range 100_000 {
		checkCell(t, oracle, rand.Uint64N(uint64(highest))>>rand.IntN(42))
	}
	// Every cell, against the library's own index.
	counts := oracle.Export()
	for cell := range numCells {
		v := highestOf(uint16(cell))
		if v > highest {
			break
		}
		clear(counts.Counts)
		counts.Counts[cell] = 1
		if cell%97 == 0 { // an import costs a whole histogram
			if got := hdrhistogram.Import(counts).Max(); got != int64(v) {
				t.Errorf("cell %d ends at %d, the library says %d", cell, v, got)
			}
		}
	}
}

func FuzzCell(f *testing.F) {
	f.Add(uint64(0))
	f.Add(uint64(2047))
	f.Add(uint64(2048))
	f.Add(uint64(highest))
	oracle := newHDR()
	f.Fuzz(func(t *testing.T, v uint64) {
		if v <= uint64(highest) {
			checkCell(t, oracle, v)
		}
	})
}
