// Package plot draws latencies as SVG, for the page and for reports: by
// percentile, and over time. It stands on the SVG canvas and the font measures
// of gonum.org/v1/plot; axes and legend are its own, because those of gonum's
// root package would add 5.6 MB of fonts and image formats to the program.
//
// The SVG is made to be shown by an <img> element as wide as the page lets it
// be: it has a viewBox and no size, no script, no style sheet (so that no
// content security policy is in its way), no font but those of the reader, a
// title, and a description that holds the key figures in words. Lines differ
// in their dashes as well as in colour.
//
// All functions may be called concurrently, keep nothing, and draw equal input
// as equal bytes.
package plot

import "time"

// Look says what a plot is drawn for. The zero Look is light and wide.
type Look struct {
	Theme Theme
	// Narrow is for a phone: 360 units wide, where a wide plot has 760. Text
	// has 13 units in both, so that each is best shown at about that many CSS
	// pixels.
	Narrow bool
}

// Theme is a set of colours.
type Theme int

// The themes, for preferred colour schemes of the same names.
const (
	Light Theme = iota
	Dark
)

// Series is the latencies of one line of Percentiles.
type Series struct {
	Name  string // any text
	Cells []Cell // ascending
	Empty string // why it has none; empty: no requests yet
}

// Cell counts latencies up to a value.
type Cell struct {
	Highest time.Duration // that is counted here; below 1 µs it is drawn at 1 µs
	Count   uint64
}

// Line is one line of Timelines, with the failures that belong to it.
type Line struct {
	Name     string    // any text
	Points   []Point   // ascending
	Failures []Failure // in any order
	Empty    string    // why no point has a latency; empty: no requests yet
}

// Point is a latency at an instant.
type Point struct {
	At    time.Time
	Value time.Duration // 0 or less: there is none, the line has a gap; below 1 µs it is drawn at 1 µs
}

// Failure counts requests that failed at an instant.
type Failure struct {
	At    time.Time
	Count uint64
}

// Band is a span of time that is shaded: a churn phase.
type Band struct {
	From, To time.Time
	Kind     Kind
}

// Kind says what a Band stands for. Bands of other kinds are not drawn.
type Kind string

// The kinds, named as churn phases are.
const (
	ScalingUp   Kind = "scaling_up"
	ScalingDown Kind = "scaling_down"
)
