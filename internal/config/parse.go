package config

import (
	"slices"
	"strings"
	"time"
)

// Limits of a block.
const (
	maxRegions   = 254
	maxEndpoints = 1024
)

// parser gathers what one gslb statement says.
type parser struct {
	Block
	common   *layer // host options of the block
	policies []*layer
	hosts    []*layer
	once     map[string]Pos // words that may stand once in the block
	owners   map[string]Pos // names of hosts
	regions  []Token        // every region named
	guarded  []Token        // every region that a guard names, which doesn't make use of it
	areas    []Token        // every area named
	checks   []Token        // every check named
}

// Parse reads one gslb statement: the word gslb, zones or none, and its block,
// as the Corefile's lexer gives them. The zones of the server block are used
// when the statement names none. Paths of files stay as written. The error,
// an *Error, names the first mistake met and its place.
func Parse(zones []string, tokens []Token) (*Block, error) {
	if len(tokens) == 0 {
		return nil, &Error{Text: "no gslb statement"}
	}
	r := &reader{tokens: tokens}
	s := r.statement()
	p := &parser{once: map[string]Pos{}, owners: map[string]Pos{}}
	p.Pos = s.Pos
	p.Depth, p.ECS = 3, ECS{Max4: 24, Max6: 56}
	p.Guard = Guard{Hosts: 1, MaxMove: 50}
	p.common = &layer{p: p, Pos: s.Pos}
	if err := p.head(s, zones); err != nil {
		return nil, err
	}
	if err := s.block(p.words()...); err != nil {
		return nil, err
	}
	if err := r.end(s); err != nil {
		return nil, err
	}
	if err := p.references(); err != nil {
		return nil, err
	}
	for _, h := range p.hosts {
		host, err := p.host(h)
		if err != nil {
			return nil, err
		}
		p.Hosts = append(p.Hosts, host)
	}
	p.own = p.owners
	p.settleLoads()
	if err := p.Block.validate(); err != nil {
		return nil, err
	}
	p.Block.warn()
	return &p.Block, nil
}

// head reads the words before the block.
func (p *parser) head(s *statement, zones []string) error {
	written := s.args
	for _, t := range written {
		if err := t.check(); err != nil {
			return err
		}
	}
	if !s.opened {
		return s.errorf("gslb needs a block, opened on the same line: expected `gslb [ZONE…] { … }`")
	}
	if again, first, found := firstTwice(written); found {
		return twice(again.Pos, quoted("zone", again.Text), first)
	}
	if len(written) == 0 {
		p.Inherited = true
		for _, z := range zones {
			written = append(written, Token{Text: z, Pos: s.Pos})
		}
	}
	if len(written) == 0 {
		return s.errorf("no zone: name one after gslb or as the key of the server block")
	}
	var keys []string
	for _, z := range zones {
		key, err := domain(Token{Text: z, Pos: s.Pos})
		if err != nil {
			return err
		}
		keys = append(keys, key)
	}
	for _, t := range written {
		z, err := domain(t)
		if err != nil {
			return err
		}
		if len(keys) > 0 && !within(z, keys) {
			return t.errorf("zone %s is not in the zones of its server block (%s), so no query for it would come here: add it to the key of the server block",
				z, strings.Join(keys, " "))
		}
		if !slices.Contains(p.Zones, z) {
			p.Zones = append(p.Zones, z)
		}
	}
	return nil
}

// end holds that nothing follows the block.
func (r *reader) end(s *statement) error {
	if r.at == len(r.tokens) {
		return nil
	}
	t := r.tokens[r.at]
	if t.Text == "gslb" {
		return t.errorf("a second gslb: one gslb block per server block; the first is at %s", s.Pos)
	}
	return t.errorf("unexpected %q after the gslb block: is there a } too many before?", t.Text)
}

// words are the words of the gslb block.
func (p *parser) words() []word {
	return slices.Concat([]word{
		{"geoip", "country|city|asn FILE [optional]", 2, 3, noBlock, p.geoip},
		{"nets", "FILE", 1, 1, noBlock, p.nets},
		{"region", "NAME… [{ … }]", 1, many, mayBlock, p.region},
		{"area", "NAME MATCH", 2, many, noBlock, p.area},
		{"fence", "AREA REGION…", 2, many, noBlock, p.fence},
		{"clients", "rest|MATCH { LIST|refuse }", 1, many, mustBlock, p.clients},
		{"check", "NAME { … }` or `check NAME…", 1, many, mayBlock, p.check},
		{"policy", "NAME { … }` or `policy NAME…", 1, many, mayBlock, p.policy},
		{"host", "NAME… { … }", 1, many, mustBlock, p.hostBlock},
		{"ecs", "off|{ … }", 0, 1, mayBlock, p.single(p.ecs)},
		{"soa", "MNAME RNAME [minimum DURATION]", 2, 4, noBlock, p.single(p.soa)},
		{"ns", "NAME…", 1, many, noBlock, p.single(p.ns)},
		{"fallthrough", "[ZONE…]", 0, many, noBlock, p.single(p.fall)},
		{"depth", "1..8", 1, 1, noBlock, p.single(p.depth)},
		{"whoami", "NAME", 1, 1, noBlock, p.single(p.whoami)},
		{"beacon", "ADDRESS:PORT…", 1, many, noBlock, p.single(p.beacon)},
		{"state", "DIRECTORY", 1, 1, noBlock, p.single(p.state)},
		{"resolvers", "ADDRESS[:PORT]…", 1, many, noBlock, p.single(p.resolvers)},
		{"guard", guardForm, 2, many, quotable, p.guard},
		{"control", "unix:PATH|ADDRESS:PORT token FILE [{ … }]", 3, 3, mayBlock, p.single(p.control)},
	}, p.common.options())
}

// single makes read one of a word that may stand once in the block.
func (p *parser) single(read func(*statement) error) func(*statement) error {
	return once(p.once, read)
}

// once makes read one of a word that may stand once; said is where such words
// were written.
func once(said map[string]Pos, read func(*statement) error) func(*statement) error {
	return func(s *statement) error {
		if first, ok := said[s.Text]; ok {
			return twice(s.Pos, quoted("the word", s.Text), first)
		}
		said[s.Text] = s.Pos
		return read(s)
	}
}

func (p *parser) geoip(s *statement) error {
	kind := GeoKind(s.args[0].Text)
	kinds := []string{string(Country), string(City), string(ASN)}
	if !slices.Contains(kinds, string(kind)) {
		return s.args[0].errorf("%q is no kind of location database: expected one of %s%s", kind, oneOf(kinds), DidYouMean(string(kind), kinds))
	}
	f := GeoFile{Pos: s.Pos, Kind: kind, Path: s.args[1].Text}
	if len(s.args) == 3 {
		if s.args[2].Text != "optional" {
			return s.args[2].errorf("unexpected %q: only `optional` can follow the file", s.args[2].Text)
		}
		f.Optional = true
	}
	for _, g := range p.GeoIP {
		switch {
		case g.Kind == kind:
			return twice(s.Pos, "geoip "+string(kind), g.Pos)
		case g.Kind != ASN && kind != ASN:
			return s.errorf("geoip country and geoip city together, the other at %s: a city database holds countries too", g.Pos)
		}
	}
	p.GeoIP = append(p.GeoIP, f)
	return nil
}

func (p *parser) nets(s *statement) error {
	f := FileRef{Pos: s.Pos, Path: s.args[0].Text}
	for _, n := range p.Nets {
		if n.Path == f.Path {
			return twice(s.Pos, quoted("nets file", f.Path), n.Pos)
		}
	}
	p.Nets = append(p.Nets, f)
	return nil
}

func (p *parser) ecs(s *statement) error {
	switch {
	case s.opened && len(s.args) == 0:
	case !s.opened && len(s.args) == 1 && s.args[0].Text == "off":
		p.ECS = ECS{Off: true}
		return nil
	default:
		return s.errorf("expected `ecs off` or `ecs { … }`")
	}
	return s.block(
		word{"max", "0..32 0..128", 2, 2, noBlock, p.single(p.ecsMax)},
		word{"from", "PREFIX…", 1, many, noBlock, p.single(p.ecsFrom)},
		word{"fill", "on|off", 1, 1, noBlock, p.single(p.ecsFill)},
	)
}

func (p *parser) ecsMax(s *statement) error {
	v, err := numbers(s.args, 32, 128)
	if err != nil {
		return err
	}
	p.ECS.Max4, p.ECS.Max6 = v[0], v[1]
	return nil
}

func (p *parser) ecsFrom(s *statement) (err error) {
	p.ECS.From, err = prefixes(s.args)
	return err
}

func (p *parser) ecsFill(s *statement) error {
	t := s.args[0]
	if t.Text != "on" && t.Text != "off" {
		return t.errorf("%q: expected on or off", t.Text)
	}
	p.ECS.NoFill = t.Text == "off"
	return nil
}

func (p *parser) soa(s *statement) error {
	mname, err := domain(s.args[0])
	if err != nil {
		return err
	}
	rname, err := mailbox(s.args[1])
	if err != nil {
		return err
	}
	p.SOA = &SOA{Pos: s.Pos, MName: mname, RName: rname, Minimum: 10 * time.Second}
	switch {
	case len(s.args) == 2:
		return nil
	case len(s.args) == 3 || s.args[2].Text != "minimum":
		return s.args[2].errorf("unexpected %q: only `minimum DURATION` can follow the two names", s.args[2].Text)
	}
	p.SOA.Minimum, err = duration(s.args[3], time.Hour)
	return err
}

func (p *parser) ns(s *statement) error {
	for _, t := range s.args {
		n, err := domain(t)
		if err != nil {
			return err
		}
		if slices.Contains(p.NS, n) {
			return t.errorf("name server %s is written twice", n)
		}
		p.NS = append(p.NS, n)
	}
	return nil
}

func (p *parser) fall(s *statement) error {
	f := &Fallthrough{Pos: s.Pos}
	for _, t := range s.args {
		z, err := domain(t)
		if err != nil {
			return err
		}
		if !within(z, p.Zones) {
			return t.errorf("fallthrough zone %s is in no zone of this block (%s)", z, strings.Join(p.Zones, " "))
		}
		f.Zones = append(f.Zones, z)
	}
	p.Fallthrough = f
	return nil
}

func (p *parser) depth(s *statement) (err error) {
	p.Depth, err = number(s.args[0], 1, 8)
	return err
}

func (p *parser) whoami(s *statement) (err error) {
	t := s.args[0]
	if strings.HasPrefix(t.Text, "*.") {
		return t.errorf("%q: whoami needs one name, not a wildcard", t.Text)
	}
	p.WhoAmI, err = owner(t, p.Zones)
	return err
}

func (p *parser) beacon(s *statement) error {
	for _, t := range s.args {
		ap, err := dialled(t, false)
		if err != nil {
			return err
		}
		for _, b := range p.Beacons {
			if b.AddrPort == ap {
				return t.errorf("beacon %s is written twice", ap)
			}
		}
		p.Beacons = append(p.Beacons, Beacon{t.Pos, ap})
	}
	return nil
}

func (p *parser) state(s *statement) error {
	p.State = &FileRef{Pos: s.Pos, Path: s.args[0].Text}
	return nil
}
