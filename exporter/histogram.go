package exporter

import (
	dto "github.com/prometheus/client_model/go"

	"github.com/steadyprobe/steadyprobe/probe/record"
)

// One histogram carries classic and native buckets under one name: text
// formats show the classic half, protobuf carries both, and the scraping side
// chooses. client_golang offers both only for what it has counted itself, so
// the message is filled here, as its Histogram would:
// https://prometheus.io/docs/specs/native_histograms/

// A gap of up to this many empty buckets is cheaper as counts of 0 than as the
// start of another span.
const shortGap = 2

// newClassic returns classic buckets without counts. The infinite one is left
// out, as it says what the sample count says.
func newClassic(bounds []float64) []*dto.Bucket {
	cells := make([]struct {
		bucket dto.Bucket
		count  uint64
	}, len(bounds))
	buckets := make([]*dto.Bucket, len(bounds))
	for i := range cells {
		c := &cells[i]
		c.bucket.CumulativeCount, c.bucket.UpperBound = &c.count, &bounds[i]
		buckets[i] = &c.bucket
	}
	return buckets
}

// fillClassic writes the classic buckets. It returns false, with all at 0,
// where d was counted with another number of them; a d that holds nothing may
// have none.
func fillClassic(h *dto.Histogram, d *record.Distribution) bool {
	counts := d.Classic
	fits := len(counts) == len(h.Bucket)+1
	var below uint64
	for i, b := range h.Bucket {
		if fits {
			below += counts[i]
		}
		*b.CumulativeCount = below
	}
	return fits || len(counts) == 0 && d.Count == 0
}

// fillNative writes the native buckets at the configured schema, or at the
// finest coarser one that keeps to the cap. It merges the buckets of d in
// place, so that d is of no use afterwards.
func (l *layout) fillNative(h *dto.Histogram, d *record.Distribution) {
	zero, buckets := d.Zero, d.Native
	for len(buckets) > 0 && buckets[0].Index <= l.zeroIndex {
		zero += buckets[0].Count
		buckets = buckets[1:]
	}
	schema := record.Schema(buckets, l.histograms.Schema, l.histograms.MaxBuckets)
	buckets = record.Coarsen(buckets, uint(record.NativeSchema-schema))
	*h.Schema = int32(schema)
	*h.ZeroCount = zero
	fillSpans(h, buckets)
}

// fillSpans writes ascending buckets as spans of neighbours and the
// differences between their counts.
func fillSpans(h *dto.Histogram, buckets []record.Bucket) {
	h.PositiveSpan = h.PositiveSpan[:0]
	h.PositiveDelta = h.PositiveDelta[:0]
	var last int64
	var next int32
	var length *uint32
	add := func(count int64) {
		*length++
		h.PositiveDelta = append(h.PositiveDelta, count-last)
		last = count
	}
	for i, b := range buckets {
		gap := b.Index - next
		if i == 0 || gap > shortGap {
			length = addSpan(h, gap)
		} else {
			for range gap {
				add(0)
			}
		}
		add(int64(b.Count))
		next = b.Index + 1
	}
}

// addSpan starts a span, in the memory of an earlier scrape where there is
// some, and returns its length, which is 0.
func addSpan(h *dto.Histogram, offset int32) *uint32 {
	n := len(h.PositiveSpan)
	if n < cap(h.PositiveSpan) {
		h.PositiveSpan = h.PositiveSpan[:n+1]
	} else {
		h.PositiveSpan = append(h.PositiveSpan, nil)
	}
	if h.PositiveSpan[n] == nil {
		cell := new(struct {
			span   dto.BucketSpan
			offset int32
			length uint32
		})
		cell.span.Offset, cell.span.Length = &cell.offset, &cell.length
		h.PositiveSpan[n] = &cell.span
	}
	s := h.PositiveSpan[n]
	*s.Offset, *s.Length = offset, 0
	return s.Length
}
