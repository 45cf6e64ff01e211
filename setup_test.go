package gslb

import (
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/coredns/caddy"
	"github.com/coredns/coredns/core/dnsserver"
)

func TestSetup(t *testing.T) {
	for _, tc := range []struct {
		name, text, want string
	}{
		{"good", "gslb {\nregion eu\nhost api.example.com {\npool eu 192.0.2.1\n}\n}", ""},
		{"unknown word", "gslb {\nregoin eu\n}", `Testfile:2: unknown word "regoin"`},
		{"missing database", "gslb {\ngeoip country nope.mmdb\nregion eu {\nclients rest\n}\nhost api.example.com {\npool eu 192.0.2.1\n}\n}",
			"Testfile:2: geoip country:"},
		{"wrong database", "gslb {\ngeoip city testdata/world-country.mmdb\nregion eu {\nlocation 50 8\n}\nhost api.example.com {\npool eu 192.0.2.1\n}\n}",
			"country"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			c := caddy.NewTestController("dns", tc.text)
			c.ServerBlockKeys = []string{"example.com.:1053"}
			err := setup(c)
			switch {
			case tc.want == "" && err != nil:
				t.Error(err)
			case tc.want != "" && (err == nil || !strings.Contains(err.Error(), tc.want)):
				t.Errorf("got %v, want %s", err, tc.want)
			}
		})
	}
}

func TestRoot(t *testing.T) {
	root := t.TempDir()
	if err := os.WriteFile(filepath.Join(root, "nets.txt"), []byte("198.51.100.0/24 us\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	c := caddy.NewTestController("dns", "gslb {\nnets nets.txt\nregion eu us\nhost api.example.com {\npool eu 192.0.2.1\npool us 192.0.2.2\n}\n}")
	c.ServerBlockKeys = []string{"example.com."}
	dnsserver.GetConfig(c).Root = root
	g, err := parse(c)
	if err != nil {
		t.Fatal(err)
	}
	h, _ := g.live.Load().plan.Find("example.com.", "api.example.com.")
	if got := h.First(h.Locate(netip.Prefix{}, netip.MustParseAddr("198.51.100.1")).List); got != "us" {
		t.Errorf("got %s, want us", got)
	}
}

func TestCheckOrder(t *testing.T) {
	order := func(words ...string) []string { return words }
	all := map[string][]string{"cache": {"cache"}, "dnssec": {"dnssec"}, "minimal": {"minimal"}, "file": {"file"}}
	for _, tc := range []struct {
		name  string
		order []string
		want  string
	}{
		{"right", order("cache", "dnssec", "gslb", "minimal", "file"), ""},
		{"before dnssec", order("cache", "gslb", "dnssec", "file"), "before dnssec"},
		{"before cache", order("gslb", "cache"), "before cache"},
		{"after file", order("cache", "dnssec", "file", "gslb"), "after file"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			err := checkOrder(tc.order, all)
			if (err == nil) != (tc.want == "") || err != nil && !strings.Contains(err.Error(), tc.want) {
				t.Errorf("got %v, want %q", err, tc.want)
			}
		})
	}
	if err := checkOrder(order("gslb", "dnssec"), nil); err != nil {
		t.Errorf("plugins that are not used matter: %v", err)
	}
}

// TestNeighbours starts the checks that need the other plugins.
func TestNeighbours(t *testing.T) {
	g := load(t, block("fallthrough\nns ns1.example.net."), zoneBelow(t))
	err := g.checkNeighbours(nil)
	if err == nil || !strings.Contains(err.Error(), "a plugin below answers the SOA of example.com.") {
		t.Errorf("got %v", err)
	}
	g = load(t, block("fallthrough"), zoneBelow(t))
	if err := g.checkNeighbours(nil); err != nil {
		t.Error(err)
	}
}

// TestGenerations plays the orders in which CoreDNS starts and ends loads of
// the Corefile.
func TestGenerations(t *testing.T) {
	var r registry
	instance := func() *GSLB { return load(t, block(""), nil) }
	stopped := func(g *GSLB) bool { return g.files.cancel != nil && !slices.Contains(r.instances(), g) }
	a1, a2, b, c := instance(), instance(), instance(), instance()
	load := func(instances ...*GSLB) *generation { return &generation{loaded: instances} }
	first, second, third := load(a1, a2), load(b), load(c)

	r.start(first, a1)
	r.start(first, a2)
	if !r.ready() || stopped(a1) || stopped(a2) {
		t.Error("one generation of two instances: one was stopped, or it isn't ready")
	}

	r.start(second, b) // then a later plugin fails
	r.onlyLive(func(gen *generation) bool { return gen == first })
	if !stopped(b) || stopped(a1) {
		t.Error("a failed load was not dropped, or the live one was")
	}

	second = load(b)
	r.start(second, b)
	// A foreign plugin's OnShutdown fails, so ours is never called for first.
	r.start(third, c)
	if !stopped(a1) || !stopped(a2) || stopped(b) || stopped(c) {
		t.Error("the generation before the live one was not dropped by the next load")
	}
	r.stop(second)
	if !stopped(b) || stopped(c) || !r.ready() {
		t.Error("the old generation was not stopped")
	}
	r.stop(third)
	r.stop(third)
	if !stopped(c) || r.ready() {
		t.Error("the last generation was not stopped")
	}
}

func TestNoHandlerLeft(t *testing.T) {
	g := load(t, block("fallthrough"), nil)
	if err := g.checkNeighbours(nil); err != nil {
		t.Error(err)
	}
	if g.falls("example.com.") {
		t.Error("falls through to nobody")
	}
}
