// Package record keeps what came of the ticks of one target, in two structures
// of which neither is derived from the other.
//
// A [Histogram] counts for ever, on the boundaries of a Prometheus native
// histogram with the classic boundaries counted exactly beside them. A
// [Recorder] holds one for every family, and the sliding windows that latency
// quantiles are taken from, in cells of an HDR histogram with three significant
// digits. Beside them it holds a timeline: what was completed in each second of
// the last five minutes, and in each 10 s of the last hour. A [Dense] adds whole
// HDR histograms for a run with an end.
//
// Nothing here knows of Prometheus: an exporter reads a [Snapshot].
package record
