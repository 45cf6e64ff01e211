package control

import (
	"fmt"
	"net/netip"
	"regexp"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// Bounds of what may be asked.
const (
	maxChanges   = 100  // in one request
	maxOverrides = 1000 // that hold at once
	minWhy       = 3    // characters
	maxWhy       = 500
	minFor       = time.Second
	maxFor       = 366 * 24 * time.Hour
	maxHost      = 254 // characters of a name with its final dot
)

// Change is one thing to do: to set a lever on an object, or to cancel an override.
type Change struct {
	// Cancel is the ID of the override to cancel; then there is nothing else but Why.
	Cancel string `json:"cancel,omitempty"`

	Lever Lever `json:"lever,omitempty"`
	Object
	Value Value  `json:"value,omitempty"`
	Area  string `json:"area,omitempty"` // of a share: for these clients only

	Terms
}

// Terms are why something is done and for how long.
type Terms struct {
	Why string `json:"why,omitempty"` // 3..500 printable characters
	// One of these is needed, but for what only cancels an override.
	Until time.Time `json:"until,omitzero"`
	For   string    `json:"for,omitempty"` // a duration, 1s to 366 days: "90m"
	Never bool      `json:"never,omitempty"`
}

// Request is changes to be made together, or none of them. It is one change, or
// a list of Changes; then what Terms say holds for all that don't say it themselves.
type Request struct {
	Change
	Changes []Change `json:"changes,omitempty"`
	// Version that the changes were computed from; empty: of no matter.
	Version string `json:"version,omitempty"`
	// Force does it though guards refuse it.
	Force bool `json:"force,omitempty"`
}

var regionName = regexp.MustCompile(`^[a-z][a-z0-9-]{0,62}$`)

// list is every change of a request, with its terms.
func (r *Request) list() ([]Change, *Invalid) {
	alone := r.Change
	alone.Terms = Terms{}
	switch {
	case len(r.Changes) == 0 && alone == Change{}:
		return nil, invalid("lever", "a lever, an override to cancel, or a list of changes", "nothing to do")
	case len(r.Changes) == 0:
		return []Change{r.Change}, nil
	case alone != Change{}:
		return nil, invalid("changes", "one change, or a list", "both a change and a list of changes")
	case len(r.Changes) > maxChanges:
		return nil, invalid("changes", fmt.Sprintf("at most %d", maxChanges), "%d are too many", len(r.Changes))
	}
	all := make([]Change, len(r.Changes))
	for i, c := range r.Changes {
		if c.Why == "" {
			c.Why = r.Why
		}
		if c.Cancel == "" && c.Until.IsZero() && c.For == "" && !c.Never {
			c.Until, c.For, c.Never = r.Until, r.For, r.Never
		}
		all[i] = c
	}
	return all, nil
}

// check makes a change canonical, as far as that can be done without the plan:
// its expiry becomes Until or Never.
func (c Change) check(now time.Time) (Change, *Invalid) {
	var err *Invalid
	if c.Why, err = checkWhy(c.Why); err != nil {
		return c, err
	}
	if c.Cancel != "" {
		rest := c
		rest.Cancel, rest.Why = "", ""
		if rest != (Change{}) {
			return c, invalid("cancel", "only why beside it", "what else is given has no meaning")
		}
		return c, nil
	}
	if !slices.Contains(Levers, c.Lever) {
		return c, invalid("lever", "drain, dial, weight, share, trickle or force", "%.40q is none", string(c.Lever))
	}
	if c.Object, err = c.Object.check(); err != nil {
		return c, err
	}
	if err = c.Lever.check(c.Object); err != nil {
		return c, err
	}
	if c.Value, err = c.Lever.canonical(c.Value); err != nil {
		return c, err
	}
	if c.Area != "" && (c.Lever != Share || c.Value == "off" || !regionName.MatchString(c.Area)) {
		return c, invalid("area", "the name of an area, with a share in percent", "%.40q has no meaning here", c.Area)
	}
	c.Terms, err = c.Terms.check(now)
	return c, err
}

// check makes Until of For.
func (t Terms) check(now time.Time) (Terms, *Invalid) {
	given := 0
	for _, is := range []bool{!t.Until.IsZero(), t.For != "", t.Never} {
		if is {
			given++
		}
	}
	if given > 1 {
		return t, invalid("until", "one of until, for and never", "%d of them are given", given)
	}
	if t.For != "" {
		d, err := time.ParseDuration(t.For)
		if err != nil || d < minFor || d > maxFor {
			return t, invalid("for", "a duration from 1s to 8784h (366 days), like 90m", "%.40q is none", t.For)
		}
		t.Until, t.For = now.Add(d), ""
	}
	if t.Until.IsZero() {
		return t, nil
	}
	t.Until = t.Until.UTC().Truncate(time.Second)
	if t.Until.After(now.Add(maxFor)) {
		return t, invalid("until", "a time within 366 days, or never", "%s is too far away", t.Until.Format(time.RFC3339))
	}
	if !t.Until.After(now) {
		return t, invalid("until", "a time to come", "%s is over; it is %s here", t.Until.Format(time.RFC3339), now.UTC().Format(time.RFC3339))
	}
	return t, nil
}

// checkWhy wants a reason that people can read.
func checkWhy(why string) (string, *Invalid) {
	const expected = "3..500 printable characters"
	why = strings.TrimSpace(why)
	switch n := utf8.RuneCountInString(why); {
	case why == "":
		return why, &Invalid{Field: "why", Text: "missing", Expected: expected, Hint: "say why: it is what others read in the audit log"}
	case n < minWhy || n > maxWhy:
		return why, invalid("why", expected, "%d characters", n)
	case !utf8.ValidString(why) || strings.ContainsFunc(why, func(r rune) bool { return !unicode.IsPrint(r) }):
		return why, invalid("why", expected, "it holds characters that can't be printed")
	}
	return why, nil
}

// check makes the names of an object canonical.
func (o Object) check() (Object, *Invalid) {
	if o.Region != "" && !regionName.MatchString(o.Region) {
		return o, invalid("region", "a region's name, as in the Corefile", "%.70q is none", o.Region)
	}
	if o.Host != "" {
		o.Host = strings.ToLower(strings.TrimSuffix(o.Host, ".")) + "."
		if len(o.Host) > maxHost || len(o.Host) < 2 || strings.ContainsFunc(o.Host, func(r rune) bool { return r <= ' ' || r > '~' }) {
			return o, invalid("host", "a host's name, as in the Corefile", "%.70q is none", o.Host)
		}
	}
	if o.Endpoint.IsValid() {
		if o.Endpoint.Zone() != "" {
			return o, invalid("endpoint", "an address without zone", "%s has one", o.Endpoint)
		}
		o.Endpoint = o.Endpoint.Unmap()
	}
	return o, nil
}

// parseEndpoint reads an address.
func parseEndpoint(text string) (netip.Addr, *Invalid) {
	addr, err := netip.ParseAddr(text)
	if err != nil || addr.Zone() != "" {
		return netip.Addr{}, invalid("endpoint", "an address like 192.0.2.1", "%.60q is none", text)
	}
	return addr.Unmap(), nil
}
