// Package plot draws named curves with their axes as an SVG picture: one panel, or
// several side by side that share the width. It is a pure function of what it is given.
package plot

import (
	"bytes"
	"fmt"
	"html"
	"io"
	"math"
)

// Picture is what is drawn.
type Picture struct {
	Title  string
	Panels []Panel
}

// Panel is a pair of axes with its curves.
type Panel struct {
	Title  string // empty: none
	X, Y   Axis
	Limit  float64 // a value of Y with a dashed line; 0: none
	Curves []Curve
}

// Axis begins at 0. Its marks are at round numbers.
type Axis struct {
	Max  float64 // above 0 and finite
	Name string  // beneath the axis; of X alone
	Unit string  // written after the number of each mark
}

// Curve is a line through points, in the order given. What is beyond an axis is
// drawn at its end.
type Curve struct {
	Name   string
	Points []Point
}

// Point has finite coordinates, in the units of the axes.
type Point struct{ X, Y float64 }

// The measures of a picture, in pixels.
const (
	width, height = 910, 340
	left, right   = 50, 20
	top, bottom   = 54, 46
	between       = 40 // panels
	floor         = height - bottom
	titleAt       = 18
	legendAt      = top - 12
)

var colours = []string{"#c03028", "#2060b0", "#208040", "#806000", "#7040a0", "#404040"}

// Write draws a picture. It fails if an axis has no length, or w does.
func (p *Picture) Write(w io.Writer) error {
	var b bytes.Buffer
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" viewBox="0 0 %[1]d %[2]d" font-family="sans-serif" font-size="12">`+"\n", width, height)
	fmt.Fprintf(&b, `<rect width="%d" height="%d" fill="white"/>`+"\n", width, height)
	fmt.Fprintf(&b, `<text x="%d" y="%d" font-size="14" font-weight="bold">%s</text>`+"\n", left, titleAt, html.EscapeString(p.Title))
	n := len(p.Panels)
	for i := range p.Panels {
		for _, a := range []Axis{p.Panels[i].X, p.Panels[i].Y} {
			if !(a.Max > 0) || math.IsInf(a.Max, 1) {
				return fmt.Errorf("plot %q: an axis ends at %g: expected a finite number above 0", p.Title, a.Max)
			}
		}
		wide := (width - left - right - between*(n-1)) / n
		f := frame{&p.Panels[i], &b, left + i*(wide+between), wide}
		f.axes()
		f.curves()
	}
	b.WriteString("</svg>\n")
	_, err := w.Write(b.Bytes())
	return err
}

// frame is where a panel is drawn.
type frame struct {
	*Panel
	b        *bytes.Buffer
	at, wide int // its left end and width, in pixels
}

// x and y are pixels, of a point within the axes.
func (f *frame) x(v float64) float64 {
	return float64(f.at) + within(v, f.X.Max)*float64(f.wide)
}

func (f *frame) y(v float64) float64 {
	return floor - within(v, f.Y.Max)*(floor-top)
}

// within is a value as a part of an axis, 0..1.
func within(v, end float64) float64 { return min(1, max(0, v/end)) }

func (f *frame) axes() {
	for _, v := range marks(f.Y.Max) {
		f.line(v, `stroke="#ddd"`)
		fmt.Fprintf(f.b, `<text x="%d" y="%.1f" text-anchor="end">%.10g%s</text>`+"\n", f.at-4, f.y(v)+4, v, html.EscapeString(f.Y.Unit))
	}
	if f.Limit > 0 {
		f.line(f.Limit, `stroke="#888" stroke-dasharray="4 3"`)
	}
	for _, v := range marks(f.X.Max) {
		fmt.Fprintf(f.b, `<text x="%.1f" y="%d" text-anchor="middle">%.10g%s</text>`+"\n", f.x(v), floor+16, v, html.EscapeString(f.X.Unit))
	}
	fmt.Fprintf(f.b, `<text x="%d" y="%d" text-anchor="middle">%s</text>`+"\n", f.at+f.wide/2, floor+34, html.EscapeString(f.X.Name))
}

// line is drawn across a panel.
func (f *frame) line(v float64, style string) {
	y := f.y(v)
	fmt.Fprintf(f.b, `<line x1="%d" y1="%.1f" x2="%d" y2="%.1f" %s/>`+"\n", f.at, y, f.at+f.wide, y, style)
}

// curves draws them, and their names in their colours above the panel.
func (f *frame) curves() {
	fmt.Fprintf(f.b, `<text x="%d" y="%d">%s</text>`+"\n", f.at, legendAt, html.EscapeString(f.Title))
	fmt.Fprintf(f.b, `<text x="%d" y="%d" text-anchor="end" font-weight="bold">`, f.at+f.wide, legendAt)
	for i, c := range f.Curves {
		if i > 0 {
			f.b.WriteString("&#160; ")
		}
		fmt.Fprintf(f.b, `<tspan fill="%s">%s</tspan>`, colour(i), html.EscapeString(c.Name))
	}
	f.b.WriteString("</text>\n")
	for i, c := range f.Curves {
		fmt.Fprintf(f.b, `<polyline fill="none" stroke="%s" stroke-width="1.5" points="`, colour(i))
		for j, p := range c.Points {
			if j > 0 {
				f.b.WriteByte(' ')
			}
			fmt.Fprintf(f.b, "%.1f,%.1f", f.x(p.X), f.y(p.Y))
		}
		f.b.WriteString(`"/>` + "\n")
	}
}

func colour(i int) string { return colours[i%len(colours)] }

// marks are round numbers from 0 to the end of an axis, four to nine of them.
func marks(end float64) (list []float64) {
	base := math.Pow(10, math.Floor(math.Log10(end/8)))
	step := 10 * base
	for _, m := range []float64{5, 2, 1} {
		if end/(m*base) <= 8 {
			step = m * base
		}
	}
	for i := range int(end/step+1e-9) + 1 {
		list = append(list, float64(i)*step)
	}
	return list
}
