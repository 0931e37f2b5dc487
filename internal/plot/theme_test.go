package plot

import (
	"fmt"
	"image/color"
	"math"
	"strings"
	"testing"
)

// luminance is the relative luminance of WCAG 2.2.
func luminance(c color.RGBA) float64 {
	part := func(v uint8) float64 {
		s := float64(v) / 255
		if s <= 0.04045 {
			return s / 12.92
		}
		return math.Pow((s+0.055)/1.055, 2.4)
	}
	return 0.2126*part(c.R) + 0.7152*part(c.G) + 0.0722*part(c.B)
}

// contrast is the contrast ratio of WCAG 2.2, from 1 to 21.
func contrast(a, b color.RGBA) float64 {
	x, y := luminance(a), luminance(b)
	return (max(x, y) + 0.05) / (min(x, y) + 0.05)
}

func TestContrastIsThatOfWCAG(t *testing.T) {
	// White on black is 21; #777777 on white is known to miss 4.5.
	if got := contrast(rgb(0xffffff), rgb(0)); math.Abs(got-21) > 1e-9 {
		t.Errorf("white on black is %v", got)
	}
	if got := contrast(rgb(0x777777), rgb(0xffffff)); math.Abs(got-4.48) > 0.005 {
		t.Errorf("grey on white is %v", got)
	}
}

func TestColoursAreReadable(t *testing.T) {
	for _, theme := range []Theme{Light, Dark} {
		p := theme.palette()
		type pair struct {
			name       string
			front, bag color.RGBA
			least      float64
		}
		pairs := []pair{
			{"text", p.text, p.back, 4.5},
			{"text on scaling up", p.text, p.up.shade, 4.5}, // "no requests yet"
			{"text on scaling down", p.text, p.down.shade, 4.5},
			{"labels", p.soft, p.back, 4.5},
			{"labels on scaling up", p.soft, p.up.shade, 4.5}, // of lanes
			{"labels on scaling down", p.soft, p.down.shade, 4.5},
			{"axis", p.axis, p.back, 3},
			{"bar of scaling up", p.up.bar, p.back, 3},
			{"bar of scaling down", p.down.bar, p.back, 3},
		}
		for i, c := range p.lines {
			pairs = append(pairs,
				pair{fmt.Sprintf("line %d", i), c, p.back, 3},
				pair{fmt.Sprintf("line %d on scaling up", i), c, p.up.shade, 3},
				pair{fmt.Sprintf("line %d on scaling down", i), c, p.down.shade, 3})
		}
		for _, pair := range pairs {
			if got := contrast(pair.front, pair.bag); got < pair.least {
				t.Errorf("theme %d, %s: the contrast is %.2f, want %v", theme, pair.name, got, pair.least)
			}
		}
	}
}

// seen returns a colour as CIE L*a*b* of an eye, by the linear RGB matrix of
// Machado, Oliveira and Fernandes (2009) for complete protanopia and
// deuteranopia.
func seen(c color.RGBA, eye [9]float64) [3]float64 {
	linear := func(v uint8) float64 {
		return luminance(color.RGBA{v, v, v, 255})
	}
	r, g, b := linear(c.R), linear(c.G), linear(c.B)
	r, g, b = clip(eye[0]*r+eye[1]*g+eye[2]*b), clip(eye[3]*r+eye[4]*g+eye[5]*b), clip(eye[6]*r+eye[7]*g+eye[8]*b)
	f := func(v float64) float64 {
		if v > 216.0/24389 {
			return math.Cbrt(v)
		}
		return (24389.0/27*v + 16) / 116
	}
	x := f((0.4124*r + 0.3576*g + 0.1805*b) / 0.9505)
	y := f(0.2126*r + 0.7152*g + 0.0722*b)
	z := f((0.0193*r + 0.1192*g + 0.9505*b) / 1.089)
	return [3]float64{116*y - 16, 500 * (x - y), 200 * (y - z)}
}

func clip(v float64) float64 { return min(max(v, 0), 1) }

// eyes are those that colours are to be told apart by.
func eyes() map[string][9]float64 {
	return map[string][9]float64{
		"all cones":    {1, 0, 0, 0, 1, 0, 0, 0, 1},
		"protanopia":   {0.152286, 1.052583, -0.204868, 0.114503, 0.786281, 0.099216, -0.003882, -0.048116, 1.051998},
		"deuteranopia": {0.367322, 0.860646, -0.227968, 0.280085, 0.672501, 0.047413, -0.011820, 0.042940, 0.968881},
	}
}

// apart is how much two colours differ to an eye, in CIE L*a*b*; 2.3 is just
// noticeable, side by side.
func apart(a, b color.RGBA, eye [9]float64) float64 {
	x, y := seen(a, eye), seen(b, eye)
	return math.Hypot(math.Hypot(x[0]-y[0], x[1]-y[1]), x[2]-y[2])
}

func TestFirstLinesAreToldApartByAllEyes(t *testing.T) {
	for _, theme := range []Theme{Light, Dark} {
		lines := theme.palette().lines
		for name, eye := range eyes() {
			for i := range 4 {
				for j := range i {
					if d := apart(lines[i], lines[j], eye); d < 15 {
						t.Errorf("theme %d, %s: lines %d and %d differ by %.1f", theme, name, i, j, d)
					}
				}
			}
		}
	}
}

// TestBandsAreToldFromLinesAndEachOther has bands be greys, so that none looks
// like a line, and scaling up unlike scaling down.
func TestBandsAreToldFromLinesAndEachOther(t *testing.T) {
	for _, theme := range []Theme{Light, Dark} {
		p := theme.palette()
		for name, eye := range eyes() {
			for _, one := range []struct {
				kind string
				band band
			}{{"up", p.up}, {"down", p.down}} {
				for i, line := range p.lines {
					for part, c := range map[string]color.RGBA{"bar": one.band.bar, "shade": one.band.shade} {
						if d := apart(c, line, eye); d < 10 {
							t.Errorf("theme %d, %s: line %d and the %s of scaling %s differ by %.1f", theme, name, i, part, one.kind, d)
						}
					}
				}
			}
			if d := apart(p.up.bar, p.down.bar, eye); d < 15 {
				t.Errorf("theme %d, %s: bars differ by %.1f", theme, name, d)
			}
			for kind, d := range map[string]float64{"up and down": apart(p.up.shade, p.down.shade, eye), "up and none": apart(p.up.shade, p.back, eye)} {
				if d < 4 {
					t.Errorf("theme %d, %s: the shades of scaling %s differ by %.1f", theme, name, kind, d)
				}
			}
		}
	}
}

func TestFiftyLinesDiffer(t *testing.T) {
	p := Light.palette()
	seen := map[string]int{}
	for i := range 50 {
		key := fmt.Sprint(p.stroke(i))
		if j, twice := seen[key]; twice {
			t.Errorf("lines %d and %d are drawn as %s", j, i, key)
		}
		seen[key] = i
	}
	patterns := map[string]bool{}
	for i := range 7 {
		patterns[strings.Trim(fmt.Sprint(dashes(i)), "[]")] = true
	}
	if len(patterns) != 7 {
		t.Errorf("the first 7 lines have %d patterns", len(patterns))
	}
}
