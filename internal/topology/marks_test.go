package topology

import (
	"fmt"
	"net/netip"
	"strings"
	"testing"
)

func TestMarks(t *testing.T) {
	in := &Input{
		Regions: regions("a", "b"), Depth: 3, Fill: true, Max4: 24, Max6: 56,
		Geo: &Database{
			Facts:    []Facts{{Country: "DE"}, {ASN: 7}},
			Networks: networks(pfx("20.0.0.0/9", "20.192.0.0/10"), []int{0, 1}, 2),
		},
		Rules: []Rule{{Alts: []Alt{{Kind: Country, Codes: []string{"DE"}}}, Spec: Spec{Order: []Region{1}}}},
		Marks: []Mark{
			{Name: "office", Match: [][]Alt{{{Kind: Prefix, Prefixes: pfx("20.1.0.0/16", "10.1.0.0/16")}}}},
			{Name: "german", Match: [][]Alt{{{Kind: Country, Codes: []string{"DE"}}}, {{Kind: Prefix, Prefixes: pfx("20.255.0.0/16")}}}},
			{Name: "both", Match: [][]Alt{{{Kind: Prefix, Prefixes: pfx("20.0.0.0/15")}, {Kind: Country, Codes: []string{"DE"}}}}},
		},
	}
	in.ASN = in.Geo
	in.Marks = append(in.Marks, Mark{Name: "seven", Match: [][]Alt{{{Kind: ASN, ASNs: []uint32{7}}}}})
	top := mustCompile(t, in)
	checkPartition(t, top)
	for _, tc := range []struct {
		subnet, want string
		bits         int
	}{
		{"20.1.2.0/24", "b#0#1#2", 16}, {"20.0.2.0/24", "b#1#2", 16}, {"20.2.0.0/24", "b#1", 15}, {"20.4.0.0/24", "b#1", 14},
		{"20.130.0.0/24", "b", 10},     // filled, though its neighbour is marked
		{"20.200.0.0/24", "b#3", 11},   // a mark by facts doesn't locate: filled
		{"20.255.9.0/24", "b#1#3", 16}, // the list of the neighbours, and more marks
		{"21.0.0.0/24", "b", 8},
	} {
		c := top.Locate(netip.MustParsePrefix(tc.subnet), netip.Addr{})
		if got := text(in, &top.Lists[c.List]); got != tc.want || c.Match.Bits != tc.bits {
			t.Errorf("%s: got %s/%d, want %s/%d", tc.subnet, got, c.Match.Bits, tc.want, tc.bits)
		}
	}
	if w := Why(in, netip.MustParseAddr("20.1.2.3")); w.Prefix.IsValid() || w.List.Marks != 0b111 {
		t.Errorf("got %+v", w)
	}
	// A mark is no rule: client subnets in special-purpose space don't count for it.
	if c := top.Locate(netip.MustParsePrefix("10.1.2.0/24"), netip.MustParseAddr("10.1.2.3")); c.Special != 8 || text(in, &top.Lists[c.List]) != "a>b#0" {
		t.Errorf("got %+v", c)
	}
}

func TestMarksOfCappedBlocks(t *testing.T) {
	in := &Input{
		Regions: regions("a", "b"), Rest: &Spec{Order: []Region{0}}, Max4: 24, Max6: 56,
		Rules: []Rule{prefixRule(1, "20.0.0.0/26", "20.0.0.64/27")}, // 96 addresses have b, 160 have a
		Marks: []Mark{
			{Name: "x", Match: [][]Alt{{{Kind: Prefix, Prefixes: pfx("20.0.0.128/26", "20.0.0.192/27", "20.0.1.0/25")}}}},
		},
	}
	top := mustCompile(t, in)
	for subnet, want := range map[string]string{
		"20.0.0.0/24": "a#0", // as many have b as have a and the mark, but without marks a wins; and of those most are marked
		"20.0.1.0/24": "a#0", // half of it is, the lower one
		"20.0.2.0/24": "a",
	} {
		c := top.Locate(netip.MustParsePrefix(subnet), netip.Addr{})
		if got := text(in, &top.Lists[c.List]); got != want {
			t.Errorf("%s: got %s, want %s", subnet, got, want)
		}
	}
}

func TestTooManyMarks(t *testing.T) {
	in := fixture()
	for i := range 64 {
		in.Marks = append(in.Marks, Mark{Name: fmt.Sprint(i), Match: [][]Alt{{{Kind: Prefix, Prefixes: pfx(fmt.Sprintf("20.%d.0.0/16", i))}}}})
	}
	top := mustCompile(t, in)
	if l := top.Lists[top.full4.lookup(netip.MustParseAddr("20.63.1.1")).match().List]; l.Marks != 1<<63 {
		t.Errorf("got %b", l.Marks)
	}
	in.Marks = append(in.Marks, Mark{Name: "one more"})
	if _, err := Compile(in); err == nil || !strings.Contains(err.Error(), "65") {
		t.Errorf("got %v", err)
	}
}
