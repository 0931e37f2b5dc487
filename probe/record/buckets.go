package record

// coarsest is the coarsest schema of native histograms: a bucket for 16
// octaves.
const coarsest = -4

// Coarsen merges ascending buckets of one schema to those of the schema that is
// by lower, exactly: a bucket of the lower schema is the union of 2^by. Like
// slices.Compact it works in place, so that only the result is of use
// afterwards.
func Coarsen(buckets []Bucket, by uint) []Bucket {
	if by == 0 {
		return buckets
	}
	out := buckets[:0]
	for _, b := range buckets {
		index := coarser(b.Index, by)
		if n := len(out); n > 0 && out[n-1].Index == index {
			out[n-1].Count += b.Count
			continue
		}
		out = append(out, Bucket{Index: index, Count: b.Count})
	}
	return out
}

// coarser returns the index of the bucket that contains bucket index in the
// schema that is by lower. An upper bound belongs to its bucket, hence the 1.
func coarser(index int32, by uint) int32 { return (index-1)>>by + 1 }

// Schema returns the finest schema, at most wanted and [NativeSchema], in which
// ascending buckets of NativeSchema are no more than most. It returns -4, the
// coarsest that there is, where none will do, and wanted where most is 0. As
// populated buckets only become more, the schema of a histogram only falls.
func Schema(buckets []Bucket, wanted, most int) int {
	schema := max(min(wanted, NativeSchema), coarsest)
	for most > 0 && schema > coarsest && populated(buckets, uint(NativeSchema-schema)) > most {
		schema--
	}
	return schema
}

// populated counts the buckets that Coarsen would return.
func populated(buckets []Bucket, by uint) int {
	n := 0
	for i, b := range buckets {
		if i == 0 || coarser(b.Index, by) != coarser(buckets[i-1].Index, by) {
			n++
		}
	}
	return n
}
