package config

import "slices"

// poolBlock is a pool that is being read.
type poolBlock struct {
	Pool
	p    *parser
	said map[string]Pos
}

func (l *layer) pool(s *statement) error {
	region := s.args[0]
	if err := name(region, "a region"); err != nil {
		return err
	}
	for _, other := range l.pools {
		if other.Region == region.Text {
			return twice(s.Pos, quoted("a pool of region", region.Text), other.Pos)
		}
	}
	l.p.regions = append(l.p.regions, region)
	b := &poolBlock{p: l.p, said: map[string]Pos{}}
	b.Pool = Pool{Pos: s.Pos, Region: region.Text, Answers: unsaid}
	if err := b.read(s); err != nil {
		return err
	}
	if len(b.Endpoints) == 0 {
		return s.errorf("the pool of region %q has no endpoint", region.Text)
	}
	l.pools = append(l.pools, b.Pool)
	return nil
}

func (b *poolBlock) read(s *statement) error {
	for _, t := range s.args[1:] {
		if s.opened {
			return t.errorf("a pool with addresses and a block: write `endpoint %s` in the block", t.Text)
		}
		if err := b.add(t, 1, StateAuto); err != nil {
			return err
		}
	}
	if !s.opened {
		return nil
	}
	return s.block(slices.Concat([]word{
		{"endpoint", "ADDRESS [weight 0..10000] [up|down|drain]", 1, 6, noBlock, b.endpoint},
		{"answers", "1..16|all", 1, 1, noBlock, b.once(b.answers)},
		{"min_healthy", "NUMBER|PERCENT", 1, 1, noBlock, b.once(b.minHealthy)},
	}, later("target", "check", "keep", "cname"), later(levers...))...)
}

// once makes read one of a word that may stand once in the pool.
func (b *poolBlock) once(read func(*statement) error) func(*statement) error {
	return func(s *statement) error {
		if first, ok := b.said[s.Text]; ok {
			return twice(s.Pos, quoted("the word", s.Text), first)
		}
		b.said[s.Text] = s.Pos
		return read(s)
	}
}

func (b *poolBlock) answers(s *statement) (err error) {
	b.Answers, err = answers(s.args[0])
	return err
}

func (b *poolBlock) minHealthy(s *statement) (err error) {
	b.MinHealthy, err = threshold(s.args[0])
	return err
}

func (b *poolBlock) endpoint(s *statement) (err error) {
	weight, state := 1, StateAuto
	weighted := false
	for rest := s.args[1:]; len(rest) > 0; {
		t := rest[0]
		rest = rest[1:]
		switch t.Text {
		case "weight":
			if weighted || len(rest) == 0 {
				return t.errorf("expected `weight 0..10000` once")
			}
			if weight, err = number(rest[0], 0, 10000); err != nil {
				return err
			}
			weighted, rest = true, rest[1:]
		case "up", "down", "drain":
			if state != StateAuto {
				return t.errorf("an endpoint has one state: %q or %q", state, t.Text)
			}
			state = EndpointState(t.Text)
		case "probe":
			return t.errorf("%q is not yet known in this version", t.Text)
		default:
			known := []string{"weight", "up", "down", "drain"}
			return t.errorf("unknown word %q: expected one of %s%s", t.Text, oneOf(known), DidYouMean(t.Text, known))
		}
	}
	return b.add(s.args[0], weight, state)
}

// add puts one endpoint into the pool.
func (b *poolBlock) add(t Token, weight int, state EndpointState) error {
	a, err := address(t)
	if err != nil {
		return err
	}
	for _, e := range b.Endpoints {
		if e.Addr == a {
			return twice(t.Pos, "endpoint "+a.String()+" of this pool", e.Pos)
		}
	}
	if len(b.Endpoints) == maxEndpoints {
		return t.errorf("too many endpoints: at most %d in a pool", maxEndpoints)
	}
	b.Endpoints = append(b.Endpoints, Endpoint{Pos: t.Pos, Addr: a, Weight: weight, State: state})
	return nil
}
