package config

import "time"

// maxLines is how often one lever may be written for one region or pool.
const maxLines = 32

// leverBlock reads the levers in the block of a region or a pool.
type leverBlock struct {
	*Levers
	p    *parser
	said map[string]Pos
}

func (p *parser) levers(l *Levers) *leverBlock {
	return &leverBlock{Levers: l, p: p, said: map[string]Pos{}}
}

func (b *leverBlock) words() []word {
	return []word{
		{"drain", whenForm, 0, many, noBlock, b.drain},
		{"dial", "PERCENT [" + whenForm + "]", 1, many, noBlock, b.dial},
		{"share", "PERCENT|off [area NAME] [" + whenForm + "]", 1, many, noBlock, b.share},
		{"trickle", "PERCENT", 1, 1, noBlock, b.once(b.trickle)},
		{"ramp", "TIME", 1, 1, noBlock, b.once(b.ramp)},
		{"capacity", "NUMBER|score [target PERCENT] [growth PERCENT]", 1, 5, noBlock, b.once(b.capacity)},
		{"load", loadForm, 2, 6, quotable, b.once(b.load)},
	}
}

// once makes read one of a lever that may stand once.
func (b *leverBlock) once(read func(*statement) error) func(*statement) error {
	return once(b.said, read)
}

func (b *leverBlock) drain(s *statement) error {
	w, err := when(s.args)
	b.Drain = append(b.Drain, Drain{s.Pos, w})
	return fitLine(s, b.Drain, err)
}

func (b *leverBlock) dial(s *statement) error {
	v, err := percent(s.args[0])
	if err != nil {
		return err
	}
	w, err := when(s.args[1:])
	b.Dial = append(b.Dial, Dial{s.Pos, v, w})
	return fitLine(s, b.Dial, err)
}

func (b *leverBlock) share(s *statement) (err error) {
	share := Share{Pos: s.Pos, Off: s.args[0].Text == "off"}
	if !share.Off {
		if share.Percent, err = percent(s.args[0]); err != nil {
			return err
		}
	}
	rest := s.args[1:]
	if len(rest) > 0 && rest[0].Text == "area" {
		switch {
		case share.Off:
			return rest[0].errorf("`share off` has no area: it is for all clients")
		case len(rest) == 1:
			return rest[0].errorf("\"area\" without a value: expected `share PERCENT area NAME`")
		}
		if err := name(rest[1], "an area"); err != nil {
			return err
		}
		share.Area, rest = rest[1].Text, rest[2:]
		b.p.areas = append(b.p.areas, s.args[2])
	}
	share.When, err = when(rest)
	b.Share = append(b.Share, share)
	return fitLine(s, b.Share, err)
}

// fitLine holds that the last line of a lever and those before it don't
// contradict each other. An error met before wins.
func fitLine[L scheduled](s *statement, lines []L, err error) error {
	if err != nil {
		return err
	}
	last := len(lines) - 1
	if last == maxLines {
		return s.errorf("too many lines of %q: at most %d", s.Text, maxLines)
	}
	w := lines[last].when()
	for _, other := range lines[:last] {
		o := other.when()
		switch {
		case w.closed() != o.closed():
		case !w.closed() && w.From.Equal(o.From):
			return s.errorf("%q is written twice for the same beginning; first at %s", s.Text, other.pos())
		case w.closed() && w.overlaps(o):
			return s.errorf("%q for a time that overlaps the one at %s: only one can hold; end one where the other begins", s.Text, other.pos())
		}
	}
	return nil
}

func (b *leverBlock) trickle(s *statement) error {
	v, err := percent(s.args[0])
	if err == nil && v > 50 {
		err = s.args[0].errorf("%q: a trickle is at most 50%%; for more, dial the region down", s.args[0].Text)
	}
	b.Trickle = &Percent{s.Pos, v}
	return err
}

func (b *leverBlock) ramp(s *statement) error {
	v, err := span(s.args[0], 0, 24*time.Hour)
	b.Ramp = &Duration{s.Pos, v}
	return err
}
