package plan_test

import (
	"fmt"
	"math/rand/v2"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/seed-945f90c5/gslb/internal/config"
	"github.com/seed-945f90c5/gslb/internal/plan"
	"github.com/seed-945f90c5/gslb/internal/steer"
)

// answers is what names resolve to; "?" for one that is about to be known.
type answers map[string]string

func (k answers) options() plan.Options {
	return plan.Options{Resolve: func(name string, _ time.Duration) (addrs []netip.Addr, pending bool) {
		for word := range strings.FieldsSeq(k[name]) {
			if word == "?" {
				return nil, true
			}
			addrs = append(addrs, netip.MustParseAddr(word))
		}
		return addrs, false
	}}
}

// resolve gives the plan of statements with what is known of names.
func resolve(t *testing.T, p *plan.Plan, k answers) *plan.Plan {
	t.Helper()
	next, err := p.Resolved(k.options())
	if err != nil {
		t.Fatal(err)
	}
	return next
}

// endpoints writes a host's endpoints by pool: "REGION ADDRESS[*WEIGHT] …".
func endpoints(h *plan.Host) string {
	var all []string
	for _, p := range h.Config.Pools {
		words := []string{p.Region}
		for _, e := range p.Endpoints {
			word := fmt.Sprintf("%s*%d", e.Addr, e.Weight)
			if e.Probe.IsValid() {
				word += " probe " + e.Probe.String()
			}
			if e.State != config.StateAuto {
				word += fmt.Sprintf(" state %v", e.State)
			}
			words = append(words, word)
		}
		all = append(all, strings.Join(words, " "))
	}
	return strings.Join(all, ", ")
}

// offers writes the families that a host offers.
func offers(h *plan.Host) string {
	var all []string
	for f := steer.V4; f <= steer.V6; f++ {
		if h.Steer.Offers(f) {
			all = append(all, f.String())
		}
	}
	return strings.Join(all, " ")
}

const balancers = `resolvers 127.0.0.53
region us eu
host api.example.com *.api.example.com {
	order us eu
	pool us {
		target one.example.net weight 3
		target two.example.net probe :8443
		endpoint 192.0.2.9
		answers 1
	}
	pool eu {
		target old.example.net drain
		target two.example.net up
	}
}
host plain.example.com {
	order us
	pool us 192.0.2.1
}`

func TestResolved(t *testing.T) {
	p := build(t, "", balancers)
	if got := strings.Join(p.Targets(), " "); got != "old.example.net. one.example.net. two.example.net." {
		t.Errorf("targets %s", got)
	}
	first := resolve(t, p, answers{
		"one.example.net.": "192.0.2.1 192.0.2.9 2001:db8::1", "two.example.net.": "192.0.2.1 192.0.2.2", "old.example.net.": "192.0.2.7",
	})
	want := fmt.Sprintf("us 192.0.2.9*1 192.0.2.1*3 2001:db8::1*3 192.0.2.2*1 probe 192.0.2.2:8443, eu 192.0.2.7*1 state %v 192.0.2.1*1 state %v 192.0.2.2*1 state %[2]v",
		config.StateDrain, config.StateUp)
	if got := endpoints(first.Hosts[0]); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	if first.Digest != p.Digest || first.Config != p.Config {
		t.Error("the digest depends on what targets resolve to")
	}
	if first.Hosts[1] != p.Hosts[1] || first.Hosts[0].Need != p.Hosts[0].Need {
		t.Error("what has no targets is made anew")
	}
	for _, name := range []string{"api.example.com.", "x.api.example.com."} {
		if h, _ := first.Find("example.com.", name); h != first.Hosts[0] {
			t.Errorf("%s is found as it was before", name)
		}
	}
	if again := resolve(t, first, answers{
		"one.example.net.": "192.0.2.1 192.0.2.9 2001:db8::1", "two.example.net.": "192.0.2.1 192.0.2.2", "old.example.net.": "192.0.2.7",
	}); again != first {
		t.Error("the same addresses make another plan")
	}
	second := resolve(t, first, answers{"one.example.net.": "192.0.2.4", "two.example.net.": "?"})
	if got := endpoints(second.Hosts[0]); got != "us 192.0.2.9*1 192.0.2.4*3, eu" {
		t.Errorf("got %s", got)
	}
	if got := second.Hosts[0].Unresolved(); !slices.Equal(got, []string{"old.example.net.", "two.example.net."}) || !second.Hosts[0].Unknown() {
		t.Errorf("unresolved %s, unknown %v", got, second.Hosts[0].Unknown())
	}
	if third := resolve(t, second, answers{"one.example.net.": "192.0.2.4"}); third == second || third.Hosts[0].Unknown() {
		t.Error("a name that was asked for in vain counts as one that is about to be known")
	}
}

// Of very many addresses as many are taken as could be written.
func TestResolvedIsBounded(t *testing.T) {
	var text strings.Builder
	many := answers{}
	for i := range 64 {
		name := fmt.Sprintf("lb-%d.example.net.", i)
		fmt.Fprintf(&text, "target %s\n", name)
		for j := range 64 {
			many[name] += fmt.Sprintf("10.0.%d.%d ", i, j)
		}
	}
	p := build(t, "", "resolvers 127.0.0.53\nregion us\nhost a.example.com {\norder us\npool us {\n"+text.String()+"}\n}")
	if n := len(resolve(t, p, many).Hosts[0].Config.Pools[0].Endpoints); n != plan.MaxResolved {
		t.Errorf("%d endpoints, want %d", n, plan.MaxResolved)
	}
	if got := p.MaxSets(); got != 2*plan.MaxResolved {
		t.Errorf("%d sets, want %d", got, 2*plan.MaxResolved)
	}
}

// TestOffered has targets of different families: nobody is sent to another region for
// one of them, and nothing is denied for want of a resolver.
func TestOffered(t *testing.T) {
	const v4, v6, both = "192.0.2.1", "2001:db8::1", "192.0.2.1 2001:db8::1"
	for _, tc := range []struct {
		name    string
		host    string // words of the host
		us, eu  string // what the targets resolve to
		want    string
		unknown bool
	}{
		{"both in both", "", both, both, "v4 v6", false},
		{"AAAA in one", "", both, v4, "v4", false},
		{"AAAA in one, mixed", "families mixed", both, v4, "v4 v6", false},
		{"A in one", "", both, v6, "v6", false},
		{"nothing in common", "", v4, v6, "v4 v6", false},
		{"one has none", "", both, "", "v4 v6", false},
		{"one has none and the other one family", "", "", v4, "v4", false},
		{"one is pending", "", v4, "?", "v4 v6", true},
		{"all are lost", "", "", "", "v4 v6", true},
		{"all are lost, v6 alone", "families v6", "", "", "v6", true},
		{"v4 alone", "families v4", both, both, "v4", false},
		{"a name in one", "NAME", both, v4, "v4", false},
		{"a name of AAAA only", "NAME", v6, v4, "v4", false},
		{"a name alone", "NAME", v4, "", "v4 v6", false},
		{"fenced, mixed", "FENCE families mixed", both, v4, "v4", false},
		{"fenced, the fence decides", "FENCE families mixed", v6, v4, "v4", false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			text := "resolvers 127.0.0.53\nregion us eu\n"
			if host, ok := strings.CutPrefix(tc.host, "FENCE "); ok {
				tc.host = host
				text += "area gdpr prefix 198.51.100.0/24\nfence gdpr eu\n"
			}
			host, cname := strings.CutPrefix(tc.host, "NAME")
			text += "host a.example.com {\norder us eu\n" + host + "\npool us {\ntarget us.example.net\n"
			if cname {
				text += "cname\n"
			}
			p := build(t, "", text+"}\npool eu {\ntarget eu.example.net\n}\n}")
			h := resolve(t, p, answers{"us.example.net.": tc.us, "eu.example.net.": tc.eu}).Hosts[0]
			if got := offers(h); got != tc.want || h.Unknown() != tc.unknown {
				t.Errorf("offers %s, unknown %v; want %s, %v", got, h.Unknown(), tc.want, tc.unknown)
			}
		})
	}
}

// TestOfferedToAll holds, for random addresses, that an offered family is one that
// every list has that leads to any address, unless none is.
func TestOfferedToAll(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	p := build(t, "", `resolvers 127.0.0.53
region a b c
area x prefix 198.51.100.0/24
area y prefix 203.0.113.0/24
fence x a
fence y b c
host h.example.com {
	families mixed
	order a b c
	pool a { target a.example.net
	}
	pool b { target b.example.net
	}
	pool c { target c.example.net
	}
}`)
	choices := []string{"", "192.0.2.1", "2001:db8::1", "192.0.2.1 2001:db8::1"}
	lists := [][]int{{0}, {1, 2}, {0, 1, 2}}
	for range 200 {
		pools := make([]string, 3)
		k := answers{}
		for i, name := range []string{"a", "b", "c"} {
			pools[i] = choices[r.IntN(4)]
			k[name+".example.net."] = pools[i]
		}
		h := resolve(t, p, k).Hosts[0]
		some, common := false, [2]bool{true, true}
		for _, l := range lists {
			all := ""
			for _, i := range l {
				all += " " + pools[i]
			}
			if strings.TrimSpace(all) != "" {
				some = true
				common[0], common[1] = common[0] && strings.Contains(all, "."), common[1] && strings.Contains(all, ":")
			}
		}
		for f, is := range common {
			if !some || common == [2]bool{} {
				continue
			}
			if has := strings.Contains(strings.Join(pools, " "), []string{".", ":"}[f]); h.Steer.Offers(steer.Family(f)) != (is && has) {
				t.Errorf("%q: offers %s, but all lists have %v", pools, offers(h), common)
			}
		}
		if some && offers(h) == "" || h.Unknown() == some {
			t.Errorf("%q: offers %q, unknown %v", pools, offers(h), h.Unknown())
		}
	}
}

// The sets that may be signed count targets with all that they may ever have.
func TestMaxSetsOfTargets(t *testing.T) {
	host := func(pool string) string {
		return "resolvers 127.0.0.53\nregion us\nhost a.example.com {\norder us\npool us {\n" + pool + "\n}\n}"
	}
	for _, tc := range []struct {
		pool string
		want int
	}{
		{"target lb.example.net\nanswers all", 2},
		{"target lb.example.net\nanswers 1", 128},
		{"target lb.example.net\nendpoint 192.0.2.9\nanswers 1", 129},
		{"target lb.example.net\ntarget lb-2.example.net weight 5\nanswers 1", 256},
	} {
		p := build(t, "", host(tc.pool))
		for _, k := range []answers{{}, {"lb.example.net.": "192.0.2.1 192.0.2.2 2001:db8::1"}} {
			if got := resolve(t, p, k).MaxSets(); got != tc.want {
				t.Errorf("%s with %v: %d sets, want %d", tc.pool, k, got, tc.want)
			}
		}
	}
	if got := build(t, "", host("target lb.example.net\ncname")).MaxSets(); got > 1 {
		t.Errorf("%d sets of one name", got)
	}
}

// Assumed is what is compared over a restart: it must not depend on the network.
func TestAssumed(t *testing.T) {
	p := build(t, "", balancers)
	flow := func(p *plan.Plan) string {
		h := p.Assumed().Hosts[0]
		return fmt.Sprint(offers(h), h.Steer.Flow(h.Steer.NewSnapshot(func(steer.Region, int) steer.EndpointState { return steer.EndpointState{Verdict: steer.Up} }, nil), 0, steer.V4))
	}
	want := flow(p)
	if !strings.HasPrefix(want, "v4 v6[1") {
		t.Errorf("assumed: %s, want all at the first region", want)
	}
	if got := flow(resolve(t, p, answers{"old.example.net.": "192.0.2.7"})); got != want {
		t.Errorf("got %s once resolved, and %s before", got, want)
	}
	if plain := build(t, "", "region us\nhost a.example.com {\norder us\npool us 192.0.2.1\n}"); plain.Assumed() != plain {
		t.Error("a plan without targets is assumed to be another")
	}
}

// The warning about signatures says how targets are counted.
func TestSignedTargetsWarning(t *testing.T) {
	for text, want := range map[string]bool{
		"resolvers 127.0.0.53\nregion us\nhost a.example.com {\norder us\npool us {\ntarget lb.example.net\nanswers 1\n}\n}": true,
		"region us\nhost a.example.com {\norder us\npool us 192.0.2.1\n}":                                                    false,
	} {
		p := build(t, "", text)
		warnings := p.Block.NeighbourWarnings(map[string][]string{"dnssec": {"dnssec", "{", "cache_capacity", "1", "}"}}, p.Signed())
		if len(warnings) != 1 || strings.Contains(warnings[0].Text, "64 addresses of each family") != want {
			t.Errorf("warnings %v for\n%s", warnings, text)
		}
	}
}
