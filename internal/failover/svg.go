package failover

import (
	"fmt"
	"html"
	"io"
	"math"
	"strings"
)

// Curve is a model with the name that a plot gives it.
type Curve struct {
	Name  string
	Model *Model
}

// The plot's size and margins, in pixels.
const (
	width, height            = 760, 400
	left, right, top, bottom = 64, 24, 28, 52
)

var colours = []string{"#1f77b4", "#d62728", "#2ca02c", "#9467bd", "#ff7f0e", "#8c564b"}

// Plot draws how the part of clients that still go to the failed region falls, up to
// a number of seconds, as an SVG picture.
func Plot(w io.Writer, title string, until float64, curves []Curve) error {
	var b strings.Builder
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" font-family="sans-serif" font-size="12">`+"\n", width, height)
	fmt.Fprintf(&b, `<rect width="%d" height="%d" fill="white"/>`+"\n", width, height)
	fmt.Fprintf(&b, `<text x="%d" y="18" font-size="14">%s</text>`+"\n", left, html.EscapeString(title))
	x := func(t float64) float64 { return left + t/until*(width-left-right) }
	y := func(part float64) float64 { return top + (1-part)*(height-top-bottom) }
	for percent := 0; percent <= 100; percent += 20 {
		at := y(float64(percent) / 100)
		fmt.Fprintf(&b, `<line x1="%d" x2="%d" y1="%.1f" y2="%.1f" stroke="#ddd"/><text x="%d" y="%.1f" text-anchor="end">%d %%</text>`+"\n",
			left, width-right, at, at, left-6, at+4, percent)
	}
	step := tick(until)
	for t := 0.0; t <= until; t += step {
		fmt.Fprintf(&b, `<text x="%.1f" y="%d" text-anchor="middle">%g</text>`+"\n", x(t), height-bottom+16, t)
	}
	fmt.Fprintf(&b, `<text x="%d" y="%d" text-anchor="middle">seconds after the outage began</text>`+"\n", (left+width-right)/2, height-bottom+34)
	const points = 400
	for i, c := range curves {
		var line []string
		for p := range points + 1 {
			t := until * float64(p) / points
			line = append(line, fmt.Sprintf("%.1f,%.1f", x(t), y(c.Model.Left(t))))
		}
		colour := colours[i%len(colours)]
		fmt.Fprintf(&b, `<polyline fill="none" stroke="%s" stroke-width="2" points="%s"/>`+"\n", colour, strings.Join(line, " "))
		fmt.Fprintf(&b, `<text x="%d" y="%d" text-anchor="end" fill="%s">%s</text>`+"\n", width-right-4, top+16+16*i, colour, html.EscapeString(c.Name))
	}
	b.WriteString("</svg>\n")
	_, err := io.WriteString(w, b.String())
	return err
}

// tick is a round distance between marks, for about eight of them.
func tick(until float64) float64 {
	if !(until > 0) || math.IsInf(until, 0) {
		return 1
	}
	step := math.Pow(10, math.Floor(math.Log10(until/8)))
	for _, m := range []float64{1, 2, 5, 10} {
		if until/(step*m) <= 8 {
			return step * m
		}
	}
	return step * 10
}
