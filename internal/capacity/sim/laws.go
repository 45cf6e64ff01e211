package sim

import "github.com/seed-945f90c5/gslb/internal/capacity"

// Law decides what every candidate takes of who reaches it, by list and candidate.
type Law interface {
	Step(*capacity.Input) ([][]float64, *capacity.Output)
}

// Ours is the law of package capacity.
func Ours() Law { return &ours{} }

type ours struct{ state *capacity.State }

func (o *ours) Step(in *capacity.Input) (admission [][]float64, out *capacity.Output) {
	o.state, out = capacity.Step(o.state, in)
	return out.Admission, out
}

// Nearest sends everybody to the nearest region that is up, and knows no load.
func Nearest() Law {
	return perSink(func(*capacity.Sink, float64) float64 { return 1 })
}

// Watermark takes everybody up to a utilisation of low, nobody from high on, and
// in between the part that is left of the band.
func Watermark(low, high float64) func() Law {
	return func() Law {
		return perSink(func(s *capacity.Sink, _ float64) float64 {
			return min(1, max(0, (high-s.Signal.Value/s.Capacity)/(high-low)))
		})
	}
}

// BangBang takes nobody from full on until utilisation is below low again.
func BangBang(low float64) func() Law {
	return func() Law {
		return perSink(func(s *capacity.Sink, last float64) float64 {
			switch u := s.Signal.Value / s.Capacity; {
			case u >= 1:
				return 0
			case u < low:
				return 1
			}
			return last
		})
	}
}

// perSink is a law that looks at one region's load at a time, and at what it last
// said of it.
func perSink(admit func(s *capacity.Sink, last float64) float64) Law {
	return &rival{admit: admit, last: make(map[string]float64)}
}

type rival struct {
	admit func(*capacity.Sink, float64) float64
	last  map[string]float64
}

func (r *rival) Step(in *capacity.Input) ([][]float64, *capacity.Output) {
	parts := make([]float64, len(in.Sinks))
	for i := range in.Sinks {
		s := &in.Sinks[i]
		last, ok := r.last[s.Name]
		if !ok {
			last = 1
		}
		if parts[i] = last; s.Signal.Valid {
			parts[i] = r.admit(s, last)
		}
		r.last[s.Name] = parts[i]
	}
	var out [][]float64
	for _, g := range in.Groups {
		var row []float64
		for _, i := range g.Sinks {
			row = append(row, parts[i])
		}
		out = append(out, row)
	}
	return out, nil
}
