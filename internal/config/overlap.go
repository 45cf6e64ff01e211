package config

import (
	"fmt"
	"net/netip"
	"reflect"
	"slices"
	"strings"
)

// claim is one conjunction of a rule that a client may match.
type claim struct {
	rule *Rule
	alts []Alt
}

// bucket is what two claims must share to be of equal rank and to overlap:
// the kind and a value of the first alternative, and their number.
type bucket struct {
	kind  AltKind
	alts  int
	value string
}

// checkRules holds that no two rules of one set claim the same client with the
// same rank and different lists.
func (b *Block) checkRules(rules []Rule) error {
	var rest *Rule
	left := maxConjunctions
	claims := map[bucket][]claim{}
	for i := range rules {
		r := &rules[i]
		if r.Rest {
			if rest != nil && !b.sameList(rest, r) {
				return r.errorf("a second `clients rest` with another list; first at %s", rest.Pos)
			}
			rest = r
			continue
		}
		list, err := b.expand(r.Match, left)
		if err != nil {
			return r.errorf("clients: %v", err)
		}
		left -= len(list)
		for _, m := range list {
			if err := b.claim(claims, claim{r, m.Alts}); err != nil {
				return err
			}
		}
	}
	return nil
}

// claim adds one claim to the others, unless it contradicts one.
func (b *Block) claim(claims map[bucket][]claim, c claim) error {
	for i, value := range c.alts[0].values() {
		k := bucket{c.alts[0].Kind, len(c.alts), value}
		for _, other := range claims[k] {
			if other.rule == c.rule || b.sameList(other.rule, c.rule) || !overlap(c.alts[0].only(i), other.alts[1:], c.alts[1:]) {
				continue
			}
			return c.rule.errorf("clients of %s %s are given another list at %s, with the same rank: leave %s out of one, or narrow one with `in`",
				k.kind, value, other.rule.Pos, value)
		}
		claims[k] = append(claims[k], c)
	}
	return nil
}

// sameList reports whether two rules give the same candidate list.
func (b *Block) sameList(x, y *Rule) bool {
	if x.Refuse || y.Refuse {
		return x.Refuse && y.Refuse
	}
	if x.Region == y.Region && x.Region != "" {
		return true
	}
	xs, xWritten := b.listOf(x)
	ys, yWritten := b.listOf(y)
	return xWritten && yWritten && reflect.DeepEqual(xs, ys)
}

// listOf gives the list of a rule. That of a region without a written next is
// computed for each client.
func (b *Block) listOf(r *Rule) (list List, written bool) {
	if r.Region == "" {
		return r.List, true
	}
	region := b.regionOf(r.Region)
	if region.Next == nil {
		return List{}, false
	}
	return List{Order: slices.Concat([]string{r.Region}, region.Next), Rest: region.NextRest}, true
}

// overlap reports whether a client can match shared and both x and y.
func overlap(shared Alt, x, y []Alt) bool {
	for i, a := range slices.Concat([]Alt{shared}, x) {
		for j, c := range slices.Concat([]Alt{shared}, y) {
			if i+j > 0 && disjoint(a, c) {
				return false
			}
		}
	}
	return true
}

// disjoint reports whether no client can match both alternatives. What only
// the location data can tell is taken as possible; a file of prefixes is taken
// to overlap with itself alone.
func disjoint(a, c Alt) bool {
	byPrefix := func(k AltKind) bool { return k == AltFile || k == AltPrefix }
	switch {
	case byPrefix(a.Kind) && byPrefix(c.Kind) && a.Kind != c.Kind:
		return true
	case a.Kind == AltPrefix && c.Kind == AltPrefix:
		return !slices.ContainsFunc(a.Prefixes, func(p netip.Prefix) bool {
			return slices.ContainsFunc(c.Prefixes, p.Overlaps)
		})
	case a.Kind == c.Kind:
		return !slices.ContainsFunc(a.values(), func(v string) bool { return slices.Contains(c.values(), v) })
	case a.Kind == AltCountry && c.Kind == AltSubdivision:
		return !slices.ContainsFunc(c.Codes, func(s string) bool { return slices.Contains(a.Codes, s[:2]) })
	case a.Kind == AltSubdivision && c.Kind == AltCountry:
		return disjoint(c, a)
	}
	return false
}

// values gives the values of an alternative as text.
func (a Alt) values() []string {
	switch a.Kind {
	case AltASN:
		return texts(a.ASNs)
	case AltPrefix:
		return texts(a.Prefixes)
	case AltFile:
		return []string{a.File}
	}
	return a.Codes
}

// only gives the alternative with its value i alone.
func (a Alt) only(i int) Alt {
	switch a.Kind {
	case AltASN:
		a.ASNs = a.ASNs[i : i+1]
	case AltPrefix:
		a.Prefixes = a.Prefixes[i : i+1]
	case AltFile: // has one anyway
	default:
		a.Codes = a.Codes[i : i+1]
	}
	return a
}

func texts[T any](list []T) []string {
	out := make([]string, len(list))
	for i, v := range list {
		out[i] = fmt.Sprint(v)
	}
	return out
}

func chain(names []string) string { return strings.Join(names, " > ") }
