package plan_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"net/netip"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/seed-945f90c5/gslb/internal/plan"
	"github.com/seed-945f90c5/gslb/internal/steer"
	"github.com/seed-945f90c5/gslb/internal/topology"
)

// timed is an entry of a map with measurements.
type timed struct {
	prefix  netip.Prefix
	regions []string
	p75     []float64 // 0: none
	demand  float64
}

// randomTimed makes entries with numbers that maps are kept in exactly.
func randomTimed(r *rand.Rand, regions []string) (entries []timed, text string) {
	for _, e := range randomEntries(r, regions) {
		t := timed{prefix: e.prefix, regions: e.regions}
		text += e.prefix.String()
		bare := r.IntN(5) == 0
		for _, name := range e.regions {
			text += " " + name
			if bare {
				continue
			}
			p75, samples, failed := float64(r.IntN(200)), r.IntN(30)*r.IntN(2), r.IntN(2)
			if r.IntN(10) == 0 {
				p75 = 0
			}
			text += fmt.Sprintf(":%g/%d/%d%%", p75, samples, 50*failed)
			t.p75 = append(t.p75, p75)
			t.demand += float64(samples * (1 + failed))
		}
		text += "\n"
		t.demand = max(1, t.demand)
		if slices.Max(append(t.p75, 0)) > 0 {
			entries = append(entries, t)
		}
	}
	return entries, text
}

// special is the space that maps say nothing of.
var special = []netip.Prefix{
	prefix("0.0.0.0/8"), prefix("10.0.0.0/8"), prefix("100.64.0.0/10"), prefix("127.0.0.0/8"), prefix("169.254.0.0/16"), prefix("172.16.0.0/12"),
	prefix("192.168.0.0/16"), prefix("224.0.0.0/3"), prefix("::/128"), prefix("::1/128"), prefix("fc00::/7"), prefix("fe80::/10"),
	prefix("ff00::/8"), prefix("::ffff:0:0/96"), prefix("64:ff9b::/96"), prefix("2002::/16"), prefix("2001::/32"),
}

// modelCosts are the costs of a list, entry by entry and block by block.
type modelCosts struct {
	p      *plan.Plan
	h      *plan.Host
	demand float64
	sums   []float64
	known  float64
}

// way is the estimated round trip between two regions; it says no if it is not known.
func (m *modelCosts) way(a, b int) (ms float64, ok bool) {
	from, to := m.p.Block.Regions[a].Location, m.p.Block.Regions[b].Location
	if from == nil || to == nil {
		return 60, false
	}
	return float64(plan.Kilometres(from.Lat, from.Lon, to.Lat, to.Lon)) / 50, true
}

func (m *modelCosts) view(list int, full bool, entries []timed) {
	var space, held [2]float64
	for p, l := range m.h.Need.Topology.Blocks(full) {
		if l != list || slices.ContainsFunc(special, p.Overlaps) {
			continue
		}
		f := 0
		if p.Addr().Is6() {
			f = 1
		}
		space[f] += math.Exp2(float64(-p.Bits()))
		for _, e := range entries {
			if !e.prefix.Overlaps(p) {
				continue
			}
			both := max(p.Bits(), e.prefix.Bits())
			held[f] += math.Exp2(float64(-both))
			weight := e.demand * math.Exp2(float64(e.prefix.Bits()-both))
			m.demand += weight
			for r, region := range m.p.Block.Regions {
				m.sums[r] += weight * m.of(&e, r, region.Name)
			}
		}
	}
	if space[0] > 0 {
		m.known = max(m.known, held[0]/space[0])
	} else if space[1] > 0 {
		m.known = max(m.known, held[1]/space[1])
	}
}

// of is the round trip from an entry to a region.
func (m *modelCosts) of(e *timed, r int, name string) float64 {
	if i := slices.Index(e.regions, name); i >= 0 && e.p75[i] > 0 {
		return e.p75[i]
	}
	best := slices.IndexFunc(e.p75, func(p75 float64) bool { return p75 > 0 })
	from := slices.IndexFunc(m.h.Need.Input.Regions, func(info topology.RegionInfo) bool { return info.Name == e.regions[best] })
	way, _ := m.way(from, r)
	return e.p75[best] + way
}

func (m *modelCosts) costs(regions []steer.Region) (costs []float64) {
	estimate := 0.0
	for i, r := range regions {
		if i > 0 {
			if way, ok := m.way(int(regions[0]), int(r)); ok {
				estimate = max(way, estimate+0.02)
			} else {
				estimate += 60
			}
		}
		cost := estimate
		if m.known > 0 {
			cost = m.known*m.sums[r]/m.demand + (1-m.known)*estimate
		}
		if i > 0 {
			cost = max(cost, costs[i-1]+0.02)
		}
		costs = append(costs, cost)
	}
	return costs
}

// TestCostsModel compares the costs of random blocks and maps with a slow model.
func TestCostsModel(t *testing.T) {
	r := rand.New(rand.NewPCG(8, 8))
	mixed, measured, without := 0, 0, 0
	for valid, tries := 0, 0; valid < 150; tries++ {
		if tries > 20000 {
			t.Fatal("too few blocks are valid")
		}
		text := randomBlock(r)
		b, err := parse("example.com", text)
		if err != nil {
			continue
		}
		var regions []string
		for _, region := range b.Regions {
			regions = append(regions, region.Name)
		}
		clients, clientText := randomTimed(r, regions)
		resolvers, resolverText := randomTimed(r, regions)
		file := put(t, t.TempDir(), "map.txt", mapText(clientText, resolverText))
		text += "\nlatency " + filepath.ToSlash(file)
		p, err := buildAt(fixtures, text, plan.LastGood{}, mapDay)
		if err != nil {
			continue
		}
		valid++
		if p.Block.ECS.Off {
			clients = nil
		}
		for _, h := range p.Hosts {
			for list := range h.Need.Topology.Lists {
				m := modelCosts{p: p, h: h, sums: make([]float64, len(regions))}
				if !p.Block.ECS.Off {
					m.view(list, false, clients)
				}
				m.view(list, true, resolvers)
				l := &h.Need.Topology.Lists[list]
				var order []steer.Region
				for _, w := range l.Split {
					order = append(order, steer.Region(w.Region))
				}
				for _, o := range l.Order {
					order = append(order, steer.Region(o))
				}
				got, want := h.Need.Costs(list, order), m.costs(order)
				for i := range want {
					if math.Abs(got[i]-want[i]) > 1e-4 {
						t.Fatalf("list %s: costs %.5g, want %.5g\n%s\nclients\n%s\nresolvers\n%s", listText(h, list), got, want, text, clientText, resolverText)
					}
				}
				switch {
				case len(order) < 2:
				case m.known == 0:
					without++
				case m.known > 1-1e-9:
					measured++
				default:
					mixed++
				}
			}
		}
	}
	t.Logf("%d lists measured, %d in part, %d not", measured, mixed, without)
	if measured < 20 || mixed < 50 || without < 20 {
		t.Error("too few lists show anything")
	}
}

// costsBlock has all clients in eu us ap sa, and nobody knows where sa is.
const costsBlock = `
	region eu {
		location 50 8
	}
	region us {
		location 39 -77
	}
	region ap {
		location 1 103
	}
	region sa
	clients rest {
		order eu us ap sa
	}
	MORE
	latency MAP max_age 24h
	host www.example.com {
		pool eu 192.0.2.1
		pool us 192.0.2.2
		pool ap 192.0.2.3
		pool sa 192.0.2.4
	}`

// costsPlan is the plan of that block with a map.
func costsPlan(t *testing.T, more, text string) *plan.Plan {
	t.Helper()
	file := put(t, t.TempDir(), "map.txt", text)
	return mustBuildAt(t, fixtures, strings.NewReplacer("MAP", filepath.ToSlash(file), "MORE", more).Replace(costsBlock), mapDay)
}

// entry is the prefix of the entries that decide.
const entry = "198.51.100.0/24"

// TestCosts holds what counts for the costs of a client's list.
func TestCosts(t *testing.T) {
	for _, tc := range []struct {
		name, more, clients, resolvers string
		client                         string
		built                          time.Duration // ago
		head                           string
		want                           string
	}{
		{name: "by distance; one step on for a place nobody knows", client: "192.0.2.0/24", want: "eu 0 us 129.6 ap 205.6 sa 265.6"},
		{name: "measured; a region without is as far as the best and the way from there", client: entry,
			clients: entry + " us:20/10 eu:30/10 ap:40/10", want: "us 20 eu 30 ap 40 sa 80"},
		{name: "a written order that is not by cost holds", client: entry,
			clients: entry + " us:20/10 eu:30/10 ap:150/10", want: "us 20 eu 30 ap 150 sa 150"},
		{name: "by demand", client: entry,
			clients: entry + " us:20/20 eu:40/10\n20.0.0.0/16 us:40/5 eu:80/5", want: "us 25 eu 50 ap 336.3 sa 336.4"},
		{name: "failures are demand", client: entry,
			clients: entry + " us:20/10 eu:40/10\n20.0.0.0/16 us:40/5/50% eu:80/5/50%", want: "us 30 eu 60 ap 341.3 sa 341.4"},
		{name: "resolvers", client: "198.51.100.7", resolvers: entry + " us:20/10 eu:30/10 ap:40/10", want: "us 20 eu 30 ap 40 sa 80"},
		{name: "clients and resolvers with one list", client: entry,
			clients: entry + " us:20/15 eu:40/15", resolvers: entry + " us:40/5 eu:80/5", want: "us 25 eu 50 ap 336.3 sa 336.4"},
		{name: "without ecs, those of clients say nothing", client: "198.51.100.7", more: "ecs off",
			clients: "0.0.0.0/0 eu:10/10 us:20/10", resolvers: "0.0.0.0/0 eu:20/10 us:40/10 ap:60/10 sa:80/10", want: "eu 20 us 40 ap 60 sa 80"},
		{name: "known as clients or as resolvers", client: "192.0.2.0/24",
			clients: "0.0.0.0/0 eu:20/10 us:40/10 ap:60/10 sa:80/10", want: "eu 20 us 40 ap 60 sa 80"},
		{name: "of a quarter of those who share a list", more: "clients prefix 20.0.0.0/14 {\norder eu ap sa us\n}", client: "20.0.0.0/24",
			clients: "20.1.0.0/16 eu:20/10 us:80/10 ap:40/10 sa:60/10", want: "eu 5 ap 164.2 sa 214.2 us 219.2"},
		{name: "a fence cuts an entry", more: "ecs {\nmax 32 56\n}\narea home prefix 198.51.100.0/25 20.0.0.0/16\nfence home us ap", client: "198.51.100.0/25",
			clients: entry + " us:20/20 ap:40/20\n20.0.0.0/16 us:40/10 ap:80/10", want: "us 30 ap 60"},
		{name: "of clients that a prefix rule decides for", more: "clients prefix " + entry + " {\norder eu us\n}", client: entry,
			clients: entry + " us:20/10 eu:10/10 ap:5/10", want: "eu 10 us 20"},
		{name: "no measurements", client: entry, clients: entry + " us eu", want: "us 0 eu 129.6 ap 311.3 sa 371.3"},
		{name: "none that came back", client: entry, clients: entry + " us:0/0/100% eu:0/0/100%", want: "us 0 eu 129.6 ap 311.3 sa 371.3"},
		{name: "too old", client: entry, built: 24 * time.Hour, clients: entry + " us:20/10 eu:30/10", want: "eu 0 us 129.6 ap 205.6 sa 265.6"},
		{name: "put back", client: entry, built: 23 * time.Hour, head: `rollback 2026-11-30T11:00:00Z "me" "it was better"`,
			clients: entry + " us:20/10 eu:30/10 ap:40/10", want: "us 20 eu 30 ap 40 sa 80"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			text := mapOf(mapDay.Add(-max(time.Hour, tc.built)), tc.clients, tc.resolvers)
			text = strings.Replace(text, "\nregions", "\n"+tc.head+"\nregions", 1)
			if got := costsOf(costsPlan(t, tc.more, text).Hosts[0], tc.client); got != tc.want {
				t.Errorf("costs %s, want %s", got, tc.want)
			}
		})
	}
}

// costsOf are the costs of the list that a client has, to the tenth of a millisecond.
func costsOf(h *plan.Host, client string) string {
	var subnet netip.Prefix
	transport := addr("192.0.2.53")
	if strings.Contains(client, "/") {
		subnet = prefix(client)
	} else {
		transport = addr(client)
	}
	c, _ := h.Find(subnet, transport)
	var order []steer.Region
	for _, r := range h.Need.Topology.Lists[c.List].Order {
		order = append(order, steer.Region(r))
	}
	var words []string
	for i, cost := range h.Need.Costs(c.List, order) {
		words = append(words, fmt.Sprintf("%s %g", h.Need.Input.Regions[order[i]].Name, math.Round(10*cost)/10))
	}
	return strings.Join(words, " ")
}

// TestCostsKeepP75 holds how exactly a map's measurements are kept.
func TestCostsKeepP75(t *testing.T) {
	r := rand.New(rand.NewPCG(9, 9))
	for range 100 {
		p75 := float32(math.Exp(r.Float64()*math.Log(1e8)) / 100) // 10 µs to 1000 s
		text := fmt.Sprintf("%s ap:%g/1", entry, p75)
		h := costsPlan(t, "", mapText(text, "")).Hosts[0]
		c, _ := h.Find(prefix(entry), addr("192.0.2.53"))
		if got := h.Need.Costs(c.List, []steer.Region{2})[0]; math.Abs(got/float64(p75)-1) > 0.004 {
			t.Errorf("%g ms is kept as %g", p75, got)
		}
	}
}

// TestCostsDigest: maps that put regions in the same order at other costs are not the same.
func TestCostsDigest(t *testing.T) {
	digest := func(text string) uint64 {
		return costsPlan(t, "", mapText(text, "")).Digest
	}
	one, again := digest(entry+" us:20/10 eu:30/10"), digest(entry+" us:20/10 eu:30/10")
	if one != again {
		t.Error("the same map has two digests")
	}
	if one == digest(entry+" us:20/10 eu:31/10") || one == digest(entry+" us eu") {
		t.Error("the digest doesn't tell costs apart")
	}
}
