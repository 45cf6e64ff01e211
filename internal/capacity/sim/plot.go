package sim

import (
	"io"

	"github.com/seed-945f90c5/gslb/internal/plot"
)

// WriteSVG plots the utilisation of every region over time, under our law and under
// the figure's rival.
func (f *Figure) WriteSVG(w io.Writer) error {
	picture := plot.Picture{Title: "Utilisation: " + f.Title, Panels: []plot.Panel{
		panel("gslb", f.Scenario.Run(Ours)), panel(f.Rival, f.Scenario.Run(f.Law)),
	}}
	return picture.Write(w)
}

// every is the time between two points of a curve, in seconds.
const every = 10

// panel is one run, in percent and minutes.
func panel(title string, res *Result) plot.Panel {
	length := res.Scenario.Length
	p := plot.Panel{Title: title, X: plot.Axis{Max: float64(length) / 60, Name: "minutes"}, Y: plot.Axis{Max: 200, Unit: "%"}, Limit: 100}
	for r, region := range res.Scenario.Regions {
		c := plot.Curve{Name: region.Name}
		for t := 0; t < length; t += every {
			c.Points = append(c.Points, plot.Point{X: float64(t) / 60, Y: 100 * res.Utilisation(r, t)})
		}
		p.Curves = append(p.Curves, c)
	}
	return p
}
