package record

import (
	"math"
	"slices"
)

// Quantile returns a quantile (q of 0 to 1) in seconds, as the upper boundary
// of its native bucket: at most 2.2 % too high. It is NaN where d holds fewer
// than 1/(1-q), for q = 1 where it is empty. The buckets of d must be those of
// [NativeSchema].
func (d *Distribution) Quantile(q float64) float64 {
	if d.Count < fewest(q) {
		return math.NaN()
	}
	rank, seen := rank(q, d.Count), d.Zero
	if rank <= seen {
		return 0
	}
	for _, b := range d.Native {
		if seen += b.Count; rank <= seen {
			return math.Exp2(float64(b.Index) / octaveSize)
		}
	}
	return math.NaN()
}

// Add adds what o counts, which stays as it is. Both must be of the same family
// and of the same schema; a zero Distribution is of every family.
func (d *Distribution) Add(o *Distribution) {
	d.Count += o.Count
	d.Sum += o.Sum
	d.Zero += o.Zero
	if len(d.Classic) == 0 {
		d.Classic = append(d.Classic, o.Classic...)
	} else {
		for i, n := range o.Classic {
			d.Classic[i] += n
		}
	}
	d.Native = merge(d.Native, o.Native)
}

// merge adds ascending buckets to ascending buckets, in their room where it is
// enough. It goes from the greatest down, so that nothing is overwritten before
// it was read.
func merge(to, from []Bucket) []Bucket {
	i, j := len(to)-1, len(from)-1
	to = slices.Grow(to, len(from))[:len(to)+len(from)]
	next := len(to) - 1
	for ; i >= 0 || j >= 0; next-- {
		switch {
		case j < 0 || i >= 0 && to[i].Index > from[j].Index:
			to[next] = to[i]
			i--
		case i < 0 || to[i].Index < from[j].Index:
			to[next] = from[j]
			j--
		default:
			to[next] = Bucket{Index: to[i].Index, Count: to[i].Count + from[j].Count}
			i--
			j--
		}
	}
	return append(to[:0], to[next+1:]...)
}
