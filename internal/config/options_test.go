package config_test

import (
	"net/netip"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/seed-945f90c5/gslb/internal/config"
)

// TestBlockOptions sees each word of the block in the Block.
func TestBlockOptions(t *testing.T) {
	const host = "\nhost a.example.com {\npool eu 192.0.2.1\n}\n"
	prefixes := func(list ...string) (all []netip.Prefix) {
		for _, p := range list {
			all = append(all, netip.MustParsePrefix(p))
		}
		return all
	}
	tests := []struct {
		name, text string
		got        func(b *config.Block) any
		want       any
	}{
		{"zones", "region eu", func(b *config.Block) any { return b.Zones }, []string{"example.com."}},
		{"geoip city", "region eu\ngeoip city c.mmdb", func(b *config.Block) any { return b.GeoIP[0].Kind }, config.City},
		{"geoip path", "region eu\ngeoip asn data/a.mmdb", func(b *config.Block) any { return b.GeoIP[0].Path }, "data/a.mmdb"},
		{"geoip optional", "region eu\ngeoip asn a.mmdb optional", func(b *config.Block) any { return b.GeoIP[0].Optional }, true},
		{"nets", "region eu\nnets a.txt", func(b *config.Block) any { return b.Nets[0].Path }, "a.txt"},
		{"regions", "region eu us\nregion ap { next us }\nclients rest { order eu ap us }", func(b *config.Block) any { return len(b.Regions) }, 3},
		{"location", "region eu { location -12.5 180 }", func(b *config.Block) any { return *b.Regions[0].Location }, config.Location{Lat: -12.5, Lon: 180}},
		{"next", "region eu { next us }\nregion us", func(b *config.Block) any { return b.Regions[0].Next }, []string{"us"}},
		{"next alone", "region eu { next us }\nregion us", func(b *config.Block) any { return b.Regions[0].NextRest }, false},
		{"next rest", "region eu { next us rest }\nregion us", func(b *config.Block) any { return b.Regions[0].NextRest }, true},
		{"next computed", "region eu", func(b *config.Block) any { return b.Regions[0].Next == nil }, true},
		{"region clients", "region eu { clients prefix 10.0.0.0/8 }\nclients rest { order eu }", func(b *config.Block) any { return b.Rules[0].Region }, "eu"},
		{"region clients rest", "region eu { clients rest }", func(b *config.Block) any { return b.Rules[0].Rest }, true},
		{"prefix", "region eu\narea x prefix 10.0.0.0/8 ::1", func(b *config.Block) any { return b.Areas[0].Lines[0].Alts[0].Prefixes }, prefixes("10.0.0.0/8", "::1/128")},
		{"file", "region eu\narea x file f.txt", func(b *config.Block) any { return b.Areas[0].Lines[0].Alts[0].File }, "f.txt"},
		{"asn", "region eu\ngeoip asn a\narea x asn 3320 as64496", func(b *config.Block) any { return b.Areas[0].Lines[0].Alts[0].ASNs }, []uint32{3320, 64496}},
		{"continent", "region eu\ngeoip country c\narea x continent eu", func(b *config.Block) any { return b.Areas[0].Lines[0].Alts[0].Codes }, []string{"EU"}},
		{"country", "region eu\ngeoip country c\narea x country de FR", func(b *config.Block) any { return b.Areas[0].Lines[0].Alts[0].Codes }, []string{"DE", "FR"}},
		{"subdivision", "region eu\ngeoip city c\narea x subdivision us-ca", func(b *config.Block) any { return b.Areas[0].Lines[0].Alts[0].Codes }, []string{"US-CA"}},
		{"in", "region eu\ngeoip city c\narea x country IN in file f", func(b *config.Block) any { return len(b.Areas[0].Lines[0].Alts) }, 2},
		{"area lines add up", "region eu\narea x file f\narea x file g", func(b *config.Block) any { return len(b.Areas[0].Lines) }, 2},
		{"area of an area", "region eu\narea x area y\narea y file g", func(b *config.Block) any { return b.Areas[0].Lines[0].Alts[0].Codes }, []string{"y"}},
		{"fence", "region eu\narea x file f\nfence x eu", func(b *config.Block) any { return b.Fences[0].Regions }, []string{"eu"}},
		{"fence area", "region eu\narea x file f\nfence x eu", func(b *config.Block) any { return b.Fences[0].Area }, "x"},
		{"clients order", "region eu us\nclients file f { order us eu }", func(b *config.Block) any { return b.Rules[0].List.Order }, []string{"us", "eu"}},
		{"clients order rest", "region eu us\nclients file f { order us rest }", func(b *config.Block) any { return b.Rules[0].List.Rest }, true},
		{"clients split", "region eu us\nclients file f { split us 1 eu 0 }", func(b *config.Block) any { return b.Rules[0].List.Split }, []config.Weighted{{Name: "us", Weight: 1}, {Name: "eu"}}},
		{"clients refuse", "region eu us\nclients file f { refuse }\nclients rest { order us eu }", func(b *config.Block) any { return b.Rules[0].Refuse }, true},
		{"ecs", "region eu", func(b *config.Block) any { return b.ECS }, config.ECS{Max4: 24, Max6: 56}},
		{"ecs off", "region eu\necs off", func(b *config.Block) any { return b.ECS }, config.ECS{Off: true}},
		{"ecs max", "region eu\necs { max 0 128 }", func(b *config.Block) any { return b.ECS }, config.ECS{Max4: 0, Max6: 128}},
		{"ecs from", "region eu\necs { from 10.0.0.1 2001:db8::/32 }", func(b *config.Block) any { return b.ECS.From }, prefixes("10.0.0.1/32", "2001:db8::/32")},
		{"ecs fill", "region eu\necs { fill off }", func(b *config.Block) any { return b.ECS.NoFill }, true},
		{"ecs fill on", "region eu\necs { fill on }", func(b *config.Block) any { return b.ECS.NoFill }, false},
		{"soa", "region eu\nsoa NS1.example.com h.example.com.", func(b *config.Block) any { return b.SOA.MName + " " + b.SOA.RName }, "ns1.example.com. h.example.com."},
		{"soa minimum", "region eu\nsoa a b", func(b *config.Block) any { return b.SOA.Minimum }, 10 * time.Second},
		{"soa minimum written", "region eu\nsoa a b minimum 1h", func(b *config.Block) any { return b.SOA.Minimum }, time.Hour},
		{"no soa", "region eu", func(b *config.Block) any { return b.SOA == nil }, true},
		{"ns", "region eu\nns a.example.com B.example.net", func(b *config.Block) any { return b.NS }, []string{"a.example.com.", "b.example.net."}},
		{"no fallthrough", "region eu", func(b *config.Block) any { return b.Fallthrough == nil }, true},
		{"fallthrough", "region eu\nfallthrough", func(b *config.Block) any { return len(b.Fallthrough.Zones) }, 0},
		{"fallthrough zones", "region eu\nfallthrough a.example.com", func(b *config.Block) any { return b.Fallthrough.Zones }, []string{"a.example.com."}},
		{"depth", "region eu", func(b *config.Block) any { return b.Depth }, 3},
		{"depth written", "region eu\ndepth 8", func(b *config.Block) any { return b.Depth }, 8},
		{"no state", "region eu", func(b *config.Block) any { return b.State == nil }, true},
		{"state", "region eu\nstate /var/lib/gslb", func(b *config.Block) any { return b.State.Path }, "/var/lib/gslb"},
		{"beacon", "region eu\nbeacon 192.0.2.1:53 [::1]:80", func(b *config.Block) any { return b.Beacons[1].AddrPort }, netip.MustParseAddrPort("[::1]:80")},
		{"whoami", "region eu\nwhoami Who.example.com", func(b *config.Block) any { return b.WhoAmI }, "who.example.com."},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			pools := ""
			if strings.Contains(tt.text, "region eu us") {
				pools = "\nhost b.example.com {\npool us 192.0.2.2\n}"
			}
			b := mustParse(t, inBlock(tt.text+host+pools))
			if got := tt.got(b); !reflect.DeepEqual(got, tt.want) {
				t.Errorf("got %v, want %v", got, tt.want)
			}
		})
	}
}

// TestHostOptions sees each word of a host in the Block, written in the host,
// in a policy and in the block where it is allowed there.
func TestHostOptions(t *testing.T) {
	tests := []struct {
		name, text string
		got        func(h config.Host) any
		want       any
	}{
		{"ttl", "", func(h config.Host) any { return h.TTL }, 30},
		{"ttl written", "ttl 86400", func(h config.Host) any { return h.TTL }, 86400},
		{"ttl_floor", "", func(h config.Host) any { return h.TTLFloor }, 5},
		{"ttl_floor written", "ttl_floor 7", func(h config.Host) any { return h.TTLFloor }, 7},
		{"ttl_floor off", "ttl_floor off", func(h config.Host) any { return h.TTLFloor }, -1},
		{"ttl_floor of a low ttl", "ttl 3", func(h config.Host) any { return h.TTLFloor }, 3},
		{"answers", "", func(h config.Host) any { return h.Pools[0].Answers }, 8},
		{"answers written", "answers 16", func(h config.Host) any { return h.Pools[0].Answers }, 16},
		{"answers all", "answers all", func(h config.Host) any { return h.Pools[0].Answers }, 0},
		{"answers of a pool", "answers 2", func(h config.Host) any { return h.Pools[1].Answers }, 1},
		{"spread", "", func(h config.Host) any { return h.Spread }, config.Sticky},
		{"grain", "", func(h config.Host) any { return [2]int{h.Grain4, h.Grain6} }, [2]int{16, 32}},
		{"grain written", "spread sticky 24 0", func(h config.Host) any { return [2]int{h.Grain4, h.Grain6} }, [2]int{24, 0}},
		{"sticky", "spread sticky", func(h config.Host) any { return [2]int{h.Grain4, h.Grain6} }, [2]int{16, 32}},
		{"resolver", "spread resolver", func(h config.Host) any { return h.Spread }, config.Resolver},
		{"balanced", "spread balanced", func(h config.Host) any { return h.Spread }, config.Balanced},
		{"no grain", "spread balanced", func(h config.Host) any { return h.Grain4 + h.Grain6 }, 0},
		{"families", "", func(h config.Host) any { return h.Families }, config.FamiliesSame},
		{"families mixed", "families mixed", func(h config.Host) any { return h.Families }, config.FamiliesMixed},
		{"families v4", "families v4", func(h config.Host) any { return h.Families }, config.FamiliesV4},
		{"min_healthy", "", func(h config.Host) any { return h.Pools[0].MinHealthy }, config.Threshold{Count: 1}},
		{"min_healthy written", "min_healthy 2", func(h config.Host) any { return h.Pools[0].MinHealthy }, config.Threshold{Count: 2}},
		{"min_healthy percent", "min_healthy 33.25%", func(h config.Host) any { return h.Pools[0].MinHealthy }, config.Threshold{Percent: 33.25, IsPct: true}},
		{"min_healthy of a pool", "min_healthy 2", func(h config.Host) any { return h.Pools[1].MinHealthy }, config.Threshold{Percent: 60, IsPct: true}},
		{"spill_below", "", func(h config.Host) any { return h.SpillBelow }, 50.0},
		{"spill_below written", "spill_below 70.25%", func(h config.Host) any { return h.SpillBelow }, 70.25},
		{"spill_below 0%", "spill_below 0%", func(h config.Host) any { return h.SpillBelow }, 0.0},
		{"max_down", "", func(h config.Host) any { return h.MaxDown }, 100.0},
		{"max_down written", "max_down 0%", func(h config.Host) any { return h.MaxDown }, 0.0},
		{"no check", "", func(h config.Host) any { return h.Pools[0].Checks == nil }, true},
		{"check", "check web api", func(h config.Host) any { return h.Pools[0].Checks }, []string{"web", "api"}},
		{"check of a pool", "check web api", func(h config.Host) any { return h.Pools[1].Checks }, []string{"alive"}},
		{"no latency", "", func(h config.Host) any { return h.Latency == nil }, true},
		{"latency off", "latency off", func(h config.Host) any { return h.Latency == nil }, true},
		{"latency", "latency maps/a.map", func(h config.Host) any { return h.Latency.Path + " " + h.Latency.MaxAge.String() }, "maps/a.map 48h0m0s"},
		{"latency max_age", "latency a max_age 1m", func(h config.Host) any { return h.Latency.MaxAge }, time.Minute},
		{"no shed", "", func(h config.Host) any { return h.Shed == nil }, true},
		{"shed", "shed to Edge.example.net", func(h config.Host) any { return h.Shed.Name }, "edge.example.net."},
		{"shed to one label", "shed to edge.", func(h config.Host) any { return h.Shed.Name }, "edge."},
		{"last_resort", "", func(h config.Host) any { return h.LastResort.Kind }, config.LastOpen},
		{"last_resort closed", "last_resort closed", func(h config.Host) any { return h.LastResort.Kind }, config.LastClosed},
		{"last_resort regions", "last_resort regions us", func(h config.Host) any { return h.LastResort.Regions }, []string{"us"}},
		{"last_resort addresses", "last_resort addresses 192.0.2.99", func(h config.Host) any { return h.LastResort.Addresses }, []netip.Addr{netip.MustParseAddr("192.0.2.99")}},
	}
	const pools = `
		pool eu 192.0.2.1 192.0.2.2
		pool us {
			endpoint 192.0.2.3 weight 3
			endpoint 192.0.2.4 down
			answers 1
			min_healthy 60%
			check alive
		}
	}`
	const checks = "\ncheck web { http / }\ncheck api { http / }\ncheck alive { icmp }"
	places := map[string]string{
		"host":   "region eu us\nttl_floor 1\nhost a.example.com {\nTEXT" + pools,
		"policy": "region eu us\npolicy x {\nTEXT\n}\nhost a.example.com {\npolicy x" + pools,
		"block":  "region eu us\nTEXT\nhost a.example.com {" + pools,
		"block policy": "region eu us\npolicy x\npolicy x {\nTEXT\n}\nhost a.example.com {" + pools +
			"\npolicy y {\nttl 1\n}\nhost b.example.com {\npolicy y" + pools,
	}
	for place, text := range places {
		for _, tt := range tests {
			t.Run(place+"/"+tt.name, func(t *testing.T) {
				if place == "host" && strings.HasPrefix(tt.name, "ttl_floor") && !strings.Contains(tt.text, "floor") {
					return // this place writes a floor of its own
				}
				b := mustParse(t, inBlock(strings.Replace(text, "TEXT", tt.text, 1)+checks))
				if got := tt.got(b.Hosts[0]); !reflect.DeepEqual(got, tt.want) {
					t.Errorf("got %v, want %v", got, tt.want)
				}
			})
		}
	}
}

// TestLayers holds who wins when several places say something.
func TestLayers(t *testing.T) {
	b := mustParse(t, inBlock(`
		region eu us
		ttl 100
		answers 3
		spread resolver
		policy x {
			ttl 200
			answers 4
			pool eu 192.0.2.1
			pool us 192.0.2.2
			clients rest { order eu us }
			name c.example.com
		}
		host a.example.com b.example.com {
			policy x
			name *.example.com
			ttl 300
			pool us 192.0.2.3
			order us eu
			fenced_ok
		}
		host d.example.com {
			pool us {
				endpoint 192.0.2.4 weight 0 drain
				endpoint 192.0.2.5 up weight 7
			}
		}`))
	h := b.Hosts[0]
	if want := []string{"a.example.com.", "b.example.com.", "*.example.com.", "c.example.com."}; !reflect.DeepEqual(h.Names, want) {
		t.Errorf("names %v, want %v", h.Names, want)
	}
	if h.TTL != 300 || h.Pools[0].Answers != 4 || h.Spread != config.Resolver || !h.FencedOK {
		t.Errorf("ttl %d, answers %d, spread %s, fenced_ok %t", h.TTL, h.Pools[0].Answers, h.Spread, h.FencedOK)
	}
	if len(h.Pools) != 2 || h.Pools[1].Endpoints[0].Addr != netip.MustParseAddr("192.0.2.3") {
		t.Errorf("the pool of the host doesn't replace that of the policy: %v", h.Pools)
	}
	if !h.OwnRules || len(h.Rules) != 1 || !reflect.DeepEqual(h.Rules[0].List.Order, []string{"us", "eu"}) {
		t.Errorf("the list of the host doesn't replace that of the policy: %v", h.Rules)
	}
	d := b.Hosts[1]
	if d.OwnRules || d.TTL != 100 || d.FencedOK {
		t.Errorf("own rules %t, ttl %d, fenced_ok %t", d.OwnRules, d.TTL, d.FencedOK)
	}
	e := d.Pools[0].Endpoints
	if e[0].Weight != 0 || e[0].State != config.StateDrain || e[1].Weight != 7 || e[1].State != config.StateUp {
		t.Errorf("endpoints %v", e)
	}
}

// TestFitting holds what is fine although it looks like a mistake at first.
func TestFitting(t *testing.T) {
	const host = "\nhost a.example.com {\npool eu 192.0.2.1\npool us 192.0.2.2\n}\n"
	tests := map[string]string{
		"same value, same list":              "clients country DE { order eu us }\nclients country DE { order eu us }",
		"same value, both refused":           "clients country DE { refuse }\nclients country DE { refuse }",
		"narrower by in":                     "clients country DE { order eu us }\nclients country DE in asn 1 { order us eu }",
		"narrower prefix":                    "clients prefix 10.0.0.0/8 { order eu us }\nclients prefix 10.0.0.0/16 { order us eu }",
		"other kinds":                        "clients country DE { order eu us }\nclients asn 1 { order us eu }",
		"disjoint countries":                 "clients asn 1 in country DE { order eu us }\nclients asn 1 in country FR { order us eu }",
		"disjoint prefixes":                  "clients asn 1 in prefix 10.0.0.0/8 { order eu us }\nclients asn 1 in prefix 11.0.0.0/8 { order us eu }",
		"subdivision of another country":     "clients asn 1 in country FR { order eu us }\nclients asn 1 in subdivision DE-BE { order us eu }",
		"country of another subdivision":     "clients asn 1 in subdivision DE-BE { order eu us }\nclients asn 1 in country FR { order us eu }",
		"shared value in neither":            "clients country DE FR in asn 1 { order eu us }\nclients country DE in country FR { order us eu }",
		"shared system in neither":           "clients asn 1 2 in country DE { order eu us }\nclients asn 1 in asn 2 { order us eu }",
		"shared prefix in neither":           "clients prefix 10.0.0.0/8 11.0.0.0/8 in country DE { order eu us }\nclients prefix 10.0.0.0/8 in prefix 11.0.0.0/8 { order us eu }",
		"other files":                        "clients asn 1 in file f { order eu us }\nclients asn 1 in file g { order us eu }",
		"file and prefix":                    "clients asn 1 in file f { order eu us }\nclients asn 1 in prefix 10.0.0.0/8 { order us eu }",
		"same region twice":                  "region ap {\nclients country DE\nclients country DE FR\nclients rest\n}",
		"rest twice, same list":              "clients rest { order eu us }\nclients rest { order eu us }",
		"last resort inside a fence":         "area x country DE\nfence x eu\nlast_resort regions eu",
		"fenced_ok":                          "area x country DE\nfence x eu\nhost b.example.com {\npool eu 192.0.2.1\nlast_resort addresses 192.0.2.9\nfenced_ok\n}",
		"unreachable but in a fence":         "area x country DE\nfence x us\nhost b.example.com {\norder eu\npool eu 192.0.2.1\npool us 192.0.2.2\n}",
		"unreachable but a last resort":      "host b.example.com {\norder eu\npool eu 192.0.2.1\npool us 192.0.2.2\nlast_resort regions us\n}",
		"a region that only nets name":       "region ap\nnets n.txt",
		"a pool that nets may lead to":       "nets n.txt\nclients rest { order eu rest }\nclients country DE { order us }",
		"locations where clients decide":     "region ap { location 1 2 }\nclients rest { order eu us ap }",
		"weights where one family picks":     "host b.example.com {\nanswers 2\npool eu {\nendpoint 192.0.2.1 weight 2\nendpoint 192.0.2.2\nendpoint 192.0.2.3\nendpoint 2001:db8::1 weight 2\nendpoint 2001:db8::2\n}\n}",
		"IPv6 beside families v4":            "host b.example.com {\nfamilies v4\npool eu 192.0.2.1 2001:db8::1\npool us 192.0.2.2\n}",
		"weight 0 in a family not given":     "host b.example.com {\nfamilies v4\npool eu {\nendpoint 192.0.2.1\nendpoint 2001:db8::1 weight 0\n}\n}",
		"grain unwritten, low ecs max":       "ecs { max 8 16 }",
		"grain beyond max where ecs off":     "ecs off\nspread sticky 32 128",
		"clients without rest, own rules":    "host b.example.com {\nclients country DE { order eu us }\npool eu 192.0.2.1\npool us 192.0.2.2\n}",
		"an empty region block":              "region ap { }\nclients rest { order ap eu us }",
		"a policy nobody uses":               "policy x { ttl 5 }",
		"authority each, a plain name first": "check web {\nhttp /\nauthority each\n}\nhost b.example.com *.example.com {\ncheck web\npool eu 192.0.2.1\n}",
		"authority of a wildcard written":    "check web {\nhttp /\nauthority b.example.com\n}\nhost *.example.com {\ncheck web\npool eu 192.0.2.1\n}",
		"a pool's check replaces each":       "check web {\nhttp /\nauthority each\n}\ncheck alive { icmp }\nhost *.example.com {\ncheck web\npool eu {\nendpoint 192.0.2.1\ncheck alive\n}\n}",
		"a name like a word":                 "region region\nclients rest { order region eu us }",
	}
	for name, text := range tests {
		t.Run(name, func(t *testing.T) {
			text = "geoip city c\ngeoip asn a\nregion eu us\n" + text + host
			if _, err := parse(t, inBlock(text)); err != nil {
				t.Error(err)
			}
		})
	}
}

// TestWarnings holds what the operator is told although nothing is wrong.
func TestWarnings(t *testing.T) {
	const host = "\nhost a.example.com {\npool eu 192.0.2.1\n}\n"
	const two = "\nhost a.example.com {\npool eu 192.0.2.1\npool us 192.0.2.2\n}\n"
	tests := []struct {
		name, text string
		line       int // 0: no warning
		want       string
	}{
		{"nothing", "region eu" + host, 0, ""},
		{"refuse", "region eu\nclients file f { refuse }" + host, 4, "caches share negative answers"},
		{"refuse in a policy of two hosts", "region eu\npolicy x {\nclients file f { refuse }\nclients rest { order eu }\npool eu 192.0.2.1\n}\n" +
			"host a.example.com { policy x }\nhost b.example.com { policy x }", 5, "caches share negative answers"},
		{"long prefix", "region eu\nclients prefix 192.0.2.0/25 { order eu }" + host, 4, "prefix 192.0.2.0/25 is longer than ecs max"},
		{"long IPv6 prefix in an area", "region eu\narea x prefix 2001:db8::/57" + host, 4, "prefix 2001:db8::/57 is longer than ecs max"},
		{"long prefix without ecs", "region eu\necs off\nclients prefix 192.0.2.0/25 { order eu }" + host, 0, ""},
		{"locations alone", "region eu { location 1 2 }" + host, 3, "they get the order written"},
		{"locations and city", "geoip city c\nregion eu { location 1 2 }" + host, 0, ""},
		{"distance and rest", "geoip city c\nregion eu { clients rest }\nregion us { location 1 2 }" + two, 0, ""},
		{"distance and clients", "geoip city c\nregion eu { clients continent EU }\nregion us { location 1 2 }" + two, 0, ""},
		{"distance and nets", "geoip city c\nnets n.txt\nregion eu\nregion us { location 1 2 }" + two, 0, ""},
		{"distance where hosts have lists", "geoip city c\nregion eu { location 1 2 }\nregion us { location 1 2 }\nhost a.example.com {\norder eu us\npool eu 192.0.2.1\npool us 192.0.2.2\n}", 0, ""},
		{"city without locations", "geoip city c\nregion eu us" + two, 0, ""},
		{"next by distance beside a country database", "geoip country c\nregion eu {\nclients continent EU\nlocation 1 2\n}\nregion us {\nclients rest\nlocation 3 4\n}" + two, 0, ""},
		{"the block's map and an order for everybody", "latency m\nregion eu us\nhost a.example.com {\norder eu us\npool eu 192.0.2.1\npool us 192.0.2.2\n}", 6, "write `latency off` in the host"},
		{"the block's map and a split", "latency m\nregion eu us\nhost a.example.com {\nsplit eu 1 us 1\npool eu 192.0.2.1\npool us 192.0.2.2\n}", 0, ""},
		{"a host without the block's map", "latency m\nregion eu us\nhost a.example.com {\nlatency off\norder eu us\npool eu 192.0.2.1\npool us 192.0.2.2\n}", 0, ""},
		{"a host's own map", "latency m\nregion eu us\nhost a.example.com {\nlatency m\norder eu us\npool eu 192.0.2.1\npool us 192.0.2.2\n}", 0, ""},
		{"no host", "", 2, "the block has no host"},
		{"check that nobody uses", "region eu\ncheck web { http / }" + host, 4, "no pool uses check web"},
		{"check that a policy nobody uses names", "region eu\ncheck web { http / }\npolicy x { check web }" + host, 4, "no pool uses check web"},
		{"check of the block", "region eu\ncheck web { http / }\ncheck web" + host, 0, ""},
		{"probe without a check", "region eu\nhost a.example.com {\npool eu {\nendpoint 192.0.2.1 probe 10.0.0.1\n}\n}", 6, "its pool has no check"},
		{"probe of a written state", "region eu\ncheck web { http / }\nhost a.example.com {\ncheck web\npool eu {\nendpoint 192.0.2.1 probe 10.0.0.1 up\nendpoint 192.0.2.2 probe 10.0.0.2\n}\n}", 8, "with `up` written it is not probed"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			b := mustParse(t, inBlock(tt.text))
			if tt.line == 0 {
				if len(b.Warnings) != 0 {
					t.Errorf("warnings %v", b.Warnings)
				}
				return
			}
			if len(b.Warnings) != 1 || b.Warnings[0].Line != tt.line || !strings.Contains(b.Warnings[0].Text, tt.want) {
				t.Errorf("warnings %v, want %q at line %d", b.Warnings, tt.want, tt.line)
			}
		})
	}
}
