package plot

import (
	"slices"
	"strings"
)

// stripHeight is that of the strip of bands above the data.
const stripHeight = 10

// shade returns the colours of a kind.
func (p palette) shade(kind Kind) band {
	if kind == ScalingUp {
		return p.up
	}
	return p.down
}

// band returns the shade from top to bottom and the bar in a strip of a height
// at its top: scaling up in the upper half, scaling down in the lower.
func (p palette) band(kind Kind, left, right, top, strip, bottom float64) (shade, bar rect) {
	bar = rect{left, top, right, top + strip/2}
	if kind == ScalingDown {
		bar = rect{left, top + strip/2, right, top + strip}
	}
	return rect{left, top, right, bottom}, bar
}

// visible returns the bands that are within the span, cut to it, by kind and
// time; those that follow each other closer than can be seen are one.
func visible(x timeAxis, bands []Band) []Band {
	to := x.from.Add(x.span)
	var in []Band
	for _, b := range bands {
		if b.From.Before(x.from) {
			b.From = x.from
		}
		if b.To.After(to) {
			b.To = to
		}
		if b.From.Before(b.To) && (b.Kind == ScalingUp || b.Kind == ScalingDown) {
			in = append(in, b)
		}
	}
	slices.SortStableFunc(in, func(a, b Band) int {
		if a.Kind != b.Kind {
			return strings.Compare(string(b.Kind), string(a.Kind)) // scaling up first
		}
		return a.From.Compare(b.From)
	})
	var out []Band
	for _, b := range in {
		if n := len(out); n > 0 && out[n-1].Kind == b.Kind && b.From.Sub(out[n-1].To) < x.span/widthWide/4 {
			if b.To.After(out[n-1].To) {
				out[n-1].To = b.To
			}
			continue
		}
		out = append(out, b)
	}
	return out
}

// stripFor returns the height of the strip of bands.
func stripFor(bands []Band) float64 {
	if len(bands) == 0 {
		return 0
	}
	return stripHeight + 2
}

// drawBands draws shades and strip. Shades that are too narrow to be told from
// each other would only be a veil: they are left out.
func (s *sheet) drawBands(x timeAxis, bands []Band) {
	const narrow = 2 // on average
	for _, kind := range []Kind{ScalingUp, ScalingDown} {
		var shades, bars []rect
		wide := 0.0
		for _, b := range bands {
			if b.Kind != kind {
				continue
			}
			left, right := s.x(x.at(b.From)), s.x(x.at(b.To))
			wide += right - left
			if right < left+0.75 { // still to be seen
				right = min(left+0.75, s.frame.right)
				left = right - 0.75
			}
			shade, bar := s.band(kind, left, right, s.frame.top-stripHeight-2, stripHeight, s.frame.bottom)
			shade.top = s.frame.top
			shades, bars = append(shades, shade), append(bars, bar)
		}
		if wide >= narrow*float64(len(shades)) {
			s.canvas.fill(s.shade(kind).shade, shades)
		}
		s.canvas.fill(s.shade(kind).bar, bars)
	}
}
