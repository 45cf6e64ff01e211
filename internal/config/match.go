package config

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

var (
	altKinds        = []string{"continent", "country", "subdivision", "asn", "prefix", "file", "area"}
	continents      = []string{"AF", "AN", "AS", "EU", "NA", "OC", "SA"}
	countryForm     = regexp.MustCompile(`^[A-Z]{2}$`)
	subdivisionForm = regexp.MustCompile(`^[A-Z]{2}-[A-Z0-9]{1,3}$`)
)

// match reads alternatives with "in" between them.
func (p *parser) match(at Pos, args []Token) (Match, error) {
	m := Match{Pos: at}
	for {
		end := slices.IndexFunc(args, func(t Token) bool { return t.Text == "in" })
		part := args
		if end >= 0 {
			part = args[:end]
		}
		if len(part) == 0 {
			return m, at.errorf("nothing on one side of `in`: expected `MATCH in MATCH` (the country India is written IN)")
		}
		a, err := p.alt(part)
		if err != nil {
			return m, err
		}
		m.Alts = append(m.Alts, a)
		if end < 0 {
			return m, nil
		}
		args = args[end+1:]
	}
}

// alt reads one alternative: its kind and values.
func (p *parser) alt(words []Token) (Alt, error) {
	kind, values := words[0], words[1:]
	a := Alt{Kind: AltKind(kind.Text)}
	if kind.Text == "rest" {
		return a, kind.errorf("`rest` is who matches nothing else, and stands alone after `clients`: expected one of %s here", oneOf(altKinds))
	}
	if !slices.Contains(altKinds, kind.Text) {
		hint := DidYouMean(kind.Text, altKinds)
		if hint == "" && nameForm.MatchString(kind.Text) {
			hint = fmt.Sprintf("; did you mean \"area %s\"?", kind.Text)
		}
		return a, kind.errorf("unknown word %q: expected one of rest, %s%s", kind.Text, oneOf(altKinds), hint)
	}
	if len(values) == 0 {
		return a, kind.errorf("%q without a value", kind.Text)
	}
	var err error
	switch a.Kind {
	case AltContinent:
		a.Codes, err = codes(values, continent)
	case AltCountry:
		a.Codes, err = codes(values, country)
	case AltSubdivision:
		a.Codes, err = codes(values, subdivision)
	case AltASN:
		a.ASNs, err = asns(values)
	case AltPrefix:
		a.Prefixes, err = prefixes(values)
	case AltFile:
		a.File = values[0].Text
		if len(values) > 1 {
			err = values[1].errorf("too many values for \"file\": expected `file FILE`, and one statement per line")
		}
	case AltArea:
		p.areas = append(p.areas, values...)
		a.Codes, err = codes(values, func(t Token) (string, error) { return t.Text, name(t, "an area") })
	}
	return a, err
}

// codes reads values that are all different.
func codes(values []Token, read func(Token) (string, error)) ([]string, error) {
	var list []string
	for _, t := range values {
		c, err := read(t)
		if err != nil {
			return nil, err
		}
		if slices.Contains(list, c) {
			return nil, t.errorf("%s is written twice", c)
		}
		list = append(list, c)
	}
	return list, nil
}

func continent(t Token) (string, error) {
	c := strings.ToUpper(t.Text)
	if !slices.Contains(continents, c) {
		return "", t.errorf("%q is no continent: expected one of %s", t.Text, oneOf(continents))
	}
	return c, nil
}

func country(t Token) (string, error) {
	c := strings.ToUpper(t.Text)
	switch {
	case c == "UK":
		return "", t.errorf("%q is no country code; did you mean GB?", t.Text)
	case c == "EU":
		return "", t.errorf("%q is no country: write `continent EU`", t.Text)
	case !countryForm.MatchString(c):
		return "", t.errorf("%q is no country: expected two letters as in ISO 3166-1, like DE", t.Text)
	}
	return c, nil
}

func subdivision(t Token) (string, error) {
	c := strings.ToUpper(t.Text)
	if !subdivisionForm.MatchString(c) {
		return "", t.errorf("%q is no subdivision: expected a code as in ISO 3166-2, like US-CA", t.Text)
	}
	_, err := country(Token{Text: c[:2], Pos: t.Pos})
	return c, err
}

func asns(values []Token) ([]uint32, error) {
	var list []uint32
	for _, t := range values {
		n, err := strconv.ParseUint(strings.TrimPrefix(strings.ToUpper(t.Text), "AS"), 10, 32)
		if err != nil || n == 0 {
			return nil, t.errorf("%q is no autonomous system: expected a number like 3320 or AS3320", t.Text)
		}
		if slices.Contains(list, uint32(n)) {
			return nil, t.errorf("AS%d is written twice", n)
		}
		list = append(list, uint32(n))
	}
	return list, nil
}
