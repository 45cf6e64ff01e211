package config

import (
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/seed-945f90c5/gslb/internal/check"
)

func (c *checkBlock) authority(s *statement) error {
	if strings.TrimSuffix(strings.ToLower(s.args[0].Text), ".") == "each" {
		c.Each = true
		return nil
	}
	n, err := domain(s.args[0])
	if err == nil && n == "." {
		err = s.args[0].errorf("the root can't be an authority: expected a name like www.example.com")
	}
	c.Authority = strings.TrimSuffix(n, ".")
	return err
}

func (c *checkBlock) method(s *statement) error {
	c.Method = s.args[0].Text
	if !methodForm.MatchString(c.Method) {
		return s.args[0].errorf("%q is no method: expected one like GET or HEAD", c.Method)
	}
	return nil
}

func (c *checkBlock) header(s *statement) error {
	h := check.Header{Name: s.args[0].Text, Value: s.args[1].Text}
	switch {
	case !fieldForm.MatchString(h.Name):
		return s.args[0].errorf("%q is no name of a header: expected one like Accept", h.Name)
	case strings.EqualFold(h.Name, "Host"):
		return s.args[0].errorf("the header Host is written `authority NAME`")
	}
	c.Headers = append(c.Headers, h)
	return nil
}

func (c *checkBlock) ca(s *statement) error {
	c.CA = s.args[0].Text
	return nil
}

func (c *checkBlock) cert(s *statement) error {
	c.Cert, c.Key = s.args[0].Text, s.args[1].Text
	return nil
}

// send reads text with the escapes of Go for what can't be typed, as \r\n.
func (c *checkBlock) send(s *statement) error {
	var text []byte
	for rest := s.args[0].Text; rest != ""; {
		r, wide, tail, err := strconv.UnquoteChar(rest, 0)
		if err != nil {
			return s.args[0].errorf(`%q has a wrong escape: expected \r, \n, \t, \\ or \x and two digits`, s.args[0].Text)
		}
		if wide {
			text = append(text, string(r)...)
		} else {
			text = append(text, byte(r))
		}
		rest = tail
	}
	c.Send = string(text)
	return nil
}

func (c *checkBlock) hold(s *statement) (err error) {
	if s.args[1].Text != "flips" {
		return s.args[1].errorf("unexpected %q: expected `hold NUMBER flips`", s.args[1].Text)
	}
	c.HoldFlips, err = number(s.args[0], 2, 100)
	return err
}

func (c *checkBlock) comeback(s *statement) error {
	t := s.args[0]
	if t.Text != "auto" && t.Text != "manual" {
		return t.errorf("%q: expected auto or manual", t.Text)
	}
	c.Manual = t.Text == "manual"
	return nil
}

func (c *checkBlock) initial(s *statement) (err error) {
	t := s.args[0]
	c.Initial = check.Initial(t.Text)
	switch {
	case c.Initial != check.InitialLast && c.Initial != check.InitialUp && c.Initial != check.InitialDown:
		return t.errorf("%q: expected `initial last [TIME]`, `initial up` or `initial down`", t.Text)
	case len(s.args) == 1:
		return nil
	case c.Initial != check.InitialLast:
		return s.args[1].errorf("unexpected %q: a time can only follow `initial last`", s.args[1].Text)
	}
	c.InitialAge, err = span(s.args[1], time.Second, 24*time.Hour)
	return err
}

var (
	webKinds = []check.Kind{check.HTTP, check.HTTPS}
	tlsKinds = []check.Kind{check.HTTPS, check.TCP, check.GRPC} // the last two with tls
)

// optionKinds are the kinds that an option belongs to; other options belong to
// all.
var optionKinds = map[string][]check.Kind{
	"authority": {check.HTTP, check.HTTPS, check.TCP, check.GRPC},
	"method":    webKinds,
	"header":    webKinds,
	"ca":        tlsKinds,
	"cert":      tlsKinds,
	"insecure":  tlsKinds,
	"follow":    webKinds,
	"keepalive": {check.HTTP, check.HTTPS, check.GRPC},
	"send":      {check.TCP},
	"expect":    {check.HTTP, check.HTTPS, check.TCP, check.DNS, check.Exec},
	"full":      {check.HTTP, check.HTTPS, check.TCP, check.DNS, check.Exec},
}

// settle fills in the values that depend on others, and holds that all that
// the check says goes together.
func (c *checkBlock) settle() error {
	if c.Kind == "" {
		return c.errorf("check %q has no kind: write one of %s", c.Name, oneOf(names(c.kinds())))
	}
	if _, written := c.said["timeout"]; !written {
		c.Timeout = min(3*time.Second, c.Interval/2)
	}
	for _, fit := range []func() error{c.fitsKind, c.fitsTLS, c.fitsTimes, c.fitsCounts, c.fitConditions} {
		if err := fit(); err != nil {
			return err
		}
	}
	return nil
}

// fitsKind holds that every option belongs to the kind.
func (c *checkBlock) fitsKind() error {
	for _, word := range slices.Sorted(maps.Keys(c.said)) {
		if kinds := optionKinds[word]; kinds != nil && !slices.Contains(kinds, c.Kind) {
			return c.said[word].errorf("%q has no meaning in a check of kind %s: it belongs to %s", word, c.Kind, kindList(kinds))
		}
	}
	return nil
}

// fitsTLS holds that what is about certificates meets one.
func (c *checkBlock) fitsTLS() error {
	pos, authority := c.said["authority"]
	switch {
	case c.Kind == check.HTTPS && !authority:
		return c.errorf("check %q needs the name that is asked for and that certificates must hold: write `authority NAME`, or `authority each` for the first name of each host", c.Name)
	case c.Kind == check.TCP && !c.TLS && authority:
		return pos.errorf("\"authority\" has no meaning without TLS: write `tcp :%d tls`", c.Port)
	}
	for _, word := range []string{"ca", "cert", "insecure"} {
		if pos, said := c.said[word]; said && c.Kind != check.HTTPS && !c.TLS {
			return pos.errorf("%q has no meaning without TLS: write `%s :%d tls`", word, c.Kind, c.Port)
		}
	}
	if c.Insecure && c.CA != "" {
		return c.said["insecure"].errorf("insecure verifies no certificate, so \"ca\" at %s is for nothing: leave one out", c.said["ca"])
	}
	return nil
}

// fitsTimes holds that a probe ends before the next begins.
func (c *checkBlock) fitsTimes() error {
	if c.Timeout > c.Interval {
		return c.said["timeout"].errorf("timeout %s is longer than the interval %s: a probe must end before the next begins", c.Timeout, c.Interval)
	}
	if all := 2*c.Timeout + time.Second; c.Retry && all > c.Interval {
		return c.said["retry"].errorf("a retry can take %s (timeout %s, a second of waiting, timeout %s), which doesn't fit in the interval %s: lower the timeout or raise the interval",
			all, c.Timeout, c.Timeout, c.Interval)
	}
	return nil
}

// fitsCounts holds that the verdict can change as written.
func (c *checkBlock) fitsCounts() error {
	if least := time.Duration(c.Fall-1) * c.Interval; c.FallWithin > 0 && least > c.FallWithin {
		return c.said["fall"].errorf("%d failures take at least %s at an interval of %s, so there can't be as many within %s: lower fall or the interval, or raise the time",
			c.Fall, least, c.Interval, c.FallWithin)
	}
	if c.Accumulate && c.FallWithin > 0 {
		return c.said["accumulate"].errorf("accumulate counts failures however old they are, but fall at %s has a time: leave one out", c.said["fall"])
	}
	if least := c.flipping(); least >= time.Hour {
		return c.said["hold"].errorf("%d flips take at least %s, so there can't be as many in an hour: lower the number", c.HoldFlips, least)
	}
	return nil
}

// flipping is the least time that as many flips as hold an endpoint can take.
func (c *checkBlock) flipping() time.Duration {
	if c.HoldFlips == 0 {
		return 0
	}
	fall := time.Duration(c.Fall) * c.Interval
	rise := max(time.Duration(c.Rise)*c.Interval, c.Interval+c.RiseOver)
	gaps := time.Duration(c.HoldFlips - 1)
	return gaps/2*(fall+rise) + gaps%2*min(fall, rise)
}

// kindList lists kinds for an error.
func kindList(kinds []check.Kind) string {
	list := make([]string, len(kinds))
	for i, k := range kinds {
		list[i] = string(k)
	}
	return oneOf(list)
}
