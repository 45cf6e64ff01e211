package config

import (
	"slices"
	"unicode/utf8"
)

const guardForm = "hosts NUMBER|require NUMBER of REGION…|max_move PERCENT|max_use PERCENT|accept REASON until TIME"

// Limits of guards.
const (
	maxRequires = 256
	maxAccepts  = 64
	maxReason   = 200
)

// guard reads one guard; require and accept may be written several times.
func (p *parser) guard(s *statement) (err error) {
	what, values := s.args[0], s.args[1:]
	known := map[string]func(*statement, []Token) error{
		"hosts": p.readHosts, "max_move": p.readMaxMove, "max_use": p.readMaxUse, "require": p.readRequire, "accept": p.readAccept,
	}
	read := known[what.Text]
	if read == nil {
		words := []string{"hosts", "require", "max_move", "max_use", "accept"}
		return what.errorf("unknown word %q: expected one of %s%s", what.Text, oneOf(words), DidYouMean(what.Text, words))
	}
	if p.guards == nil {
		p.guards = make(map[string]Pos)
	}
	if _, twice := p.guards[what.Text]; !twice {
		p.guards[what.Text] = s.Pos
	}
	if what.Text == "require" || what.Text == "accept" {
		return read(s, values)
	}
	if len(values) != 1 {
		return s.errorf("wrong number of values for `guard %s`: expected one of `%s`, and one statement per line", what.Text, guardForm)
	}
	word := "guard " + what.Text
	if first, ok := p.once[word]; ok {
		return twice(s.Pos, "`"+word+"`", first)
	}
	p.once[word] = s.Pos
	return read(s, values)
}

func (p *parser) readHosts(_ *statement, values []Token) (err error) {
	p.Guard.Hosts, err = number(values[0], 0, 1000000)
	return err
}

func (p *parser) readMaxMove(_ *statement, values []Token) (err error) {
	p.Guard.MaxMove, err = percent(values[0])
	return err
}

func (p *parser) readMaxUse(s *statement, values []Token) (err error) {
	p.Guard.MaxUse, err = percent(values[0])
	if err == nil && p.Guard.MaxUse == 0 {
		err = values[0].errorf("%q: expected a part of the capacity above 0%%; to hold none, leave `guard max_use` out", values[0].Text)
	}
	return err
}

func (p *parser) readRequire(s *statement, values []Token) (err error) {
	if len(values) < 3 || values[1].Text != "of" {
		return s.errorf("expected `guard require NUMBER of REGION…`")
	}
	r := Require{Pos: s.Pos}
	regions := values[2:]
	if r.Regions, err = codes(regions, func(t Token) (string, error) { return t.Text, name(t, "a region") }); err != nil {
		return err
	}
	p.guarded = append(p.guarded, regions...)
	if r.Count, err = number(values[0], 1, maxRegions); err != nil {
		return err
	}
	if r.Count > len(r.Regions) {
		return values[0].errorf("guard require %d of %d regions can never hold: lower the number or name more", r.Count, len(r.Regions))
	}
	for _, other := range p.Guard.Require {
		if slices.Equal(slices.Sorted(slices.Values(other.Regions)), slices.Sorted(slices.Values(r.Regions))) {
			return twice(s.Pos, "`guard require` of these regions", other.Pos)
		}
	}
	if len(p.Guard.Require) == maxRequires {
		return s.errorf("too many lines of `guard require`: at most %d", maxRequires)
	}
	p.Guard.Require = append(p.Guard.Require, r)
	return nil
}

func (p *parser) readAccept(s *statement, values []Token) (err error) {
	if len(values) != 3 || values[1].Text != "until" {
		return s.errorf("expected `guard accept REASON until TIME`, with the reason in quotes if it has blanks")
	}
	a := Accept{Pos: s.Pos, Reason: values[0].Text}
	if utf8.RuneCountInString(a.Reason) > maxReason || !utf8.ValidString(a.Reason) {
		return values[0].errorf("the reason is longer than %d letters or not UTF-8: say in short why the change is wanted", maxReason)
	}
	if a.Until, err = moment(values[2]); err != nil {
		return err
	}
	for _, other := range p.Guard.Accepted {
		if other.Reason == a.Reason {
			return twice(s.Pos, "`guard accept` with this reason", other.Pos)
		}
	}
	if len(p.Guard.Accepted) == maxAccepts {
		return s.errorf("too many lines of `guard accept`: at most %d; remove those that are over", maxAccepts)
	}
	p.Guard.Accepted = append(p.Guard.Accepted, a)
	return nil
}

// GuardPos is where a guard, by its word such as max_move, is written first; where it
// isn't, that of the block.
func (b *Block) GuardPos(word string) Pos {
	if pos, ok := b.guards[word]; ok {
		return pos
	}
	return b.Pos
}
