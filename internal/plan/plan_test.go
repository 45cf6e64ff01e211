package plan_test

import (
	"strings"
	"testing"

	"github.com/seed-945f90c5/gslb/internal/config"
	"github.com/seed-945f90c5/gslb/internal/plan"
	"github.com/seed-945f90c5/gslb/internal/steer"
)

const (
	placed = `
	geoip city city.mmdb
	geoip asn asn.mmdb
	region eu {
		clients continent EU
		location 50.11 8.68
	}
	region us {
		clients continent NA
		location 39.04 -77.49
	}
	region ap {
		location 1.35 103.82
	}
`
	hostA = `
	host a.example.com {
		pool eu 203.0.113.7
		pool us 203.0.113.8
		pool ap 203.0.113.9
	}
`
)

// TestDigest holds that equal meanings have equal digests on every instance, and
// other meanings have others.
func TestDigest(t *testing.T) {
	digestOf := func(file, text string) uint64 {
		t.Helper()
		b, err := config.Parse([]string{"example.com."}, words(file, "gslb {\n"+text+"\n}"))
		if err != nil {
			t.Fatal(err)
		}
		p, err := plan.Build(b, plan.Options{Root: fixtures})
		if err != nil {
			t.Fatal(err)
		}
		return p.Digest
	}
	swap := strings.NewReplacer
	base := digestOf("Corefile", placed+hostA)
	for name, text := range map[string]string{
		"comments":      "# one\n" + placed + "# two\n" + hostA,
		"blank lines":   "\n\n\n" + placed + "\n\n" + hostA,
		"another order": hostA + placed,
		"upper case":    swap("a.example.com", "A.Example.COM.").Replace(placed + hostA),
		"defaults":      placed + hostA + "depth 3\nttl 30\nspread sticky 16 32\n",
	} {
		if got := digestOf("other/Corefile.new", text); got != base {
			t.Errorf("%s: another digest", name)
		}
	}
	seen := map[uint64]string{base: "the original"}
	for name, text := range map[string]string{
		"ttl":         placed + hostA + "ttl 31",
		"an address":  swap("203.0.113.7", "203.0.113.6").Replace(placed + hostA),
		"a name":      swap("a.example.com", "b.example.com").Replace(placed + hostA),
		"regions":     swap("eu", "ue").Replace(placed + hostA),
		"location":    swap("50.11", "50.12").Replace(placed + hostA),
		"clients":     swap("continent NA", "continent NA SA").Replace(placed + hostA),
		"ecs":         placed + hostA + "ecs {\n max 20 56\n}",
		"fill":        placed + hostA + "ecs {\n fill off\n}",
		"down":        swap("pool eu 203.0.113.7", "pool eu {\n endpoint 203.0.113.7 down\n}").Replace(placed + hostA),
		"fallthrough": placed + hostA + "fallthrough",
	} {
		got := digestOf("Corefile", text)
		if other, ok := seen[got]; ok {
			t.Errorf("%s has the digest of %s", name, other)
		}
		seen[got] = name
	}
}

// TestDigestOfData holds that the content of a file counts, and its name's
// directory doesn't.
func TestDigestOfData(t *testing.T) {
	const text = "geoip country geo.mmdb\nregion eu us\nclients continent EU {\n order eu us\n}\nclients rest {\n order us eu\n}\n" +
		"host a.example.com {\n pool eu 203.0.113.7\n pool us 203.0.113.8\n}"
	one, two, same := t.TempDir(), t.TempDir(), t.TempDir()
	put(t, one, "geo.mmdb", country(t, 3, "EU"))
	put(t, two, "geo.mmdb", country(t, 3, "NA"))
	put(t, same, "geo.mmdb", country(t, 3, "EU"))
	a, b, c := build(t, one, text), build(t, two, text), build(t, same, text)
	if a.Digest == b.Digest || a.Config != b.Config {
		t.Error("data must change the digest, and not that of the configuration")
	}
	if a.Digest != c.Digest {
		t.Error("equal data give different digests")
	}
}

// TestNeeds holds which hosts share a topology.
func TestNeeds(t *testing.T) {
	p := build(t, fixtures, placed+hostA+`
	host same.example.com {
		ttl 5
		pool ap 203.0.113.19
		pool us 203.0.113.18
		pool eu 203.0.113.17
	}
	host fewer.example.com {
		pool eu 203.0.113.7
		pool us 203.0.113.8
	}
	host own.example.com {
		clients country DE {
			order us
		}
		clients rest {
			order eu us ap
		}
		pool eu 203.0.113.7
		pool us 203.0.113.8
		pool ap 203.0.113.9
	}
	host own-again.example.com {

		clients country DE {
			order us
		}
		clients rest {
			order eu us ap
		}
		pool eu 203.0.113.27
		pool us 203.0.113.28
		pool ap 203.0.113.29
	}`)
	need := func(i int) *plan.Need { return p.Hosts[i].Need }
	if need(0) != need(1) || need(3) != need(4) {
		t.Error("hosts with the same rules and regions don't share a topology")
	}
	if need(0) == need(2) || need(0) == need(3) {
		t.Error("hosts with other rules or regions share a topology")
	}
	if p.Anyone().Need != need(0) || len(p.Needs) != 3 {
		t.Errorf("%d topologies", len(p.Needs))
	}
	for i, h := range p.Hosts {
		if h.Index != i || h.Config != &p.Block.Hosts[i] {
			t.Errorf("host %d has index %d", i, h.Index)
		}
	}
}

// TestEndpoint holds that endpoints are found by region, in whatever order the
// pools are written.
func TestEndpoint(t *testing.T) {
	p := build(t, fixtures, placed+"host a.example.com {\n pool ap 203.0.113.9\n pool eu 203.0.113.7 203.0.113.77\n}")
	for _, c := range []struct {
		region, index int
		want          string
	}{{0, 0, "203.0.113.7"}, {0, 1, "203.0.113.77"}, {2, 0, "203.0.113.9"}} {
		if got := p.Hosts[0].Endpoint(steer.Region(c.region), c.index).Addr.String(); got != c.want {
			t.Errorf("endpoint %d of region %d is %s", c.index, c.region, got)
		}
	}
}

func TestFirst(t *testing.T) {
	p := build(t, "", `
	region eu us ap
	host a.example.com {
		clients prefix 192.0.2.0/24 {
			split eu 1 us 2
		}
		clients prefix 198.51.100.0/24 {
			refuse
		}
		clients rest {
			order ap us eu
		}
		pool eu 203.0.113.7
		pool us 203.0.113.8
		pool ap 203.0.113.9
	}`)
	for client, want := range map[string]string{"192.0.2.0/24": "us", "198.51.100.0/24": "none", "203.0.113.0/24": "ap"} {
		if got := region(p, client); got != want {
			t.Errorf("%s gets %s, want %s", client, got, want)
		}
	}
}

func TestReachable(t *testing.T) {
	dir := t.TempDir()
	put(t, dir, "nets.txt", "192.0.2.0/24 v4\n")
	got := buildError(t, dir, `
	nets nets.txt
	region v4 both
	host a.example.com {
		families mixed
		pool v4 203.0.113.7
		pool both 203.0.113.8 2001:db8::8
	}`)
	if !strings.Contains(got, "Corefile:5: the candidate list [v4] holds no IPv6 endpoint") {
		t.Errorf("got %q", got)
	}
	build(t, dir, "nets nets.txt\nregion v4 both\nhost a.example.com {\n families v4\n pool v4 203.0.113.7\n pool both 203.0.113.8 2001:db8::8\n}")
}

// TestFencesDisjoint holds that a client in two fences without a common region
// is an error with the place of the host.
func TestFencesDisjoint(t *testing.T) {
	got := buildError(t, fixtures, placed+hostA+"area de country DE\narea tel asn 3320\nfence de eu\nfence tel us\n")
	if !strings.Contains(got, "Corefile:") || !strings.Contains(got, "inside the fences de, tel") {
		t.Errorf("got %q", got)
	}
}

func TestMaxSets(t *testing.T) {
	for _, c := range []struct {
		name, statements string
		want             int
	}{
		{"a set for each pool", "host a.example.com {\n pool eu 192.0.2.1 192.0.2.2\n pool us 192.0.2.3\n}", 2},
		{"and each name", "host a.example.com b.example.com {\n pool eu 192.0.2.1 192.0.2.2\n pool us 192.0.2.3\n}", 4},
		{"and each family", "host a.example.com {\n pool eu 192.0.2.1 2001:db8::1\n pool us 192.0.2.3 2001:db8::2\n}", 4},
		{"a set for each endpoint", "host a.example.com {\n answers 1\n pool eu 192.0.2.1 192.0.2.2\n pool us 192.0.2.3\n}", 3},
		{"a last resort", "host a.example.com {\n last_resort addresses 192.0.2.9\n pool eu 192.0.2.1\n pool us 192.0.2.3\n}", 3},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := build(t, "", "region eu us\n"+c.statements)
			if got := p.MaxSets(); got != c.want {
				t.Errorf("got %d, want %d", got, c.want)
			}
			if len(p.Warnings) != 0 {
				t.Errorf("warnings: %v", p.Warnings)
			}
		})
	}
}

// TestWarnings holds that the warnings of the block are the plan's, and that a
// plan doesn't write into the block's.
func TestWarnings(t *testing.T) {
	dir := t.TempDir()
	put(t, dir, "nets.txt", "192.0.2.1/32 eu\n")
	b := mustParse(t, "example.com", "nets nets.txt\nregion eu\nclients prefix 192.0.2.0/25 {\n order eu\n}\nhost a.example.com {\n pool eu 203.0.113.7\n}")
	for range 2 {
		p, err := plan.Build(b, plan.Options{Root: dir})
		if err != nil {
			t.Fatal(err)
		}
		if len(p.Warnings) != 2 || len(b.Warnings) != 1 {
			t.Errorf("%d warnings of the plan, %d of the block", len(p.Warnings), len(b.Warnings))
		}
	}
}
