package guard

import (
	"fmt"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/seed-945f90c5/gslb/internal/steer"
)

// base is a block that has no guards of its own: clients of 198.51.100.0/24, and of
// 203.0.113.0/24 behind a fence, apart from the rest.
const base = `
region eu us ap
area held prefix 203.0.113.0/24
fence held ap
clients prefix 198.51.100.0/24 {
order us eu
}
clients rest {
order eu us ap
}
host api.example.com {
pool eu 192.0.2.1
pool us 192.0.2.2
pool ap 192.0.2.3
}
`

// alone is a block whose clients all have one list.
const alone = "region eu us\nclients rest {\norder eu us\n}\nhost api.example.com {\npool eu 192.0.2.1\npool us 192.0.2.2\n}\n"

// halves gives the lower half of IPv4 a list, and many small prefixes in the upper half
// another one.
func halves(list string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "clients prefix 0.0.0.0/1 {\n%s\n}\nclients prefix", list)
	for i := range 200 {
		fmt.Fprintf(&b, " 130.%d.%d.0/24", i/100, 2*(i%100))
	}
	b.WriteString(" {\norder ap us eu\n}\n")
	return b.String()
}

// many has clients in small prefixes apart from the rest.
var many = base + halves("order eu us ap")

func from(resolvers string) string { return "ecs {\nfrom " + resolvers + "\n}\n" }

// changed is base with some of its words replaced: old, new, ….
func changed(words ...string) string { return strings.NewReplacer(words...).Replace(base) }

func down(pool string) []string { return []string{pool, "{\nendpoint " + pool + " down\n}"} }

// TestRefusals sees every guard refuse, and let through.
func TestRefusals(t *testing.T) {
	for _, tc := range []struct {
		name, before, after string
		want                []string // of each refusal a part; "": none
	}{
		{"nothing changes", base, base, nil},
		{"usable, fenced", base, changed(down("192.0.2.3")...),
			[]string{"guard usable: host api.example.com. (v4) would have no usable region left for 0.", "the candidate list [ap], which a fence holds there"}},
		{"usable, but it was so before", changed(down("192.0.2.3")...), changed(append(down("192.0.2.3"), "198.51.100.0/24", "198.51.100.0/25")...), nil},
		{"usable, another list than before", changed(down("192.0.2.3")...), changed(append(down("192.0.2.3"), "203.0.113.0/24", "192.88.99.0/24")...),
			[]string{"guard usable: host api.example.com. (v4) would have no usable region left for 0."}},
		{"usable, all are gone", base, changed("{\npool eu 192.0.2.1\npool us 192.0.2.2\npool ap 192.0.2.3", "{\npool eu {\nendpoint 192.0.2.1 drain\n}\npool us {\nendpoint 192.0.2.2 drain\n}\npool ap {\nendpoint 192.0.2.3 drain\n}"),
			[]string{"for 100.0% of its blocks", "and 2 other lists", "asking for A would get another region at once; the limit is 50% (100.0% from eu to none)"}},
		{"usable, of a host that is new", base, base + "host new.example.com {\npool eu {\nendpoint 192.0.2.9 down\n}\npool ap 192.0.2.3\norder eu\nfenced_ok\n}\n",
			[]string{"guard usable: host new.example.com. (v4) would have no usable region left"}},
		{"a host that is new", base, base + "host new.example.com {\npool ap 192.0.2.9\norder ap\n}\n", nil},
		{"a host less", base + "host new.example.com {\npool ap 192.0.2.9\norder ap\n}\n", base, nil},
		{"a family that is new", base, changed("192.0.2.1", "192.0.2.1 2001:db8::1", "192.0.2.2", "192.0.2.2 2001:db8::2", "192.0.2.3", "192.0.2.3 2001:db8::3"), nil},
		{"a family that is gone", changed("192.0.2.1", "192.0.2.1 2001:db8::1", "192.0.2.2", "192.0.2.2 2001:db8::2", "192.0.2.3", "192.0.2.3 2001:db8::3"), base,
			[]string{" asking for AAAA would get another region at once; the limit is 50% (100.0% from eu to none)"}},
		{"a family that is down everywhere", changed("192.0.2.1", "192.0.2.1 2001:db8::1", "192.0.2.2", "192.0.2.2 2001:db8::2", "192.0.2.3", "192.0.2.3 2001:db8::3"),
			changed("pool eu 192.0.2.1", "pool eu {\nendpoint 192.0.2.1\nendpoint 2001:db8::1 down\n}", "pool us 192.0.2.2", "pool us {\nendpoint 192.0.2.2\nendpoint 2001:db8::2 down\n}", "192.0.2.3", "192.0.2.3 2001:db8::3"),
			[]string{"host api.example.com. (v6) would have no usable region left", "guard max_move"}},
		{"max_move", base, changed("order eu us ap", "order us eu ap"), []string{"% of the blocks of IPv6 resolvers asking for A and 100.0% of the address space of IPv4 clients asking for A would get another region at once; the limit is 50% (100.0% from eu to us)"}},
		{"max_move, a few large blocks", base + halves("order eu us ap"), base + halves("order us eu ap"),
			[]string{"guard max_move: 57.2% of the address space of IPv4 clients asking for A would get another region at once; the limit is 50% (57.2% from eu to us)"}},
		{"max_move, many small blocks", base + halves("order eu us ap"), base + strings.ReplaceAll(halves("order eu us ap"), "order ap us eu", "order us ap eu") + "guard max_move 30%",
			[]string{"% of the blocks of IPv4 clients asking for A would get another region at once; the limit is 30%"}},
		{"the key of a split", changed("order eu us ap", "split eu 1 us 1 ap 1") + "spread sticky", changed("order eu us ap", "split eu 1 us 1 ap 1") + "spread resolver",
			[]string{"% of the blocks of IPv6 clients asking for A"}},
		{"the grain of a split", changed("order eu us ap", "split eu 1 us 1 ap 1") + "spread sticky", changed("order eu us ap", "split eu 1 us 1 ap 1") + "spread sticky 20 40",
			[]string{"58.1% of the blocks of IPv4 clients asking for A"}},
		{"the key where nothing is split", base + "spread sticky", base + "spread resolver", nil},
		{"ecs off", base, base + "ecs off", []string{"guard max_move: client subnets have counted from everybody and would count from nobody: it isn't known how many clients would get another region by that; the limit is 50%"}},
		{"ecs on", base + "ecs off", base, []string{"from nobody and would count from everybody"}},
		{"ecs off, and all may move", base, base + "ecs off\nguard max_move 100%", nil},
		{"ecs off, where all have one list", alone, alone + "ecs off", nil},
		{"ecs from some", base, base + from("192.0.2.0/24"), []string{"from everybody and would count from some resolvers"}},
		{"ecs from others", base + from("192.0.2.0/24 2001:db8::/32"), base + from("198.51.100.0/24"), []string{"from some resolvers and would count from none of these but of others"}},
		{"ecs from one less and one more", base + from("192.0.2.0/24 2001:db8::/32"), base + from("2001:db8::/48 198.51.100.0/24"), nil},
		{"a smaller ecs max", base, base + "ecs {\nmax 20 40\n}", nil},
		{"an ecs max that hides who is apart", many, many + "guard max_move 40%\necs {\nmax 8 8\n}", []string{"guard max_move: ", "% of the blocks of IPv4 clients asking for A would get another region"}},
		{"max_move is more", base, changed("order eu us ap", "order us eu ap") + "guard max_move 100%", nil},
		{"max_move is less", base, changed("order us eu", "order ap eu") + "guard max_move 0%", []string{"the limit is 0% (1.", " from us to ap)"}},
		{"max_move at its limit", base, changed("order us eu", "order ap eu") + "guard max_move 10%", nil},
		{"a region by another name", base, strings.NewReplacer("eu", "europe").Replace(base), nil},
		{"a region by another name, and other endpoints", base, changed("eu", "europe", "192.0.2.1", "192.0.2.7"), []string{"from eu to europe"}},
		{"a host by another first name", base, changed("host api.example.com", "host new.example.com api.example.com", "order eu us ap", "order us eu ap"), []string{"guard max_move"}},
		{"a host out of a wildcard", changed("host api.example.com", "host *.example.com"), changed("order eu us ap", "order us eu ap"), []string{"guard max_move"}},
		{"an order and dials that flows don't tell", changed("order eu us ap", "split eu 1 us 1"), changed("order eu us ap", "split us 1 ap 1"), []string{"guard max_move"}},
		{"require", base, changed(down("192.0.2.2")...) + "guard require 2 of eu us\nguard max_move 100%", []string{"guard require: host api.example.com. would have only eu of [eu us] in use; required are 2"}},
		{"require, the second of several", base, changed(down("192.0.2.2")...) + "guard require 1 of eu us\nguard require 3 of eu us ap\nguard max_move 100%", []string{"only eu ap of [eu us ap] in use; required are 3"}},
		{"require, still enough", base, changed(down("192.0.2.2")...) + "guard require 2 of eu us ap\nguard max_move 100%", nil},
		{"require, but it was so before", changed(down("192.0.2.2")...), changed(append(down("192.0.2.2"), "198.51.100.0/24", "198.51.100.0/25")...) + "guard require 2 of eu us", nil},
		{"require, a host with fewer pools", base, changed("pool us 192.0.2.2\n", "", "order us eu", "order eu") + "guard require 2 of eu us\nguard max_move 100%", nil},
		{"require, two hosts", base, changed(down("192.0.2.2")...) + "host two.example.com {\npool eu 192.0.2.1\npool us {\nendpoint 192.0.2.2 down\n}\npool ap 192.0.2.3\n}\nguard require 2 of eu us\nguard max_move 100%",
			[]string{"required are 2, and 1 more host"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			report, after := compared(t, tc.before, tc.after)
			list := Refusals(&after.Plan.Block.Guard, report, after)
			text := ""
			if err := Error(after.Plan.Block, list, time.Unix(0, 0)); err != nil {
				text = err.Error()
			}
			for _, want := range tc.want {
				if !strings.Contains(text, want) {
					t.Errorf("%q is missing in %s", want, text)
				}
			}
			if len(tc.want) == 0 && text != "" {
				t.Errorf("refused: %s", text)
			}
		})
	}
}

// Demand has a say once there are a thousand resolutions.
func TestRefusalByDemand(t *testing.T) {
	p, after := build(t, base), written(build(t, changed("order us eu", "order ap eu")))
	list := p.Hosts[0].Locate(netip.MustParsePrefix("198.51.100.0/24"), netip.MustParsePrefix("198.51.100.0/24").Addr()).List
	for _, tc := range []struct {
		demand float64
		want   string
	}{
		{400, ""}, {900, "guard max_move: 90.0% of the demand of late would get another region at once; the limit is 50% (90.0% from us to ap)"},
	} {
		before := written(p)
		before.Demand = [][]float64{make([]float64, len(p.Hosts[0].Need.Topology.Lists))}
		for l := range before.Demand[0] {
			if before.Demand[0][l] = 100 / float64(len(before.Demand[0])-1); l == list {
				before.Demand[0][l] = tc.demand
			}
		}
		r := Compare([]Pair{{before, after}})
		refused := Refusals(&after.Plan.Block.Guard, r, after)
		if got := ""; len(refused) > 0 {
			got = refused[0].String()
			if got != tc.want {
				t.Errorf("%v: %s", tc.demand, got)
			}
		} else if tc.want != "" {
			t.Errorf("%v: let through, %+v", tc.demand, r)
		}
		if !r.Known || r.Total != 100+tc.demand {
			t.Errorf("total %v", r.Total)
		}
	}
}

// TestRefusalByUse fills regions, and a pool that has a capacity of its own.
func TestRefusalByUse(t *testing.T) {
	capacity := func(more string) string {
		return strings.Replace(changed("pool ap 192.0.2.3", "pool ap {\nendpoint 192.0.2.3\ncapacity 10\n}"), "region eu us ap", "region ap\nregion eu {\ncapacity 100\n}\nregion us {\ncapacity 200\n}", 1) + "guard max_use 80%\nguard max_move 100%\n" + more
	}
	p := build(t, capacity(""))
	before := written(p)
	h := p.Hosts[0]
	loads := make([]float64, len(h.Need.Topology.Lists))
	rest := h.Locate(netip.MustParsePrefix("8.8.8.0/24"), netip.MustParsePrefix("8.8.8.0/24").Addr()).List
	loads[rest] = 90
	before.Load = [][]float64{loads}
	for _, tc := range []struct{ name, text, want string }{
		{"too much before, and no more after", capacity(""), ""},
		{"to where there is room", strings.Replace(capacity(""), "order eu us ap", "order us eu ap", 1), ""},
		{"to a small pool", strings.Replace(capacity(""), "order eu us ap", "order ap eu us", 1), "guard max_use: api.example.com. ap would be expected at 900% of its capacity, now 0%; the limit is 80%"},
		{"less capacity", strings.Replace(capacity(""), "capacity 100", "capacity 90", 1), "guard max_use: eu would be expected at 100% of its capacity, now 90%; the limit is 80%"},
		{"more room", strings.Replace(capacity(""), "capacity 100", "capacity 110", 1), ""},
		{"off", strings.NewReplacer("order eu us ap", "order ap eu us", "guard max_use 80%\n", "").Replace(capacity("")), ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			after := written(build(t, tc.text))
			var got []string
			for _, r := range Refusals(&after.Plan.Block.Guard, Compare([]Pair{{before, after}}), after) {
				got = append(got, r.String())
			}
			if strings.Join(got, "|") != tc.want {
				t.Errorf("got %q", got)
			}
		})
	}
}

func TestHostsAndGone(t *testing.T) {
	few, enough := build(t, base+"guard hosts 2"), build(t, base+"guard hosts 1")
	if got := Hosts(enough); got != nil {
		t.Errorf("refused %v", got)
	}
	err := Error(few.Block, Hosts(few), time.Date(2026, 11, 30, 3, 0, 0, 0, time.UTC))
	const want = "refused: Corefile:17: guard hosts: the block has 1 hosts, fewer than 2: look for an import that matches no file, as that leaves hosts out without an error. " +
		"If it is meant, write `guard accept \"WHY\" until 2026-11-30T04:00:00Z` into the gslb block at Corefile:1"
	if err == nil || err.Error() != want {
		t.Errorf("%v", err)
	}
	g := &few.Block.Guard
	for _, tc := range []struct {
		served, gone []string
		want         string
	}{
		{nil, nil, ""},
		{[]string{"a", "b"}, []string{"a"}, ""},
		{[]string{"a", "b", "c"}, []string{"c", "a"}, "guard hosts: 2 of the 3 host names in service would be gone, such as a c, more than max_move 50%"},
	} {
		got := Gone(g, tc.served, tc.gone)
		if tc.want == "" && got != nil || tc.want != "" && (got == nil || !strings.HasPrefix(got[0].String(), tc.want)) {
			t.Errorf("%v of %v: %v", tc.gone, tc.served, got)
		}
	}
}

// TestAccepted goes by the clock, and by the first that holds.
func TestAccepted(t *testing.T) {
	g := &build(t, base+"guard accept old until 2026-11-30T02:00:00Z\nguard accept move~to~ap until 2026-11-30T04:00:00Z").Block.Guard
	for at, want := range map[string]string{"2026-11-30T01:59:59Z": "old", "2026-11-30T02:00:00Z": "move to ap", "2026-11-30T04:00:00Z": ""} {
		now, err := time.Parse(time.RFC3339, at)
		if err != nil {
			t.Fatal(err)
		}
		if why, ok := Accepted(g, now); why != want || ok != (want != "") {
			t.Errorf("%s: %q %v", at, why, ok)
		}
	}
}

// Worse looks at one plan in two states, and at nothing that merely moves.
func TestWorse(t *testing.T) {
	p := build(t, base+"guard require 2 of eu us")
	state := func(down ...steer.Region) *Side {
		s := &Side{Plan: p}
		for _, h := range p.Hosts {
			s.Snapshots = append(s.Snapshots, h.Steer.NewSnapshot(func(r steer.Region, _ int) steer.EndpointState {
				for _, d := range down {
					if d == r {
						return steer.EndpointState{Verdict: steer.Drained}
					}
				}
				return steer.EndpointState{}
			}, nil))
		}
		return s
	}
	for _, tc := range []struct {
		name          string
		before, after *Side
		want          string
	}{
		{"nothing", state(), state(), ""},
		{"a required region", state(), state(0), "require"},
		{"a fenced region", state(), state(2), "usable"},
		{"both", state(1), state(0, 1, 2), "usable require"},
		{"another as bad", state(0), state(1), ""},
		{"back", state(0, 1, 2), state(0), ""},
	} {
		var got []string
		for _, r := range Worse(&p.Block.Guard, tc.before, tc.after) {
			got = append(got, r.Guard)
		}
		if strings.Join(got, " ") != tc.want {
			t.Errorf("%s: refused by %v; want %s", tc.name, got, tc.want)
		}
	}
}
