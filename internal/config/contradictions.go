package config

// Contradictions finds what the gslb blocks of several server blocks say of one
// thing that there is once in the process: the capacity and the load of a region,
// by its name, and where the control API listens. A block that says nothing
// contradicts none. The error is an *Error at the later of the two places.
func Contradictions(blocks []*Block) error {
	capacity, load := map[string]*Capacity{}, map[string]*Load{}
	var control *Control
	for _, b := range blocks {
		for i := range b.Regions {
			r := &b.Regions[i]
			if c := r.Levers.Capacity; c != nil {
				if other := capacity[r.Name]; other == nil {
					capacity[r.Name] = c
				} else if !same(*c, *other, func(c *Capacity) { c.Pos = Pos{} }) {
					return contradiction(c.Pos, "the capacity of "+quoted("region", r.Name), other.Pos)
				}
			}
			if l := r.Levers.Load; l != nil {
				if other := load[r.Name]; other == nil {
					load[r.Name] = l
				} else if !same(*l, *other, func(l *Load) { l.Pos = Pos{} }) {
					return contradiction(l.Pos, "the load of "+quoted("region", r.Name), other.Pos)
				}
			}
		}
		switch c := b.Control; {
		case c == nil:
		case control == nil:
			control = c
		case !same(*c, *control, func(c *Control) { c.Pos = Pos{} }):
			return contradiction(c.Pos, "control", control.Pos)
		}
	}
	return nil
}

// same reports whether two values are equal but for what strip takes away.
func same[T comparable](x, y T, strip func(*T)) bool {
	strip(&x)
	strip(&y)
	return x == y
}

func contradiction(again Pos, what string, first Pos) *Error {
	return again.errorf("%s is written with another meaning at %s: there is one for the whole process; write the same, or write it once", what, first)
}
