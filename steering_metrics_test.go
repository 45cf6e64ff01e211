package gslb

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed-945f90c5/gslb/internal/control"

	"github.com/prometheus/client_golang/prometheus"
)

// changes keeps the values that each series of the collector has had.
type changes map[string]map[float64]bool

// gather adds the values of now.
func (c changes) gather(t *testing.T, r *registry) {
	t.Helper()
	reg := prometheus.NewPedanticRegistry() // it holds that no series is there twice
	reg.MustRegister(steeringCollector{r})
	families, err := reg.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		for _, m := range f.Metric {
			var labels []string
			for _, l := range m.Label {
				if l.GetName() != "view" {
					labels = append(labels, l.GetValue())
				}
			}
			key := strings.TrimPrefix(f.GetName(), "coredns_gslb_") + " " + strings.Join(labels, " ")
			if c[key] == nil {
				c[key] = make(map[float64]bool)
			}
			c[key][m.GetGauge().GetValue()+m.GetCounter().GetValue()] = true
		}
	}
}

// TestSteeringMetricsChange sees every metric of capacity and levers take another value when
// what it tells of does.
func TestSteeringMetricsChange(t *testing.T) {
	p := newPlant(t, 60)
	p.write(t)
	seen := make(changes)
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		r := w.registry()
		text := strings.Replace(p.block("check web\nspread resolver"), "host api", "guard max_move 100%\ncheck web {\nhttp :8080 /\n}\nhost api", 1)
		gen, g := r.mustStart(t, text)
		run := func(span time.Duration) {
			for range span / (15 * time.Second) {
				p.run(t, g, 15*time.Second)
				seen.gather(t, r)
			}
		}
		reload := func(text string) {
			old := gen
			gen, g = r.mustStart(t, text)
			r.stop(old)
			run(30 * time.Second)
		}
		run(2 * time.Minute)
		p.demand = 250 // more than both can take
		run(8 * time.Minute)
		for i := range 2000 { // one resolver more than all others
			serveFrom(t, g, ask("api.example.com.", 1, ""), fmt.Sprintf("10.1.%d.1", i%2*i%200))
		}
		run(time.Minute)
		replace(t, p.dir+"/us", []byte("1e9\n"))
		time.Sleep(20 * time.Second)
		seen.gather(t, r)
		replace(t, p.dir+"/us", []byte("nothing\n"))
		time.Sleep(time.Minute)
		seen.gather(t, r)
		w.set("192.0.2.1 fail")
		run(time.Minute)
		w.set("192.0.2.1 pass")
		run(3 * time.Minute)
		reload(strings.Replace(text, "capacity 100", "capacity 300\ndial 50%", 1))
		reload(strings.Replace(text, "pool us 192.0.2.2", "pool us {\nendpoint 192.0.2.2\nshare 5%\n}", 1))
		reload(strings.Replace(text, "pool us 192.0.2.2", "pool us {\nendpoint 192.0.2.2\nshare 7%\n}", 1))
		reload(strings.Replace(text, "capacity 100", "capacity 300\ndrain", 1))
		r.stop(gen)
	})
	changed := make(map[string]bool)
	for key, values := range seen {
		name, _, _ := strings.Cut(key, " ")
		changed[name] = changed[name] || len(values) > 1
	}
	// Others have tests of their own: swings and stuck sensors in internal/capacity, headers in
	// TestHeaderLoads, overrides and tokens with the control API, maps and targets with theirs.
	elsewhere := []string{"oscillating", "load_stuck", "load_silent_endpoints", "overrides_active", "overrides_without_end", "overrides_postponed", "control_wrong_tokens_total"}
	for _, name := range slices.Sorted(maps.Keys(changed)) {
		if !changed[name] && !slices.Contains(elsewhere, name) {
			t.Errorf("%s never changes", name)
		}
	}
	for _, name := range []string{
		"capacity", "load", "load_age_seconds", "load_weight_ratio", "load_refused", "utilisation_ratio", "demand", "flow_wanted", "flow_expected", "trim_ratio", "deficit",
		"moved_ratio", "unmoved_ratio", "admission_ratio", "share_wanted_ratio", "share_served_ratio", "share_deviation_ratio", "resolver_concentration",
		"region_dial_ratio", "region_ramp_ratio", "region_share_ratio", "region_drained",
	} {
		if _, there := changed[name]; !there {
			t.Errorf("%s is never there", name)
		}
	}
}

// TestSinkLabels holds how metrics of the law of capacity name what they tell of: a region,
// a host's pool with a capacity of its own, and what is shed.
func TestSinkLabels(t *testing.T) {
	dir := loadDir(t)
	synctest.Test(t, func(t *testing.T) {
		r := newWorld().registry()
		gen, _ := r.mustStart(t, strings.ReplaceAll(`gslb {
	region eu {
		clients rest
		capacity 100
	}
	region us {
		capacity 100
		load file DIR/us
	}
	host api.example.com {
		shed to layer2.example.net
		pool eu 192.0.2.1
		pool us {
			endpoint 192.0.2.2
			capacity 30
		}
	}
	host www.example.com {
		pool eu 192.0.2.3
		pool us 192.0.2.4
	}
}`, "DIR", dir))
		defer r.stop(gen)
		time.Sleep(time.Minute)
		seen := make(changes)
		seen.gather(t, r)
		for name, want := range map[string]string{
			"capacity": " eu| us|api.example.com. us", "demand": " eu| none| us|api.example.com. us",
			"flow_expected": " eu| none| us|api.example.com. us", "damped": " eu| us|api.example.com. us", "load_refused": " us",
		} {
			var got []string
			for key := range seen {
				if labels, ok := strings.CutPrefix(key, name+" "); ok {
					got = append(got, labels)
				}
			}
			if slices.Sort(got); strings.Join(got, "|") != want {
				t.Errorf("%s is told of %q, want %q", name, got, want)
			}
		}
		s, err := backend{r, new(ledger)}.Status(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if eu := s.Regions[0]; eu.Capacity == nil || eu.Load != nil || eu.Utilisation != nil || eu.Demand != nil {
			t.Errorf("status of a region without a load: %s", asJSON(eu))
		}
	})
}

// TestOverridesAreCounted holds that overrides are counted, and those that nobody has
// given an end apart.
func TestOverridesAreCounted(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		c := newWorld().clerk(t, dir)
		c.desk.api = new(control.Server) // it counts wrong tokens
		gen, _ := c.start(t, leverBlock("", ""))
		defer c.stop(gen)
		count := func(what, want string) {
			t.Helper()
			seen := make(changes)
			seen.gather(t, c.registry)
			var got []string
			for key, values := range seen {
				if one, ok := strings.CutPrefix(key, "overrides_"); ok && !values[0] {
					got = append(got, fmt.Sprint(one, " ", slices.Collect(maps.Keys(values))))
				}
			}
			if slices.Sort(got); strings.Join(got, ", ") != want {
				t.Errorf("%s: %q, want %q", what, got, want)
			}
		}
		count("at first", "")
		c.must(t, "trickle 5% region=a for=1h")
		c.must(t, "trickle 6% region=b")
		count("two", "active trickle [2], without_end trickle [1]")
		time.Sleep(2 * time.Hour)
		count("one is over", "active trickle [1], without_end trickle [1]")
	})
}
