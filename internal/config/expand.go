package config

import (
	"fmt"
	"slices"
)

// Limits of what the areas of one set of rules may expand to.
const (
	maxConjunctions = 10000
	maxAlts         = 64
)

var (
	errTooMany = fmt.Errorf("its areas make this more than %d combinations: put fewer areas together with `in`", maxConjunctions)
	errTooLong = fmt.Errorf("its areas make this more than %d alternatives with `in` between them", maxAlts)
)

// Expand gives the conjunctions that m means once every area in it is replaced
// by its lines. The alternatives of a line stand where the area stood, so the
// first one still gives the rank. Files stay as they are. It is safe for
// concurrent use. An area that is not in the block matches nothing; a block of
// Parse has none such and expands to at most 10000 conjunctions.
func (b *Block) Expand(m Match) []Match {
	list, err := b.expand(m, maxConjunctions)
	if err != nil {
		return nil
	}
	return list
}

// expand is Expand with an error beyond limit conjunctions.
func (b *Block) expand(m Match, limit int) ([]Match, error) {
	list := []Match{{Pos: m.Pos}}
	for _, alt := range m.Alts {
		choices := []Match{{Alts: []Alt{alt}}}
		if alt.Kind == AltArea {
			var err error
			if choices, err = b.lines(alt.Codes, limit); err != nil {
				return nil, err
			}
		}
		if len(list)*len(choices) > limit {
			return nil, errTooMany
		}
		var longer []Match
		for _, left := range list {
			for _, right := range choices {
				alts := slices.Concat(left.Alts, right.Alts)
				if len(alts) > maxAlts {
					return nil, errTooLong
				}
				longer = append(longer, Match{Pos: m.Pos, Alts: alts})
			}
		}
		list = longer
	}
	return list, nil
}

// lines expands the lines of areas.
func (b *Block) lines(areas []string, limit int) ([]Match, error) {
	var list []Match
	for _, n := range areas {
		a := b.areaOf(n)
		if a == nil {
			continue
		}
		for _, line := range a.Lines {
			more, err := b.expand(line, limit-len(list))
			if err != nil {
				return nil, err
			}
			list = append(list, more...)
		}
	}
	return list, nil
}

// checkAreas holds that areas don't contain themselves and expand within
// limits.
func (b *Block) checkAreas() error {
	done := map[string]bool{}
	for _, a := range b.Areas {
		if err := b.checkCycle(a, nil, done); err != nil {
			return err
		}
	}
	for _, a := range b.Areas {
		if _, err := b.lines([]string{a.Name}, maxConjunctions); err != nil {
			return a.errorf("area %q: %v", a.Name, err)
		}
	}
	return nil
}

// checkCycle walks the areas that a refers to; path leads to a.
func (b *Block) checkCycle(a Area, path []string, done map[string]bool) error {
	if slices.Contains(path, a.Name) {
		return a.errorf("area %q contains itself: %s", a.Name, chain(append(path, a.Name)))
	}
	if done[a.Name] {
		return nil
	}
	path = append(path, a.Name)
	for _, line := range a.Lines {
		for _, alt := range line.Alts {
			if alt.Kind != AltArea {
				continue
			}
			for _, n := range alt.Codes {
				if err := b.checkCycle(*b.areaOf(n), path, done); err != nil {
					return err
				}
			}
		}
	}
	done[a.Name] = true
	return nil
}
