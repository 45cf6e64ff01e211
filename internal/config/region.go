package config

import "slices"

func (p *parser) region(s *statement) error {
	if s.opened && len(s.args) > 1 {
		return s.brace.errorf("a region statement of several names has no block: write one statement per region")
	}
	for _, t := range s.args {
		if err := name(t, "a region"); err != nil {
			return err
		}
		for _, r := range p.Regions {
			if r.Name == t.Text {
				return twice(t.Pos, quoted("region", t.Text), r.Pos)
			}
		}
		if len(p.Regions) == maxRegions {
			return t.errorf("too many regions: at most %d", maxRegions)
		}
		p.Regions = append(p.Regions, Region{Pos: t.Pos, Name: t.Text})
	}
	if !s.opened {
		return nil
	}
	b := &regionBlock{p: p, Region: &p.Regions[len(p.Regions)-1]}
	return s.block(slices.Concat([]word{
		{"clients", "rest|MATCH", 1, many, noBlock, b.clients},
		{"location", "LATITUDE LONGITUDE", 2, 2, noBlock, b.location},
		{"next", "REGION… [rest]", 1, many, noBlock, b.next},
	}, p.levers(&b.Levers).words())...)
}

// regionBlock is the block of one region.
type regionBlock struct {
	*Region
	p *parser
}

func (b *regionBlock) clients(s *statement) error {
	r, err := b.p.rule(s)
	if err != nil {
		return err
	}
	r.Region = b.Name
	b.p.Rules = append(b.p.Rules, r)
	return nil
}

func (b *regionBlock) location(s *statement) error {
	if b.Location != nil {
		return s.errorf("the location of region %q is written twice", b.Name)
	}
	lat, err := degrees(s.args[0], "latitude", 90)
	if err != nil {
		return err
	}
	lon, err := degrees(s.args[1], "longitude", 180)
	if err != nil {
		return err
	}
	b.Location = &Location{Lat: lat, Lon: lon}
	return nil
}

func (b *regionBlock) next(s *statement) (err error) {
	if b.Next != nil {
		return s.errorf("next of region %q is written twice", b.Name)
	}
	b.Next, b.NextRest, err = b.p.order(s)
	if err == nil && slices.Contains(b.Next, b.Name) {
		return s.errorf("region %q can't follow itself", b.Name)
	}
	return err
}

func (p *parser) area(s *statement) error {
	t := s.args[0]
	if err := name(t, "an area"); err != nil {
		return err
	}
	m, err := p.match(s.Pos, s.args[1:])
	if err != nil {
		return err
	}
	for i := range p.Areas {
		if p.Areas[i].Name == t.Text {
			p.Areas[i].Lines = append(p.Areas[i].Lines, m)
			return nil
		}
	}
	p.Areas = append(p.Areas, Area{Pos: s.Pos, Name: t.Text, Lines: []Match{m}})
	return nil
}

func (p *parser) fence(s *statement) error {
	f := Fence{Pos: s.Pos, Area: s.args[0].Text}
	for _, other := range p.Fences {
		if other.Area == f.Area {
			return twice(s.Pos, quoted("a fence of area", f.Area), other.Pos)
		}
	}
	if again, _, found := firstTwice(s.args[1:]); found {
		return again.errorf("region %q is written twice in this fence", again.Text)
	}
	for _, t := range s.args[1:] {
		f.Regions = append(f.Regions, t.Text)
	}
	p.areas = append(p.areas, s.args[0])
	p.regions = append(p.regions, s.args[1:]...)
	p.Fences = append(p.Fences, f)
	return nil
}

func (p *parser) clients(s *statement) error {
	r, err := p.listed(s)
	p.Rules = append(p.Rules, r)
	return err
}

// rule reads whom a clients statement is about.
func (p *parser) rule(s *statement) (r Rule, err error) {
	r.Pos = s.Pos
	if s.args[0].Text != "rest" {
		r.Match, err = p.match(s.Pos, s.args)
		return r, err
	}
	if len(s.args) > 1 {
		return r, s.args[1].errorf("unexpected %q: nothing can follow `clients rest`, and one statement per line", s.args[1].Text)
	}
	r.Rest = true
	return r, nil
}

// listed reads a clients statement with its list.
func (p *parser) listed(s *statement) (Rule, error) {
	r, err := p.rule(s)
	if err != nil {
		return r, err
	}
	l := &listBlock{p: p}
	refuse := func(*statement) error { r.Refuse = true; return nil }
	err = s.block(append(l.words(), word{"refuse", "", 0, 0, noBlock, refuse})...)
	switch {
	case err != nil:
		return r, err
	case r.Refuse && l.written:
		return r, s.errorf("clients with a list and refuse: write one of them")
	case !r.Refuse && !l.written:
		return r, s.errorf("clients without a list: expected `order REGION…`, `split REGION WEIGHT…` or `refuse`")
	}
	r.List = l.List
	return r, l.check(s.Pos)
}

// listBlock is a candidate list that is being read.
type listBlock struct {
	List
	Pos     // of its first statement
	p       *parser
	written bool
}

func (l *listBlock) words() []word {
	return []word{
		{"split", "REGION WEIGHT…", 2, many, noBlock, l.split},
		{"order", "REGION… [rest]", 1, many, noBlock, l.order},
	}
}

func (l *listBlock) begin(s *statement, again bool) error {
	if again {
		return s.errorf("%q is written twice in one list", s.Text)
	}
	if !l.written {
		l.written, l.Pos = true, s.Pos
	}
	return nil
}

func (l *listBlock) split(s *statement) error {
	if err := l.begin(s, l.Split != nil); err != nil {
		return err
	}
	sum := 0
	for i := 0; i < len(s.args); i += 2 {
		t := s.args[i]
		if i+1 == len(s.args) {
			return t.errorf("region %q has no weight: expected `split REGION WEIGHT…`", t.Text)
		}
		w, err := number(s.args[i+1], 0, 10000)
		if err != nil {
			return err
		}
		sum += w
		l.Split = append(l.Split, Weighted{Name: t.Text, Weight: w})
		l.p.regions = append(l.p.regions, t)
	}
	if sum == 0 {
		return s.errorf("all weights of this split are zero: give one region a weight")
	}
	return nil
}

func (l *listBlock) order(s *statement) (err error) {
	if err := l.begin(s, l.Order != nil); err != nil {
		return err
	}
	l.Order, l.Rest, err = l.p.order(s)
	return err
}

// check holds that no region is named twice in the whole list.
func (l *listBlock) check(at Pos) error {
	var seen []string
	for _, n := range l.regions() {
		if slices.Contains(seen, n) {
			return at.errorf("region %q is written twice in this list", n)
		}
		seen = append(seen, n)
	}
	return nil
}

// order reads region names and perhaps "rest" at the end.
func (p *parser) order(s *statement) (regions []string, rest bool, err error) {
	args := s.args
	if last := len(args) - 1; args[last].Text == "rest" {
		args, rest = args[:last], true
	}
	if len(args) == 0 {
		return nil, false, s.errorf("too few values for %q: expected a region before rest", s.Text)
	}
	if again, _, found := firstTwice(args); found {
		return nil, false, again.errorf("region %q is written twice in this list", again.Text)
	}
	for _, t := range args {
		if t.Text == "rest" {
			return nil, false, t.errorf("rest can only be the last word of %q, and one statement per line", s.Text)
		}
		regions = append(regions, t.Text)
	}
	p.regions = append(p.regions, args...)
	return regions, rest, nil
}

// regions gives the regions that the list names, in their order.
func (l List) regions() []string {
	var names []string
	for _, w := range l.Split {
		names = append(names, w.Name)
	}
	return append(names, l.Order...)
}
