package plot

import "image/color"

// palette is the colours of a theme.
type palette struct {
	back     color.RGBA
	text     color.RGBA // titles, legend
	soft     color.RGBA // labels of axes
	grid     color.RGBA // decoration only
	axis     color.RGBA // the frame of the data
	up, down band
	lines    [8]color.RGBA
}

// band is the colours of a kind of band.
type band struct {
	shade color.RGBA // behind the lines, decoration only
	bar   color.RGBA // the same span in the strip above
}

// palette returns the colours of a theme; unknown ones are light. The lines are
// those of Okabe and Ito ("Color Universal Design", 2008), which eyes of all
// kinds tell apart, made darker or lighter until each has a contrast of 3:1
// against background and shades; text has 4.5:1. Bands are greys, which no line
// has: scaling down the stronger ones.
func (t Theme) palette() palette {
	if t == Dark {
		return palette{
			back: rgb(0x0d1117), text: rgb(0xe6edf3), soft: rgb(0x9ea7b3), grid: rgb(0x21262d), axis: rgb(0x6e7681),
			up:    band{shade: rgb(0x191e25), bar: rgb(0x5f6873)},
			down:  band{shade: rgb(0x2a313b), bar: rgb(0x868e99)},
			lines: [8]color.RGBA{rgb(0x56b4e9), rgb(0xf0803c), rgb(0x1fc79a), rgb(0xe08fbd), rgb(0xf0e442), rgb(0x8f9bff), rgb(0xe6a117), rgb(0xd0d7de)},
		}
	}
	return palette{
		back: rgb(0xffffff), text: rgb(0x1b1f24), soft: rgb(0x57606a), grid: rgb(0xe4e8ec), axis: rgb(0x8c959f),
		up:    band{shade: rgb(0xf0f2f4), bar: rgb(0x8b929a)},
		down:  band{shade: rgb(0xdde1e6), bar: rgb(0x4c535b)},
		lines: [8]color.RGBA{rgb(0x0072b2), rgb(0xc44e00), rgb(0x008060), rgb(0x333a42), rgb(0x7a6a00), rgb(0x6020d0), rgb(0xa06a00), rgb(0xa8477f)},
	}
}

// dashes is the pattern of line i: drawn, left out, drawn …; empty is solid.
// There are 7 patterns and 8 colours, so that 56 lines have a pair of their own.
func dashes(i int) []float64 {
	switch i % 7 {
	case 1:
		return []float64{8, 3}
	case 2:
		return []float64{2.5, 2.5}
	case 3:
		return []float64{10, 3, 2, 3}
	case 4:
		return []float64{14, 4}
	case 5:
		return []float64{5, 2, 1.5, 2, 1.5, 2}
	case 6:
		return []float64{1.5, 4}
	}
	return nil
}

func rgb(v uint32) color.RGBA {
	return color.RGBA{R: uint8(v >> 16), G: uint8(v >> 8), B: uint8(v), A: 0xff}
}
