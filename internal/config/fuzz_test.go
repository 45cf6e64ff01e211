package config_test

import (
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode"

	"github.com/seed-945f90c5/gslb/internal/check"
	"github.com/seed-945f90c5/gslb/internal/config"
)

// FuzzParse holds that any tokens give an error with a place, or a block that
// is sound and that, written out in full and parsed again, stays the same.
func FuzzParse(f *testing.F) {
	f.Setenv("GEO_DB", "country.mmdb")
	for _, pattern := range []string{"testdata/good/*.cf", "testdata/bad/*.cf"} {
		files, _ := filepath.Glob(pattern)
		for _, file := range files {
			for _, s := range lex(f, file, read(f, file)) {
				f.Add(text(s.tokens))
			}
		}
	}
	f.Fuzz(func(t *testing.T, text string) {
		zones := []string{"example.com."}
		b, err := config.Parse(zones, raw(text))
		if err != nil {
			if e, ok := err.(*config.Error); !ok || e.Text == "" {
				t.Fatalf("%T without a text", err)
			}
			return
		}
		if err := sound(b); err != nil {
			t.Fatal(err)
		}
		again, err := config.Parse(zones, raw(write(b)))
		if err != nil {
			t.Fatalf("%v in\n%s", err, write(b))
		}
		if x, y := essence(b), essence(again); x != y {
			t.Fatalf("%s\nis another block than\n%s", y, x)
		}
	})
}

// text writes tokens as a Corefile again.
func text(tokens []config.Token) string {
	var w strings.Builder
	line := 1
	for _, t := range tokens {
		for ; line < t.Line; line++ {
			w.WriteByte('\n')
		}
		fmt.Fprintf(&w, "%s ", quote(t.Text))
	}
	return w.String()
}

func quote(word string) string {
	if word == "" || word[0] == '"' || strings.ContainsRune(word, '#') || strings.ContainsFunc(word, unicode.IsSpace) {
		return `"` + strings.ReplaceAll(word, `"`, `\"`) + `"`
	}
	return word
}

var places = regexp.MustCompile(`@\d+ ?| \(line \d+\)`)

// essence is the dump of a block without places and warnings, with zones as if
// written, and with its rules in an order that doesn't depend on where regions
// were written.
func essence(b *config.Block) string {
	c := *b
	c.Warnings, c.Inherited = nil, false
	c.Rules = slices.Clone(b.Rules)
	slices.SortStableFunc(c.Rules, func(x, y config.Rule) int {
		index := func(r config.Rule) int {
			return slices.IndexFunc(b.Regions, func(g config.Region) bool { return g.Name == r.Region })
		}
		return index(x) - index(y)
	})
	var w strings.Builder
	dump(&w, &c)
	return places.ReplaceAllString(w.String(), "")
}

// sound checks what every block promises to those who build on it.
func sound(b *config.Block) error {
	regions, areas, owners := map[string]bool{}, map[string]bool{}, map[string]bool{}
	for _, r := range b.Regions {
		regions[r.Name] = true
	}
	for _, a := range b.Areas {
		areas[a.Name] = true
	}
	for _, f := range b.Fences {
		if !areas[f.Area] || !all(regions, f.Regions) {
			return fmt.Errorf("fence %v", f)
		}
	}
	for _, r := range b.Rules {
		if err := soundRule(b, regions, r); err != nil {
			return err
		}
	}
	checks := map[string]bool{}
	for _, c := range b.Checks {
		if err := soundCheck(c); err != nil || checks[c.Name] {
			return fmt.Errorf("check %q: %w", c.Name, err)
		}
		checks[c.Name] = true
	}
	for _, h := range b.Hosts {
		for _, n := range h.Names {
			if owners[n] || n != strings.ToLower(n) || !strings.HasSuffix(n, ".") {
				return fmt.Errorf("name %q", n)
			}
			owners[n] = true
		}
		for _, p := range h.Pools {
			if !all(checks, p.Checks) {
				return fmt.Errorf("pool %v names unknown checks", p)
			}
		}
		if err := soundHost(b, regions, h); err != nil {
			return fmt.Errorf("host %v: %w", h.Names, err)
		}
	}
	if err := soundControl(b, regions, areas, checks); err != nil {
		return err
	}
	if b.Depth < 1 || b.Depth > 8 || len(b.Zones) == 0 || len(b.Regions) > 254 || owners[b.WhoAmI] {
		return fmt.Errorf("depth %d, %d zones, %d regions, whoami %q", b.Depth, len(b.Zones), len(b.Regions), b.WhoAmI)
	}
	return nil
}

func soundRule(b *config.Block, regions map[string]bool, r config.Rule) error {
	written := len(r.List.Order) + len(r.List.Split)
	switch {
	case r.Rest != (len(r.Match.Alts) == 0):
		return fmt.Errorf("rule %v matches nothing", r)
	case (written > 0) == (r.Refuse || r.Region != ""):
		return fmt.Errorf("rule %v has no list", r)
	case !all(regions, r.List.Order):
		return fmt.Errorf("rule %v names unknown regions", r)
	case len(b.Expand(r.Match)) == 0:
		return fmt.Errorf("rule %v expands to nothing", r)
	}
	return nil
}

func soundHost(b *config.Block, regions map[string]bool, h config.Host) error {
	if len(h.Names) == 0 || len(h.Pools) == 0 || h.TTL < 0 || h.TTLFloor < -1 || h.TTLFloor > h.TTL || h.OwnRules != (len(h.Rules) > 0) {
		return fmt.Errorf("ttl %d, floor %d", h.TTL, h.TTLFloor)
	}
	if !b.ECS.Off && (h.Grain4 > b.ECS.Max4 || h.Grain6 > b.ECS.Max6) || h.Grain4 < 0 || h.Grain6 < 0 {
		return fmt.Errorf("grain %d %d", h.Grain4, h.Grain6)
	}
	if !(h.SpillBelow >= 0 && h.SpillBelow <= 100 && h.MaxDown >= 0 && h.MaxDown <= 100) {
		return fmt.Errorf("spill_below %v, max_down %v", h.SpillBelow, h.MaxDown)
	}
	for _, r := range h.Rules {
		if err := soundRule(b, regions, r); err != nil {
			return err
		}
	}
	for _, p := range h.Pools {
		if !regions[p.Region] || len(p.Endpoints)+len(p.Targets) == 0 || len(p.Endpoints) > 1024 || p.Answers < 0 || p.Answers > 16 || p.MinHealthy == (config.Threshold{}) {
			return fmt.Errorf("pool %v", p)
		}
		for _, e := range p.Endpoints {
			if !e.Addr.IsValid() || e.Addr.Is4In6() || e.Addr.Zone() != "" || e.Weight < 0 || e.Weight > 10000 {
				return fmt.Errorf("endpoint %v", e)
			}
		}
	}
	return nil
}

func soundCheck(c config.Check) error {
	switch {
	case c.Kind == "" || c.Port < 0 || c.Port > 65535 || (c.Kind == check.TCP || c.Kind == check.GRPC) && c.Port == 0:
		return fmt.Errorf("kind %q, port %d", c.Kind, c.Port)
	case c.Interval < time.Second || c.Interval > time.Hour || c.Timeout < 100*time.Millisecond || c.Timeout > c.Interval:
		return fmt.Errorf("interval %s, timeout %s", c.Interval, c.Timeout)
	case c.Retry && 2*c.Timeout+time.Second > c.Interval:
		return fmt.Errorf("no time for a retry")
	case c.Fall < 1 || c.Fall > 20 || c.Rise < 1 || c.Rise > 20 || c.FallWithin > 0 && time.Duration(c.Fall-1)*c.Interval > c.FallWithin:
		return fmt.Errorf("fall %d within %s, rise %d", c.Fall, c.FallWithin, c.Rise)
	case c.Kind == check.HTTPS && c.Authority == "" && !c.Each:
		return fmt.Errorf("no authority")
	}
	for _, cond := range slices.Concat(c.Expect, c.Full) {
		if _, err := regexp.Compile(cond.Text); cond.Kind == check.BodyMatch && err != nil {
			return err
		}
	}
	return nil
}

func all(known map[string]bool, names []string) bool {
	return !slices.ContainsFunc(names, func(n string) bool { return !known[n] })
}
