package config

import (
	"net/netip"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/seed-945f90c5/gslb/internal/check"
)

// conditionForm is what can follow expect and full.
const conditionForm = "status LIST|body contains TEXT|body matches REGEXP|json .PATH OP VALUE|header NAME [VALUE]|rcode CODE|address ADDRESS…"

var (
	statusForm = regexp.MustCompile(`^([1-5][0-9]{2})(?:-([1-5][0-9]{2}))?$`)
	jsonForm   = regexp.MustCompile(`^(\.|(\.[^.\[\]]+|\[[0-9]{1,9}\])+)$`)
	numberForm = regexp.MustCompile(`^-?[0-9]+(\.[0-9]+)?([eE][+-]?[0-9]+)?$`)
	rcodes     = []string{
		"NOERROR", "FORMERR", "SERVFAIL", "NXDOMAIN", "NOTIMP", "REFUSED", "YXDOMAIN", "YXRRSET", "NXRRSET", "NOTAUTH", "NOTZONE",
	}
	jsonOps = []string{"<", "<=", "==", "!=", ">=", ">"}
)

// conditionKinds are the kinds of checks that a condition belongs to.
var conditionKinds = map[check.ConditionKind][]check.Kind{
	check.Status:      webKinds,
	check.BodyText:    {check.HTTP, check.HTTPS, check.TCP, check.Exec},
	check.BodyMatch:   {check.HTTP, check.HTTPS, check.TCP, check.Exec},
	check.JSON:        webKinds,
	check.HeaderField: webKinds,
	check.RCode:       {check.DNS},
	check.Address:     {check.DNS},
}

// placed is a condition and where it was written.
type placed struct {
	check.Condition
	Pos
	word string // expect or full
}

func (c *checkBlock) expect(s *statement) error {
	cond, err := condition(s)
	if err != nil {
		return err
	}
	for _, other := range c.Expect {
		if other.Kind == cond.Kind && (cond.Kind == check.Status || cond.Kind == check.RCode) {
			return s.errorf("a second `expect %s`, and all must hold: write one (several status codes with a comma between)", cond.Kind)
		}
	}
	c.Expect = append(c.Expect, cond)
	c.conditions = append(c.conditions, placed{cond, s.Pos, s.Text})
	return nil
}

func (c *checkBlock) full(s *statement) error {
	cond, err := condition(s)
	c.Full = append(c.Full, cond)
	c.conditions = append(c.conditions, placed{cond, s.Pos, s.Text})
	return err
}

// condition reads a condition.
func condition(s *statement) (c check.Condition, err error) {
	word, values := s.args[0], s.args[1:]
	c.Kind = check.ConditionKind(word.Text)
	least, most := 1, 1
	switch word.Text {
	case "status":
		c.Ranges, err = statuses(values[0])
	case "body":
		least, most = 2, 2
		err = body(&c, values)
	case "json":
		least, most = 3, 3
		err = jsonField(&c, values)
	case "header":
		most = 2
		err = headerField(&c, values)
	case "rcode":
		c.Field = strings.ToUpper(values[0].Text)
		if !slices.Contains(rcodes, c.Field) {
			err = values[0].errorf("%q: expected one of %s", values[0].Text, oneOf(rcodes))
		}
	case "address":
		most = many
		c.Addresses, err = answered(values)
	default:
		known := []string{"status", "body", "json", "header", "rcode", "address"}
		err = word.errorf("unknown word %q: expected one of %s%s", word.Text, oneOf(known), DidYouMean(word.Text, known))
	}
	if err == nil && (len(values) < least || len(values) > most) {
		err = s.errorf("wrong number of values for `%s %s`: expected one of `%s`; text with blanks needs quotes", s.Text, word.Text, conditionForm)
	}
	return c, err
}

// statuses reads a list like 200-299,301.
func statuses(t Token) (ranges [][2]int, err error) {
	for part := range strings.SplitSeq(t.Text, ",") {
		m := statusForm.FindStringSubmatch(part)
		if m == nil {
			return nil, t.errorf("%q: expected status codes and ranges with commas between and no blanks, like 200-299,301", t.Text)
		}
		lo, _ := strconv.Atoi(m[1]) // the form holds that it is a number
		hi := lo
		if m[2] != "" {
			hi, _ = strconv.Atoi(m[2])
		}
		if hi < lo {
			return nil, t.errorf("%q: the range %s ends before it begins", t.Text, part)
		}
		ranges = append(ranges, [2]int{lo, hi})
	}
	return ranges, nil
}

func body(c *check.Condition, values []Token) error {
	how := values[0]
	switch how.Text {
	case "contains":
		c.Kind = check.BodyText
	case "matches":
		c.Kind = check.BodyMatch
	default:
		return how.errorf("%q: expected `body contains TEXT` or `body matches REGEXP`", how.Text)
	}
	if len(values) < 2 {
		return nil
	}
	c.Text = values[1].Text
	if c.Kind == check.BodyMatch {
		if _, err := regexp.Compile(c.Text); err != nil {
			return values[1].errorf("%q is no regular expression (RE2): %v", c.Text, err)
		}
	} else if len(c.Text) > check.MaxBody {
		return values[1].errorf("the text is longer than the %d bytes of a body that are looked at", check.MaxBody)
	}
	return nil
}

func jsonField(c *check.Condition, values []Token) error {
	c.Field = values[0].Text
	if !jsonForm.MatchString(c.Field) {
		return values[0].errorf("%q is no path of a JSON field: expected one like .db.queue[0].lag", c.Field)
	}
	if len(values) < 2 {
		return nil
	}
	c.Op = values[1].Text
	if !slices.Contains(jsonOps, c.Op) {
		return values[1].errorf("%q: expected one of %s, with blanks around it", c.Op, strings.Join(jsonOps, " "))
	}
	if len(values) < 3 {
		return nil
	}
	c.Value = values[2].Text
	_, err := strconv.ParseFloat(c.Value, 64)
	if c.Op != "==" && c.Op != "!=" && (err != nil || !numberForm.MatchString(c.Value)) {
		return values[2].errorf("%q: expected a number after %s", c.Value, c.Op)
	}
	return nil
}

func headerField(c *check.Condition, values []Token) error {
	c.Field = values[0].Text
	if !fieldForm.MatchString(c.Field) {
		return values[0].errorf("%q is no name of a header: expected one like X-Load", c.Field)
	}
	if len(values) == 2 {
		c.Text = values[1].Text
	}
	return nil
}

// answered reads addresses that must be in an answer.
func answered(values []Token) (list []netip.Addr, err error) {
	for _, t := range values {
		a, err := netip.ParseAddr(t.Text)
		if err != nil || a.Zone() != "" || a.Is4In6() {
			return nil, t.errorf("%q: expected an IP address as in an answer", t.Text)
		}
		if slices.Contains(list, a) {
			return nil, t.errorf("%s is written twice", a)
		}
		list = append(list, a)
	}
	return list, nil
}

// fitConditions holds that every condition belongs to the kind.
func (c *checkBlock) fitConditions() error {
	for _, p := range c.conditions {
		if kinds := conditionKinds[p.Kind]; !slices.Contains(kinds, c.Kind) {
			return p.errorf("`%s %s` has no meaning in a check of kind %s: it belongs to %s", p.word, p.Kind, c.Kind, kindList(kinds))
		}
		for _, a := range p.Addresses {
			if want := familyOf(a).record(); c.QType != want {
				return p.errorf("`%s address %s` needs `dns %s %s`", p.word, a, strings.TrimSuffix(c.QName, "."), want)
			}
		}
	}
	return nil
}
