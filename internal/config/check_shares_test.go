package config_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/seed-945f90c5/gslb/internal/config"
)

// TestSharesFit holds which shares are fine together.
func TestSharesFit(t *testing.T) {
	const three = "region ap\nhost a.example.com {\npool eu 192.0.2.1\npool us 192.0.2.2\npool ap 192.0.2.3\n}\narea x prefix 10.0.0.0/8\narea y prefix 11.0.0.0/8\narea z area x\narea z area y\n"
	tests := map[string]string{
		"100% together":             "region eu { share 40% }\nregion us { share 60% }\n",
		"one after the other":       "region eu { share 80% until 2026-12-01T12:00:00Z }\nregion us { share 80% from 2026-12-01T12:00:00Z }\n",
		"at other hours":            "region eu { share 80% daily 12:00-24:00 Z }\nregion us { share 80% daily 00:00-12:00 Z }\n",
		"on other days":             "region eu { share 80% daily 12:00-11:00 Z Sat }\nregion us { share 80% daily 12:00-11:00 Z Sun }\n",
		"disjoint areas":            "region eu { share 80% area x }\nregion us { share 80% area y }\n",
		"every region at its time":  "region eu { share 5% until 2026-12-01T12:00:00Z }\nregion us { share 5% until 2026-12-01T13:00:00Z }\n",
		"off in the only pool":      "region eu { share 5% }\nregion us\nhost b.example.com {\npool eu {\nendpoint 192.0.2.1\nshare off\n}\n}\n",
		"refused clients":           "region eu { share 5% }\nregion us\nclients file f { refuse }\nclients rest { order us eu ap }\n",
		"a list of it and another":  "region eu { share 5% }\nregion us\nclients file f { order eu us }\nclients rest { order us eu ap }\n",
		"a fence of it and another": "region eu { share 5% }\nregion us\nfence x eu us\n",
	}
	for name, text := range tests {
		if _, err := parse(t, inBlock(text+three)); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	overlapping := "region eu { share 80% area x }\nregion us { share 80% area z }\n"
	if _, err := parse(t, inBlock(overlapping+three)); err == nil || !strings.Contains(err.Error(), "add up to 160%") {
		t.Errorf("an area and one of which it is part: %v", err)
	}
}

// areasOf are the areas that an address of each of four clients is in.
var areasOf = [][]string{{"x", "w"}, {"y", "w"}, {"z"}, {}}

// slowShares tells whether at some minute a client is in shares of more than
// 100%, or finds no region without one.
func slowShares(b *config.Block) bool {
	for now := range minutes {
		var list []config.Share
		for _, r := range b.Regions {
			for _, s := range r.Levers.Share { // at most one with an end, as it was parsed
				if slowActive(s.When, now) && !outdone(r.Levers.Share, s, now) && !s.Off {
					list = append(list, s)
				}
			}
		}
		if len(list) == len(b.Regions) {
			return true
		}
		for _, areas := range areasOf {
			sum := 0.0
			for _, s := range list {
				if s.Area == "" || strings.Contains(strings.Join(areas, ""), s.Area) {
					sum += s.Percent
				}
			}
			if sum > 100 {
				return true
			}
		}
	}
	return false
}

// outdone reports whether another line counts and not s.
func outdone(lines []config.Share, s config.Share, now time.Time) bool {
	ends := func(s config.Share) bool { return s.When.Daily != nil || !s.When.Until.IsZero() }
	for _, other := range lines {
		if slowActive(other.When, now) && !ends(s) && (ends(other) || other.When.From.After(s.When.From)) {
			return true
		}
	}
	return false
}

// TestShares compares whether random shares are refused with the slow model.
func TestShares(t *testing.T) {
	r := rand.New(rand.NewPCG(6, 7))
	refused, fine := 0, 0
	for range 100 {
		regions := make([]string, 3)
		alone := false // whether each region's lines are fine by themselves
		for i := range regions {
			var lines []string
			for range r.IntN(3) {
				part := fmt.Sprintf("%d%%", r.IntN(90))
				if r.IntN(3) == 0 {
					part += " area " + []string{"w", "x", "y", "z"}[r.IntN(4)]
				}
				when := randomWhen(r)
				if r.IntN(3) == 0 {
					when = ""
				}
				lines = append(lines, "share "+part+" "+when)
			}
			regions[i] = strings.Join(lines, "\n")
			_, err := parse(t, inBlock(shareBlock(regions[i], "", "")))
			alone = alone || err != nil
		}
		if alone {
			continue
		}
		_, err := parse(t, inBlock(shareBlock(regions...)))
		model := unchecked(t, regions)
		if (err != nil) != slowShares(model) {
			t.Fatalf("got %v, but the slow model tells otherwise of\n%s", err, shareBlock(regions...))
		}
		if err != nil {
			refused++
		} else {
			fine++
		}
	}
	t.Logf("%d refused and %d fine", refused, fine)
	if refused < 15 || fine < 15 {
		t.Errorf("%d refused and %d fine: too few to tell", refused, fine)
	}
}

func shareBlock(lines ...string) string {
	return fmt.Sprintf("region eu {\n%s\n}\nregion us {\n%s\n}\nregion ap {\n%s\n}\n", lines[0], lines[1], lines[2]) +
		"area x prefix 10.0.0.0/8\narea y prefix 11.0.0.0/8\narea z prefix 12.0.0.0/8\narea w area x\narea w area y\n" +
		"host a.example.com {\npool eu 192.0.2.1\npool us 192.0.2.2\npool ap 192.0.2.3\n}"
}

// unchecked gives a block whose regions have the lines, each read alone.
func unchecked(t *testing.T, lines []string) *config.Block {
	t.Helper()
	b := &config.Block{}
	for _, l := range lines {
		b.Regions = append(b.Regions, mustParse(t, inBlock(shareBlock(l, "", ""))).Regions[0])
	}
	return b
}
