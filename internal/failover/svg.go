package failover

import (
	"io"

	"github.com/seed-945f90c5/gslb/internal/plot"
)

// Curve is a model with the name that a plot gives it.
type Curve struct {
	Name  string
	Model *Model
}

// Plot draws how the part of clients that still go to the failed region falls, up to
// a number of seconds above 0, as an SVG picture.
func Plot(w io.Writer, title string, until float64, curves []Curve) error {
	panel := plot.Panel{X: plot.Axis{Max: until, Name: "seconds after the outage began"}, Y: plot.Axis{Max: 100, Unit: "%"}}
	const points = 400
	for _, c := range curves {
		line := plot.Curve{Name: c.Name}
		for p := range points + 1 {
			t := until * float64(p) / points
			line.Points = append(line.Points, plot.Point{X: t, Y: 100 * c.Model.Left(t)})
		}
		panel.Curves = append(panel.Curves, line)
	}
	picture := plot.Picture{Title: title, Panels: []plot.Panel{panel}}
	return picture.Write(w)
}
