package plot

import (
	"bytes"
	"encoding/xml"
	"errors"
	"fmt"
	"image/color"
	"io"
	"math"
	"strings"
	"sync"

	"codeberg.org/go-fonts/liberation/liberationsansregular"
	"golang.org/x/image/font/opentype"
	"gonum.org/v1/plot/font"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/vgsvg"
)

// families are fonts of the same widths as the one that texts are measured by,
// then whatever the reader has.
const families = "Arial, Helvetica, 'Liberation Sans', sans-serif"

// wider is how much wider than measured a text may be: so much wider are
// Verdana and DejaVu Sans, the widest fonts that readers are likely to have.
const wider = 1.17

// measure is the font that texts are measured by. It is never sent to anyone.
var measure = sync.OnceValues(func() (*opentype.Font, error) {
	return opentype.Parse(liberationsansregular.TTF)
})

// point is a place on a canvas, counted from its upper left corner.
type point struct{ x, y float64 }

// rect is a rectangle on a canvas.
type rect struct{ left, top, right, bottom float64 }

// stroke is how a line is drawn.
type stroke struct {
	color  color.RGBA
	width  float64
	dashes []float64
}

// canvas puts gonum's SVG canvas, whose origin is below, under coordinates
// whose origin is above.
type canvas struct {
	svg    *vgsvg.Canvas
	font   *opentype.Font
	height float64
	// anchors are those of the texts, in the order of drawing. gonum's canvas
	// has none, and widths that were measured would not hold for the fonts of
	// all readers.
	anchors []anchor
}

// anchor says which part of a text is at its place.
type anchor string

const (
	start  anchor = "start"
	middle anchor = "middle"
	end    anchor = "end"
)

// newCanvas returns a canvas with a background.
func newCanvas(f *opentype.Font, width, height float64, back color.RGBA) *canvas {
	c := &canvas{svg: vgsvg.New(vg.Length(width), vg.Length(height)), font: f, height: height}
	c.fill(back, []rect{{0, 0, width, height}})
	return c
}

// lines draws each of them through its points, as one shape.
func (c *canvas) lines(s stroke, lines [][]point) {
	var p vg.Path
	for _, l := range lines {
		for i, at := range l {
			if i == 0 {
				p.Move(c.at(at))
			} else {
				p.Line(c.at(at))
			}
		}
	}
	if len(p) == 0 {
		return
	}
	var pattern []vg.Length
	for _, d := range s.dashes {
		pattern = append(pattern, vg.Length(d))
	}
	c.svg.SetColor(s.color)
	c.svg.SetLineWidth(vg.Length(s.width))
	c.svg.SetLineDash(pattern, 0)
	c.svg.Stroke(p)
}

// fill fills the rectangles as one shape.
func (c *canvas) fill(col color.RGBA, rects []rect) {
	if len(rects) == 0 {
		return
	}
	var p vg.Path
	for _, r := range rects {
		p.Move(c.at(point{r.left, r.top}))
		p.Line(c.at(point{r.right, r.top}))
		p.Line(c.at(point{r.right, r.bottom}))
		p.Line(c.at(point{r.left, r.bottom}))
		p.Close()
	}
	c.svg.SetColor(col)
	c.svg.Fill(p)
}

// dots fills circles as one shape.
func (c *canvas) dots(col color.RGBA, radius float64, centers []point) {
	if len(centers) == 0 {
		return
	}
	var p vg.Path
	for _, at := range centers {
		p.Move(c.at(point{at.x + radius, at.y}))
		p.Arc(c.at(at), vg.Length(radius), 0, 2*math.Pi)
		p.Close()
	}
	c.svg.SetColor(col)
	c.svg.Fill(p)
}

// text writes s on a base line.
func (c *canvas) text(col color.RGBA, size float64, a anchor, at point, s string) {
	c.anchors = append(c.anchors, a)
	c.svg.SetColor(col)
	c.svg.FillString(face(c.font, size), c.at(at), s)
}

func (c *canvas) at(p point) vg.Point {
	return vg.Point{X: vg.Length(p.x), Y: vg.Length(c.height - p.y)}
}

// write writes the SVG with a title and a description for those who do not see
// it. What gonum writes as styles becomes attributes: a content security policy
// may forbid the one, never the other.
func (c *canvas) write(w io.Writer, title, description string) error {
	var drawn bytes.Buffer
	if _, err := c.svg.WriteTo(&drawn); err != nil {
		return fmt.Errorf("drawing the plot %q: %w", title, err)
	}
	_, body, found := bytes.Cut(drawn.Bytes(), []byte("<g"))
	if !found {
		return fmt.Errorf("drawing the plot %q: %w", title, errors.New("gonum's canvas begins in an unknown way"))
	}
	width, height := c.svg.Size()
	var out bytes.Buffer
	out.Grow(drawn.Len() + 1024)
	fmt.Fprintf(&out, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %g %g" role="img" font-family="%s">`+"\n<title>", width.Points(), height.Points(), families)
	_ = xml.EscapeText(&out, []byte(title)) // a buffer takes all
	out.WriteString("</title>\n<desc>")
	_ = xml.EscapeText(&out, []byte(description))
	out.WriteString("</desc>\n<g")
	texts := bytes.Split(body, []byte("<text "))
	for i, text := range texts {
		if i > 0 {
			fmt.Fprintf(&out, `<text text-anchor="%s" `, c.anchors[i-1])
		}
		stylesToAttributes(&out, text)
	}
	_, err := w.Write(out.Bytes())
	return err
}

// stylesToAttributes copies SVG to out, each style="a:b;c:d" as a="b" c="d".
// Text cannot be taken for a style, its quotation marks are escaped. Fonts are
// left out, they are set once for all.
func stylesToAttributes(out *bytes.Buffer, svg []byte) {
	for {
		before, rest, found := bytes.Cut(svg, []byte(`style="`))
		out.Write(before)
		if !found {
			return
		}
		style, after, _ := bytes.Cut(rest, []byte(`"`))
		for declaration := range bytes.SplitSeq(style, []byte(";")) {
			name, value, _ := bytes.Cut(declaration, []byte(":"))
			if bytes.HasPrefix(name, []byte("font-")) && string(name) != "font-size" {
				continue
			}
			fmt.Fprintf(out, `%s="%s" `, name, value)
		}
		svg = after
	}
}

func face(f *opentype.Font, size float64) font.Face {
	return font.Face{Font: font.Font{Size: vg.Length(size)}, Face: f}
}

// textWidth returns how wide a text is with the widest font.
func textWidth(f *opentype.Font, size float64, s string) float64 {
	fc := face(f, size)
	return fc.Width(s).Points() * wider
}

// clean returns a name as one line of text that XML can hold, and no more of it
// than anybody reads.
func clean(s string) string {
	const most = 200
	runes := 0
	return strings.Map(func(r rune) rune {
		runes++
		switch {
		case runes > most:
			return -1
		case r == '\t', r == '\n', r == '\r':
			return ' '
		case r < 0x20, r >= 0x7f && r < 0xa0, r == 0xfffe, r == 0xffff:
			return '\ufffd'
		}
		return r
	}, strings.ToValidUTF8(s, "\ufffd"))
}

// fit returns s, shortened by an ellipsis where it is wider.
func fit(f *opentype.Font, size, width float64, s string) string {
	if textWidth(f, size, s) <= width {
		return s
	}
	runes := []rune(s)
	for len(runes) > 0 {
		runes = runes[:len(runes)-1]
		if short := strings.TrimRight(string(runes), " ") + "…"; textWidth(f, size, short) <= width {
			return short
		}
	}
	return ""
}

// wrap returns s in lines that are no wider, shortened where there would be
// more than three.
func wrap(f *opentype.Font, size, width float64, s string) []string {
	const most = 3
	var lines []string
	words := strings.Fields(s)
	for len(words) > 0 {
		n := 1
		for n < len(words) && textWidth(f, size, strings.Join(words[:n+1], " ")) <= width {
			n++
		}
		if len(lines) == most-1 {
			n = len(words)
		}
		lines = append(lines, fit(f, size, width, strings.Join(words[:n], " ")))
		words = words[n:]
	}
	return lines
}
