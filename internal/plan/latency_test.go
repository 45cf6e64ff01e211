package plan_test

import (
	"bytes"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/seed-945f90c5/gslb/internal/latency"
	"github.com/seed-945f90c5/gslb/internal/plan"
	"github.com/seed-945f90c5/gslb/internal/topology"
)

// mapDay is the present time of these tests; maps are built at midnight.
var mapDay = time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)

// mapText is a map of that day with the given entries, in the text form.
func mapText(clients, resolvers string) string {
	return mapOf(mapDay.Add(-12*time.Hour), clients, resolvers)
}

func mapOf(built time.Time, clients, resolvers string) string {
	var regions []string
	for line := range strings.Lines(clients + "\n" + resolvers) {
		for i, word := range strings.Fields(line) {
			name, _, _ := strings.Cut(word, ":")
			if i > 0 && !slices.Contains(regions, name) {
				regions = append(regions, name)
			}
		}
	}
	text := fmt.Sprintf("gslb-latency 1\nbuilt %s\nregions %s\n", built.Format(time.RFC3339), strings.Join(regions, " "))
	if clients != "" {
		text += "clients\n" + clients + "\n"
	}
	if resolvers != "" {
		text += "resolvers\n" + resolvers + "\n"
	}
	return text
}

// buildAt is build at a time.
func buildAt(root, statements string, last plan.LastGood, now time.Time) (*plan.Plan, error) {
	b, err := parse("example.com", statements)
	if err != nil {
		return nil, err
	}
	last.Now = now
	return plan.Build(b, plan.Options{Root: root, Now: now, LastGood: last})
}

func mustBuildAt(t *testing.T, root, statements string, now time.Time) *plan.Plan {
	t.Helper()
	p, err := buildAt(root, statements, plan.LastGood{}, now)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// warned are the texts of warnings.
func warned(p *plan.Plan) (texts []string) {
	for _, w := range p.Warnings {
		texts = append(texts, w.Pos.String()+" "+w.Text)
	}
	return texts
}

// listOf is the list that a client gets and what gave it. A client is a subnet, or an
// address without one.
func listOf(p *plan.Plan, h *plan.Host, client string) string {
	var subnet netip.Prefix
	transport := addr("192.0.2.53")
	if strings.Contains(client, "/") {
		subnet = prefix(client)
	} else {
		transport = addr(client)
	}
	c, by := h.Find(subnet, transport)
	return listText(h, c.List) + " by " + by.String()
}

// listText is the regions of a list, those of a split with their weights.
func listText(h *plan.Host, list int) string {
	l := &h.Need.Topology.Lists[list]
	if l.Refuse {
		return "refused"
	}
	var words []string
	for _, w := range l.Split {
		words = append(words, fmt.Sprintf("%s:%d", h.Need.Input.Regions[w.Region].Name, w.Weight))
	}
	for _, r := range l.Order {
		words = append(words, h.Need.Input.Regions[r].Name)
	}
	return strings.Join(words, " ")
}

const mapped = `
	geoip city city.mmdb
	area gdpr country TR
	fence gdpr eu ap
	latency MAP
	ecs {
		max 32 56
		fill off
	}
	region eu us ap sa
	clients continent EU {
		order eu us rest
	}
	clients country DE {
		split eu 1 us 3
		order ap
	}
	clients country JP {
		refuse
	}
	clients prefix 198.51.100.64/26 {
		order sa eu
	}
	clients country US {
		order us eu
	}
	clients rest {
		order eu us ap sa
	}
	host all.example.com {
		POOLS
	}
	host some.example.com {
		pool eu 203.0.113.1
		pool us 203.0.113.2
	}
	host off.example.com {
		latency off
		order us ap
		pool us 203.0.113.2
		pool ap 203.0.113.3
	}
	host own.example.com {
		order us ap
		pool us 203.0.113.2
		pool ap 203.0.113.3
	}`

func mappedBlock(path string) string {
	const pools = "pool eu 203.0.113.1\npool us 203.0.113.2\npool ap 203.0.113.3\npool sa 203.0.113.4"
	return strings.NewReplacer("MAP", path, "POOLS", pools).Replace(mapped)
}

// TestLatencyPrecedence: a map outranks all but prefix rules, and only orders what a
// client's list has; fences and refusals hold. Clients and resolvers are apart.
func TestLatencyPrecedence(t *testing.T) {
	file := put(t, t.TempDir(), "map.txt", mapText(
		"198.51.100.0/24 ap us eu\n127.0.0.0/8 ap us\n203.0.112.0/20 sa\n10.0.0.0/8 sa\n2001:db8::/32 ap\n9.0.0.0/8 us\n11.0.0.0/8 ap us",
		"203.0.113.0/24 us\n127.0.0.0/8 sa ap\n198.51.100.0/24 sa ap"))
	p := mustBuildAt(t, fixtures, mappedBlock(file), mapDay)
	for _, c := range []struct{ what, host, client, want string }{
		{"the split of a country holds", "all", "198.51.100.0/26", "eu:1 us:3 ap by country"},
		{"a prefix rule outranks it", "all", "198.51.100.64/26", "sa eu by prefix"},
		{"rest", "all", "203.0.113.0/24", "sa eu us ap by latency"},
		{"no entry", "all", "192.0.2.0/24", "eu us ap sa by rest"},
		{"the split of a country, by IPv6", "all", "2001:db8::/48", "eu:1 us:3 ap by country"},
		{"space that is special", "all", "10.1.0.0/16", "eu us ap sa by rest"},
		{"a resolver", "all", "203.0.113.9", "us eu ap sa by latency"},
		{"a resolver in special-purpose space", "all", "127.1.0.9", "eu:1 us:3 ap by country"},
		{"a resolver whose list has one of its regions", "own", "198.51.100.1", "ap us by latency"},
		{"a client's entry is not for resolvers", "all", "9.0.0.1", "eu us ap sa by rest"},
		{"and by its subnet it is", "all", "9.0.0.0/24", "us eu ap sa by latency"},
		{"regions without a pool are passed over", "some", "11.0.0.0/24", "us eu by latency"},
		{"none of the entry's regions has a pool", "some", "203.0.113.0/24", "eu us by rest"},
		{"a list written for the host", "own", "198.51.100.0/26", "ap us by latency"},
		{"a host that goes by none", "off", "198.51.100.0/26", "us ap by rest"},
		{"none of it is in the list", "own", "203.0.113.0/24", "us ap by rest"},
	} {
		h, _ := p.Find("example.com.", c.host+".example.com.")
		if got := listOf(p, h, c.client); got != c.want {
			t.Errorf("%s: %s gets %s from %s, want %s", c.what, c.client, got, c.host, c.want)
		}
	}
	refused, _ := p.Find("example.com.", "all.example.com.")
	fenced := 0
	for id := range refused.Need.Topology.Lists {
		l := &refused.Need.Topology.Lists[id]
		if l.Fenced && (len(l.Order) == 0 || slices.ContainsFunc(l.Order, func(r topology.Region) bool { return !l.Allowed.Has(r) })) {
			t.Errorf("the fenced list %s leads out", listText(refused, id))
		}
		if l.Fenced {
			fenced++
		}
	}
	if fenced == 0 {
		t.Error("no list is fenced")
	}
}

// TestLatencyOfHosts: a host's own map wins over its policy's, and that over the
// block's. One map may be too old for one host and not for another.
func TestLatencyOfHosts(t *testing.T) {
	dir := t.TempDir()
	put(t, dir, "a.txt", mapText("198.51.100.0/24 us", ""))
	put(t, dir, "b.txt", mapText("198.51.100.0/24 ap", ""))
	statements := strings.ReplaceAll(`
		region eu us ap
		latency a.txt
		policy p {
			latency b.txt max_age 13h
		}
		host a.example.com {
			POOLS
		}
		host b.example.com {
			policy p
			POOLS
		}
		host c.example.com {
			policy p
			latency b.txt max_age 400h
			POOLS
		}
		host d.example.com {
			policy p
			latency a.txt max_age 20h
			POOLS
		}`, "POOLS", "pool eu 192.0.2.1\npool us 192.0.2.2\npool ap 192.0.2.3")
	for _, c := range []struct {
		age     time.Duration
		want    string
		tooOld  string
		expires time.Duration
	}{
		{0, "us ap ap us", "", 13 * time.Hour},
		{13*time.Hour - time.Second, "us ap ap us", "", 13 * time.Hour},
		{13 * time.Hour, "us eu ap us", "b.txt", 20 * time.Hour},
		{21 * time.Hour, "us eu ap eu", "a.txt b.txt", 48 * time.Hour},
		{48 * time.Hour, "eu eu ap eu", "a.txt b.txt", 400 * time.Hour},
		{401 * time.Hour, "eu eu eu eu", "a.txt b.txt", -1},
	} {
		built := mapDay.Add(-12 * time.Hour)
		p := mustBuildAt(t, dir, statements, built.Add(c.age))
		var first, old []string
		for _, h := range p.Hosts {
			first = append(first, strings.Fields(listOf(p, h, "198.51.100.0/24"))[0])
		}
		for _, m := range p.Maps() {
			if m.TooOld {
				old = append(old, filepath.Base(m.Path))
			}
		}
		if got := strings.Join(first, " "); got != c.want || strings.Join(old, " ") != c.tooOld {
			t.Errorf("after %s: %s, too old are %s; want %s, %s", c.age, got, old, c.want, c.tooOld)
		}
		if want := built.Add(c.expires); c.expires > 0 && !p.Expires.Equal(want) || c.expires < 0 && !p.Expires.IsZero() {
			t.Errorf("after %s: expires %s, want %s", c.age, p.Expires, want)
		}
		if n := len(slices.Compact(warned(p))); c.tooOld == "" && n != 0 || c.tooOld != "" && n == 0 || n != len(p.Warnings) {
			t.Errorf("after %s: warnings %q", c.age, warned(p))
		}
	}
}

// forms are writers of one map in all the forms that can be read.
var forms = map[string]func(t *testing.T) string{
	"text": func(*testing.T) string { return mapText("198.51.100.0/24 us\n203.0.113.0/24 ap\n2001:db8::/32 us", "") },
	"mmdb": func(t *testing.T) string {
		m, err := latency.ReadText("x", strings.NewReader(mapText("198.51.100.0/24 us\n203.0.113.0/24 ap\n2001:db8::/32 us", "")))
		if err != nil {
			t.Fatal(err)
		}
		var b bytes.Buffer
		if err := latency.WriteMMDB(&b, m); err != nil {
			t.Fatal(err)
		}
		return b.String()
	},
	"gdnsd nets": func(*testing.T) string {
		return "198.51.100.0/24 => [us],\n203.0.113.0/24 => ap\n2001:db8::/32 => us ; last\n"
	},
	"coverage zones": func(*testing.T) string {
		return `{"coverageZones": {"us": {"network": ["198.51.100.0/24"], "network6": ["2001:db8::/32"]}, "ap": {"network": ["203.0.113.0/24"]}}}`
	},
}

const threeRegions = "\nregion eu us ap\nhost www.example.com {\npool eu 192.0.2.1\npool us 192.0.2.2\npool ap 192.0.2.3\n}"

// TestLatencyForms: all forms of one map make the same plan, as they are and after a
// reload of the file.
func TestLatencyForms(t *testing.T) {
	digests := make(map[uint64]bool)
	for name, write := range forms {
		dir := t.TempDir()
		file := put(t, dir, "map", write(t))
		if err := os.Chtimes(file, mapDay, mapDay.Add(-12*time.Hour)); err != nil {
			t.Fatal(err)
		}
		p := mustBuildAt(t, dir, "latency map"+threeRegions, mapDay)
		digests[p.Digest] = true
		for client, want := range map[string]string{
			"198.51.100.0/24": "us eu ap by latency", "203.0.113.0/24": "ap eu us by latency",
			"2001:db8:7::/48": "us eu ap by latency", "192.0.2.0/24": "eu us ap by order_written",
		} {
			if got := listOf(p, p.Hosts[0], client); got != want {
				t.Errorf("%s: %s gets %s, want %s", name, client, got, want)
			}
		}
		maps := p.Maps()
		if len(maps) != 1 || !maps[0].Built.Equal(mapDay.Add(-12*time.Hour)) || maps[0].Clients != 3 || maps[0].Resolvers != 0 || maps[0].TooOld {
			t.Errorf("%s: %+v", name, maps)
		}
		again, err := p.Data.Reload(file, mapDay)
		if err != nil {
			t.Errorf("%s: the same file again: %v", name, err)
			continue
		}
		if q, err := plan.Compile(p.Block, again, plan.Options{Now: mapDay}); err != nil || q.Digest != p.Digest {
			t.Errorf("%s: reloaded it is another plan: %v", name, err)
		}
	}
	if len(digests) != 1 {
		t.Errorf("%d digests of one map in %d forms", len(digests), len(forms))
	}
}

// TestLatencyErrors: what can't be used is an error that names the place, the file and
// what is wrong with it.
func TestLatencyErrors(t *testing.T) {
	dir := t.TempDir()
	put(t, dir, "unknown.txt", mapText("198.51.100.0/24 mars us\n203.0.113.0/24 venus", "192.0.2.0/24 pluto"))
	put(t, dir, "nets", "198.51.100.0/24 => mars\n")
	put(t, dir, "zones", `{"coverageZones": {"mars": {"network": ["198.51.100.0/24"]}}}`)
	put(t, dir, "garbage.txt", "garbage\n")
	put(t, dir, "empty.txt", "")
	put(t, dir, "future.txt", mapOf(mapDay.Add(3*time.Hour), "198.51.100.0/24 us", ""))
	put(t, dir, "overlap.txt", mapText("198.51.100.0/24 us\n198.51.100.0/25 us", ""))
	for _, file := range []string{"nets", "zones"} {
		if err := os.Chtimes(filepath.Join(dir, file), mapDay, mapDay); err != nil {
			t.Fatal(err)
		}
	}
	whole := forms["mmdb"](t)
	put(t, dir, "half.mmdb", whole[:len(whole)/2])
	put(t, dir, "tail.mmdb", whole[len(whole)/2:])
	for file, want := range map[string]string{
		"unknown.txt": "regions that are not known: mars, pluto, venus; expected some of: eu, us, ap",
		"nets":        "not known: mars", "zones": "not known: mars",
		"garbage.txt": "not a steering map", "empty.txt": "not a steering map",
		"future.txt":  "is in the future",
		"overlap.txt": "overlap", "half.mmdb": "not a steering map", "tail.mmdb": "", "none.txt": "no such file", ".": "expected a regular file",
	} {
		for _, statements := range []string{"latency " + file + threeRegions, strings.Replace(threeRegions, "pool eu", "latency "+file+"\npool eu", 1)} {
			_, err := buildAt(dir, statements, plan.LastGood{}, mapDay)
			if err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), filepath.Join(dir, file)) || !strings.HasPrefix(err.Error(), "Corefile:") {
				t.Errorf("%s: error %v, want one that has %q, the file and the place", file, err, want)
			}
		}
	}
}
