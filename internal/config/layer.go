package config

import (
	"slices"
	"time"
)

// layer is what a host, a policy or the block itself says about hosts.
type layer struct {
	Pos
	p        *parser
	title    string  // of a policy
	owners   []Token // names of hosts
	policies []Token
	settings []setting
	rules    []Rule
	pools    []Pool
}

// setting is one option as written.
type setting struct {
	Pos
	word  string
	apply func(*draft)
}

// draft is a host on its way from the layers to the Block.
type draft struct {
	Host
	answers    int // for the pools that say nothing
	minHealthy Threshold
	checks     []string
}

// unsaid is the Answers of a pool that leaves them to its host.
const unsaid = -1

// options are the words that the block, policies and hosts share.
func (l *layer) options() []word {
	return []word{
		{"ttl", "SECONDS", 1, 1, noBlock, l.ttl},
		{"ttl_floor", "SECONDS|off", 1, 1, noBlock, l.ttlFloor},
		{"answers", "1..16|all", 1, 1, noBlock, l.answers},
		{"spread", "sticky [GRAIN4 GRAIN6]|resolver|balanced", 1, 3, noBlock, l.spread},
		{"families", "same|mixed|v4|v6", 1, 1, noBlock, l.families},
		{"min_healthy", "NUMBER|PERCENT", 1, 1, noBlock, l.minHealthy},
		{"last_resort", "open|closed|regions NAME…|addresses ADDRESS…", 1, many, noBlock, l.lastResort},
		{"spill_below", "PERCENT", 1, 1, noBlock, l.spillBelow},
		{"max_down", "PERCENT", 1, 1, noBlock, l.maxDown},
		{"latency", "FILE [max_age TIME]|off", 1, 3, noBlock, l.latency},
		{"shed", "to NAME", 2, 2, noBlock, l.shed},
	}
}

// read reads the block of a host or a policy.
func (l *layer) read(s *statement) error {
	list := &listBlock{p: l.p} // for every client
	err := s.block(slices.Concat([]word{
		{"policy", "NAME…", 1, many, noBlock, l.use},
		{"name", "NAME…", 1, many, noBlock, l.name},
		{"clients", "rest|MATCH { LIST|refuse }", 1, many, mustBlock, l.clients},
		{"fenced_ok", "", 0, 0, noBlock, l.fencedOK},
		{"pool", "REGION ADDRESS…` or `pool REGION { … }", 1, many, mayBlock, l.pool},
		{"check", "NAME…", 1, many, noBlock, l.check},
	}, list.words(), l.options())...)
	if err != nil || !list.written {
		return err
	}
	if len(l.rules) > 0 {
		return list.errorf("a list for all clients together with clients at %s: write `clients rest { … }`", l.rules[0].Pos)
	}
	l.rules = []Rule{{Pos: list.Pos, Rest: true, List: list.List}}
	return list.check(list.Pos)
}

// set keeps what an option will do to the host.
func (l *layer) set(s *statement, apply func(*draft)) error {
	for _, other := range l.settings {
		if other.word == s.Text {
			return twice(s.Pos, quoted("the word", s.Text), other.Pos)
		}
	}
	l.settings = append(l.settings, setting{Pos: s.Pos, word: s.Text, apply: apply})
	return nil
}

// use names the policies of a host, or at the block those of every host that
// names none.
func (l *layer) use(s *statement) error {
	switch {
	case l.title != "":
		return s.errorf("a policy in a policy: policies are not nested; a host can name several")
	case l.policies != nil:
		return twice(s.Pos, quoted("the word", s.Text), l.policies[0].Pos)
	}
	if again, _, found := firstTwice(s.args); found {
		return again.errorf("policy %q is written twice", again.Text)
	}
	l.policies = s.args
	return nil
}

func (l *layer) name(s *statement) error {
	l.owners = append(l.owners, s.args...)
	return nil
}

func (l *layer) clients(s *statement) error {
	r, err := l.p.listed(s)
	l.rules = append(l.rules, r)
	return err
}

func (l *layer) fencedOK(s *statement) error {
	return l.set(s, func(d *draft) { d.FencedOK = true })
}

func (l *layer) ttl(s *statement) error {
	n, err := number(s.args[0], 0, 86400)
	if err != nil {
		return err
	}
	return l.set(s, func(d *draft) { d.TTL = n })
}

func (l *layer) ttlFloor(s *statement) error {
	n, err := -1, error(nil)
	if s.args[0].Text != "off" {
		n, err = number(s.args[0], 0, 86400)
	}
	if err != nil {
		return err
	}
	return l.set(s, func(d *draft) { d.TTLFloor = n })
}

func (l *layer) answers(s *statement) error {
	n, err := answers(s.args[0])
	if err != nil {
		return err
	}
	return l.set(s, func(d *draft) { d.answers = n })
}

func (l *layer) minHealthy(s *statement) error {
	t, err := threshold(s.args[0])
	if err != nil {
		return err
	}
	return l.set(s, func(d *draft) { d.minHealthy = t })
}

func (l *layer) check(s *statement) error {
	names, err := l.p.checkNames(s)
	if err != nil {
		return err
	}
	return l.set(s, func(d *draft) { d.checks = names })
}

func (l *layer) spillBelow(s *statement) error {
	v, err := percent(s.args[0])
	if err != nil {
		return err
	}
	return l.set(s, func(d *draft) { d.SpillBelow = v })
}

func (l *layer) maxDown(s *statement) error {
	v, err := percent(s.args[0])
	if err != nil {
		return err
	}
	return l.set(s, func(d *draft) { d.MaxDown = v })
}

func (l *layer) latency(s *statement) (err error) {
	if len(s.args) == 1 && s.args[0].Text == "off" {
		return l.set(s, func(d *draft) { d.Latency = nil })
	}
	m := &Latency{Pos: s.Pos, Path: s.args[0].Text, MaxAge: 48 * time.Hour}
	if len(s.args) > 1 {
		if len(s.args) == 2 || s.args[1].Text != "max_age" {
			return s.args[1].errorf("unexpected %q: only `max_age TIME` can follow the file", s.args[1].Text)
		}
		if m.MaxAge, err = span(s.args[2], time.Minute, 366*day); err != nil {
			return err
		}
	}
	return l.set(s, func(d *draft) { d.Latency = m })
}

func (l *layer) shed(s *statement) error {
	if s.args[0].Text != "to" {
		return s.args[0].errorf("unexpected %q: expected `shed to NAME`", s.args[0].Text)
	}
	n, err := fullName(s.args[1])
	if err != nil {
		return err
	}
	return l.set(s, func(d *draft) { d.Shed = &Shed{s.Pos, n} })
}

func (l *layer) spread(s *statement) error {
	kind := Spread(s.args[0].Text)
	switch {
	case kind == Sticky && len(s.args) == 3:
		grain, err := numbers(s.args[1:], 32, 128)
		if err != nil {
			return err
		}
		return l.set(s, func(d *draft) { d.Spread, d.Grain4, d.Grain6 = kind, grain[0], grain[1] })
	case kind == Sticky && len(s.args) == 1:
		return l.set(s, func(d *draft) { d.Spread, d.Grain4, d.Grain6 = kind, unsaid, unsaid })
	case (kind == Resolver || kind == Balanced) && len(s.args) == 1:
		return l.set(s, func(d *draft) { d.Spread, d.Grain4, d.Grain6 = kind, 0, 0 })
	}
	return s.args[0].errorf("expected `spread sticky`, `spread sticky GRAIN4 GRAIN6`, `spread resolver` or `spread balanced`")
}

func (l *layer) families(s *statement) error {
	f := Families(s.args[0].Text)
	switch f {
	case FamiliesSame, FamiliesMixed, FamiliesV4, FamiliesV6:
		return l.set(s, func(d *draft) { d.Families = f })
	}
	return s.args[0].errorf("%q: expected one of same, mixed, v4, v6", f)
}

func (l *layer) lastResort(s *statement) (err error) {
	kind, values := s.args[0], s.args[1:]
	r := LastResort{Pos: s.Pos, Kind: LastResortKind(kind.Text)}
	switch r.Kind {
	case LastOpen, LastClosed:
		if len(values) > 0 {
			return values[0].errorf("unexpected %q: nothing can follow `last_resort %s`", values[0].Text, kind.Text)
		}
	case LastRegions:
		r.Regions, err = codes(values, func(t Token) (string, error) { return t.Text, name(t, "a region") })
		l.p.regions = append(l.p.regions, values...)
	case LastAddresses:
		r.Addresses, err = addresses(values)
	default:
		kinds := []string{"open", "closed", "regions", "addresses"}
		return kind.errorf("%q is no last resort: expected one of %s%s", kind.Text, oneOf(kinds), DidYouMean(kind.Text, kinds))
	}
	if err == nil && len(values) == 0 && (r.Kind == LastRegions || r.Kind == LastAddresses) {
		err = kind.errorf("`last_resort %s` without a value", kind.Text)
	}
	if err != nil {
		return err
	}
	return l.set(s, func(d *draft) { d.LastResort = r })
}
