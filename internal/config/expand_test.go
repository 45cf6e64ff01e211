package config_test

import (
	"fmt"
	"math/rand/v2"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/seed-945f90c5/gslb/internal/config"
)

// client is what can be known of a client.
type client struct {
	continent, country, subdivision string
	asn                             uint32
	addr                            netip.Addr
	file                            string // that holds the address
}

// matches is the meaning of a match, said as plainly as can be.
func (c client) matches(b *config.Block, m config.Match) bool {
	for _, a := range m.Alts {
		if !c.has(b, a) {
			return false
		}
	}
	return true
}

func (c client) has(b *config.Block, a config.Alt) bool {
	switch a.Kind {
	case config.AltContinent:
		return slices.Contains(a.Codes, c.continent)
	case config.AltCountry:
		return slices.Contains(a.Codes, c.country)
	case config.AltSubdivision:
		return slices.Contains(a.Codes, c.subdivision)
	case config.AltASN:
		return slices.Contains(a.ASNs, c.asn)
	case config.AltPrefix:
		return slices.ContainsFunc(a.Prefixes, func(p netip.Prefix) bool { return p.Contains(c.addr) })
	case config.AltFile:
		return a.File == c.file
	}
	for _, area := range b.Areas {
		if slices.Contains(a.Codes, area.Name) && slices.ContainsFunc(area.Lines, func(m config.Match) bool { return c.matches(b, m) }) {
			return true
		}
	}
	return false
}

// universe is every client that the words of randomAlt can tell apart, where
// no address is in two files, or in a file and a prefix.
func universe() []client {
	var all []client
	for _, continent := range []string{"EU", "NA"} {
		for _, place := range []string{"DE DE-BE", "DE DE-BY", "DE ", "FR FR-75", "US US-CA"} {
			country, subdivision, _ := strings.Cut(place, " ")
			for asn := range uint32(3) {
				for _, at := range [][2]string{{"10.0.0.1", ""}, {"10.1.0.1", ""}, {"192.0.2.1", ""}, {"203.0.113.1", "f"}, {"203.0.113.2", "g"}} {
					all = append(all, client{continent, country, subdivision, asn, netip.MustParseAddr(at[0]), at[1]})
				}
			}
		}
	}
	return all
}

// randomAlt writes an alternative; areas are those it may name.
func randomAlt(r *rand.Rand, areas int) string {
	some := func(kind string, values ...string) string {
		r.Shuffle(len(values), func(i, j int) { values[i], values[j] = values[j], values[i] })
		return kind + " " + strings.Join(values[:1+r.IntN(min(2, len(values)))], " ")
	}
	switch n := r.IntN(8); {
	case n == 0:
		return some("continent", "EU", "NA")
	case n == 1:
		return some("subdivision", "DE-BE", "DE-BY", "FR-75", "US-CA")
	case n == 2:
		return some("asn", "1", "2")
	case n == 3:
		return some("prefix", "10.0.0.0/8", "10.1.0.0/16", "192.0.2.0/24", "198.51.100.0/24")
	case n == 4:
		return "file " + string("fg"[r.IntN(2)])
	case n < 7 && areas > 0:
		return fmt.Sprintf("area a%d", r.IntN(areas))
	}
	return some("country", "DE", "FR", "US")
}

func randomMatch(r *rand.Rand, areas int) string {
	alts := make([]string, 1+r.IntN(3))
	for i := range alts {
		alts[i] = randomAlt(r, areas)
	}
	return strings.Join(alts, " in ")
}

const withFacts = "geoip city c\ngeoip asn a\nregion eu us\nhost a.example.com {\npool eu 192.0.2.1\npool us 192.0.2.2\n}\n"

// TestExpand holds that the conjunctions of an expansion match the clients of
// the match, no more and no less, and name no area.
func TestExpand(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	clients := universe()
	for range 150 {
		text := withFacts
		for i := range 6 {
			for range 1 + r.IntN(2) {
				text += fmt.Sprintf("area a%d %s\n", i, randomMatch(r, i))
			}
		}
		b := mustParse(t, inBlock(text+"area all "+randomMatch(r, 6)))
		m := b.Areas[6].Lines[0]
		list := b.Expand(m)
		for _, e := range list {
			if e.Pos != m.Pos || slices.ContainsFunc(e.Alts, func(a config.Alt) bool { return a.Kind == config.AltArea }) {
				t.Fatalf("%s\nexpands to %v", text, e)
			}
		}
		for _, c := range clients {
			got := slices.ContainsFunc(list, func(e config.Match) bool { return c.matches(b, e) })
			if want := c.matches(b, m); got != want {
				t.Fatalf("%s\nclient %v: %t, want %t", text, c, got, want)
			}
		}
	}
}

// TestExpandRank holds that a line stands where its area stood.
func TestExpandRank(t *testing.T) {
	b := mustParse(t, inBlock(withFacts+"area x asn 1 in file f\narea x country DE\narea y area x in continent EU\narea z continent EU in area x"))
	kinds := func(m config.Match) (all []string) {
		for _, e := range b.Expand(m) {
			var one []string
			for _, a := range e.Alts {
				one = append(one, string(a.Kind))
			}
			all = append(all, strings.Join(one, " "))
		}
		return all
	}
	for i, want := range map[int][]string{
		1: {"asn file continent", "country continent"},
		2: {"continent asn file", "continent country"},
	} {
		if got := kinds(b.Areas[i].Lines[0]); !slices.Equal(got, want) {
			t.Errorf("area %s expands to %v, want %v", b.Areas[i].Name, got, want)
		}
	}
}

// TestExpandAlone holds what Expand does with a block that Parse didn't make.
func TestExpandAlone(t *testing.T) {
	b := &config.Block{}
	unknown := config.Match{Alts: []config.Alt{{Kind: config.AltArea, Codes: []string{"x"}}}}
	if got := b.Expand(unknown); len(got) != 0 {
		t.Errorf("an unknown area expands to %v", got)
	}
	many := config.Area{Name: "x"}
	for i := range uint32(200) {
		many.Lines = append(many.Lines, config.Match{Alts: []config.Alt{{Kind: config.AltASN, ASNs: []uint32{i + 1}}}})
	}
	b.Areas = []config.Area{many}
	if got := b.Expand(config.Match{Alts: slices.Repeat(unknown.Alts, 2)}); got != nil {
		t.Errorf("an explosion expands to %d", len(got))
	}
}

// claims gives the ranks that a rule claims c with: the kind of the first
// alternative, for prefixes the very one, and the number of alternatives.
func (c client) claims(b *config.Block, r config.Rule) map[string]bool {
	claims := map[string]bool{}
	for _, e := range b.Expand(r.Match) {
		if !c.matches(b, e) {
			continue
		}
		first := e.Alts[0]
		if first.Kind != config.AltPrefix {
			claims[fmt.Sprint(first.Kind, len(e.Alts))] = true // what c has of it is the value
		}
		for _, p := range first.Prefixes {
			if p.Contains(c.addr) {
				claims[fmt.Sprint(first.Kind, len(e.Alts), p)] = true
			}
		}
	}
	return claims
}

// TestOverlap holds that no client is claimed by two rules with equal rank and
// different lists in a block that is accepted, and that overlaps are not seen
// everywhere.
func TestOverlap(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	clients := universe()
	accepted, refused := 0, 0
	for range 600 {
		areas := ""
		for i := range 3 {
			areas += fmt.Sprintf("area a%d %s\n", i, randomMatch(r, i))
		}
		x, y := randomMatch(r, 3), randomMatch(r, 3)
		if first, _, _ := strings.Cut(x, " in "); r.IntN(2) == 0 {
			y = first + " in " + y
		}
		rules := func(second string) string {
			return inBlock(withFacts + areas + "clients " + x + " { order eu us }\nclients " + y + " { order " + second + " }")
		}
		b := mustParse(t, rules("eu us")) // the same rules with the same list are fine
		conflict := slices.ContainsFunc(clients, func(c client) bool {
			second := c.claims(b, b.Rules[1])
			for k := range c.claims(b, b.Rules[0]) {
				if second[k] {
					return true
				}
			}
			return false
		})
		_, err := parse(t, rules("us eu"))
		if conflict && err == nil {
			t.Fatalf("an overlap was not seen:\n%s", rules("us eu"))
		}
		if err == nil {
			accepted++
		} else if conflict {
			refused++
		}
	}
	t.Logf("%d accepted, %d refused", accepted, refused)
	if accepted < 100 || refused < 10 {
		t.Errorf("%d accepted, %d refused: the test says little", accepted, refused)
	}
}
