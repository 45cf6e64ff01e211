package geodb

import (
	"fmt"
	"math/rand/v2"
	"net/netip"
	"strings"
	"testing"
)

// said makes a content of lines "PREFIX [WORD…]".
func said(t *testing.T, lines string) Content {
	t.Helper()
	words := NoWords
	if strings.Contains(lines, " ") {
		words = WithWords
	}
	parsed, err := ParsePrefixes("lines", []byte(lines), words)
	if err != nil {
		t.Fatal(err)
	}
	return ContentOf(parsed)
}

// each writes a line for each of n neighbours.
func each(n int, format string) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, format+"\n", i)
	}
	return b.String()
}

func TestCheckShrink(t *testing.T) {
	const net, net6, line = "10.0.%d.0/24", "2001:db8:%d::/48", "10.0.%d.0/24 eu"
	for _, tc := range []struct {
		name, old, next string
		ok              bool
	}{
		{"as it was", each(10, net), each(10, net), true},
		{"half", each(10, net), each(5, net), true},
		{"less than half", each(10, net), each(4, net), false},
		{"less than half of an odd number", each(11, net), each(5, net), false},
		{"more than half of an odd number", each(11, net), each(6, net), true},
		{"all", each(1, net), "", false},
		{"none had any", "", "", true},
		{"grown", each(5, net), each(200, net), true},
		{"merged", each(16, net), "10.0.0.0/20\n", true},
		{"merged, in IPv6", each(10, net6), "2001:db8::/32\n", true},
		{"merged in one family, lost in the other", each(10, net) + each(8, net6), "10.0.0.0/8\n", true},
		{"lost in most of what there is", each(10, net) + each(11, net6), "10.0.0.0/8\n", false},
		{"cut, but for one that is wider than all that is lost", "64.0.0.0/2\n" + each(10, net), "64.0.0.0/2\n", false},
		{"others in their place", each(10, net), each(10, "10.9.%d.0/24"), true},
		{"fewer, and others", each(10, net), each(4, "10.9.%d.0/24"), false},
		{"merged, with words", each(16, line), "10.0.0.0/20 eu\n", true},
		{"cut, but for one round all of them that says something else", "0.0.0.0/0 us\n" + each(16, line), "0.0.0.0/0 us\n", false},
		{"wider ones in wider ones", each(16, net), "10.0.0.0/8\n10.0.8.0/24\n10.1.0.0/16\n10.2.0.0/16\n", true},
	} {
		err := CheckShrink("new.txt", "prefixes", said(t, tc.old), said(t, tc.next))
		if (err == nil) != tc.ok {
			t.Errorf("%s: %v", tc.name, err)
		}
	}
	err := CheckShrink("new.txt", "prefixes", said(t, each(10, net)), said(t, each(3, net)+"192.0.2.0/24\n"))
	const want = "new.txt: has 4 prefixes where the copy in use has 10, of which it holds only 3, merged or not: expected at least half"
	if err == nil || !strings.HasPrefix(err.Error(), want) {
		t.Errorf("error %v, want %s", err, want)
	}
}

// TestContentIn compares the count with all pairs, on contents whose prefixes lie in
// each other as they like.
func TestContentIn(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	random := func() (c Content, lines []PrefixLine) {
		for range r.IntN(12) {
			a := netip.AddrFrom4([4]byte{byte(r.IntN(4)) << 6, byte(r.IntN(4)) << 6})
			if r.IntN(3) == 0 {
				a = netip.AddrFrom16([16]byte{byte(r.IntN(4)) << 6, byte(r.IntN(4)) << 6})
			}
			p, _ := a.Prefix(r.IntN(11))
			lines = append(lines, PrefixLine{Prefix: p, Words: []string{string('a' + rune(r.IntN(2)))}})
		}
		return ContentOf(lines), lines
	}
	for range 20_000 {
		c, lines := random()
		others, otherLines := random()
		want := 0
		for _, l := range lines {
			for _, o := range otherLines {
				if l.Words[0] == o.Words[0] && l.Prefix.Overlaps(o.Prefix) {
					want++
					break
				}
			}
		}
		if got := c.in(others); got != want {
			t.Fatalf("%v in %v: %d, want %d", lines, otherLines, got, want)
		}
	}
}
