package config

import (
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/seed-945f90c5/gslb/internal/check"
)

// checkBlock is the definition of a check that is being read.
type checkBlock struct {
	Check
	said       map[string]Pos // every word; of several the last
	conditions []placed
}

var (
	portForm   = regexp.MustCompile(`^:([0-9]{1,5})$`)
	methodForm = regexp.MustCompile(`^[A-Z]{1,16}$`)
	typeForm   = regexp.MustCompile(`^TYPE[1-9][0-9]{0,3}$`)         // RFC 3597 section 5, short of what is reserved
	fieldForm  = regexp.MustCompile("^[!#$%&'*+.^_`|~0-9A-Za-z-]+$") // RFC 9110 section 5.6.2
)

// qtypes are the types that a check of kind dns can ask for by name.
var qtypes = []string{
	"A", "AAAA", "ANY", "CAA", "CNAME", "DNSKEY", "DS", "HTTPS", "MX", "NAPTR", "NS", "PTR", "SOA", "SRV", "SVCB", "TLSA", "TXT",
}

// check reads the definition of a check, or at the block the checks of every
// host that names none.
func (p *parser) check(s *statement) error {
	if !s.opened {
		return p.common.check(s)
	}
	t := s.args[0]
	if len(s.args) > 1 {
		return s.args[1].errorf("too many values for \"check\": expected `check NAME { … }`")
	}
	if err := name(t, "a check"); err != nil {
		return err
	}
	if other := p.checkOf(t.Text); other != nil {
		return twice(s.Pos, quoted("check", t.Text), other.Pos)
	}
	c := &checkBlock{Check: Check{s.Pos, check.Defaults(t.Text, "")}, said: map[string]Pos{}}
	if err := s.block(c.words()...); err != nil {
		return err
	}
	if err := c.settle(); err != nil {
		return err
	}
	p.Checks = append(p.Checks, c.Check)
	return nil
}

// checkNames reads the names of checks that are used.
func (p *parser) checkNames(s *statement) ([]string, error) {
	if again, _, found := firstTwice(s.args); found {
		return nil, again.errorf("check %q is written twice", again.Text)
	}
	var list []string
	for _, t := range s.args {
		list = append(list, t.Text)
	}
	p.checks = append(p.checks, s.args...)
	return list, nil
}

// kinds are the words of which a check has exactly one.
func (c *checkBlock) kinds() []word {
	return []word{
		{"http", "[:PORT] PATH", 1, 2, noBlock, c.kind(c.http)},
		{"https", "[:PORT] PATH", 1, 2, noBlock, c.kind(c.http)},
		{"tcp", ":PORT [tls]", 1, 2, noBlock, c.kind(c.tcp)},
		{"grpc", ":PORT [tls] [SERVICE]", 1, 3, noBlock, c.kind(c.grpc)},
		{"dns", "NAME TYPE", 2, 2, noBlock, c.kind(c.dns)},
		{"icmp", "", 0, 0, noBlock, c.kind(func(*statement) error { return nil })},
		{"exec", "COMMAND [ARGUMENT…]", 1, many, quotable, c.kind(c.exec)},
	}
}

func (c *checkBlock) words() []word {
	return slices.Concat(c.kinds(), []word{
		{"authority", "NAME|each", 1, 1, noBlock, c.once(c.authority)},
		{"method", "METHOD", 1, 1, noBlock, c.once(c.method)},
		{"header", "NAME VALUE", 2, 2, quotable, c.again(c.header)},
		{"ca", "FILE", 1, 1, noBlock, c.once(c.ca)},
		{"cert", "FILE KEYFILE", 2, 2, noBlock, c.once(c.cert)},
		{"insecure", "", 0, 0, noBlock, c.flag(&c.Insecure)},
		{"follow", "", 0, 0, noBlock, c.flag(&c.Follow)},
		{"keepalive", "", 0, 0, noBlock, c.flag(&c.KeepAlive)},
		{"send", "TEXT", 1, 1, quotable, c.once(c.send)},
		{"expect", conditionForm, 2, many, quotable, c.again(c.expect)},
		{"full", conditionForm, 2, many, quotable, c.again(c.full)},
		{"interval", "TIME", 1, 1, noBlock, c.span(&c.Interval, time.Second, time.Hour)},
		{"timeout", "TIME", 1, 1, noBlock, c.span(&c.Timeout, 100*time.Millisecond, time.Hour)},
		{"retry", "", 0, 0, noBlock, c.flag(&c.Retry)},
		{"fall", "1..20 [within TIME]", 1, 3, noBlock, c.count(&c.Fall, "within", &c.FallWithin)},
		{"rise", "1..20 [over TIME]", 1, 3, noBlock, c.count(&c.Rise, "over", &c.RiseOver)},
		{"accumulate", "", 0, 0, noBlock, c.flag(&c.Accumulate)},
		{"hold", "NUMBER flips", 2, 2, noBlock, c.once(c.hold)},
		{"return", "auto|manual", 1, 1, noBlock, c.once(c.comeback)},
		{"initial", "last [TIME]|up|down", 1, 2, noBlock, c.once(c.initial)},
	})
}

// kind makes read one of the kind of the check.
func (c *checkBlock) kind(read func(*statement) error) func(*statement) error {
	return func(s *statement) error {
		if c.Kind != "" {
			return s.errorf("a check has one kind: %q, and %q at %s; write a check for each and name both in the host", s.Text, c.Kind, c.said[string(c.Kind)])
		}
		c.Kind, c.said[s.Text] = check.Kind(s.Text), s.Pos
		return read(s)
	}
}

// once makes read one of a word that may stand once in the check.
func (c *checkBlock) once(read func(*statement) error) func(*statement) error {
	return func(s *statement) error {
		if first, ok := c.said[s.Text]; ok {
			return twice(s.Pos, quoted("the word", s.Text), first)
		}
		return c.again(read)(s)
	}
}

// again makes read one of a word that may stand any number of times.
func (c *checkBlock) again(read func(*statement) error) func(*statement) error {
	return func(s *statement) error {
		c.said[s.Text] = s.Pos
		return read(s)
	}
}

func (c *checkBlock) flag(is *bool) func(*statement) error {
	return c.once(func(*statement) error { *is = true; return nil })
}

func (c *checkBlock) span(d *time.Duration, lo, hi time.Duration) func(*statement) error {
	return c.once(func(s *statement) (err error) {
		*d, err = span(s.args[0], lo, hi)
		return err
	})
}

// count reads a number of probes, and a time after the word.
func (c *checkBlock) count(n *int, word string, d *time.Duration) func(*statement) error {
	return c.once(func(s *statement) (err error) {
		if *n, err = number(s.args[0], 1, 20); err != nil || len(s.args) == 1 {
			return err
		}
		if len(s.args) == 2 || s.args[1].Text != word {
			return s.args[1].errorf("unexpected %q: only `%s TIME` can follow the number", s.args[1].Text, word)
		}
		*d, err = span(s.args[2], time.Second, 24*time.Hour)
		return err
	})
}

func (c *checkBlock) port(t Token) (err error) {
	c.Port, err = port(t)
	return err
}

// port reads a port with its colon.
func port(t Token) (int, error) {
	m := portForm.FindStringSubmatch(t.Text)
	if m == nil {
		return 0, t.errorf("%q: expected a port with a colon before it, like :443", t.Text)
	}
	n, err := strconv.Atoi(m[1])
	if err != nil || n < 1 || n > 65535 {
		return 0, t.errorf("%q: expected a port from :1 to :65535", t.Text)
	}
	return n, nil
}

func (c *checkBlock) http(s *statement) error {
	path := s.args[len(s.args)-1]
	if len(s.args) == 2 {
		if err := c.port(s.args[0]); err != nil {
			return err
		}
	}
	if !strings.HasPrefix(path.Text, "/") || strings.Contains(path.Text, "#") {
		return path.errorf("%q is no path: expected one that starts with / and has no #, like /healthz", path.Text)
	}
	c.Path = path.Text
	return nil
}

func (c *checkBlock) tcp(s *statement) error {
	if len(s.args) == 2 {
		if s.args[1].Text != "tls" {
			return s.args[1].errorf("unexpected %q: only `tls` can follow the port", s.args[1].Text)
		}
		c.TLS = true
	}
	return c.port(s.args[0])
}

func (c *checkBlock) grpc(s *statement) error {
	rest := s.args[1:]
	if len(rest) > 0 && rest[0].Text == "tls" {
		c.TLS, rest = true, rest[1:]
	}
	switch len(rest) {
	case 1:
		c.Service = rest[0].Text
	case 2:
		return rest[0].errorf("unexpected %q: expected `grpc :PORT [tls] [SERVICE]`", rest[0].Text)
	}
	return c.port(s.args[0])
}

func (c *checkBlock) dns(s *statement) (err error) {
	c.QType = strings.ToUpper(s.args[1].Text)
	if !slices.Contains(qtypes, c.QType) && !typeForm.MatchString(c.QType) {
		return s.args[1].errorf("%q: expected one of the types %s, or TYPE and a number", s.args[1].Text, oneOf(qtypes))
	}
	c.QName, err = domain(s.args[0])
	return err
}

func (c *checkBlock) exec(s *statement) error {
	for _, t := range s.args {
		c.Command = append(c.Command, t.Text)
	}
	return nil
}
