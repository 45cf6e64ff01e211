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
	if err := b.settle(); err != nil {
		return err
	}
	l.pools = append(l.pools, b.Pool)
	return nil
}

func (b *poolBlock) read(s *statement) error {
	for _, t := range s.args[1:] {
		if s.opened {
			return t.errorf("a pool with addresses and a block: write `endpoint %s` in the block", t.Text)
		}
		if err := b.add(t, Endpoint{Weight: 1}); err != nil {
			return err
		}
	}
	if !s.opened {
		return nil
	}
	return s.block(slices.Concat([]word{
		{"endpoint", "ADDRESS [weight 0..10000] [probe ADDRESS[:PORT]] [up|down|drain]", 1, 8, noBlock, b.endpoint},
		{"target", "NAME [weight 0..10000] [probe :PORT] [up|down|drain]", 1, 8, noBlock, b.target},
		{"check", "NAME…", 1, many, noBlock, b.once(b.check)},
		{"answers", "1..16|all", 1, 1, noBlock, b.once(b.answers)},
		{"min_healthy", "NUMBER|PERCENT", 1, 1, noBlock, b.once(b.minHealthy)},
		{"keep", "TIME", 1, 1, noBlock, b.once(b.keep)},
		{"cname", "", 0, 0, noBlock, b.once(b.cname)},
	}, b.p.levers(&b.Levers).words())...)
}

// once makes read one of a word that may stand once in the pool.
func (b *poolBlock) once(read func(*statement) error) func(*statement) error {
	return once(b.said, read)
}

func (b *poolBlock) answers(s *statement) (err error) {
	b.Answers, err = answers(s.args[0])
	return err
}

func (b *poolBlock) minHealthy(s *statement) (err error) {
	b.MinHealthy, err = threshold(s.args[0])
	return err
}

func (b *poolBlock) check(s *statement) (err error) {
	b.Checks, err = b.p.checkNames(s)
	return err
}

func (b *poolBlock) endpoint(s *statement) error {
	e := Endpoint{Weight: 1}
	err := options(s.args[1:], "ADDRESS[:PORT]", &e.State, func(word string, value Token) (err error) {
		if word == "weight" {
			e.Weight, err = number(value, 0, 10000)
		} else {
			e.Probe, err = dialled(value, true)
		}
		return err
	})
	if err != nil {
		return err
	}
	return b.add(s.args[0], e)
}

// options reads what follows an endpoint or a target: its state, and weight and
// probe, whose values set reads.
func options(rest []Token, probe string, state *EndpointState, set func(word string, value Token) error) error {
	said := map[string]bool{}
	for len(rest) > 0 {
		t := rest[0]
		rest = rest[1:]
		switch t.Text {
		case "weight", "probe":
			if said[t.Text] || len(rest) == 0 {
				return t.errorf("expected `%s` once", map[string]string{"weight": "weight 0..10000", "probe": "probe " + probe}[t.Text])
			}
			said[t.Text] = true
			if err := set(t.Text, rest[0]); err != nil {
				return err
			}
			rest = rest[1:]
		case "up", "down", "drain":
			if *state != StateAuto {
				return t.errorf("an endpoint has one state: %q or %q", *state, t.Text)
			}
			*state = EndpointState(t.Text)
		default:
			known := []string{"weight", "probe", "up", "down", "drain"}
			return t.errorf("unknown word %q: expected one of %s%s", t.Text, oneOf(known), DidYouMean(t.Text, known))
		}
	}
	return nil
}

// add puts one endpoint into the pool.
func (b *poolBlock) add(t Token, e Endpoint) error {
	a, err := address(t)
	if err != nil {
		return err
	}
	for _, other := range b.Endpoints {
		if other.Addr == a {
			return twice(t.Pos, "endpoint "+a.String()+" of this pool", other.Pos)
		}
	}
	if len(b.Endpoints) == maxEndpoints {
		return t.errorf("too many endpoints: at most %d in a pool", maxEndpoints)
	}
	e.Pos, e.Addr = t.Pos, a
	b.Endpoints = append(b.Endpoints, e)
	return nil
}
