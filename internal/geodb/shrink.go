package geodb

import (
	"fmt"
	"iter"
	"net/netip"
	"slices"
	"strings"
)

// Content is what a file says of prefixes, for CheckShrink.
type Content struct {
	Len int // prefixes
	// Prefixes are all of them, in any order, each with what is said of it where that
	// tells whether a wider prefix stands for it; else with an empty string.
	Prefixes iter.Seq2[netip.Prefix, string]
}

// CheckShrink is an error when the newer content of a file has lost more than half of
// what the old one had: it was cut while it was made, rather than news.
//
// What is lost is counted in prefixes of the old content that the new one has nothing
// for. The number of prefixes alone would refuse a file whose neighbours were merged. The
// number of addresses would let one wide prefix outweigh all the others, and has no
// measure for both families. Demand, which some maps tell, is in few entries for the most
// part, so most of a map could be gone unseen; whoever builds one counts entries, too. A
// content with at least half as many prefixes is never refused: others are news.
func CheckShrink(path, what string, old, next Content) error {
	enough := (old.Len + 1) / 2
	if next.Len >= enough {
		return nil
	}
	left := old.in(next)
	if left >= enough {
		return nil
	}
	return fmt.Errorf("%s: has %d %s where the copy in use has %d, of which it holds only %d, merged or not: "+
		"expected at least half, so it isn't taken; look for what is missing and make the file again, "+
		"or if that is meant, reload the Corefile or restart the server, which take the file as it is", path, next.Len, what, old.Len, left)
}

// in counts the prefixes that overlap one of others of which the same is said.
func (c Content) in(others Content) (n int) {
	all := make(map[string][]netip.Prefix) // by what is said
	for p, said := range others.Prefixes {
		all[said] = append(all[said], p)
	}
	for said, list := range all {
		slices.SortFunc(list, netip.Prefix.Compare)
		all[said] = widest(list)
	}
	for p, said := range c.Prefixes {
		list := all[said]
		i, _ := slices.BinarySearchFunc(list, p.Addr(), func(q netip.Prefix, a netip.Addr) int { return q.Addr().Compare(a) })
		if i < len(list) && list[i].Overlaps(p) || i > 0 && list[i-1].Overlaps(p) {
			n++
		}
	}
	return n
}

// widest leaves those of sorted prefixes that none of the others contains.
func widest(list []netip.Prefix) []netip.Prefix {
	kept := list[:0]
	for _, p := range list {
		if n := len(kept); n == 0 || !kept[n-1].Overlaps(p) {
			kept = append(kept, p)
		}
	}
	return kept
}

// Content is what the database tells something of.
func (db *DB) Content() Content {
	return Content{len(db.v4) + len(db.v6), func(yield func(netip.Prefix, string) bool) {
		for p := range db.Networks() {
			if !yield(p, "") {
				return
			}
		}
	}}
}

// ContentOf is what lines of a prefix file say. Their prefixes may contain others, so a
// wider one stands for those alone that have the same words.
func ContentOf(lines []PrefixLine) Content {
	return Content{len(lines), func(yield func(netip.Prefix, string) bool) {
		for _, l := range lines {
			if !yield(l.Prefix, strings.Join(l.Words, " ")) {
				return
			}
		}
	}}
}
