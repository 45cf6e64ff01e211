package config

import (
	"math"
	"net/textproto"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

const loadForm = "http URL json .PATH|http URL metric NAME|prometheus URL QUERY|header CHECK NAME|file FILE, then [every TIME]"

var (
	amountForm = regexp.MustCompile(`^[0-9]+(\.[0-9]+)?([eE][+-]?[0-9]+)?$`)
	metricForm = regexp.MustCompile(`^[a-zA-Z_:][a-zA-Z0-9_:]*(\{([a-zA-Z_][a-zA-Z0-9_]*="([^"\\]|\\.)*",?)*\})?$`)
	secretForm = regexp.MustCompile(`//.*@`)
)

// shown is a text fit for an error: what may be a user and a password in a URL
// is left out.
func shown(text string) string { return secretForm.ReplaceAllString(text, "//…@") }

func (b *leverBlock) capacity(s *statement) error {
	c := &Capacity{Pos: s.Pos}
	t := s.args[0]
	if c.Score = t.Text == "score"; !c.Score {
		v, err := strconv.ParseFloat(t.Text, 64)
		if err != nil || !amountForm.MatchString(t.Text) || !(v > 0) || math.IsInf(v, 0) {
			return t.errorf("%q: expected a number above 0 in the unit of the load, like 36000, or score", t.Text)
		}
		c.Value = v
	}
	for rest := s.args[1:]; len(rest) > 0; rest = rest[2:] {
		t := rest[0]
		var to *float64
		switch {
		case t.Text == "target" && c.Target == 0:
			to = &c.Target
		case t.Text == "growth" && c.Growth == 0 && !c.Score:
			to = &c.Growth
		case t.Text == "growth" && c.Score:
			return t.errorf("a capacity score has no growth: it says what is free, not how much is in use")
		default:
			return t.errorf("unexpected %q: expected `capacity NUMBER [target PERCENT] [growth PERCENT]` or `capacity score [target PERCENT]`", t.Text)
		}
		if len(rest) == 1 {
			return t.errorf("%q without a value: expected a percentage above 0%%", t.Text)
		}
		v, err := percent(rest[1])
		if err == nil && v == 0 {
			err = rest[1].errorf("%q: expected a %s above 0%%; to have none, leave it out", rest[1].Text, t.Text)
		}
		if err != nil {
			return err
		}
		*to = v
	}
	b.Capacity = c
	return nil
}

func (b *leverBlock) load(s *statement) (err error) {
	l := &Load{Pos: s.Pos, Kind: LoadKind(s.args[0].Text)}
	values := s.args[1:]
	if last := len(values) - 2; last >= 0 && values[last].Text == "every" {
		if l.Every, err = span(values[last+1], time.Second, 5*time.Minute); err != nil {
			return err
		}
		values = values[:last]
	}
	want := map[LoadKind]int{LoadHTTP: 3, LoadPrometheus: 2, LoadHeader: 2, LoadFile: 1}
	kinds := []string{string(LoadHTTP), string(LoadPrometheus), string(LoadHeader), string(LoadFile)}
	switch n, known := want[l.Kind]; {
	case !known:
		return s.args[0].errorf("%q is no kind of load: expected one of %s%s", shown(s.args[0].Text), oneOf(kinds), DidYouMean(s.args[0].Text, kinds))
	case len(values) != n:
		return s.errorf("wrong number of values for `load %s`: expected one of `%s`; text with blanks needs quotes", l.Kind, loadForm)
	}
	switch l.Kind {
	case LoadHTTP, LoadPrometheus:
		if l.URL, err = webAddress(values[0]); err == nil {
			err = l.within(values[1:])
		}
	case LoadHeader:
		err = l.field(b.p, values)
	case LoadFile:
		l.File, err = values[0].Text, values[0].check()
	}
	b.Load = l
	return err
}

// webAddress reads a URL. Errors don't repeat what may hold a password.
func webAddress(t Token) (string, error) {
	u, err := url.Parse(t.Text)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "" || u.Fragment != "" || strings.ContainsAny(t.Text, " \t") {
		return "", t.errorf("%q is no URL to read a load from: expected one like http://10.0.0.9:8080/load, of http or https, with a host and without a #", shown(t.Text))
	}
	if _, err := strconv.ParseUint(u.Port(), 10, 16); u.Port() != "" && err != nil {
		return "", t.errorf("%q has no valid port: expected one from 1 to 65535", shown(t.Text))
	}
	return t.Text, nil
}

// within reads where in the answer the load is.
func (l *Load) within(values []Token) error {
	if l.Kind == LoadPrometheus {
		l.Query = values[0].Text
		return nil
	}
	how, what := values[0], values[1]
	switch how.Text {
	case "json":
		l.Path = what.Text
		if !jsonForm.MatchString(l.Path) {
			return what.errorf("%q is no path of a JSON field: expected one like .load or .queue[0].length", what.Text)
		}
	case "metric":
		l.Metric = what.Text
		if !metricForm.MatchString(l.Metric) {
			return what.errorf("%q is no name of a metric: expected one like http_requests, or in quotes \"http_requests{region=\\\"eu\\\"}\"", what.Text)
		}
	default:
		return how.errorf("%q: expected `json .PATH` or `metric NAME` after the URL", how.Text)
	}
	return nil
}

// field reads a header of the answers to a check.
func (l *Load) field(p *parser, values []Token) error {
	if err := name(Token{Text: shown(values[0].Text), Pos: values[0].Pos}, "a check"); err != nil {
		return err
	}
	p.checks = append(p.checks, values[0])
	l.Check, l.Header = values[0].Text, textproto.CanonicalMIMEHeaderKey(values[1].Text)
	if !fieldForm.MatchString(values[1].Text) {
		return values[1].errorf("%q is no name of a header: expected one like X-Load", values[1].Text)
	}
	return nil
}

// settleLoads gives loads without `every` theirs: 15s, or for a header as often
// as its check is run.
func (b *Block) settleLoads() {
	settle := func(l *Load) {
		switch {
		case l == nil || l.Every > 0:
		case l.Kind == LoadHeader:
			l.Every = b.checkOf(l.Check).Interval
		default:
			l.Every = 15 * time.Second
		}
	}
	for _, r := range b.Regions {
		settle(r.Levers.Load)
	}
	for _, h := range b.Hosts {
		for _, p := range h.Pools {
			settle(p.Levers.Load)
		}
	}
}

// checkLoads holds that capacity and load of regions and pools go together and
// that headers come.
func (b *Block) checkLoads() error {
	for _, r := range b.Regions {
		var pools []*Pool
		for i := range b.Hosts {
			if p := b.Hosts[i].poolOf(r.Name); p != nil {
				pools = append(pools, p)
			}
		}
		if err := b.checkLoad(&r.Levers, quoted("region", r.Name), pools); err != nil {
			return err
		}
	}
	for i := range b.Hosts {
		for k := range b.Hosts[i].Pools {
			p := &b.Hosts[i].Pools[k]
			if err := b.checkLoad(&p.Levers, "the pool of "+quoted("region", p.Region), []*Pool{p}); err != nil {
				return err
			}
		}
	}
	return nil
}

// checkLoad checks the levers of what has the pools.
func (b *Block) checkLoad(l *Levers, of string, pools []*Pool) error {
	load := l.Load
	switch {
	case load == nil && l.Capacity != nil && l.Capacity.Score:
		return l.Capacity.errorf("capacity score of %s without a load, which is what gives the score: write `load …` as well", of)
	case load == nil:
		return nil
	case l.Capacity == nil:
		return load.errorf("load of %s without a capacity to compare it with: write `capacity NUMBER` or `capacity score` as well", of)
	case load.Kind != LoadHeader:
		return nil
	}
	c := b.checkOf(load.Check)
	switch {
	case !slices.Contains(webKinds, c.Kind):
		return load.errorf("check %q of kind %s has no headers: `load header` needs one of %s", c.Name, c.Kind, kindList(webKinds))
	case load.Every < c.Interval:
		return load.errorf("every %s is shorter than the interval %s of check %q, which brings the header: leave `every` out", load.Every, c.Interval, c.Name)
	case !slices.ContainsFunc(pools, func(p *Pool) bool { return slices.Contains(p.Checks, c.Name) }):
		return load.errorf("check %q brings no load of %s: no pool there has that check; write `check %s` in a host or a pool", c.Name, of, c.Name)
	}
	return nil
}
