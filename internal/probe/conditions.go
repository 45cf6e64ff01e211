package probe

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/netip"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/net/dns/dnsmessage"
	"golang.org/x/net/http/httpguts"

	"github.com/seed-945f90c5/gslb/internal/check"
)

// outcome is what conditions look at: what a probe got as an answer.
type outcome struct {
	status  int              // http, https
	header  http.Header      // http, https
	body    []byte           // http, https, tcp, exec: check.MaxBody bytes at most
	more    bool             // the body goes on
	rcode   dnsmessage.RCode // dns
	answers []netip.Addr     // dns

	doc    any // the body read as JSON, once
	docErr error
}

// condition is one thing that an outcome may satisfy.
type condition struct {
	class Class  // of a failure
	want  string // what was expected, where found alone doesn't tell
	// look tells whether the condition holds, and what it found, in words that
	// fit both cases.
	look func(*outcome) (found string, holds bool)
}

// judge makes a finding of outcomes.
type judge struct{ expect, full []condition }

// conditionKinds tells which kinds of checks have what a condition looks at.
var conditionKinds = map[check.ConditionKind][]check.Kind{
	check.Status:      {check.HTTP, check.HTTPS},
	check.JSON:        {check.HTTP, check.HTTPS},
	check.HeaderField: {check.HTTP, check.HTTPS},
	check.BodyText:    {check.HTTP, check.HTTPS, check.TCP, check.Exec},
	check.BodyMatch:   {check.HTTP, check.HTTPS, check.TCP, check.Exec},
	check.RCode:       {check.DNS},
	check.Address:     {check.DNS},
}

// newJudge compiles the conditions of a check. What the kind expects by itself
// comes first, unless the check has conditions of kind own; what it takes for
// full, unless the check has any of its own.
func newJudge(c *check.Check, own check.ConditionKind, expect, full []condition) (judge, error) {
	written, err := compile(c, c.Expect)
	if err != nil {
		return judge{}, fmt.Errorf("expect %w", err)
	}
	if slices.ContainsFunc(c.Expect, func(e check.Condition) bool { return e.Kind == own }) {
		expect = nil
	}
	j := judge{expect: append(slices.Clone(expect), written...), full: full}
	if len(c.Full) > 0 {
		if j.full, err = compile(c, c.Full); err != nil {
			return judge{}, fmt.Errorf("full %w", err)
		}
	}
	return j, nil
}

// of judges an outcome: nil for a pass, else a *finding.
func (j judge) of(o *outcome) error {
	if f := j.overload(o); f != nil {
		return f
	}
	for _, e := range j.expect {
		found, holds := e.look(o)
		switch {
		case holds:
		case e.want == "":
			return fail(e.class, "%s", found)
		default:
			return fail(e.class, "%s, expected %s", found, e.want)
		}
	}
	return nil
}

// overload returns a finding if any of the full conditions holds.
func (j judge) overload(o *outcome) *finding {
	for _, f := range j.full {
		if found, holds := f.look(o); holds {
			return &finding{Full, ClassFull, "full: " + found}
		}
	}
	return nil
}

func compile(c *check.Check, cs []check.Condition) ([]condition, error) {
	var all []condition
	for _, written := range cs {
		if !slices.Contains(conditionKinds[written.Kind], c.Kind) {
			return nil, fmt.Errorf("%s: checks of kind %s have no such thing to look at", written.Kind, c.Kind)
		}
		one, err := compileOne(written)
		if err != nil {
			return nil, err
		}
		all = append(all, one)
	}
	return all, nil
}

func compileOne(c check.Condition) (condition, error) {
	switch c.Kind {
	case check.Status:
		return statusIn(c.Ranges)
	case check.BodyText:
		return bodyContains(c.Text), nil
	case check.BodyMatch:
		return bodyMatches(c.Text)
	case check.JSON:
		return jsonField(c.Field, c.Op, c.Value)
	case check.HeaderField:
		return headerField(c.Field, c.Text)
	case check.RCode:
		return rcodeIs(c.Field)
	}
	return hasAddresses(c.Addresses)
}

func statusIn(ranges [][2]int) (condition, error) {
	if len(ranges) == 0 {
		return condition{}, errors.New("status: no status, expected one such as 200 or 200-299")
	}
	var want []string
	for _, r := range ranges {
		switch {
		case r[0] < 100 || r[1] > 599 || r[0] > r[1]:
			return condition{}, fmt.Errorf("status %d-%d: expected 100 to 599, the lower one first", r[0], r[1])
		case r[0] == r[1]:
			want = append(want, strconv.Itoa(r[0]))
		default:
			want = append(want, fmt.Sprintf("%d-%d", r[0], r[1]))
		}
	}
	return condition{ClassStatus, strings.Join(want, ","), func(o *outcome) (string, bool) {
		return "status " + strconv.Itoa(o.status), slices.ContainsFunc(ranges, func(r [2]int) bool {
			return r[0] <= o.status && o.status <= r[1]
		})
	}}, nil
}

func bodyContains(text string) condition {
	want := []byte(text)
	return condition{ClassContent, "", func(o *outcome) (string, bool) {
		if bytes.Contains(o.body, want) {
			return "body contains " + text, true
		}
		return "body doesn't contain " + text, false
	}}
}

func bodyMatches(expr string) (condition, error) {
	re, err := regexp.Compile(expr)
	if err != nil {
		return condition{}, fmt.Errorf("body matches: %w (expected the RE2 syntax)", err)
	}
	return condition{ClassContent, "", func(o *outcome) (string, bool) {
		if re.Match(o.body) {
			return "body matches " + expr, true
		}
		return "body doesn't match " + expr, false
	}}, nil
}

func jsonField(path, op, value string) (condition, error) {
	steps, err := parsePath(path)
	if err != nil {
		return condition{}, err
	}
	if err := checkComparison(op, value); err != nil {
		return condition{}, err
	}
	return condition{ClassContent, op + " " + value, func(o *outcome) (string, bool) {
		doc, err := o.json()
		if err != nil {
			return path + " can't be read: " + err.Error(), false
		}
		field, ok := find(doc, steps)
		if !ok {
			return path + " is missing", false
		}
		holds, problem := compare(field, op, value)
		if problem != "" {
			return path + " " + problem, false
		}
		return fmt.Sprintf("%s is %v", path, field), holds
	}}, nil
}

// json reads the body, the first time it is asked.
func (o *outcome) json() (any, error) {
	if o.doc != nil || o.docErr != nil {
		return o.doc, o.docErr
	}
	if o.more {
		o.docErr = fmt.Errorf("body is longer than %d bytes", check.MaxBody)
		return nil, o.docErr
	}
	d := json.NewDecoder(bytes.NewReader(o.body))
	d.UseNumber()
	var doc any
	if d.Decode(&doc) != nil {
		o.docErr = errors.New("body is not JSON")
	} else if _, err := d.Token(); err != io.EOF {
		o.docErr = errors.New("body is more than one JSON document")
	}
	o.doc = doc
	return o.doc, o.docErr
}

// headerField never tells what a header holds: that may be a secret.
func headerField(name, value string) (condition, error) {
	if !httpguts.ValidHeaderFieldName(name) {
		return condition{}, fmt.Errorf("header: %q is not a name of a header", name)
	}
	return condition{ClassContent, "", func(o *outcome) (string, bool) {
		values := o.header.Values(name)
		switch {
		case len(values) == 0:
			return "header " + name + " is missing", false
		case value == "":
			return "header " + name + " is there", true
		case slices.Contains(values, value):
			return "header " + name + " has the value", true
		}
		return "header " + name + " has another value than expected", false
	}}, nil
}

func rcodeIs(name string) (condition, error) {
	want, ok := rcodes[strings.ToUpper(name)]
	if !ok {
		return condition{}, fmt.Errorf("rcode %q is unknown, expected one such as NOERROR, NXDOMAIN or REFUSED", name)
	}
	return condition{ClassStatus, strings.ToUpper(name), func(o *outcome) (string, bool) {
		return "rcode " + rcodeName(o.rcode), o.rcode == want
	}}, nil
}

func hasAddresses(want []netip.Addr) (condition, error) {
	if len(want) == 0 {
		return condition{}, errors.New("address: no address, expected at least one")
	}
	return condition{ClassContent, "", func(o *outcome) (string, bool) {
		for _, a := range want {
			if !slices.Contains(o.answers, a) {
				return "answer is without " + a.String(), false
			}
		}
		return "answer has the addresses", true
	}}, nil
}
