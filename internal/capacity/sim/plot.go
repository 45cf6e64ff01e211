package sim

import (
	"bytes"
	"fmt"
	"html"
)

// The measures of a plot, in pixels.
const (
	panelWidth, panelHeight = 400, 220
	left, top, gap          = 50, 50, 40
	plotWidth               = left + 2*panelWidth + gap + 20
	plotHeight              = top + panelHeight + 50
	maxUse                  = 2.0 // at the top of a panel
)

var colours = []string{"#c03028", "#2060b0", "#208040", "#806000", "#7040a0", "#404040"}

// SVG plots the utilisation of every region over time, under our law and under
// the figure's rival.
func (f *Figure) SVG() []byte {
	var b bytes.Buffer
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" viewBox="0 0 %[1]d %[2]d" font-family="sans-serif" font-size="12">`+"\n", plotWidth, plotHeight)
	fmt.Fprintf(&b, `<rect width="%d" height="%d" fill="white"/>`+"\n", plotWidth, plotHeight)
	fmt.Fprintf(&b, `<text x="%d" y="18" font-size="14" font-weight="bold">%s</text>`+"\n", left, html.EscapeString("Utilisation: "+f.Title))
	panel(&b, left, "gslb", f.Scenario.Run(Ours))
	panel(&b, left+panelWidth+gap, f.Rival, f.Scenario.Run(f.Law))
	b.WriteString("</svg>\n")
	return b.Bytes()
}

// panel draws one run with its axes, x pixels from the left.
func panel(b *bytes.Buffer, x int, title string, res *Result) {
	length := res.Scenario.Length
	fmt.Fprintf(b, `<text x="%d" y="%d">%s</text>`+"\n", x, top-12, html.EscapeString(title))
	for _, use := range []float64{0, 0.5, 1, 1.5, 2} {
		y := height(use)
		style := `stroke="#ddd"`
		if use == 1 {
			style = `stroke="#888" stroke-dasharray="4 3"`
		}
		fmt.Fprintf(b, `<line x1="%d" y1="%.1f" x2="%d" y2="%.1f" %s/>`+"\n", x, y, x+panelWidth, y, style)
		fmt.Fprintf(b, `<text x="%d" y="%.1f" text-anchor="end">%.0f%%</text>`+"\n", x-4, y+4, 100*use)
	}
	every := 10 * 60
	if length > 5400 {
		every = 20 * 60
	}
	for t := 0; t <= length; t += every {
		fmt.Fprintf(b, `<text x="%.1f" y="%d" text-anchor="middle">%d</text>`+"\n", across(x, t, length), top+panelHeight+16, t/60)
	}
	fmt.Fprintf(b, `<text x="%d" y="%d" text-anchor="middle">minutes</text>`+"\n", x+panelWidth/2, top+panelHeight+32)
	for r, region := range res.Scenario.Regions {
		colour := colours[r%len(colours)]
		fmt.Fprintf(b, `<polyline fill="none" stroke="%s" stroke-width="1.5" points="`, colour)
		for t := 0; t < length; t += 10 {
			fmt.Fprintf(b, "%.1f,%.1f ", across(x, t, length), height(min(maxUse, res.Utilisation(r, t))))
		}
		b.WriteString(`"/>` + "\n")
		fmt.Fprintf(b, `<text x="%d" y="%d" fill="%s" font-weight="bold">%s</text>`+"\n",
			x+panelWidth-20*(len(res.Scenario.Regions)-r), top-12, colour, html.EscapeString(region.Name))
	}
}

func across(x, t, length int) float64 { return float64(x) + float64(panelWidth*t)/float64(length) }

func height(use float64) float64 { return top + panelHeight*(1-use/maxUse) }
