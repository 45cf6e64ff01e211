package config

import (
	"fmt"
	"net/netip"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// reserved are the words that stand where a name could.
var reserved = []string{"rest", "none", "off", "split", "order"}

var (
	nameForm    = regexp.MustCompile(`^[a-z][a-z0-9-]{0,62}$`)
	digits      = regexp.MustCompile(`^[0-9]{1,10}$`)
	percentForm = regexp.MustCompile(`^([0-9]{1,3}(?:\.[0-9]{1,2})?)%$`)
	labelForm   = regexp.MustCompile(`^[a-z0-9_-]{1,63}$`)
)

// name checks the name of a region, an area or a policy.
func name(t Token, of string) error {
	if slices.Contains(reserved, t.Text) {
		return t.errorf("%q can't name %s: %s are words of the language", t.Text, of, oneOf(reserved))
	}
	if !nameForm.MatchString(t.Text) {
		return t.errorf("%q can't name %s: expected a lower case letter, then at most 62 of a-z, 0-9 and -", t.Text, of)
	}
	return nil
}

// number reads a whole number from lo to hi.
func number(t Token, lo, hi int) (int, error) {
	n, err := strconv.Atoi(t.Text)
	if !digits.MatchString(t.Text) || err != nil || n < lo || n > hi {
		return 0, t.errorf("%q: expected a whole number from %d to %d", t.Text, lo, hi)
	}
	return n, nil
}

// numbers reads one number of 0 to limit for each limit.
func numbers(args []Token, limits ...int) ([]int, error) {
	values := make([]int, len(limits))
	for i, limit := range limits {
		n, err := number(args[i], 0, limit)
		if err != nil {
			return nil, err
		}
		values[i] = n
	}
	return values, nil
}

// degrees reads an angle of -limit to limit.
func degrees(t Token, what string, limit float64) (float64, error) {
	v, err := strconv.ParseFloat(t.Text, 64)
	if err != nil || !(v >= -limit && v <= limit) {
		return 0, t.errorf("%q is no %s: expected degrees from -%g to %g", t.Text, what, limit, limit)
	}
	return v, nil
}

// percent reads a percentage of 0 to 100 with at most two decimals.
func percent(t Token) (float64, error) {
	if m := percentForm.FindStringSubmatch(t.Text); m != nil {
		if v, err := strconv.ParseFloat(m[1], 64); err == nil && v <= 100 {
			return v, nil
		}
	}
	return 0, t.errorf("%q: expected a percentage from 0%% to 100%%, with at most two decimals", t.Text)
}

// threshold reads a count or a percentage.
func threshold(t Token) (Threshold, error) {
	if v, err := percent(t); err == nil {
		return Threshold{Percent: v, IsPct: true}, nil
	} else if n, err := number(t, 1, maxEndpoints); err == nil {
		return Threshold{Count: n}, nil
	}
	return Threshold{}, t.errorf("%q: expected a number of endpoints from 1 to %d, or a percentage like 50%%", t.Text, maxEndpoints)
}

// answers reads a number of addresses per answer; all is 0.
func answers(t Token) (int, error) {
	if t.Text == "all" {
		return 0, nil
	}
	n, err := number(t, 1, 16)
	if err != nil {
		return 0, t.errorf("%q: expected a number from 1 to 16, or all", t.Text)
	}
	return n, nil
}

// duration reads a time of 0 to limit in whole seconds.
func duration(t Token, limit time.Duration) (time.Duration, error) {
	d, err := time.ParseDuration(t.Text)
	if err != nil || d < 0 || d > limit || d%time.Second != 0 {
		return 0, t.errorf("%q: expected a time with its unit, like 10s or 1m, in whole seconds and at most %s", t.Text, limit)
	}
	return d, nil
}

// span reads a time from lo to hi.
func span(t Token, lo, hi time.Duration) (time.Duration, error) {
	d, err := time.ParseDuration(t.Text)
	if err != nil || d < lo || d > hi {
		return 0, t.errorf("%q: expected a time with its unit, like 500ms or 10s, from %s to %s", t.Text, lo, hi)
	}
	return d, nil
}

// address reads an address that clients can be sent to.
func address(t Token) (netip.Addr, error) {
	a, err := netip.ParseAddr(t.Text)
	if err != nil {
		if _, bad := domain(t); bad == nil && strings.ContainsAny(t.Text, "ghijklmnopqrstuvwxyzGHIJKLMNOPQRSTUVWXYZ-_") {
			return a, t.errorf("%q: expected an IP address; the host name of a load balancer is written `target %s`, in the block of a pool", t.Text, t.Text)
		}
		return a, t.errorf("%q: expected an IP address without port or prefix length", t.Text)
	}
	if a.Zone() != "" {
		return a, t.errorf("%q has a zone, which means nothing to a client: write the address alone", t.Text)
	}
	return a, unicast(t, a)
}

// unicast refuses what is not the plain address of one machine.
func unicast(t Token, a netip.Addr) error {
	switch {
	case a.Is4In6():
		return t.errorf("%q is an IPv4 address in IPv6 clothes: write %s", t.Text, a.Unmap())
	case a.IsUnspecified(), a.IsMulticast(), a == netip.AddrFrom4([4]byte{255, 255, 255, 255}):
		return t.errorf("%q is not the address of one machine: expected a unicast address", t.Text)
	}
	return nil
}

// dialled reads the address and port that probes go to. Where the port may be
// left out, it is then 0.
func dialled(t Token, portless bool) (netip.AddrPort, error) {
	a, err := netip.ParseAddr(t.Text)
	ap := netip.AddrPortFrom(a, 0)
	if err != nil || !portless {
		ap, err = netip.ParseAddrPort(t.Text)
		portless = false
	}
	if err != nil || ap.Addr().Zone() != "" || ap.Port() == 0 && !portless {
		return ap, t.errorf("%q: expected an IP address and port, like 192.0.2.1:443 or [2001:db8::1]:443", t.Text)
	}
	return ap, unicast(t, ap.Addr())
}

// addresses reads addresses that are all different.
func addresses(args []Token) ([]netip.Addr, error) {
	var list []netip.Addr
	for _, t := range args {
		a, err := address(t)
		if err != nil {
			return nil, err
		}
		if slices.Contains(list, a) {
			return nil, t.errorf("%s is written twice", a)
		}
		list = append(list, a)
	}
	return list, nil
}

// prefix reads a network, or an address as the network of it alone.
func prefix(t Token) (netip.Prefix, error) {
	if a, err := netip.ParseAddr(t.Text); err == nil && a.Zone() == "" && !a.Is4In6() {
		return netip.PrefixFrom(a, a.BitLen()), nil
	}
	p, err := netip.ParsePrefix(t.Text)
	if a, _, _ := strings.Cut(t.Text, "/"); strings.HasPrefix(a, "::ffff:") && strings.Contains(a, ".") {
		return p, t.errorf("%q is an IPv4 prefix in IPv6 clothes: write it as IPv4", t.Text)
	}
	if err != nil {
		return p, t.errorf("%q: expected a prefix like 192.0.2.0/24 or 2001:db8::/32", t.Text)
	}
	if p.Addr().Is4In6() {
		return p, t.errorf("%q is an IPv4 prefix in IPv6 clothes: write it as IPv4", t.Text)
	}
	if p != p.Masked() {
		return p, t.errorf("%q has bits set after its length: did you mean %s?", t.Text, p.Masked())
	}
	return p, nil
}

// prefixes reads networks that are all different.
func prefixes(args []Token) ([]netip.Prefix, error) {
	var list []netip.Prefix
	for _, t := range args {
		p, err := prefix(t)
		if err != nil {
			return nil, err
		}
		if slices.Contains(list, p) {
			return nil, t.errorf("%s is written twice", p)
		}
		list = append(list, p)
	}
	return list, nil
}

// domain reads a domain name (RFC 1035 section 3.1 and its limits of 63 octets
// in a label and 255 in a name) as lower case and fully qualified.
func domain(t Token) (string, error) {
	if t.Text == "." {
		return ".", nil
	}
	n := strings.ToLower(strings.TrimSuffix(t.Text, "."))
	for label := range strings.SplitSeq(n, ".") {
		if !labelForm.MatchString(label) {
			return "", t.errorf("%q is no domain name: expected labels of 1 to 63 of a-z, 0-9, - and _, with dots between (other letters in their xn-- form)", t.Text)
		}
	}
	if len(n) > 253 {
		return "", t.errorf("%q is no domain name: it is longer than 253", t.Text)
	}
	return n + ".", nil
}

// mailbox reads a mail address written as a domain name. A dot before the
// first plain dot is written \. (RFC 1035 section 8).
func mailbox(t Token) (string, error) {
	if user, at, found := strings.Cut(t.Text, "@"); found {
		return "", t.errorf("%q: write a mail address with a dot in place of the @: %s", t.Text, strings.ReplaceAll(user, ".", `\.`)+"."+at)
	}
	plain := Token{Text: strings.ReplaceAll(t.Text, `\.`, "-"), Pos: t.Pos}
	if _, err := domain(plain); err != nil {
		return "", t.errorf("%q is no mail address as a domain name: expected one like hostmaster.example.com", t.Text)
	}
	return strings.ToLower(strings.TrimSuffix(t.Text, ".")) + ".", nil
}

// owner reads a name in one of the zones; its first label may be a "*".
func owner(t Token, zones []string) (string, error) {
	rest, wild := strings.CutPrefix(t.Text, "*.")
	if wild && rest == "" {
		rest = "."
	}
	n, err := domain(Token{Text: rest, Pos: t.Pos})
	if err != nil {
		if strings.Contains(rest, "*") {
			return "", t.errorf("%q: a * can only be the whole first label, like *.example.com", t.Text)
		}
		return "", err
	}
	if !within(n, zones) {
		return "", t.errorf("%q is in no zone of this block (%s): write the full name", t.Text, strings.Join(zones, " "))
	}
	if wild {
		n = "*." + strings.TrimPrefix(n, ".")
	}
	return n, nil
}

// within reports whether a name is in one of the zones, by label.
func within(n string, zones []string) bool {
	for _, z := range zones {
		if z == "." || n == z || strings.HasSuffix(n, "."+z) {
			return true
		}
	}
	return false
}

// twice is the error about a thing written a second time.
func twice(again Pos, what string, first Pos) *Error {
	return again.errorf("%s is written twice; first at %s", what, first)
}

func quoted(kind, name string) string { return fmt.Sprintf("%s %q", kind, name) }
