package plan_test

import (
	"net/netip"
	"testing"

	"github.com/seed-945f90c5/gslb/internal/plan"
)

func TestFind(t *testing.T) {
	const host = " {\n pool eu 203.0.113.7\n}\n"
	blocks := map[string]string{
		"example.com eu.example.com": "region eu\nhost api.example.com a.b.c.example.com *.wild.example.com y.wild.example.com *.example.com x.eu.example.com *.w.eu.example.com" + host,
		"apex.test":                  "region eu\nhost apex.test *.apex.test" + host,
		"org":                        "region eu\nhost www.org" + host,
		".":                          "region eu\nhost *. www.test" + host,
	}
	for _, c := range []struct {
		why, zones, zone, name string
		found, exists          bool
	}{
		{"exact", "example.com eu.example.com", "example.com.", "api.example.com.", true, true},
		{"wildcard", "example.com eu.example.com", "example.com.", "q.example.com.", true, true},
		{"wildcard of several labels", "example.com eu.example.com", "example.com.", "p.q.example.com.", true, true},
		{"the closest encloser has no wildcard", "example.com eu.example.com", "example.com.", "x.api.example.com.", false, false},
		{"it is an empty non-terminal", "example.com eu.example.com", "example.com.", "z.b.c.example.com.", false, false},
		{"empty non-terminal", "example.com eu.example.com", "example.com.", "b.c.example.com.", false, true},
		{"its parent", "example.com eu.example.com", "example.com.", "c.example.com.", false, true},
		{"above a wildcard", "example.com eu.example.com", "example.com.", "wild.example.com.", false, true},
		{"the inner wildcard", "example.com eu.example.com", "example.com.", "z.wild.example.com.", true, true},
		{"below a name beside the wildcard", "example.com eu.example.com", "example.com.", "z.y.wild.example.com.", false, false},
		{"the asterisk asked literally", "example.com eu.example.com", "example.com.", "*.example.com.", true, true},
		{"the inner asterisk", "example.com eu.example.com", "example.com.", "*.wild.example.com.", true, true},
		{"an asterisk below", "example.com eu.example.com", "example.com.", "*.api.example.com.", false, false},
		{"the apex", "example.com eu.example.com", "example.com.", "example.com.", false, true},
		{"the nested zone", "example.com eu.example.com", "eu.example.com.", "x.eu.example.com.", true, true},
		{"no wildcard of the zone around", "example.com eu.example.com", "eu.example.com.", "z.eu.example.com.", false, false},
		{"the nested zone's wildcard", "example.com eu.example.com", "eu.example.com.", "z.w.eu.example.com.", true, true},
		{"a dot inside a label", "example.com eu.example.com", "example.com.", `x\.api.example.com.`, true, true},
		{"an escaped backslash, then a dot", "example.com eu.example.com", "example.com.", `x\\.api.example.com.`, false, false},
		{"host at the apex", "apex.test", "apex.test.", "apex.test.", true, true},
		{"wildcard at the apex", "apex.test", "apex.test.", "a.b.apex.test.", true, true},
		{"another zone's name", "org", "org.", "notwww.org.", false, false},
		{"wildcard at the root", ".", ".", "a.b.c.", true, true},
		{"beside it", ".", ".", "www.test.", true, true},
		{"above that", ".", ".", "test.", false, true},
		{"below that", ".", ".", "x.test.", false, false},
	} {
		t.Run(c.why, func(t *testing.T) {
			p, err := plan.Build(mustParse(t, c.zones, blocks[c.zones]), plan.Options{})
			if err != nil {
				t.Fatal(err)
			}
			h, exists := p.Find(c.zone, c.name)
			if (h != nil) != c.found || exists != c.exists {
				t.Errorf("Find(%s, %s) = %v, %v; want %v, %v", c.zone, c.name, h != nil, exists, c.found, c.exists)
			}
		})
	}
}

// TestZoneByLabel holds that a name which only ends like a zone is not in it.
func TestZoneByLabel(t *testing.T) {
	p, err := plan.Build(mustParse(t, "example.org", "region eu\nhost a.b.example.org {\n pool eu 203.0.113.7\n}"), plan.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"notexample.org.", "b.notexample.org.", "org."} {
		if h, exists := p.Find("example.org.", name); h != nil || exists {
			t.Errorf("%s is found", name)
		}
	}
}

func TestBelieves(t *testing.T) {
	const host = "\nregion eu\nhost api.example.com {\n pool eu 203.0.113.7\n}"
	for _, c := range []struct {
		ecs, transport string
		want           bool
	}{
		{"", "192.0.2.1", true},
		{"", "2001:db8::1", true},
		{"ecs off", "192.0.2.1", false},
		{"ecs {\n from 192.0.2.0/24 2001:db8::/32\n}", "192.0.2.255", true},
		{"ecs {\n from 192.0.2.0/24 2001:db8::/32\n}", "::ffff:192.0.2.255", true},
		{"ecs {\n from 192.0.2.0/24 2001:db8::/32\n}", "192.0.3.0", false},
		{"ecs {\n from 192.0.2.0/24 2001:db8::/32\n}", "2001:db8:ffff::1", true},
		{"ecs {\n from 192.0.2.0/24 2001:db8::/32\n}", "2001:db9::", false},
		{"ecs {\n from 0.0.0.0/0\n}", "2001:db9::", false},
	} {
		p := build(t, "", c.ecs+host)
		if got := p.Believes(netip.MustParseAddr(c.transport)); got != c.want {
			t.Errorf("%q: Believes(%s) = %v", c.ecs, c.transport, got)
		}
	}
	if p := build(t, "", "ecs {\n from 192.0.2.0/24\n}"+host); p.Believes(netip.Addr{}) {
		t.Error("nobody is believed")
	}
}
